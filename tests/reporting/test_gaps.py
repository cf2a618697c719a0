from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reporting.report
from model.outcomes import OutcomeKind, Reason, traits_of
from model.servers import Servers
from reporting.report import (
    answered_by_lessons,
    find_gaps,
    is_gap,
    lessons_among,
    reason_of,
    shared_by_all,
    title_of,
)
from services.search.embedding import Vectors
from services.team import REMOVED, Pair
from services.telemetry import PartOutcome
from tests.patterns.growth import peak
from tests.reporting.asked import MONDAY, asked
from tests.services.team.pairs import captured

LANTERNS = ["How do I light the lantern?", "my lantern will not light", "lantern does not light up, why?"]
OTHERS = ["Where are invoices kept?", "Can I pay by card?"]


async def test_questions_with_the_same_words_are_one_gap() -> None:
    entries = [asked(text, at=MONDAY + at, author_id=at) for at, text in enumerate([*LANTERNS, *OTHERS])]
    found = await find_gaps(entries, None)
    assert [len(gap.questions) for gap in found] == [3, 1, 1]
    assert (found[0].question in LANTERNS, found[0].askers) == (True, 3)
    assert [entry.question for entry in found[0].questions] == LANTERNS[::-1]


@pytest.mark.parametrize("embeds", [True, False])
async def test_servers_that_share_no_knowledge_have_no_gap_in_common(*, embeds: bool) -> None:
    async def alike(texts: Sequence[str]) -> Vectors:
        return np.ones((len(texts), 2), dtype=np.float32)

    entries = [asked(LANTERNS[0], at=MONDAY + at, guild_id=guild_id) for at, guild_id in enumerate([1, 2, 3, None, 2])]
    found = await find_gaps(entries, alike if embeds else None, Servers({None: "", 2: "its own"}).owner_of)
    assert [[entry.guild_id for entry in gap.questions] for gap in found] == [[None, 3, 1], [2, 2]]


def test_made_up_words_fill_no_memory() -> None:
    """With a vector of all words for each, a few hundred such questions took gigabytes."""
    entries = [asked(" ".join(f"w{at}x{word}" for word in range(800)), author_id=at) for at in range(200)]
    assert peak(lambda: asyncio.run(find_gaps(entries, None))) < 40_000_000


async def test_with_an_embedder_its_vectors_say_what_is_alike() -> None:
    async def by_first_letter(texts: Sequence[str]) -> Vectors:
        return np.array([[text.startswith("a"), text.startswith("b")] for text in texts], dtype=np.float32)

    found = await find_gaps([asked("a lantern"), asked("b lantern"), asked("a boat")], by_first_letter)
    assert [sorted(entry.question for entry in gap.questions) for gap in found] == [
        ["a boat", "a lantern"],
        ["b lantern"],
    ]


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("hi all, how do I light the lantern?", "How do I light the lantern?"),
        ("Good morning! I am new here. I have a boat.\n\nWhere is the lantern? Thanks!", "Where is the lantern?"),
        ("lantern will not light", "Lantern will not light"),
        ("?!", "?!"),
        ("x" * 200, f"X{'x' * 89}…"),
        ("Why is https://docs.example.org/en/lantern?page=3#wick empty?", "Why is docs.example.org empty?"),
        (
            "see http://me@docs.example.org/a/b. Why is it dark, as in https://docs.example.org?",
            "Why is it dark, as in docs.example.org?",
        ),
        ("https://docs.example.org/x", "Docs.example.org"),
        (f"Why does {'the old lantern ' * 20}smoke?", f"Why does {'the old lantern ' * 4}the old lantern…"),
    ],
)
def test_a_title_is_the_sentence_that_asks(question: str, title: str) -> None:
    assert title_of(question) == title


async def test_a_gap_stays_dismissed_until_more_ask_than_were_dismissed() -> None:
    entries = [asked("lantern light?", at=MONDAY + at) for at in range(3)]
    dismissed = {int(MONDAY)}

    async def is_dismissed(count: int) -> bool:
        (gap,) = await find_gaps(entries[:count], None)
        return gap.is_dismissed(dismissed)

    assert [await is_dismissed(count) for count in (1, 2, 3)] == [True, True, False]
    (gap,) = await find_gaps(entries, None)
    assert not gap.is_dismissed(())


@pytest.mark.parametrize("order", [1, -1])
async def test_of_two_questions_the_shorter_names_their_gap(order: int) -> None:
    texts = ["lantern light please, somebody, for my boat?", "lantern light?"]
    (gap,) = await find_gaps([asked(text) for text in texts[::order]], None)
    assert gap.question == "lantern light?"


async def test_addresses_do_not_make_questions_alike() -> None:
    entries = [asked(f"https://paste.example/{word} {word}?") for word in ("walrus", "teapot")]
    assert len(await find_gaps(entries, None)) == 2


async def test_equal_questions_without_a_word_to_search_for_are_one_gap() -> None:
    found = await find_gaps([asked(text) for text in ("can you?", "what is this?", "Can  you?")], None)
    assert [len(gap.questions) for gap in found] == [2, 1]


