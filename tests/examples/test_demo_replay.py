"""The demo as a newcomer runs it: every scene ends as examples/README.md says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from typing import Any

import pytest

from tests.examples.test_demo_files import EXAMPLES, RECORDING, Row, messages, rows

ROOT = EXAMPLES.parent
Line = dict[str, Any]


@cache
def printed() -> str:
    command = [sys.executable, "app.py", "--config", str(EXAMPLES / "demo.yaml"), "--replay", str(RECORDING), "--json"]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert ended.returncode in {0, 1}, ended.stderr
    return ended.stdout


@cache
def lines() -> list[Line]:
    return [json.loads(line) for line in printed().splitlines()]


def summary() -> Line:
    return lines()[-1]["summary"]


@cache
def ids_by_time() -> dict[str, str]:
    return {f"{message.at:%H:%M:%S}": message.payload["id"] for message in messages()}


def of(row: Row) -> Line | None:
    """What became of the part that holds the row's message; None: it was in no part with an outcome."""
    message_id = ids_by_time()[row.time]
    return next((line for line in lines()[:-1] if message_id in line["message_ids"]), None)


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row.time} {row.what}")
def test_a_scene_ends_as_the_table_says(row: Row) -> None:
    line = of(row)
    words = re.findall(r"`(.*?)`", row.expected.partition(";")[0])
    if row.expected.startswith(("`ignored`", "nothing")):
        assert line is None
        return
    assert line is not None
    assert line["outcome"] == words[0]
    if words[0] in {"skipped", "cancelled"}:
        assert line["reason"] == words[1]
    if words[0] == "replied":
        assert any(source.startswith(words[1]) for source in line["sources"][:1])


@pytest.mark.parametrize("reason", ["bot", "system", "opted out", "duplicate", "empty"])
def test_as_many_messages_are_ignored_for_a_reason_as_the_table_names(reason: str) -> None:
    assert summary()["ignored"][reason] == sum(f"`{reason}`" in row.expected for row in rows())


def test_every_line_that_the_table_does_not_list_is_small_talk() -> None:
    listed = [of(row) for row in rows()]
    others = [line for line in lines()[:-1] if line not in listed]
    assert others
    assert {(line["outcome"], line["reason"]) for line in others} == {("skipped", "not answerable")}


def test_every_reply_is_quoted_and_says_that_no_model_is_configured() -> None:
    replies = [line["reply_text"] for line in lines()[:-1] if line["outcome"] == "replied"]
    assert len(replies) >= 24
    assert all("no language model is configured" in reply for reply in replies)


def test_a_question_that_was_corrected_is_answered_as_corrected() -> None:
    [row] = [row for row in rows() if "corrected" in row.what]
    line = of(row)
    assert line is not None
    assert "MSW-1203" in line["reply_text"]


def test_pages_from_the_web_are_linked_below_the_answer() -> None:
    from_web = [line for line in lines()[:-1] if any("https://" in source for source in line["sources"])]
    assert from_web
    assert all("\n\nLinks:\n<https://" in line["reply_text"] for line in from_web)


def test_every_message_is_accounted_for() -> None:
    counts = summary()
    assert counts["messages"] == len(messages())
    assert counts["messages"] == counts["removed"] + counts["messages_in_parts"] + sum(counts["ignored"].values())


def test_what_is_printed_for_people_fits_one_screen() -> None:
    """That it is the same each time, and looks as the pictures of it, `make generated` checks."""
    command = [sys.executable, "app.py", "--config", str(EXAMPLES / "demo.yaml"), "--replay", str(RECORDING)]
    ended = subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=ROOT, timeout=120, env={"COLUMNS": "80"}
    )
    shown = ended.stdout.splitlines()
    assert 30 < len(shown) <= 50
    assert max(map(len, shown)) <= 80
    assert "\x1b" not in ended.stdout
