"""What may be recorded."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from services.discord import recordings
from services.discord.dispatches import Dispatch
from services.discord.recordings import RecordingFilter
from services.discord.wire import USED_TYPES

GONE = 66


def opted_out(author_id: int, text: str) -> bool:
    return author_id == GONE or "!nobot" in text


def post(message_id: int, text: str = "hi", **more: object) -> dict[str, object]:
    return {"id": str(message_id), "channel_id": "2", "author": {"id": "7"}, "content": text, **more}


def reaction(message_id: int) -> dict[str, object]:
    return {"user_id": "7", "channel_id": "2", "message_id": str(message_id), "emoji": {"name": "👍"}}


@pytest.fixture
def clear() -> RecordingFilter:
    return RecordingFilter(opted_out)


def payload(clear: RecordingFilter, t: str, d: Mapping[str, object]) -> object:
    cleared = clear.filter(Dispatch(5.0, t, d))
    if cleared is None:
        return None
    assert (cleared.at, cleared.t) == (5.0, t)
    assert cleared.d is not None
    return cleared.d


@pytest.mark.parametrize("t", ["INTERACTION_CREATE", "PRESENCE_UPDATE", "RESUMED"])
def test_interactions_and_what_nothing_reads_are_left_out(clear: RecordingFilter, t: str) -> None:
    """Pitfall 22: interactions carry tokens."""
    assert t not in USED_TYPES
    assert payload(clear, t, post(1)) is None


def test_ordinary_dispatches_pass_unchanged(clear: RecordingFilter) -> None:
    for t, d in (
        ("MESSAGE_CREATE", post(1, referenced_message=post(9), message_reference={"message_id": "9"})),
        ("MESSAGE_CREATE", post(2, referenced_message=None)),
        ("MESSAGE_UPDATE", post(1, "changed")),
        ("MESSAGE_DELETE", {"id": "1", "channel_id": "2"}),
        ("MESSAGE_DELETE_BULK", {"ids": ["1", "2"], "channel_id": "2"}),
        ("MESSAGE_REACTION_ADD", reaction(1)),
        ("THREAD_CREATE", {"id": "3", "type": 11}),
    ):
        assert payload(clear, t, d) == d


def test_nothing_of_an_opted_out_message_is_kept(clear: RecordingFilter) -> None:
    assert payload(clear, "MESSAGE_CREATE", post(1, "secret !nobot")) is None
    assert payload(clear, "MESSAGE_UPDATE", post(1, "secret")) is None
    assert payload(clear, "MESSAGE_REACTION_ADD", reaction(1)) is None
    assert payload(clear, "MESSAGE_REACTION_REMOVE", reaction(1)) is None
    assert payload(clear, "MESSAGE_DELETE", {"id": 1, "channel_id": "2"}) is None
    assert payload(clear, "MESSAGE_DELETE_BULK", {"ids": ["1"], "channel_id": "2"}) is None
    bulk = payload(clear, "MESSAGE_DELETE_BULK", {"ids": ["1", 2], "channel_id": "2"})
    assert bulk == {"ids": ["2"], "channel_id": "2"}


def test_of_typing_nothing_is_kept_but_who_and_where_and_when(clear: RecordingFilter) -> None:
    where = {"channel_id": "2", "guild_id": "9", "user_id": "7", "timestamp": 5}
    person = {"id": "7", "username": "ann", "global_name": "Ann", "avatar": "a1b2", "bot": False}
    member = {"nick": "Annie", "joined_at": "2020-01-01", "roles": ["5"], "user": person}
    kept = {**where, "member": {"roles": ["5"], "user": {"id": "7", "bot": False}}}
    assert payload(clear, "TYPING_START", {**where, "member": member}) == kept
    assert payload(clear, "TYPING_START", where) == where
    assert payload(clear, "TYPING_START", {**where, "member": {"nick": "Annie"}}) == {
        **where,
        "member": {"roles": None, "user": {"id": "7", "bot": False}},
    }
    of_a_bot = {**where, "member": {"roles": ["5"], "user": {**person, "bot": True}}}
    assert payload(clear, "TYPING_START", of_a_bot) == {
        **where,
        "member": {"roles": ["5"], "user": {"id": "7", "bot": True}},
    }
    assert payload(clear, "TYPING_START", {**where, "user_id": str(GONE)}) is None
    assert payload(clear, "TYPING_START", {"channel_id": "2"}) is None


def test_threads_of_who_opted_out_have_no_name_and_their_reactions_are_not_kept(clear: RecordingFilter) -> None:
    theirs = {"id": "30", "type": 11, "parent_id": "2", "owner_id": str(GONE), "name": "my secret"}
    nameless, others = {key: theirs[key] for key in theirs if key != "name"}, {**theirs, "id": "31", "owner_id": "7"}
    for t in ("THREAD_CREATE", "THREAD_UPDATE"):
        assert payload(clear, t, theirs) == nameless
        assert payload(clear, t, others) == others
        assert payload(clear, t, {"name": "no id"}) is None
    listed = {"threads": [theirs, {"name": "no id"}, others, 5]}
    assert payload(clear, "GUILD_CREATE", {"id": "1", **listed}) == {"id": "1", "threads": [nameless, others]}
    assert payload(clear, "THREAD_LIST_SYNC", {"guild_id": "1", "threads": None}) == {"guild_id": "1", "threads": []}
    assert payload(clear, "MESSAGE_REACTION_ADD", {**reaction(1), "user_id": str(GONE)}) is None
    assert payload(clear, "MESSAGE_CREATE", post(31, "!nobot")) is None
    assert payload(clear, "THREAD_UPDATE", others) == {**nameless, "id": "31", "owner_id": "7"}  # opened on it


FORUM = {"id": "1", "channels": [{"id": "2", "type": 0}, {"id": "20", "type": 15}, 5], "threads": []}
POST = {"id": "40", "type": 11, "parent_id": "20", "owner_id": "7", "name": "my secret", "newly_created": True}
NAMELESS = {key: POST[key] for key in POST if key != "name"}
FIRST = {**post(40), "channel_id": "40"}


def test_a_forum_post_whose_name_opts_it_out_is_recorded_without_name_and_first_message(clear: RecordingFilter) -> None:
    assert payload(clear, "THREAD_CREATE", {**POST, "name": "my secret !nobot"}) == NAMELESS
    assert payload(clear, "MESSAGE_CREATE", {**post(41), "channel_id": "40"}) is not None
    assert payload(clear, "MESSAGE_CREATE", FIRST) is None
    assert payload(clear, "THREAD_UPDATE", POST) == NAMELESS
    assert payload(clear, "MESSAGE_REACTION_ADD", reaction(40)) is None


def test_the_name_of_a_thread_does_not_hide_the_message_that_it_was_opened_on(clear: RecordingFilter) -> None:
    assert payload(clear, "THREAD_CREATE", {**POST, "parent_id": "2", "name": "!nobot"}) == {
        **NAMELESS,
        "parent_id": "2",
    }
    assert payload(clear, "MESSAGE_UPDATE", post(40)) == post(40)


@pytest.mark.parametrize("has_marker", [True, False])
def test_a_new_forum_post_has_its_name_once_its_first_message_is_recorded(*, has_marker: bool) -> None:
    clear = RecordingFilter(opted_out)

    def written(at: float, t: str, d: Mapping[str, object]) -> list[tuple[float, str, Mapping[str, object]]]:
        return [(each.at, each.t, each.d) for each in clear.filter_new(Dispatch(at, t, d))]

    assert written(1.0, "GUILD_CREATE", FORUM) == [(1.0, "GUILD_CREATE", FORUM)]
    assert written(2.0, "THREAD_CREATE", POST) == [(2.0, "THREAD_CREATE", NAMELESS)]
    assert written(2.5, "THREAD_UPDATE", POST) == [(2.5, "THREAD_UPDATE", NAMELESS)]
    first = {**FIRST, "content": "hi !nobot" if has_marker else "hi"}
    both = [(3.0, "THREAD_CREATE", POST), (3.0, "MESSAGE_CREATE", first)]
    assert written(3.0, "MESSAGE_CREATE", first) == ([] if has_marker else both)
    assert written(4.0, "THREAD_UPDATE", POST) == [(4.0, "THREAD_UPDATE", NAMELESS if has_marker else POST)]
    in_channel = {**POST, "id": "50", "parent_id": "2"}
    assert written(5.0, "THREAD_CREATE", in_channel) == [(5.0, "THREAD_CREATE", in_channel)]


def test_an_edit_can_opt_a_message_out(clear: RecordingFilter) -> None:
    assert payload(clear, "MESSAGE_CREATE", post(1)) is not None
    assert payload(clear, "MESSAGE_UPDATE", post(1, "!nobot")) is None
    assert payload(clear, "MESSAGE_REACTION_ADD", reaction(1)) is None


def test_replies_and_forwards_do_not_carry_an_opted_out_message_along(clear: RecordingFilter) -> None:
    for target in (post(9, "secret !nobot"), {"id": "9", "content": "secret"}):
        reply = post(1, message_reference={"message_id": "9"}, referenced_message=target)
        assert payload(clear, "MESSAGE_CREATE", reply) == post(1, message_reference={"message_id": "9"})
    assert payload(clear, "MESSAGE_CREATE", post(8, "!nobot")) is None
    assert payload(clear, "MESSAGE_CREATE", post(1, referenced_message=post(8))) == post(1)
    assert payload(clear, "MESSAGE_CREATE", post(2, message_snapshots=[{"message": {"content": "secret"}}])) == post(2)


def test_what_cannot_be_judged_is_left_out(clear: RecordingFilter) -> None:
    assert payload(clear, "MESSAGE_CREATE", {"id": "1", "content": "secret"}) is None
    assert payload(clear, "MESSAGE_UPDATE", {"id": "1", "channel_id": "2", "content": "secret"}) is None


def test_the_session_and_the_members_are_not_kept(clear: RecordingFilter) -> None:
    """Pitfall 22."""
    ready = {"v": 10, "user": {"id": "9"}, "session_id": "x", "resume_gateway_url": "wss://x"}
    assert payload(clear, "READY", ready) == {"v": 10, "user": {"id": "9"}}
    guild: dict[str, object] = {"id": "1", "channels": [], "members": [{"nick": "Ada"}], "presences": [{}]}
    assert payload(clear, "GUILD_CREATE", guild) == {"id": "1", "channels": []}
    sync: dict[str, object] = {"guild_id": "1", "channel_ids": ["20"], "threads": [], "members": [{"user_id": "7"}]}
    assert payload(clear, "THREAD_LIST_SYNC", sync) == {"guild_id": "1", "threads": []}


def test_the_memory_for_opted_out_messages_is_bounded(clear: RecordingFilter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recordings, "MAX_HIDDEN_IDS", 2)
    for message_id in (1, 2, 3):
        payload(clear, "MESSAGE_CREATE", post(message_id, "!nobot"))
    assert payload(clear, "MESSAGE_REACTION_ADD", reaction(1)) is not None
    assert payload(clear, "MESSAGE_REACTION_ADD", reaction(2)) is None
