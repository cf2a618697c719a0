"""Questions about times over lines whose times have a zone, or several."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from services.documents.facts import Files

EAST = """\
2031-03-04T23:30:00+02:00 ERROR api one
2031-03-04T23:45:00.5+02:00 ERROR api two
2031-03-05T00:10:00+02:00 WARN api slow
2031-03-05T01:10:00+02:00 ERROR api three
"""
SEVERAL = """\
2031-03-04T21:45:00Z ERROR api two
2031-03-04T23:30:00+02:00 ERROR api one
2031-03-05T00:10:00+02:00 WARN api slow
"""
NONE = "2031-03-04 21:30:00 ERROR api one\n2031-03-04 21:45:00 ERROR api two\n"
_AS_WRITTEN = "times are compared as they are written, and their zones differ"


async def opened(folder: Path, text: str) -> Files:
    files = Files(folder)
    await files.add("api.log", text.encode())
    return files


@pytest.mark.parametrize(
    ("text", "question", "said"),
    [
        (EAST, "How many errors between 21:30 and 21:50 UTC?", "21:30 and 21:50 UTC in api.log: 2"),
        (EAST, "How many errors after 21:00 UTC?", "after 21:00 UTC in api.log: 3"),
        (EAST, "How many errors after 21:40Z on 2031-03-04?", "2031-03-04 in api.log: 2"),
        (EAST, "How many warnings at 22:10 UTC?", "22:10 UTC in api.log: 1"),
        (EAST, "How many errors since 2031-03-05T04:00+05:00?", "since 2031-03-05T04:00+05:00 in api.log: 1"),
        (EAST, "How many errors at 16:45:00.5 -05:00?", "16:45:00.5 -05:00 in api.log: 1"),
        (EAST, "How many errors are there per hour?", "by hour: 2031-03-04 23h 2, 2031-03-05 01h 1"),
        (EAST, "How many errors on 2031-03-05?", "2031-03-05 in api.log: 1"),
        (SEVERAL, "How many errors between 21:30 and 21:50 UTC?", "21:30 and 21:50 UTC in api.log: 2"),
        (SEVERAL, "How many errors are there per hour?", "by hour (UTC): 2031-03-04 21h 2"),
        (SEVERAL, "How many errors are there?", "entries in api.log: 2"),
    ],
)
async def test_times_are_compared_in_the_zone_of_the_question(
    tmp_path: Path, text: str, question: str, said: str
) -> None:
    """Without one they are as written. Groups of lines of several zones are in UTC, and say so."""
    files = await opened(tmp_path, text)
    found = await files.ask(question)
    await files.close()
    assert said in found.facts
    assert not found.notes


async def test_the_first_and_the_last_entry_are_so_by_time_in_all_zones(tmp_path: Path) -> None:
    files = await opened(tmp_path, SEVERAL)
    first, last = await files.ask("What is the earliest entry?"), await files.ask("What is the latest entry?")
    await files.close()
    assert [passage.matched[0] for passage in (*first.passages, *last.passages)] == [2, 3]


@pytest.mark.parametrize(
    "question", ["How many errors after 23:00?", "How many errors after 22:00?", "What happened at 23:30?"]
)
async def test_a_time_without_a_zone_over_several_is_compared_as_written_and_that_is_said(
    tmp_path: Path, question: str
) -> None:
    files = await opened(tmp_path, SEVERAL)
    found = await files.ask(question)
    await files.close()
    assert _AS_WRITTEN in found.notes


@pytest.mark.parametrize("question", ["How many errors after 21:00 UTC?", "How many errors at 23:30+02:00?"])
async def test_whether_a_time_without_a_zone_fits_one_with_a_zone_cannot_be_told(tmp_path: Path, question: str) -> None:
    files = await opened(tmp_path, NONE)
    found = await files.ask(question)
    await files.close()
    assert found.missing.startswith("for 2 lines of api.log it cannot be told")
    assert found.missing.endswith("their times have no zone")
    assert found.count is None


@pytest.mark.parametrize(
    ("text", "form", "said"),
    [
        (EAST, {"since": "21:40Z", "until": "22:30Z", "mode": "count"}, "2 lines fit"),
        (EAST, {"group_by": "hour", "regex": "api"}, "  2031-03-05 00h: 1"),
        (SEVERAL, {"group_by": "hour", "regex": "api"}, "By hour (UTC), 2 values; lines:\n  2031-03-04 21h: 2"),
        (SEVERAL, {"group_by": "day", "since": "23:00"}, f"Note: {_AS_WRITTEN}."),
        (NONE, {"since": "21:00Z"}, 'it cannot be told if "since 21:00Z" fits: their times have no zone'),
    ],
)
async def test_a_form_is_answered_likewise(tmp_path: Path, text: str, form: dict[str, Any], said: str) -> None:
    files = await opened(tmp_path, text)
    found = await files.query(form)
    await files.close()
    assert said in found.text
