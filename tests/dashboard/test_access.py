"""Who may look, and from where."""

from __future__ import annotations

import pytest
from multidict import CIMultiDict

from dashboard import access
from dashboard.access import FREE_TRIES, MAX_WAIT_SECONDS, SESSION_SECONDS, AccessControl, is_same_origin
from model.permissions import OWNER, Operator
from tests.dashboard.made import TOKEN

BOB, BOB_TOKEN = Operator("bob", "looks_on"), "a-token-of-bob-alone"


@pytest.fixture
def at() -> list[float]:
    return [1000.0]


@pytest.fixture
def visitors(at: list[float]) -> AccessControl:
    return AccessControl({TOKEN: OWNER, BOB_TOKEN: BOB}, frozenset(), lambda: at[0])


@pytest.mark.parametrize(
    ("host", "meant"),
    [
        ("localhost:9090", True),
        ("LOCALHOST", True),
        ("127.0.0.1:1", True),
        ("[::1]:9090", True),
        ("bots.internal:9090", True),
        ("rebound.example:9090", False),
        ("127.0.0.1.rebound.example", False),
        ("localhost@rebound.example", False),
        ("", False),
        ("[", False),
    ],
)
def test_without_a_token_only_its_own_names_are_meant(host: str, meant: bool) -> None:
    assert AccessControl({}, frozenset({"bots.internal"}), lambda: 0.0).is_allowed_host({"Host": host}) is meant


def test_with_a_token_every_name_is_but_there_must_be_one(visitors: AccessControl) -> None:
    assert visitors.is_allowed_host({"Host": "bot.example.org", "Via": "1.1 proxy"})
    assert not visitors.is_allowed_host({})


@pytest.mark.parametrize("host", ["bücher.example", "水" * 2_700, "xn--" + "a" * 8_000, "a" * 254, "a b", "a/b", "b@a"])
def test_a_name_that_no_browser_sends_is_refused_before_it_is_decoded(visitors: AccessControl, host: str) -> None:
    """Decoding a long one takes a second, in which nobody is answered."""
    assert not visitors.is_allowed_host({"Host": host})


def test_a_session_ends_when_it_is_left_and_by_itself(visitors: AccessControl, at: list[float]) -> None:
    one, other = visitors.begin_session(OWNER), visitors.begin_session(OWNER)
    assert visitors.session_of(one) == one
    visitors.end_session(one)
    assert visitors.session_of(one) is None
    assert visitors.session_of("invented") is None
    assert visitors.session_of(None) is None
    at[0] += SESSION_SECONDS
    assert visitors.session_of(other) is None


def test_sessions_are_bounded(visitors: AccessControl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "MAX_SESSIONS", 2)
    first, *others = (visitors.begin_session(OWNER) for _ in range(3))
    assert visitors.session_of(first) is None
    assert [visitors.session_of(each) for each in others] == others


def test_nobody_ends_the_sessions_of_others_by_beginning_many(
    visitors: AccessControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "MAX_SESSIONS", 2)
    own = visitors.begin_session(OWNER)
    for _ in range(3):
        visitors.begin_session(BOB)
    assert visitors.operator_in(own) == OWNER


def test_a_token_and_its_session_are_of_one_operator(visitors: AccessControl) -> None:
    assert visitors.find_operator(TOKEN, "10.0.0.1") == OWNER
    assert visitors.find_operator(BOB_TOKEN, "10.0.0.1") == BOB
    for wrong in ("", BOB_TOKEN[:-1], BOB_TOKEN + " ", BOB_TOKEN.upper(), "bob", TOKEN + BOB_TOKEN):
        assert visitors.find_operator(wrong, f"10.0.0.{len(wrong)}") is None
    session = visitors.begin_session(BOB)
    assert visitors.operator_in(session) == BOB
    assert visitors.operator_in("") is None


def test_sessions_end_with_the_settings_that_they_were_made_under(at: list[float]) -> None:
    """Tokens and roles are read at a start: a session of the earlier ones is none."""
    before = AccessControl({BOB_TOKEN: Operator("bob", "administers")}, frozenset(), lambda: at[0])
    after = AccessControl({BOB_TOKEN: BOB}, frozenset(), lambda: at[0])
    session = before.begin_session(Operator("bob", "administers"))
    assert (before.session_of(session), after.session_of(session)) == (session, None)
    assert not after.has_form_key(session, before.form_key(session))


