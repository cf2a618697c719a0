"""Answers held against their passages."""

from __future__ import annotations

from dataclasses import replace

import pytest

from services.documents.asking.passages import CitedPassage
from services.documents.asking.synthesis import check_answer, shorten

PASSAGE = CitedPassage(
    doc_id="d",
    source="logs/server.log",
    text="10:00 start\n10:01 ERROR disk full on sda1\n10:02 stop",
    line_start=40,
    line_end=42,
    matched=(41,),
    chunk_id="d:0",
    timestamp="2031-03-04T10:01:00",
)


@pytest.mark.parametrize(
    "answer",
    [
        "The disk was full, logs/server.log:41 (10:01:00).",
        "The disk was full (server.log:41).",
        "See logs/server.log:40-42: it stopped.",
        "It says `disk full on sda1` in line 41.",
        'It says "DISK FULL   on sda1".',
        "It says “disk full on sda1” and “ERROR”.",
        f'{"It is so. " * 40}The 5" disk says "disk full on sda1".',
        "Line 40 to 42 show it.",
        "At 10:01 the disk was full.",
        "",
    ],
)
def test_what_the_passages_hold_stays(answer: str) -> None:
    checked = check_answer(answer, [PASSAGE])
    assert checked.answer == answer
    assert checked.unverified == 0


@pytest.mark.parametrize(
    ("answer", "left"),
    [
        ("See logs/server.log:43.", "See (unverified)."),
        ("See logs/server.log:39-41 (10:00:00).", "See (unverified)."),
        ("See other.log:41.", "See (unverified)."),
        ("It is on line 77 of server.log.", "It is on (unverified)."),
        ("It is on line 10.", "It is on (unverified)."),
        ('It says "disk empty".', 'It says "disk empty" (unverified).'),
        ("It says `rm -rf /`.", "It says `rm -rf /` (unverified)."),
        ("It says “disk empty”, “stop”.", "It says “disk empty” (unverified), “stop”."),
        ("See KB-9999.", "See (unverified)."),
    ],
)
def test_what_they_do_not_hold_is_marked_and_counted(answer: str, left: str) -> None:
    checked = check_answer(answer, [PASSAGE])
    assert checked.answer == left
    assert checked.unverified == 1
    assert checked.cited == ()


def test_citations_that_hold_are_told_each_once_in_their_order() -> None:
    answer = "First server.log:42, then server.log:41 (10:01:00), again logs/server.log:42."
    cited = check_answer(answer, [PASSAGE]).cited
    assert [(each.source, each.line_start, each.timestamp) for each in cited] == [
        ("logs/server.log", 42, None),
        ("logs/server.log", 41, "2031-03-04T10:01:00"),
    ]


def test_a_title_of_the_headers_may_be_quoted() -> None:
    assert check_answer('As "Rate limits" says.', [PASSAGE], ["[Chunk 1 - Title: Rate limits]"]).unverified == 0


def test_a_quotation_too_short_to_be_judged_is_none_with_the_next_mark() -> None:
    checked = check_answer("`su` opened in `server.log`, by `me` as `never written`.", [PASSAGE], ["server.log"])
    assert checked.answer == "`su` opened in `server.log`, by `me` as `never written` (unverified)."


@pytest.mark.parametrize(("matched", "first", "last"), [((5,), 2, 8), ((1, 3), 1, 6), ((9,), 6, 10), ((), 1, 10)])
def test_a_passage_is_cut_to_the_lines_around_those_that_match(matched: tuple[int, ...], first: int, last: int) -> None:
    text = "\n".join(f"line {n}" for n in range(1, 11))
    passage = CitedPassage("d", "a.log", text, 1, 10, matched, "d:0", exact=True)
    cut = shorten(passage)
    assert (cut.line_start, cut.line_end) == (first, last)
    assert cut.text.split("\n") == [f"line {n}" for n in range(first, last + 1)]
    assert shorten(replace(passage, exact=False)).text == text
