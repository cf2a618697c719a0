"""What the bot writes for itself, as a full disk, a crash or a person may leave it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import example, given

from services.conversations.posts import (
    Post,
    Watermark,
    read_posts,
    read_watermarks,
    render_post,
    render_watermarks,
)
from services.documents.thread_files import Tombstones
from services.llm.usage import Budget, BudgetLimits, read_spent, render_spent
from services.privacy.forgetting import _authors  # pyright: ignore[reportPrivateUsage] (it opens every such file)
from services.storage import json_state
from tests.fuzzing.mutations import DEEP, THOROUGHLY, as_json, json_files, line_files

IDS = ["311", "902"]
POST = json.loads(render_post(Post(5.0, 40, 41, 20, 7, 39, opened_thread=True, question="Q é?", sources=("kb:a.md",))))
MARKS = json.loads(render_watermarks({20: Watermark(39, {41, 42}), -1: Watermark(5)}))
SPENT = {"day": 20_000, "answers": 3, "tokens": 1200, "chains": {"7": [1.5, 2.5]}}
STONES = {"files": {"40": ["8", "message-40-block-1.txt"]}, "closed": {"41": [5.0, True]}}
VOTE = {
    "at": "2026-02-01T00:00:00.000Z",
    "message_id": "40",
    "voter": "ab",
    "question": "Q",
    "sources": ["kb:a.md"],
    "vote": "up",
}


@THOROUGHLY
@given(json_files(IDS, []))
@example(b"[1e400]")
@example(b"[" * DEEP)
@example(b'"311"')
def test_a_list_of_ids_is_read_or_damaged(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "ids.json"
    path.write_bytes(data)
    try:
        found = json_state.read_ids(path)
    except json_state.DamagedIds:
        return
    path.write_bytes(json_state.render_ids(found))
    assert json_state.read_ids(path) == found


@THOROUGHLY
@given(line_files(VOTE))
@example(b"[" * DEEP + b"\n")
def test_lines_are_edited_and_what_is_damaged_is_counted_and_stays(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_bytes(data)
    edits = json_state.edit_records(path, lambda record: None if record.get("voter") == "ab" else {**record, "x": 1})
    left = path.read_bytes().splitlines()
    assert (
        len([line for line in left if line.strip()])
        == len([line for line in data.splitlines() if line.strip()]) - edits.dropped
    )
    again = json_state.edit_records(path, lambda record: {**record, "x": 1} if record != {} else record)
    assert (again.damaged, again.dropped) == (edits.damaged, 0)


@THOROUGHLY
@given(line_files(POST))
@example(as_json({**POST, "at": "NaN"}))
def test_a_post_is_read_or_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture, data: bytes) -> None:
    caplog.clear()
    path = tmp_path / "posts.jsonl"
    path.write_bytes(data)
    found = read_posts(path)
    assert len(found) + len(caplog.messages) == len(
        [line for line in data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n").split("\n") if line]
    )
    path.write_bytes(b"".join(map(render_post, found)))
    assert read_posts(path) == found


@THOROUGHLY
@given(json_files(MARKS))
@example(b'{"20": {"below": 1e400, "done": []}}')
def test_a_mark_is_read_or_reported(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "seen.json"
    path.write_bytes(data)
    found = read_watermarks(path)
    path.write_bytes(render_watermarks(found))
    assert read_watermarks(path) == found


@THOROUGHLY
@given(json_files(SPENT))
@example(as_json({**SPENT, "tokens": -5}))
@example(as_json({**SPENT, "chains": {"8": [float("nan")] * 20}}))
def test_what_was_spent_is_read_and_no_budget_grows_by_it(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "usage.json"
    path.write_bytes(data)
    spent = read_spent(path)
    assert spent.answers >= 0
    assert spent.tokens >= 0
    path.write_bytes(render_spent(spent))
    assert read_spent(path).tokens == spent.tokens
    budget = Budget(BudgetLimits(answers_per_day=10, tokens_per_day=10), spent)

    async def begins() -> str | None:
        await budget.begin_chain(7, 20_000 * 86_400.0)
        await budget.begin_chain(7, 20_002 * 86_400.0)
        return await budget.begin_chain(8, 20_003 * 86_400.0)

    assert asyncio.run(begins()) is None
    render_spent(budget.spent)


@THOROUGHLY
@given(json_files(STONES))
@example(b"[" * DEEP)
@example(b'{"files": {}, "closed": {"41": [1' + b"0" * 400 + b", true]}}")
def test_what_must_not_be_read_again_is_read_or_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, data: bytes
) -> None:
    caplog.clear()
    path = tmp_path / "removed.json"
    path.write_bytes(data)
    gone = Tombstones(path)
    gone.is_unannounced(41)


@THOROUGHLY
@given(line_files({"said": [{"author_id": "311"}]}))
@example(b'{"said": [{"author_id": 1e400}]}')
@example(b"[" * DEEP)
def test_whose_a_waiting_capture_is_is_known_or_not(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "1-2.capture"
    path.write_bytes(data)
    found = _authors(path)
    assert found is None or all(isinstance(each, int) for each in found)