def test_without_a_token_everybody_is_in_one_session() -> None:
    free = AccessControl({}, frozenset(), lambda: 0.0)
    assert free.session_of(None) == free.session_of("invented") == ""
    assert free.operator_in("") == OWNER
    assert not free.find_operator("", "10.0.0.1")


def test_guesses_have_to_wait_longer_and_longer(visitors: AccessControl, at: list[float]) -> None:
    waits: list[float] = []
    for _ in range(1_100):  # 2.0 ** 1024 is more than there is
        assert not visitors.find_operator("a guess", "10.0.0.1")
        waits.append(visitors.seconds_to_wait("10.0.0.1"))
        at[0] += waits[-1]
    assert waits[: FREE_TRIES - 1] == [0.0] * (FREE_TRIES - 1)
    assert waits[FREE_TRIES - 1 : FREE_TRIES + 2] == [1.0, 2.0, 4.0]
    assert waits[-1] == MAX_WAIT_SECONDS


def test_the_token_is_let_in_at_any_time_and_guesses_go_on_waiting(visitors: AccessControl, at: list[float]) -> None:
    """H6: behind a proxy, all come from one address."""
    for _ in range(FREE_TRIES):
        visitors.find_operator("a guess", "10.0.0.1")
    assert visitors.find_operator(TOKEN, "10.0.0.1") == OWNER
    assert visitors.seconds_to_wait("10.0.0.1") == 1.0
    at[0] += 1.0
    assert not visitors.find_operator("a guess", "10.0.0.1")
    assert visitors.seconds_to_wait("10.0.0.1") == 2.0


def test_addresses_that_guess_are_bounded(visitors: AccessControl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "MAX_ADDRESSES", 1)
    for address in ("10.0.0.1", "10.0.0.2"):
        for _ in range(FREE_TRIES):
            visitors.find_operator("a guess", address)
    assert (visitors.seconds_to_wait("10.0.0.1"), visitors.seconds_to_wait("10.0.0.2")) == (0.0, 1.0)


def test_a_form_is_taken_with_the_key_of_its_session_alone(visitors: AccessControl) -> None:
    mine, theirs = visitors.begin_session(OWNER), visitors.begin_session(OWNER)
    assert visitors.has_form_key(mine, visitors.form_key(mine))
    assert not visitors.has_form_key(mine, visitors.form_key(theirs))
    assert not visitors.has_form_key(mine, "")


def test_secrets_are_not_in_what_it_prints() -> None:
    made = AccessControl({}, frozenset(), lambda: 0.0)
    session = made.begin_session(OWNER)
    assert session not in repr(made)


@pytest.mark.parametrize(
    ("headers", "own"),
    [
        ({"Host": "localhost:1"}, True),
        ({"Host": "localhost:1", "Origin": "http://localhost:1"}, True),
        ({"Host": "localhost:1", "Origin": "http://localhost:2"}, False),
        ({"Host": "localhost:1", "Origin": "null"}, False),
        ({"Host": "localhost:1", "Sec-Fetch-Site": "cross-site"}, False),
        ({"Host": "localhost:1", "Sec-Fetch-Site": "same-origin"}, True),
    ],
)
def test_a_form_of_another_page_is_recognised(headers: dict[str, str], own: bool) -> None:
    assert is_same_origin(headers) is own


@pytest.mark.parametrize("header", ["X-Forwarded-For", "x-real-ip", "Via", "Forwarded"])
def test_without_a_token_what_a_proxy_passes_on_is_refused(header: str) -> None:
    """Else everybody who reaches the proxy would be the owner: to the bot, such requests come from this machine."""
    headers = CIMultiDict({"Host": "127.0.0.1:9090", header: "8.8.8.8"})
    assert not AccessControl({}, frozenset(), lambda: 0.0).is_allowed_host(headers)
    del headers[header]
    assert AccessControl({}, frozenset(), lambda: 0.0).is_allowed_host(headers)
