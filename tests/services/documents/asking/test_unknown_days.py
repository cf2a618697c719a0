"""Questions about days and times over lines that do not tell theirs: no number is given, and the reason is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from services.documents.facts import Files
from services.documents.store.document_store import DocumentStore
from services.documents.tools.libraries import QAResult
from tests.services.documents import cases

SWAPPED = """\
3/5/2031 9:00:00 AM ERROR [main] shop.Cart: a failed
3/6/2031 2:00:00 PM ERROR [main] shop.Cart: b failed
3/6/2031 2:30:00 PM INFO [main] shop.Cart: order ord-58213 sent
"""
DAYLESS = "22:58:00 ERROR a failed\n00:01:00 ERROR b failed\n"
TIMELESS = "ERROR a failed\nINFO order ord-58213 sent\nERROR b failed\n"
DECIDED = f"{SWAPPED}3/16/2031 1:00:00 PM INFO ok\n"
DATED = "2031-03-05 09:00:00 ERROR a failed\n2031-03-06 09:00:00 ERROR b failed\n"

_SWAPPED = "either number of 3/5/2031 may be the day"
_DAYLESS = "they have times without a day"
_TIMELESS = "no time of theirs could be read"


async def files(folder: Path, **texts: str) -> Files:
    made = Files(folder)
    for name, text in texts.items():
        await made.add(f"{name}.log", text.encode())
    return made


async def store(folder: Path, text: str) -> DocumentStore:
    made = cases.new_store(folder)
    await cases.post(made, "shop.log", text)
    return made


async def ask(folder: Path, text: str, question: str) -> QAResult:
    tools = cases.tools_over(await store(folder, text))
    return await tools["answer_from_case_evidence"].ask(cases.context(), question, 5)


@pytest.mark.parametrize(
    ("text", "question", "lines", "reason"),
    [
        (SWAPPED, "How many errors were there on March 5?", "2 lines", _SWAPPED),
        (SWAPPED, "How many errors were there on 2031-03-05?", "2 lines", _SWAPPED),
        (SWAPPED, "What was the first ERROR on March 5?", "2 lines", _SWAPPED),
        (SWAPPED, "What happened on March 5?", "3 lines", _SWAPPED),
        (SWAPPED, "How many errors were there between Mar 5 9:00 and Mar 6 10:00?", "2 lines", _SWAPPED),
        (SWAPPED, "How many errors were there on March 5 after 13:00?", "1 line", "either number of 3/6/2031"),
        (SWAPPED, "How many entries came after the last error of March 5?", "2 lines", _SWAPPED),
        (DAYLESS, "How many errors were there on Jan 1?", "2 lines", _DAYLESS),
        (DAYLESS, "How many errors were there before March 6?", "2 lines", _DAYLESS),
        (TIMELESS, "How many errors were there on March 5?", "2 lines", _TIMELESS),
        (TIMELESS, "How many errors were there after 15:00?", "2 lines", _TIMELESS),
        (TIMELESS, "How many entries mention ord-58213 after 15:00?", "1 line", _TIMELESS),
    ],
)
async def test_a_day_or_time_that_lines_do_not_tell_cannot_be_told(
    tmp_path: Path, text: str, question: str, lines: str, reason: str
) -> None:
    found = await ask(tmp_path, text, question)
    assert f"for {lines} of shop.log it cannot be told if" in found.answer
    assert reason in found.answer
    assert "there are no" not in found.answer
    assert "0 entries" not in found.answer
    assert "count" not in (found.plan or {})


@pytest.mark.parametrize(
    ("text", "question", "said"),
    [
        (SWAPPED, "How many errors were there after 13:00?", "after 13:00 in shop.log: 1"),
        (SWAPPED, "How many FATAL entries were there on March 5?", "there are no FATAL/CRITICAL entries"),
        (DAYLESS, "How many errors were there after 13:00?", "after 13:00 in shop.log: 1"),
        (DATED, "How many errors were there on March 7?", "there are no FATAL/CRITICAL/ERROR entries"),
        (
            SWAPPED + "3/16/2031 1:00:00 PM INFO ok\n",
            "How many errors were there on March 5?",
            "March 5 in shop.log: 1",
        ),
    ],
)
async def test_what_lines_tell_is_counted(tmp_path: Path, text: str, question: str, said: str) -> None:
    found = await ask(tmp_path, text, question)
    assert said in found.answer
    assert "cannot be told" not in found.answer


@pytest.mark.parametrize(("text", "reason"), [(SWAPPED, _SWAPPED), (TIMELESS, _TIMELESS)])
async def test_an_entry_that_is_named_is_shown_with_a_word_about_its_day(
    tmp_path: Path, text: str, reason: str
) -> None:
    opened = await files(tmp_path, shop=text)
    found = await opened.ask("What happened to ord-58213 on March 5?")
    await opened.close()
    assert [passage.matched for passage in found.passages] == [(text.split("\n").index(_line_of("ord", text)) + 1,)]
    assert any("cannot be told" in note and "1 line" in note for note in found.notes)
    assert found.count is None


def _line_of(word: str, text: str) -> str:
    return next(line for line in text.split("\n") if word in line)


async def test_beside_a_number_it_is_said_what_is_not_in_it(tmp_path: Path) -> None:
    opened = await files(tmp_path, dated=DATED, swapped=SWAPPED)
    found = await opened.ask("How many errors were there on March 5?")
    told = await opened.query({"since": "Mar 5", "until": "Mar 5", "mode": "count"})
    await opened.close()
    assert "dated.log: 1\nswapped.log: cannot be told" in found.facts
    assert "for 2 lines of swapped.log it cannot be told" in found.notes[0]
    assert "dated.log: 1, swapped.log: cannot be told." in told.text
    assert "Note: for 3 lines of swapped.log it cannot be told" in told.text


async def test_a_line_that_is_asked_for_with_a_day_is_shown(tmp_path: Path) -> None:
    opened = await files(tmp_path, shop=SWAPPED)
    found = await opened.ask("What does line 2 of shop.log say on March 5?")
    await opened.close()
    assert found.passages[0].matched == (2,)
    assert "either number of 3/6/2031 may be the day" in found.notes[0]
    assert not any("did not match" in note for note in found.notes)


async def test_lines_are_not_counted_by_days_that_they_do_not_tell(tmp_path: Path) -> None:
    opened = await files(tmp_path, shop=SWAPPED)
    by_day = await opened.ask("How many errors were there per day?")
    by_hour = await opened.ask("How many errors were there per hour?")
    different = await opened.ask("On how many different days were there errors?")
    await opened.close()
    assert "for 2 lines of shop.log it cannot be told on which day it was" in by_day.notes[0]
    assert "-" not in by_day.facts.split("by day")[1]
    assert "by hour: 09h 1, 14h 1" in by_hour.facts
    assert different.count is None
    assert any("asked and not computed: different values of day" in note for note in different.notes)


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"since": "Mar 5"}, 'For 3 lines of shop.log it cannot be told if "since Mar 5" fits'),
        ({"group_by": "day"}, "Note: for 3 lines of shop.log it cannot be told on which day it was"),
        ({"group_by": "day", "regex": "order"}, "(without one: 1)"),
        ({"since": "13:00", "mode": "count"}, "2 lines fit in shop.log."),
    ],
)
async def test_a_form_is_answered_likewise(tmp_path: Path, form: dict[str, Any], said: str) -> None:
    opened = await files(tmp_path, shop=SWAPPED)
    found = await opened.query(form)
    await opened.close()
    assert said in found.text
    assert "0000" not in found.text


async def test_a_date_of_a_question_that_is_in_no_line_may_be_either_day(tmp_path: Path) -> None:
    opened = await files(tmp_path, dated=DATED, swapped=SWAPPED)
    unknown = await opened.ask("How many errors on 6/3/2031?")
    written = await opened.ask("How many errors on 3/6/2031?")
    await opened.close()
    assert (unknown.missing, unknown.count) == ("it cannot be told which day 6/3/2031 is; write it as 2031-03-04", None)
    assert (written.missing, written.count) == ("", 1)


async def test_rows_of_a_table_whose_day_is_not_certain_cannot_be_told(tmp_path: Path) -> None:
    rows = "".join(f"3/5/2031 10:{minute:02}:00,{minute}\n" for minute in range(20))
    opened = Files(tmp_path)
    await opened.add("load.csv", f"time,cpu\n{rows}".encode())
    unknown = await opened.ask("How many rows are there on March 5?")
    await opened.add("load.csv", f"time,cpu\n{rows}3/16/2031 10:00:00,7\n".encode())
    known = await opened.ask("How many rows are there on March 5?")
    await opened.close()
    assert "for 20 lines of load.csv it cannot be told" in unknown.missing
    assert known.count == 20
