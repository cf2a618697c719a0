"""Where the bot speaks in a small chat, by hand and through the program, and in real ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.evaluation import data, keeping_out
from benchmarks.evaluation.following import Log, log_of
from benchmarks.evaluation.keeping_out import Spoken, ids_of, played, requirements, spoken, turns_to
from model.messages import AuthorType, Part
from model.outcomes import Ignored, Outcome, OutcomeKind, Reason, Removed
from tests.evaluation.chat import id_of, write_chat
from tests.talk import ANN, BEN, CHANNEL, STAFF, START

NOTHING = Spoken(0, 0, 0, 0, 0, 0, 0)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return log_of(write_chat(tmp_path))


def annotated(log: Log, *conversations: tuple[int, ...]) -> Log:
    return replace(log, annotated=tuple(tuple(map(id_of, each)) for each in conversations))


def part(log: Log, second: float, *numbers: int) -> Part:
    """These messages, in a window that closed so many seconds after the start."""
    messages = tuple(log.messages[number - 1] for number in numbers)
    return Part(1, messages, AuthorType.COMMUNITY_USER, CHANNEL, START + second)


def replied(log: Log, second: float, *numbers: int) -> Outcome:
    return Outcome(part(log, second, *numbers), START + second, OutcomeKind.REPLIED)


def test_a_reply_before_the_staff_and_one_after_they_turned_to_the_asker_are_told_apart(log: Log) -> None:
    assert spoken(log, [replied(log, 10, 1, 2)]) == replace(NOTHING, replies=1, ahead_of_staff=1, parts=1)
    staffed = replace(NOTHING, replies=1, into_staffed=1, parts=1)
    assert spoken(log, [replied(log, 65, 1, 2)]) == staffed
    both = [replied(log, 10, 1, 2), replied(log, 65, 1, 2)]
    assert spoken(log, both) == replace(staffed, replies=2, parts=2)


def test_staff_who_wrote_without_a_sign_to_whom_are_counted_apart(log: Log) -> None:
    unseen = replace(NOTHING, replies=1, unseen=1, parts=1)
    assert spoken(annotated(log, (7, 8)), [replied(log, 360, 7)]) == unseen
    both = [replied(log, 310.5, 7), replied(log, 360, 7)]
    assert spoken(log, both) == replace(NOTHING, replies=2, into_staffed=1, parts=2)


def test_messages_answered_among_users_are_counted_once_somebody_else_has_written(log: Log) -> None:
    among_users = annotated(log, (1, 2, 3))
    assert spoken(among_users, [replied(log, 65, 1, 2)]).into_chatter == 2
    assert spoken(among_users, [replied(log, 7, 1, 2)]) == replace(NOTHING, replies=1, parts=1)


def test_replies_to_what_is_no_question_or_not_annotated_do_not_count(log: Log) -> None:
    assert spoken(log, [replied(log, 160, 5)]) == replace(NOTHING, parts=1)
    assert spoken(annotated(log, (3,)), [replied(log, 65, 1, 2)]) == NOTHING


def test_parts_without_a_reply_count_as_parts_and_those_of_two_conversations_as_mixed(log: Log) -> None:
    mixed = Ignored(Reason.NOT_ADDRESSED, CHANNEL.id, (id_of(5), id_of(7)), 1)
    skipped = Outcome(part(log, 65, 1, 2), START, OutcomeKind.SKIPPED)
    whole = [mixed, skipped, Ignored(Reason.BOT, CHANNEL.id, (id_of(4),)), Removed(CHANNEL.id, id_of(3))]
    assert [len(ids_of(each)) for each in whole] == [2, 2, 0, 0]
    assert spoken(log, whole) == replace(NOTHING, parts=2, mixed=1)


def test_staff_turn_to_somebody_with_a_reply_or_a_mention(log: Log) -> None:
    messages = {message.id: message for message in log.messages}
    _, asked, _, answer, *_, unaddressed, _ = log.messages
    assert asked.author.id == ANN.id
    assert turns_to(answer, ANN.id, messages)
    assert not turns_to(answer, BEN.id, messages)
    assert not turns_to(answer, ANN.id, {})
    assert not turns_to(unaddressed, ANN.id, messages)
    assert turns_to(replace(unaddressed, mentions=((ANN.id, "ann"),)), ANN.id, messages)
    assert not turns_to(replace(unaddressed, mentions=((STAFF.id, "sue"),)), ANN.id, messages)


def test_each_requirement_is_judged(capsys: pytest.CaptureFixture[str]) -> None:
    good = Spoken(4, 0, 1, 2, 3, parts=20, mixed=1)
    bad = replace(good, into_staffed=1, mixed=2)
    judged = {text: met for met, text in requirements({"good": good, "bad": bad})}
    assert judged == {
        "good: 0 conversations in which staff had turned to the asker, none wanted": True,
        "good: 1 of 20 parts of two conversations, at most 5 % wanted": True,
        "bad: 1 conversations in which staff had turned to the asker, none wanted": False,
        "bad: 2 of 20 parts of two conversations, at most 5 % wanted": False,
    }
    printed = capsys.readouterr().out
    assert "good: 4 replies; into 2 conversations ahead of staff" in printed
    assert "good: into 1 in which staff had written without a sign to whom" in printed
    assert "good: 3 messages answered in conversations among users" in printed


def test_the_program_keeps_out_where_the_staff_answer_at_once(tmp_path: Path) -> None:
    """Of its eight parts, one is a message that is not annotated; its one reply is to "Good morning!"."""
    recording = write_chat(tmp_path)
    log = log_of(recording)
    results = played(recording, log)
    assert sorted(i for result in results for i in ids_of(result)) == [message.id for message in log.messages]
    assert sum(isinstance(each, Outcome) and each.result is OutcomeKind.REPLIED for each in results) == 1
    assert spoken(log, results) == replace(NOTHING, parts=7)


def test_the_command_says_what_is_missing_and_gives_a_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(data.VARIABLE, str(tmp_path))
    assert keeping_out.main([]) == 0
    assert "skipped: no annotated recordings; set EVAL_DATA" in capsys.readouterr().out
    assert keeping_out.main([str(tmp_path / "no.jsonl")]) == 2
    assert "keeping_out: " in (printed := capsys.readouterr().out)
    assert "there is no such recording" in printed
    recording = str(write_chat(tmp_path))
    assert keeping_out.main([recording]) == 0
    assert "pass  chat: 0 conversations in which staff had turned to the asker" in capsys.readouterr().out
    monkeypatch.setattr(keeping_out, "MAX_CUT_WRONGLY", -1.0)
    assert keeping_out.main([recording]) == 1
    assert "FAIL  chat: 0 of " in capsys.readouterr().out


def test_in_real_chats_the_bot_keeps_out_as_wanted() -> None:
    if not data.recordings():
        pytest.skip(f"no annotated recordings here; {data.VARIABLE} names their folder")
    assert keeping_out.main([]) == 0
