"""When a question needs the ones before it, and which rewrites are good enough."""

from __future__ import annotations

import asyncio
import re
import threading
from functools import cache

import pytest

from services.documents.asking import grammar
from services.documents.asking.passages import Citation
from services.documents.asking.rewriting import (
    ConversationContext,
    ResolvedQuestion,
    find_citations,
    is_acceptable,
    resolve,
    with_citations,
)
from tests.services.documents.asking.planning import documents

TURNS = (("What happened to blk_42 in data.log?", "It was deleted at 10:02."),)
SAID = ConversationContext(TURNS)
DOCUMENTS = documents("app.log", "old/app.log")


async def needs_context(question: str) -> bool:
    return (await resolve(question, SAID, None)).how != "as asked"


@pytest.mark.parametrize(
    "question",
    [
        "When did that happen?",
        "Which component wrote it?",
        "And what came just before that?",
        "and before that?",
        "which file?",
        "why?",
        "What about the next one?",
        "Was it an error?",
        "who did this?",
        "how come?",
        "what else?",
    ],
)
async def test_questions_that_point_back_need_the_conversation(question: str) -> None:
    assert await needs_context(question)


@pytest.mark.parametrize(
    "question",
    [
        "What happened to blk_43?",
        "What is on line 12?",
        "What was logged at 10:05?",
        "How many errors are there?",
        "Which restart policy does the storefront service have in deploy/compose.yaml?",
        "Does the documentation explain how sessions are prolonged for all people?",
        "And what happened to blk_44?",
    ],
)
async def test_questions_that_stand_alone_do_not(question: str) -> None:
    assert not await needs_context(question)


@pytest.mark.parametrize(
    "rewritten",
    [
        "When did blk_42 happen to be deleted in data.log?",
        "At what time was blk_42 deleted?",
    ],
)
def test_a_rewrite_from_what_was_said_is_accepted(rewritten: str) -> None:
    assert is_acceptable("When did that happen?", rewritten, TURNS)


@pytest.mark.parametrize(
    ("question", "rewritten"),
    [
        ("When did that happen?", ""),
        ("When did that happen?", "When was blk_42 deleted?\nIt was at 10:02."),
        ("When did that happen?", "It was deleted at 10:02."),
        ("When did that happen?", "When was blk_99 deleted?"),
        ("When did that happen?", "When was blk_42 deleted in other.log?"),
        ("When did that happen?", "When was blk_42 deleted " + "really " * 60 + "?"),
        ("Did 10.0.0.7 do it?", "Did anybody delete blk_42?"),
        ('Is it "gone for good"?', "Is blk_42 gone?"),
        ("And after 17 tries?", "What happened to blk_42 after some tries?"),
    ],
)
def test_a_rewrite_that_loses_or_invents_something_is_not(question: str, rewritten: str) -> None:
    assert not is_acceptable(question, rewritten, TURNS)


class Rewriter:
    def __init__(self, rewritten: str, seconds: float = 0.0) -> None:
        self.rewritten, self.seconds = rewritten, seconds
        self.turns: list[tuple[tuple[str, str], ...]] = []

    async def rewrite(self, question: str, turns: tuple[tuple[str, str], ...]) -> str:
        self.turns.append(turns)
        await asyncio.sleep(self.seconds)
        return self.rewritten


async def test_no_model_is_asked_without_need() -> None:
    rewriter = Rewriter("never")
    for question, said in (("What happened to blk_43?", SAID), ("When did that happen?", None)):
        resolved = await resolve(question, said, rewriter)
        assert (resolved.query, resolved.how) == (question, "as asked")
    assert rewriter.turns == []


async def test_the_last_three_turns_are_shown_each_cut_short() -> None:
    rewriter = Rewriter("When was blk_42 deleted?")
    said = ConversationContext(tuple((f"Question {n} about blk_42 {'x' * 300}", "Yes. " * 100) for n in range(5)))
    await resolve("When did that happen?", said, rewriter)
    (turns,) = rewriter.turns
    assert [asked[:10] for asked, _ in turns] == ["Question 2", "Question 3", "Question 4"]
    assert all(len(text) <= 200 for turn in turns for text in turn)


async def test_a_rewrite_that_holds_takes_the_place_of_the_question() -> None:
    rewritten = "When was blk_42 deleted?"
    resolved = await resolve("When did that happen?", SAID, Rewriter(rewritten))
    assert resolved == ResolvedQuestion("When did that happen?", rewritten, "rewritten")


async def test_what_asks_for_other_lines_than_those_cited_and_follows_nothing_is_asked_as_it_is() -> None:
    resolved = await resolve("and the last one?", ConversationContext((), CITED), None)
    assert resolved == ResolvedQuestion("and the last one?", "and the last one?")


async def test_a_slow_model_is_not_waited_for() -> None:
    resolved = await resolve("When did that happen?", SAID, Rewriter("When was blk_42 deleted?", seconds=4))
    assert resolved.query == "What happened to blk_42 in data.log? When did that happen?"
    assert not resolved.refused


async def test_a_refused_rewrite_is_remembered_as_refused() -> None:
    resolved = await resolve("When did that happen?", SAID, Rewriter("When was blk_99 deleted?"))
    assert resolved.how == "with the previous question"
    assert resolved.refused


