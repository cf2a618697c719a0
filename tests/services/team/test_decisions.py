from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.team import decisions
from services.team.archive import REMOVED
from services.team.decisions import Action, Actor, Decision, DecisionLog, Remark, kept_by_rebuild, parse, render
from tests.services.quickly import QUICKLY

IDS = st.builds(
    "qa_2026020{}_03105{}{}".format,
    st.integers(1, 9),
    st.integers(0, 9),
    st.sampled_from(["", ".5", ".228000", ".123456789012"]),
)
DECISIONS = st.builds(
    Decision,
    IDS,
    st.just("2026-02-01T03:10:56.000Z"),
    st.sampled_from(Action),
    st.sampled_from(Actor),
    st.none() | st.sampled_from(["gpu", "gpu-2", "установка"]),
    st.lists(IDS, max_size=3).map(tuple),
    st.lists(IDS, max_size=3).map(tuple),
    st.text(),
)


def decision(number: int, action: Action = Action.ADDED, by: Actor = Actor.LLM, reason: str = "") -> Decision:
    return Decision(f"qa_20260201_0310{number:02}", "2026-02-01T03:20:00.000Z", action, by, "gpu", reason=reason)


def test_a_decision_is_one_line_of_json_with_the_names_of_the_specification() -> None:
    line = render(decision(1, reason="so\n{}"))
    assert line.count("\n") == 1
    assert list(json.loads(line)) == ["qa_id", "at", "action", "topic", "remove_ids", "replaces", "by", "reason"]
    assert json.loads(line)["action"] == "added"


@given(st.lists(DECISIONS, max_size=4))
def test_what_is_written_is_read_back_exactly(written: list[Decision]) -> None:
    """Pitfall 5: no reason, whatever a model writes into it, makes another line."""
    data = "".join(map(render, written)).encode()
    assert parse(data) == written
    assert decisions.sound_length(data) == len(data)


@given(st.lists(DECISIONS, min_size=1, max_size=3), st.data())
def test_a_file_cut_anywhere_gives_the_whole_lines_before_the_cut(written: list[Decision], data: st.DataObject) -> None:
    """Pitfall 48."""
    lines = [render(each).encode() for each in written]
    whole = b"".join(lines)
    cut = data.draw(st.integers(0, len(whole) - 1))
    ends = [sum(map(len, lines[:count])) for count in range(len(lines) + 1)]
    sound = decisions.sound_length(whole[:cut])
    assert sound == max(end for end in ends if end <= cut)
    assert parse(whole[:cut]) == written[: ends.index(sound)]


def test_half_of_a_surrogate_pair_in_a_reason_does_no_harm() -> None:
    [read] = parse(render(decision(1, reason="x\ud83d")).encode())
    assert read.reason == "x\ufffd"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"qa_id": "qa_1"}, "not of the form"),
        ({"at": "yesterday"}, "yesterday"),
        ({"at": "2026-02-01T03:10:56"}, "names no time zone"),
        ({"action": "adopted"}, "action: Input should be"),
        ({"by": 5}, "by: Input should be"),
        ({"topic": "../gpu"}, "no safe name of a topic"),
        ({"remove_ids": ["all"]}, "not of the form"),
        ({"replaces": "qa_20260201_031001"}, "replaces: Input should be a valid"),
    ],
)
def test_a_damaged_line_is_reported_with_file_and_line_and_skipped(
    change: dict[str, object], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    lines = [render(decision(number)) for number in (1, 2, 3)]
    lines[1] = json.dumps(json.loads(lines[1]) | change) + "\n"
    assert parse("".join(lines).encode(), "decisions.jsonl", first_line=100) == [decision(1), decision(3)]
    [message] = caplog.messages
    assert message.startswith("decisions.jsonl:101: ")
    assert why in message


@pytest.mark.parametrize("line", ["{", "[]", "nonsense", "\xff", '{"qa_id": "qa_20260201_031001"}'])
def test_a_line_that_is_no_decision_costs_that_line(line: str, caplog: pytest.LogCaptureFixture) -> None:
    data = line.encode("latin-1") + b"\n\n" + render(decision(2)).encode()
    assert parse(data, "d") == [decision(2)]
    [message] = caplog.messages
    assert message.startswith("d:1: ")


def test_a_torn_line_is_cut_off_and_kept_before_the_next_append(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Pitfall 48."""
    path = tmp_path / "decisions.jsonl"
    whole, truncated = render(decision(1)).encode(), render(decision(2)).encode()[:-1]
    path.write_bytes(whole + truncated)
    assert DecisionLog(path).read() == [decision(1)]
    assert "decisions.jsonl:2: a line without its end" in caplog.messages[0]
    log = DecisionLog(path)
    log.append(decision(3))
    assert path.read_bytes() == whole + render(decision(3)).encode()
    assert (tmp_path / "decisions.jsonl.torn").read_bytes() == truncated + b"\n"


def test_a_full_disk_leaves_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = DecisionLog(tmp_path / "decisions.jsonl")
    assert (log.read(), log.length) == ([], 0)
    log.append(decision(1))
    real = os.write

    def write(descriptor: int, data: memoryview) -> int:
        if len(data) <= 20:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data[:20])

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(OSError, match="No space left"):
        log.append(decision(2))
    monkeypatch.undo()
    log.append(decision(3))
    assert log.read() == [decision(1), decision(3)]
    assert log.length == log.path.stat().st_size


def test_remarks_about_forgotten_pairs_or_because_of_them_lose_their_words(tmp_path: Path) -> None:
    path = tmp_path / "decisions.jsonl"
    ids = [decision(number).qa_id for number in range(5)]

    def noted(number: int, *, corrects: int, contradicts: int, words: str = "Not so.") -> Decision:
        parts, conflicts = (Remark(ids[corrects], words),), (Remark(ids[contradicts], words),)
        return replace(decision(number), superseded_parts=parts, conflicts=conflicts)

    log = DecisionLog(path)
    assert not log.forget({decision(1).key})
    assert not path.exists()
    lines = [noted(2, corrects=0, contradicts=1), decision(3), noted(4, corrects=2, contradicts=3)]
    log.append(*lines)
    damaged = b'{"what": 1}\n' + render(lines[0]).encode()[:60] + b'"what"\n\n'
    path.write_bytes(damaged + path.read_bytes())
    before = path.read_bytes()
    assert not log.forget({decision(9).key})
    assert path.read_bytes() == before
    assert log.forget({decision(1).key})
    kept = replace(lines[0], conflicts=(Remark(ids[1], REMOVED),))
    assert path.read_bytes() == damaged + b"".join(render(each).encode() for each in (kept, *lines[1:]))
    assert log.forget({lines[2].key})
    last = noted(4, corrects=2, contradicts=3, words=REMOVED)
    assert path.read_bytes() == damaged + b"".join(render(each).encode() for each in (kept, lines[1], last))
    assert not log.forget({lines[2].key})


def test_what_operators_said_last_of_each_pair_is_what_a_rebuild_keeps() -> None:
    said = [
        decision(1),
        decision(2, Action.REMOVED, Actor.OPERATOR),
        decision(3, Action.REMOVED, Actor.OPERATOR),
        decision(2, Action.RESTORED, Actor.OPERATOR),
        decision(3, Action.ADDED),
    ]
    assert kept_by_rebuild(said) == [said[2], said[3]]


@QUICKLY
@given(st.binary(max_size=200))
def test_no_file_is_too_damaged_to_be_read(data: bytes) -> None:
    assert parse(data) == []
