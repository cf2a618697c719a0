"""The demo as a newcomer runs it: every scene ends as examples/README.md says.

A replay of the whole day takes many seconds of the processor. There are two: one by the program, and one in this
process that is printed in every form.
"""

from __future__ import annotations

import importlib
import io
import json
import re
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from rich.console import Console

from commands.replay import ReplayOptions, replay
from model.outcomes import Outcome
from settings import load
from sinks.results import JsonLines, ResultCounts
from sinks.terminal import Terminal
from tests.examples.test_demo_files import EXAMPLES, RECORDING, SOURCES, Row, messages, rows

ROOT = EXAMPLES.parent
CONFIG = EXAMPLES / "demo.yaml"
Line = dict[str, Any]
Files = dict[str, bytes]


class Replayed(NamedTuple):
    """The output of a replay, and the files of its data folder."""

    printed: str
    kept: Files


class InEveryForm(NamedTuple):
    as_json: Replayed
    in_80_columns: str
    picture: str


def files_in(folder: Path) -> Files:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def files_below(folder: Path) -> dict[Path, tuple[int, int]]:
    found = (path for path in folder.rglob("*") if "__pycache__" not in path.parts)
    return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in found}


def replaying(config: Path, *options: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "app.py", "--config", config, "--replay", RECORDING, *options]
    env = environment or None
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT, timeout=120, env=env)


@cache
def by_the_program() -> Replayed:
    with tempfile.TemporaryDirectory() as folder:
        before = files_below(EXAMPLES)
        ended = replaying(CONFIG, "--data", folder, "--json")
        assert ended.returncode == 0, ended.stderr
        assert files_below(EXAMPLES) == before, "only the folder of the replay is written to"
        return Replayed(ended.stdout, files_in(Path(folder)))


@cache
def in_this_process() -> InEveryForm:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(EXAMPLES)  # pyright: ignore[reportUnknownMemberType] (pytest's own)
        picture = importlib.import_module("picture")
    canvas, json_lines, people = picture.canvas(picture.COLUMNS), io.StringIO(), io.StringIO()

    class EveryForm:
        def __init__(self, console: Console, *what: Any, **_uncut: bool) -> None:
            self._forms = [JsonLines(json_lines), Terminal(console, *what), Terminal(canvas, *what)]

        def write(self, outcome: Outcome) -> None:
            for form in self._forms:
                form.write(outcome)

        def finish(self, tally: ResultCounts) -> None:
            for form in self._forms:
                form.finish(tally)

    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr("commands.replay.Terminal", EveryForm)
        before = files_below(EXAMPLES)
        assert replay(load(CONFIG), ReplayOptions(RECORDING, Path(folder)), Console(file=people, width=80)) == 0
        assert files_below(EXAMPLES) == before, "only the folder of the replay is written to"
        as_json = Replayed(json_lines.getvalue(), files_in(Path(folder)))
    return InEveryForm(as_json, people.getvalue(), picture.drawn(canvas, picture.TITLE, "demo"))


@cache
def lines() -> list[Line]:
    return [json.loads(line) for line in by_the_program().printed.splitlines()]


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
    assert counts["parts"] == len(lines()) - 1
    assert counts["messages_in_parts"] == sum(len(line["message_ids"]) for line in lines()[:-1])


def test_two_replays_print_and_keep_the_same_bytes() -> None:
    """Pitfall 50: and nothing is written but to the folder of the replay."""
    one, other = by_the_program(), in_this_process().as_json
    assert one.printed == other.printed
    assert one.kept == other.kept
    assert one.kept


def test_the_picture_shows_what_is_printed() -> None:
    """`python examples/picture.py` draws it anew."""
    assert (ROOT / "docs" / "demo.svg").read_text(encoding="utf-8") == in_this_process().picture


def test_what_is_printed_for_people_fits_one_screen() -> None:
    shown = in_this_process().in_80_columns.splitlines()
    assert 30 < len(shown) <= 50
    assert max(map(len, shown)) <= 80
    assert "\x1b" not in in_this_process().in_80_columns


def test_the_program_fits_what_it_prints_to_a_screen(tmp_path: Path) -> None:
    """With one source: the longest lines are of questions."""
    config, sources = tmp_path / "config.yaml", tmp_path / "sources"
    sources.mkdir()
    shutil.copy(next(SOURCES.rglob("*.md")), sources)
    config.write_text(f"kb:\n  sources_dir: {sources}\nai_response:\n  llm: null\n", encoding="utf-8")
    ended = replaying(config, COLUMNS="80")
    assert ended.returncode == 0, ended.stderr
    assert max(map(len, ended.stdout.splitlines())) == 80
    assert "\x1b" not in ended.stdout