async def test_what_came_next_starts_from_the_line_cited_last() -> None:
    cited = (Citation("d", "data.log", 4, 5, None, "d:0"),)
    resolved = await resolve("and then?", ConversationContext(TURNS, cited), None)
    assert resolved.anchors == cited
    assert resolved.how == "beside the cited line"


CITED = (Citation("d", "data.log", 4, 4, None, "d:0"),)


@pytest.mark.parametrize(
    ("question", "position", "steps"),
    [
        ("what were the next 5 lines?", "next", 5),
        ("two lines after that", "next", 2),
        ("3 lines before it", "previous", 3),
        ("3 lines later", "next", 3),
        ("5 more lines", "next", 5),
        ("and what came right before it?", "previous", 1),
    ],
)
async def test_so_many_lines_are_asked_for_beside_the_cited_one(question: str, position: str, steps: int) -> None:
    resolved = await resolve(question, ConversationContext(TURNS, CITED), None)
    assert (resolved.anchors, resolved.position, resolved.side_lines) == (CITED, position, steps)


@pytest.mark.parametrize(
    ("before", "question", "query"),
    [
        ("first ERROR in app.log", "and WARN?", "first in app.log and WARN?"),
        ("first ERROR in app.log", "and in worker.log?", "first ERROR in and in worker.log?"),
        ("first ERROR in app.log", "what about worker.log?", "first ERROR in what about worker.log?"),
        ("errors at 10:03 in app.log", "and at 10:05?", "errors at in app.log and at 10:05?"),
        ("what is on line 3 of app.log?", "and line 5?", "what is on of app.log? and line 5?"),
        ("how many ERROR entries in app.log?", "per component?", "how many ERROR entries in app.log? per component?"),
        ("how many ERROR entries in app.log?", "and WARN?", "how many entries in app.log? and WARN?"),
    ],
)
async def test_one_fact_alone_takes_the_place_of_its_like(before: str, question: str, query: str) -> None:
    resolved = await resolve(question, ConversationContext(((before, "Here."),), CITED), None)
    assert (resolved.query, resolved.how) == (query, "with the previous question")


async def test_whether_it_was_an_error_is_asked_of_the_cited_line() -> None:
    resolved = await resolve("was it an error?", ConversationContext(TURNS, CITED), None)
    assert (resolved.how, resolved.anchors) == ("the cited lines", CITED)


@pytest.mark.parametrize(
    "question", ["In app.log, what is on line 3?", "and what is on line 4?", "and the first ERROR in worker.log?"]
)
async def test_a_question_with_a_fact_and_a_wish_of_its_own_stands_alone(question: str) -> None:
    assert not await needs_context(question)


async def test_lines_on_both_sides_are_asked_for_together() -> None:
    resolved = await resolve("show me 5 lines before and after it", ConversationContext(TURNS, CITED), None)
    assert [(each.line_start, each.line_end) for each in resolved.anchors] == [(1, 9)]
    assert (resolved.how, resolved.position) == ("around the cited lines", None)


async def test_was_that_an_error_points_back() -> None:
    assert await needs_context("was that an error?")
    assert not await needs_context("how many errors?")


@pytest.mark.parametrize(
    ("before", "question", "kept", "gone"),
    [
        ("What was the first WARN entry?", "and the last one?", "WARN", "first"),
        ("What was the first WARN entry?", "and the first ERROR?", "entry", "WARN"),
        ("How many WARN entries are there?", "when was the first of them?", "WARN", "How many"),
        ("What happened to ord-58213?", "and the next line?", "ord-58213", "last"),
    ],
)
async def test_what_a_follow_up_says_anew_is_not_taken_from_before(
    before: str, question: str, kept: str, gone: str
) -> None:
    resolved = await resolve(question, ConversationContext(((before, "It is there."),)), None)
    assert resolved.query.endswith(question)
    asked_before = resolved.query.removesuffix(question)
    assert kept in asked_before
    assert gone not in asked_before


def test_the_lines_that_an_answer_cites_are_those_of_files_that_are_there() -> None:
    answer = "See APP.log:40 (10:00:40), old/app.log:3-5, other.log:7, app.log:900 and Line 12 of app.log."
    found = find_citations(answer, DOCUMENTS)
    assert [(each.source, each.line_start, each.line_end) for each in found] == [
        ("app.log", 40, 40),
        ("old/app.log", 3, 5),
        ("app.log", 12, 12),
    ]


def test_citations_that_were_given_are_not_read_anew() -> None:
    given = ConversationContext((("a?", "app.log:40"),), (Citation("b", "old/app.log", 1, 1, None, "b:L1"),))
    assert with_citations(given, DOCUMENTS) == given
    assert with_citations(None, DOCUMENTS) is None
    read = with_citations(ConversationContext((("a?", "app.log:40"),)), DOCUMENTS)
    assert read is not None
    assert [each.line_start for each in read.citations] == [40]


async def test_the_grammar_is_compiled_off_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes twice as long as one callback may hold the loop, and the first question of a process compiles it."""
    loop_thread, compiling = threading.get_ident(), list[int]()

    @cache
    def any_phrase() -> re.Pattern[str]:
        compiling.append(threading.get_ident())
        return re.compile(r"(?P<word>\w+)")

    monkeypatch.setattr(grammar, "_any_phrase", any_phrase)
    assert (await resolve("What was logged?", None, None)).query == "What was logged?"
    assert len(compiling) == 1
    assert loop_thread not in compiling