async def test_without_gaps_nobody_is_asked_for_vectors() -> None:
    async def never(_: Sequence[str]) -> Vectors:
        raise AssertionError

    assert await find_gaps([asked("answered", reason=None)], never) == []


@pytest.mark.parametrize(
    ("entry", "gap"),
    [
        (asked("?", reason=None), False),
        (asked("?", reason=None, level="answer"), False),
        (asked("?", reason=None, level="point"), True),
        (asked("?", reason=Reason.NOT_ANSWERABLE), True),
        (asked("", reason=Reason.NOT_ANSWERABLE), False),
        (asked("?", reason=Reason.BUDGET), False),
        (asked("?", reason=Reason.TEAM_ANSWERED, result=OutcomeKind.CANCELLED), False),
        (asked("?", reason="Unavailable at gate", result=OutcomeKind.FAILED), False),
    ],
)
def test_a_gap_is_what_better_pages_might_have_answered(entry: PartOutcome, *, gap: bool) -> None:
    assert is_gap(entry) is gap


def test_reasons_are_in_the_words_of_outcomes() -> None:
    assert reason_of(asked("?")) == "no sources"
    assert reason_of(asked("?", reason=None, level="point")) == "pointed to a page"
    failed = asked("?", reason="Unavailable at gate", result=OutcomeKind.FAILED)
    assert reason_of(failed) == "failed: Unavailable at gate"


QUESTIONS = st.lists(
    st.builds(asked, st.text(max_size=30), reason=st.sampled_from([each for each in Reason if traits_of(each).is_gap])),
    max_size=20,
)


@given(QUESTIONS)
async def test_each_question_is_in_one_gap(entries: list[PartOutcome]) -> None:
    found = await find_gaps(entries, None)
    grouped = [entry for gap in found for entry in gap.questions]
    assert sorted(entry.question for entry in grouped) == sorted(entry.question for entry in entries if entry.question)
    assert [len(gap.questions) for gap in found] == sorted((len(gap.questions) for gap in found), reverse=True)


async def test_questions_are_grouped_off_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pitfall 64: two thousand of them take half a second."""
    threads: set[int] = set()
    real = reporting.report.terms

    def heard(text: str, language: str) -> list[str]:
        threads.add(threading.get_ident())
        return real(text, language)

    monkeypatch.setattr(reporting.report, "terms", heard)
    await find_gaps([asked(text) for text in LANTERNS], None)
    assert threads
    assert threading.get_ident() not in threads


def test_made_up_words_take_no_memory() -> None:
    """500 questions of them took 2 GB."""
    entries = [asked(" ".join(f"w{number}x{at}" for at in range(200))) for number in range(200)]
    assert peak(lambda: asyncio.run(find_gaps(entries, None))) < 30_000_000


async def test_groups_do_not_depend_on_how_much_is_asked_beside() -> None:
    entries = [asked(text, at=MONDAY + at) for at, text in enumerate(LANTERNS)]
    others = [asked(f"subject{at} thing{at}?", at=MONDAY + 10 + at) for at in range(200)]
    found = await find_gaps([*entries, *others], None)
    assert [len(gap.questions) for gap in found] == [3, *[1] * 200]


def lesson(hours: int, question: str, conversation_id: str = "taught_9") -> Pair:
    return replace(captured(hours, question, "Turn it by half."), conversation_id=conversation_id)


async def test_a_lesson_answers_the_gap_with_its_question_as_far_as_it_was_asked_before() -> None:
    taught = lesson(5, "how do I light the lantern")
    when = float(taught.key)
    entries = [asked(text, at=when + at - 2, author_id=at) for at, text in enumerate(LANTERNS)]
    other = asked(OTHERS[0], at=when - 9)
    gaps = await find_gaps([*entries, other], None)
    lessons = [taught, lesson(6, "Is there a dark mode?")]
    captured_or_forgotten = [lesson(5, OTHERS[0], "thread_9"), lesson(5, REMOVED)]
    found = lessons_among([*lessons, *captured_or_forgotten])
    assert answered_by_lessons(gaps, {None: found}, shared_by_all) == {int(when) - 2: taught, int(when) - 1: taught}
    newest = lesson(7, LANTERNS[0])
    answered = answered_by_lessons(gaps, {None: [*lessons, newest]}, shared_by_all)
    assert {pair.key for pair in answered.values()} == {newest.key}


async def test_a_lesson_of_a_server_with_knowledge_of_its_own_answers_the_gaps_of_that_server() -> None:
    entries = [asked(LANTERNS[0], guild_id=guild_id, at=MONDAY + guild_id) for guild_id in (1, 2)]
    owner_of = Servers({None: "", 2: "its own"}).owner_of
    gaps = await find_gaps(entries, None, owner_of)
    taught = lesson(50_000, LANTERNS[0])
    assert answered_by_lessons(gaps, {2: [taught]}, owner_of) == {int(MONDAY) + 2: taught}


async def test_a_question_that_is_forgotten_is_no_gap() -> None:
    assert await find_gaps([asked("[removed]"), asked("[removed]\n [removed]")], None) == []
