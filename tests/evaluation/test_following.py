"""The figures of followed conversations, of a small chat and of real ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.evaluation import data, following
from benchmarks.evaluation.conversations import requirements
from benchmarks.evaluation.following import followed, halves, log_of, result_of
from model.messages import AuthorType
from tests.evaluation.chat import id_of, write_chat


def numbered(ids: dict[int, int]) -> dict[int, int]:
    numbers = {id_of(number): number for number in range(1, 10)}
    return {numbers[message_id]: numbers[name] for message_id, name in ids.items()}


def test_a_small_chat_is_followed(tmp_path: Path) -> None:
    """Just as it is annotated: ben's questions are one conversation, ann's are the other."""
    log = log_of(write_chat(tmp_path))
    assert [log.type_of(message) for message in log.messages[2:4]] == [
        AuthorType.COMMUNITY_USER,
        AuthorType.TEAM_MEMBER,
    ]
    assert numbered(followed(log)) == {1: 1, 2: 1, 4: 1, 5: 1, 6: 1, 8: 1, 3: 3, 7: 3, 9: 3}
    found = result_of(log)
    assert (found.captured, found.several, found.doubled) == (2, 0, 0)
    assert (found.figures.replies, found.figures.precision, found.figures.recall) == (1, 1, 1)


def test_each_requirement_is_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = result_of(log_of(write_chat(tmp_path)))
    several = replace(found, several_askers=1, doubled=1)
    judged = {text: met for met, text in requirements({"chat": found, "stripe-0": several})}
    assert judged["chat: all of staff's replies are with what they answer"]
    assert judged["recall in the mean: 1.000, at least 0.62"]
    assert [text for text, met in judged.items() if not met] == [
        "stripe-0: 1 messages in two conversations, none wanted",
        "stripe-0: 1 of 2 conversations with several askers, at most 1/15 of them wanted",
    ]
    assert "stripe-0" in capsys.readouterr().out


def test_the_command_says_what_is_missing_and_prints_a_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(data.VARIABLE, str(tmp_path))
    assert following.main([]) == 0
    assert "skipped: no annotated recordings; set EVAL_DATA" in capsys.readouterr().out
    assert following.main([str(tmp_path / "no.jsonl")]) == 2
    assert "there is no such recording" in capsys.readouterr().out
    recording = str(write_chat(tmp_path))
    assert following.main([recording]) == 0
    assert "pass  chat: 0 messages in two conversations" in capsys.readouterr().out
    assert following.main(["--vary", recording]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 6 * 2 + 3


def test_a_half_has_half_of_the_messages_or_annotations(tmp_path: Path) -> None:
    log = log_of(write_chat(tmp_path))
    second, first_half, last_half = halves(log).values()
    assert [message.id for message in second.messages] == [id_of(number) for number in range(5, 10)]
    assert (first_half.annotated, last_half.annotated) == (log.annotated[:1], log.annotated[1:])


def test_real_chats_are_followed_as_well_as_wanted() -> None:
    if not data.recordings():
        pytest.skip(f"no annotated recordings here; {data.VARIABLE} names their folder")
    assert following.main([]) == 0
