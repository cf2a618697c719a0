"""The record on disk: what is lost, and what is not, when the disk is full or somebody is forgotten."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from clock import DAY, HOUR, VirtualLoop
from model.outcomes import Ignored, Outcome, OutcomeKind, Reason
from services.storage import files
from services.telemetry import parse_part_outcome
from sinks import results
from sinks.results import FIRST_SECOND, MAX_REFUSED_AN_HOUR, OutcomeRecord
from tests.services.telemetry.test_ended import outcome, plain

SOME_DAY = 1_790_000_000.0  # 2026-09-21


def at(seconds: float) -> Outcome:
    ended = outcome()
    return Outcome(ended.part, seconds, ended.result, decisions=ended.decisions)


def play(*saved: OutcomeRecord, now: float = SOME_DAY) -> None:
    async def save() -> None:
        for each in saved:
            await each.save()

    with asyncio.Runner(loop_factory=lambda: VirtualLoop(now)) as runner:
        runner.run(save())


def days(folder: Path) -> dict[str, int]:
    return {path.name: len(path.read_bytes().splitlines()) for path in sorted(folder.glob("*"))}


def test_each_day_has_a_file(tmp_path: Path) -> None:
    kept = OutcomeRecord(tmp_path, plain)
    for seconds in (SOME_DAY, SOME_DAY + 1, SOME_DAY + DAY):
        kept.add(at(seconds))
    kept.add(Ignored(Reason.BOT, 7, (41,)))
    play(kept)
    assert days(tmp_path) == {"2026-09-21.jsonl": 2, "2026-09-22.jsonl": 1}
    play(kept)
    assert days(tmp_path) == {"2026-09-21.jsonl": 2, "2026-09-22.jsonl": 1}


def test_of_questions_that_are_refused_unread_one_person_has_only_so_many_kept_an_hour(tmp_path: Path) -> None:
    kept, refused = OutcomeRecord(tmp_path, plain), replace(outcome(OutcomeKind.SKIPPED, Reason.BUDGET), decisions={})
    for number in range(MAX_REFUSED_AN_HOUR + 5):
        kept.add(replace(refused, at=SOME_DAY + number))
    kept.add(replace(refused, at=SOME_DAY + HOUR))
    answered = replace(outcome(), at=SOME_DAY + HOUR)
    kept.add(answered)
    play(kept)
    lines = (tmp_path / "2026-09-21.jsonl").read_bytes().splitlines()
    questions = [bool(entry.question) for entry in map(parse_part_outcome, lines) if entry]
    assert questions == [True] * MAX_REFUSED_AN_HOUR + [False] * 5 + [True, True]


def test_old_days_are_deleted(tmp_path: Path) -> None:
    for name in ("2026-09-19.jsonl", "2026-09-20.jsonl", "notes.txt"):
        (tmp_path / name).write_text("{}\n")
    play(OutcomeRecord(tmp_path, plain, keep_days=1))
    assert sorted(days(tmp_path)) == ["2026-09-20.jsonl", "notes.txt"]


def test_no_day_is_before_the_first_of_the_calendar(tmp_path: Path) -> None:
    kept = OutcomeRecord(tmp_path, plain, keep_days=90)
    kept.add(at(FIRST_SECOND))
    play(kept, now=FIRST_SECOND)
    assert days(tmp_path) == {"0001-01-01.jsonl": 1}


def test_without_a_limit_all_days_stay(tmp_path: Path) -> None:
    (tmp_path / "2001-01-01.jsonl").write_text("{}\n")
    play(OutcomeRecord(tmp_path, plain, keep_days=0))
    assert days(tmp_path) == {"2001-01-01.jsonl": 1}


def test_what_a_full_disk_refuses_is_written_later_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, append = OutcomeRecord(tmp_path, plain), files.append

    def full(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device", str(tmp_path))

    kept.add(at(SOME_DAY))
    monkeypatch.setattr(files, "append", full)
    with pytest.raises(OSError, match="No space left"):
        play(kept)
    kept.add(at(SOME_DAY + 1))
    monkeypatch.setattr(files, "append", append)
    play(kept)
    assert days(tmp_path) == {"2026-09-21.jsonl": 2}


def test_no_more_than_so_many_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(results, "MAX_WAITING", 2)
    (tmp_path / "2026-09-21.jsonl").mkdir()
    kept = OutcomeRecord(tmp_path, plain)
    for seconds in range(3):
        kept.add(at(SOME_DAY + seconds))
    with pytest.raises(OSError, match="Is a directory"):
        play(kept)
    assert "1 ends of questions are missing" in caplog.text
    (tmp_path / "2026-09-21.jsonl").rmdir()
    play(kept)
    lines = (tmp_path / "2026-09-21.jsonl").read_bytes().splitlines()
    assert [entry.at - SOME_DAY for line in lines if (entry := parse_part_outcome(line))] == [1, 2]


def test_who_is_forgotten_is_not_written_afterwards(tmp_path: Path) -> None:
    kept = OutcomeRecord(tmp_path, plain)
    kept.add(at(SOME_DAY))
    part = at(SOME_DAY).part
    asyncio.run(kept.forget(part.author.id, part.last.id))
    kept.add(at(SOME_DAY))  # the end of what they asked before comes after it
    play(kept)
    assert (days(tmp_path), list(kept.recent)) == ({}, [])
    kept.add(replace(at(SOME_DAY), part=replace(part, messages=(replace(part.last, id=part.last.id + 1),))))
    play(kept)
    assert days(tmp_path) == {"2026-09-21.jsonl": 1}


def test_a_run_that_leaves_nothing_writes_nothing(tmp_path: Path) -> None:
    told: list[object] = []
    kept = OutcomeRecord(None, plain, on_change=lambda: told.append("changed"))
    kept.add(at(SOME_DAY))
    play(kept)
    assert (len(kept.recent), len(told), days(tmp_path)) == (1, 1, {})


@pytest.mark.parametrize("order", [1, -1])
def test_what_ends_in_one_instant_is_written_in_one_order(tmp_path: Path, order: int) -> None:
    kept, one = OutcomeRecord(tmp_path, plain), at(SOME_DAY)
    later = replace(one, part=replace(one.part, messages=(replace(one.part.last, id=one.part.last.id + 1),)))
    for end in (one, later)[::order]:
        kept.add(end)
    play(kept)
    (path,) = tmp_path.iterdir()
    written = [parse_part_outcome(line) for line in path.read_bytes().splitlines()]
    assert [entry.message_ids for entry in written if entry] == [one.part.message_ids, later.part.message_ids]


def test_sources_get_their_new_ids_before_anything_more_is_written(tmp_path: Path) -> None:
    kept = OutcomeRecord(tmp_path, plain)
    kept.add(replace(at(SOME_DAY), sources=("team:a.txt", "kb:b.md")))
    asyncio.run(kept.rename_sources({"team:a.txt": "team:c.txt"}))
    play(kept)
    [path] = tmp_path.iterdir()
    entry = parse_part_outcome(path.read_bytes())
    assert entry is not None
    assert entry.sources == kept.recent[0].sources == ("team:c.txt", "kb:b.md")
    assert b"team:a.txt" not in path.read_bytes()
