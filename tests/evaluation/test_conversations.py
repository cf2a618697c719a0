"""The figures by hand, and from a chat that went through the program."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from benchmarks.evaluation import captures, data
from benchmarks.evaluation.conversations import Captured, Figures, Result, Written, figures, matched, result
from benchmarks.evaluation.replaying import configured, judged, pairs_in, replayed
from tests.evaluation.chat import id_of, write_chat

ANN, BEN, SUE, TOM = 1, 2, 50, 51
STAFF = {SUE, TOM}


def test_the_figures_of_a_small_chat_are_those_worked_out_by_hand(tmp_path: Path) -> None:
    """Nothing is missed: what is captured last of each conversation is what is annotated."""
    recording = write_chat(tmp_path)
    assert replayed(recording, configured(recording, tmp_path), tmp_path / "run") == 0
    captured = [tuple(map(id_of, each)) for each in ((1, 2, 4), (1, 2, 4, 5, 6), (1, 2, 4, 5, 6, 8), (3, 7, 9))]
    assert [pair.message_ids for pair in pairs_in(tmp_path / "run")] == captured
    one = Fraction(1)
    all_right = Figures(one, one, one, one, reply_count=3, captured_count=2, mixed_count=8)
    assert judged(recording, tmp_path / "run") == Result(all_right, captured=2, several_askers=0, doubled=0)


def test_only_replies_of_staff_to_community_members_count_and_only_within_one_capture() -> None:
    written = {
        1: Written(ANN),
        2: Written(SUE, 1),
        3: Written(TOM, 2),  # to staff
        4: Written(BEN, 1),  # of a user
        5: Written(SUE, 4),
        6: Written(SUE, 99),  # to what is not in the recording
    }
    found = figures([[1, 2], [4], [5]], [[1, 2]], written, STAFF)
    assert (found.replies, found.reply_count) == (Fraction(1, 2), 2)


def test_a_capture_is_measured_against_the_annotated_conversation_that_it_shares_most_with() -> None:
    annotated = [[1, 2], [3, 4, 5, 6]]
    assert matched([2, 3, 4, 9], annotated) == (Fraction(2, 3), Fraction(1, 2))
    assert matched([9], annotated) is None


def test_of_two_that_it_shares_as_much_with_the_longer_is_taken_so_that_a_tie_does_not_flatter() -> None:
    assert matched([1, 3], [[1, 2], [3, 4, 5, 6]]) == (Fraction(1, 2), Fraction(1, 4))
    assert matched([1, 3], [[3, 4, 5, 6], [1, 2]]) == (Fraction(1, 2), Fraction(1, 4))


def test_what_users_say_to_each_other_need_not_be_held() -> None:
    written = {1: Written(ANN), 2: Written(SUE), 3: Written(ANN), 4: Written(BEN)}
    found = figures([[1]], [[1, 2], [3, 4]], written, STAFF)
    assert (found.held, found.mixed_count) == (Fraction(1, 2), 2)


def test_where_there_is_nothing_to_miss_nothing_is_missed() -> None:
    found = figures([], [], {}, STAFF)
    assert [found.replies, found.precision, found.recall, found.held] == [1, 1, 1, 1]


def test_askers_are_counted_in_all_that_is_captured_and_messages_that_stand_in_two_conversations() -> None:
    captured = [Captured((1, 2), (ANN,)), Captured((2, 3, 4), (ANN, BEN)), Captured((5,), (BEN, BEN))]
    found = result(captured, [], {}, STAFF)
    assert (found.captured, found.several_askers, found.doubled) == (3, 1, 1)
    assert found.several == Fraction(1, 3)


def test_the_command_prints_a_verdict_on_each_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert captures.main([str(write_chat(tmp_path))]) == 0
    printed = capsys.readouterr().out
    for met in (
        "chat: all of staff's replies are with what they answer",
        "chat: 0 messages in two conversations, none wanted",
        "recall in the mean: 1.000, at least 0.62",
        "chat: both runs end well (exit codes 0 and 0)",
        "chat: all files byte-identical over two runs: yes",
    ):
        assert f"pass  {met}\n" in printed


def test_the_command_fails_when_a_figure_is_missed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Here people say that the whole chat is one conversation."""
    recording = write_chat(tmp_path)
    gold = data.gold_of(recording)
    said = json.loads(gold.read_text())
    gold.write_text(json.dumps({**said, "conversations": [[each for ids in said["conversations"] for each in ids]]}))
    assert captures.main([str(recording)]) == 1
    printed = capsys.readouterr().out
    assert "pass  precision in the mean: 1.000, at least 0.88" in printed
    assert "FAIL  recall in the mean: 0.500, at least 0.62" in printed


def test_nothing_of_the_annotations_but_the_staff_reaches_the_run(tmp_path: Path) -> None:
    recording = write_chat(tmp_path)
    config = json.loads(configured(recording, tmp_path, {"message_batch_wait_seconds": 30}).read_text())
    assert config == {"discord": {"team_member_ids": ["50"], "message_batch_wait_seconds": 30}}


def test_recordings_are_found_where_the_variable_says_and_absent_ones_are_a_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(data.VARIABLE, str(tmp_path))
    assert captures.main([]) == 0
    assert "skipped: no annotated recordings; set EVAL_DATA" in capsys.readouterr().out
    (tmp_path / "recordings").mkdir()
    recording = write_chat(tmp_path / "recordings")
    assert data.recordings() == [recording]
    assert captures.main([str(tmp_path / "no.jsonl")]) == 2
    assert "there is no such recording" in capsys.readouterr().out


def test_the_sweep_tries_other_settings_and_marks_the_defaults(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert captures.main(["--sweep", str(write_chat(tmp_path))]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 3 * 3
    [default] = [line for line in lines if line.endswith("the defaults")]
    assert default.split() == ["60", "300", "1.000", "1.000", "1.000", "1.000", "2", "4", "the", "defaults"]


@pytest.mark.slow
def test_real_chats_are_captured_as_well_as_wanted() -> None:
    if not data.recordings():
        pytest.skip(f"no annotated recordings here; {data.VARIABLE} names their folder")
    assert captures.main([]) == 0
