"""`--import`: years of answers into the archive, each once."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import app
from clock import rfc3339
from services.storage import files, json_state
from services.storage.data_folder import DataFolder, lock
from services.team.archive import Pair
from services.team.archive_files import pairs_in, week_files
from tests.evaluation.chat import id_of, write_chat
from tests.services.discord.test_exports import export, said
from tests.talk import ANN, STAFF, START, snowflake

FORUM_POST: dict[str, object] = {
    "id": str(snowflake(1000)),
    "type": "GuildPublicThread",
    "categoryId": "500",
    "category": "help",
    "name": "A thread",
}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(f"discord: {{team_member_ids: [{STAFF.id}]}}\n")
    return path


def run(config: Path, *paths: Path) -> int:
    return app.main(["--config", str(config), "--import", *map(str, paths)])


def learned(config: Path) -> list[Pair]:
    return pairs_in(config.parent / "data" / "team-knowledge" / "raw")


def content(pairs: list[Pair]) -> list[tuple[object, ...]]:
    """Everything but when it was captured."""
    return [(p.conversation_id, p.said_at, p.message_ids, p.author_ids, p.turns) for p in pairs]


def user(author_id: int, name: str) -> dict[str, object]:
    return {"id": str(author_id), "name": name, "nickname": name, "isBot": False, "roles": []}


def wrote(second: float, author_id: int, text: str, to: float | None = None) -> dict[str, object]:
    reference = {} if to is None else {"type": "Reply", "reference": {"messageId": str(snowflake(to))}}
    return said(snowflake(second), author=user(author_id, f"u{author_id}"), content=text, **reference)


def test_what_the_team_answered_is_in_the_archive_stamped_with_the_time_of_the_import(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = time.time()
    assert run(config, write_chat(config.parent)) == 0
    pairs = learned(config)
    numbers = {id_of(number): number for number in range(1, 10)}
    captured = [[numbers[i] for i in pair.message_ids] for pair in pairs]
    assert captured == [[1, 2, 4], [1, 2, 4, 5, 6], [1, 2, 4, 5, 6, 8], [3, 7, 9]]
    assert [pair.said_at for pair in pairs] == [rfc3339(START + second, digits=6) for second in (20, 200, 310, 311)]
    assert all(rfc3339(before, digits=6) <= pair.timestamp <= rfc3339(time.time() + 1) for pair in pairs)
    out = capsys.readouterr().out
    assert "      9  messages" in out
    assert "      4  captures stored, of 2 conversations" in out
    assert "      0  failed" in out


def test_nothing_else_of_the_data_folder_is_touched(config: Path) -> None:
    """Pitfall 50."""
    data = config.parent / "data"
    folder = DataFolder(data)
    files.replace(folder.watermarks, b'{"1000": {"below": "5", "done": []}}')
    files.append(folder.posts, b"")
    before = {path: path.read_bytes() for path in data.rglob("*") if path.is_file()}
    assert run(config, write_chat(config.parent)) == 0
    [week] = week_files(folder.team_raw)
    after = {path: path.read_bytes() for path in data.rglob("*") if path.is_file()}
    new = {path: path.read_bytes() for path in (week, folder.places)}
    assert after == {**before, **new, folder.lock_file: b""}


def test_importing_twice_adds_nothing(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Pitfall 15."""
    chat = write_chat(config.parent)
    assert run(config, chat) == 0
    before = learned(config)
    capsys.readouterr()
    assert run(config, chat) == 0
    assert run(config, chat, chat) == 0
    assert learned(config) == before
    assert "      0  captures stored, of 0 conversations\n      4  captures that the archive holds already" in (
        capsys.readouterr().out
    )


def part_of(chat: Path, name: str, keep: Callable[[int], bool]) -> Path:
    """The recording with only some of its messages, counted from 1."""
    head, rest = chat.read_text().splitlines()[:2], chat.read_text().splitlines()[2:]
    path = chat.with_name(name)
    kept = [line for number, line in enumerate(rest, 1) if keep(number)]
    path.write_text("\n".join([*head, *kept]) + "\n")
    return path


def test_files_that_overlap_add_only_what_is_new(config: Path) -> None:
    """The second lacks the message that the first conversation is named after, and goes on with it all the same."""
    chat = write_chat(config.parent)
    assert run(config, part_of(chat, "first.jsonl", lambda number: number <= 6)) == 0
    assert run(config, part_of(chat, "second.jsonl", lambda number: number >= 2)) == 0
    again = learned(config)
    assert [len(pair.message_ids) for pair in again] == [3, 5, 6, 3]
    assert len({pair.conversation_id for pair in again}) == 2
    assert run(config, chat) == 0
    assert learned(config) == again


def test_a_conversation_that_goes_on_in_a_later_file_is_stored_whole_under_its_own_name(config: Path) -> None:
    """Pitfall 15."""
    old = export(
        config.parent / "old.json", wrote(0, ANN.id, "Why does it hang?"), wrote(5, STAFF.id, "Restart it.", to=0)
    )
    new = export(config.parent / "new.json", wrote(0, ANN.id, "Why does it hang?"), wrote(900, STAFF.id, "Or wait.", 0))
    assert run(config, old) == 0
    assert run(config, new) == 0
    first, second = learned(config)
    assert first.conversation_id == second.conversation_id == f"reply_{snowflake(0)}"
    assert [turn.text for turn in second.turns] == ["Why does it hang?", "Restart it.", "Or wait."]


def test_exports_of_a_channel_and_its_threads_are_merged_by_time_and_message_id(config: Path) -> None:
    channel = export(
        config.parent / "channel.json",
        wrote(0, ANN.id, "How do I start it?"),
        wrote(30, STAFF.id, "With start.", to=0),
        wrote(1000, ANN.id, "And how do I stop it?"),
    )
    again = export(
        config.parent / "again.json", wrote(0, ANN.id, "How do I start it?"), wrote(30, STAFF.id, "W.", to=0)
    )
    thread = export(
        config.parent / "thread.json",
        wrote(1010, ANN.id, "It runs on."),
        wrote(1020, STAFF.id, "With stop."),
        channel={**FORUM_POST, "categoryId": "20"},
    )
    assert run(config, thread, channel, again) == 0
    in_channel, in_thread = learned(config)
    assert [turn.text for turn in in_channel.turns] == ["How do I start it?", "With start."]
    assert in_thread.conversation_id == f"thread_{snowflake(1000)}"
    assert [turn.text for turn in in_thread.turns] == ["And how do I stop it?", "It runs on.", "With stop."]
    assert run(config, channel, thread) == 0
    assert len(learned(config)) == 2


def test_people_who_opted_out_are_left_out(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chat = write_chat(config.parent)
    files.replace(DataFolder(config.parent / "data").opt_outs, json.dumps([str(ANN.id)]).encode())
    assert ANN.id in json_state.read_ids(DataFolder(config.parent / "data").opt_outs)
    assert run(config, chat) == 0
    assert all(ANN.id not in pair.author_ids for pair in learned(config))
    assert "      9  messages, 3 of them left out as their authors wish" in capsys.readouterr().out


def test_messages_with_the_marker_are_left_out(config: Path) -> None:
    chat = write_chat(config.parent)
    chat.write_text(chat.read_text().replace("It says E7.", "It says E7. !nobot"))
    assert run(config, chat) == 0
    assert id_of(2) not in {i for pair in learned(config) for i in pair.message_ids}


@pytest.mark.slow
@pytest.mark.parametrize("truncated", [False, True])
def test_a_run_that_is_killed_at_any_block_and_run_again_leaves_what_one_run_would(
    config: Path, tmp_path: Path, *, truncated: bool
) -> None:
    """Pitfall 48."""
    recording = tmp_path / "long.json"
    write_long_chat(recording)
    assert run(config, recording) == 0
    whole = learned(config)
    assert len(whole) > 8
    for survives in range(len(whole)):
        other = tmp_path / f"run-{survives}" / "config.yaml"
        other.parent.mkdir()
        other.write_text(config.read_text())
        child = os.fork()
        if not child:
            die_in(other, recording, survives, truncated=truncated)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == DIED
        assert len(learned(other)) == survives
        assert run(other, recording) == 0
        assert content(learned(other)) == content(whole)


DIED = 77


def die_in(config: Path, recording: Path, survives: int, *, truncated: bool) -> None:
    """Import, and end this process at a write, or in the middle of it."""
    append, count = files.append, 0

    def dying(path: Path, data: bytes) -> None:
        nonlocal count
        if count == survives:
            if truncated:
                append(path, data[: len(data) // 2])
            os._exit(DIED)
        count += 1
        append(path, data)

    files.append = dying
    try:
        run(config, recording)
    finally:
        os._exit(1)


def write_long_chat(path: Path) -> None:
    """Conversations that grow, meet and part: Ann and Ben ask, Sue answers, to and fro."""
    lines: list[dict[str, object]] = []
    for turn in range(12):
        at = turn * 400.0
        asker = ANN.id if turn % 3 else 2
        lines.append(wrote(at, asker, f"Question {turn}?", to=at - 300 if turn % 4 == 1 else None))
        lines.append(wrote(at + 10, 2, "Meanwhile,"))
        lines.append(wrote(at + 100, STAFF.id, f"Answer {turn}.", to=at if turn % 5 else at + 10))
    export(path, *lines)


def test_what_is_read_of_a_cut_off_export_is_stored_and_the_exit_code_says_that_it_is_not_all(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = [wrote(0, ANN.id, "How do I start it?"), wrote(30, STAFF.id, "With start.", to=0)]
    odd = {**wrote(60, ANN.id, "Thanks!"), "reactions": 10**30}
    path = export(config.parent / "odd.json", *said, odd, wrote(90, ANN.id, "And how do I stop it?"))
    assert run(config, path) == 1
    assert "ends early, after message 2" in capsys.readouterr().err
    assert len(learned(config)) == 1
    assert run(config, export(config.parent / "sound.json", *said)) == 0


def test_a_capture_that_cannot_be_stored_is_a_failure_and_the_exit_code_says_so(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(files, "append", full)
        assert run(config, write_chat(config.parent)) == 1
    out, err = capsys.readouterr()
    assert "      4  failed" in out
    assert "make room" in err
    assert run(config, write_chat(config.parent)) == 0
    assert len(learned(config)) == 4


@pytest.mark.parametrize("discord", ["", "discord: {team_member_ids: []}\n"])
def test_without_a_team_there_is_nothing_to_learn(
    config: Path, capsys: pytest.CaptureFixture[str], discord: str
) -> None:
    config.write_text(discord or "app: {}\n")
    assert run(config, write_chat(config.parent)) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "nobody is of the team" in err
    assert "discord.team_member_ids" in err
    assert not (config.parent / "data").exists()


def test_team_roles_are_a_team_as_well(config: Path) -> None:
    config.write_text("discord: {team_role_ids: [55]}\n")
    answer = said(snowflake(9), type="Reply", reference={"messageId": str(snowflake(0))})  # by ada, who has the role
    assert run(config, export(config.parent / "e.json", wrote(0, 1, "Why?"), answer)) == 0
    assert len(learned(config)) == 1


def test_a_file_that_is_no_recording_is_one_line_and_nothing_is_done(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chat = write_chat(config.parent)
    bad = config.parent / "bad.jsonl"
    bad.write_text("")
    for path in (bad, config.parent / "nowhere.jsonl", config.parent):
        assert run(config, chat, path) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert str(path) in err
    assert not (config.parent / "data").exists()


def test_whoever_comes_while_the_folder_is_in_use_is_told_by_whom(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pitfall 42."""
    with lock(config.parent / "data", "app.py"):
        assert run(config, write_chat(config.parent)) == 2
    assert "in use by app.py" in capsys.readouterr().err


# Archives of other installations, and of an earlier program

EARLIER = """--- QA ---
id: qa_20260201_031056.228000
timestamp: 2026-02-01T03:10:56.228000Z
conversation_id: thread_1458745245675032709
message_ids: msg_123, msg_124, msg_125
User: How do I start a node?
Team: Run the container.

--- QA ---
id: qa_20260201_031057
timestamp: 2026-02-01T03:10:57Z
conversation_id: reply_1458745245675032710
message_ids: 200, 201
User: My node shows GPU not detected
Team: Update your drivers:
  nvidia-smi
"""


def test_an_archive_of_an_earlier_program_is_taken_over_in_the_present_form(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text("{}\n")
    earlier = config.with_name("2026-W05.txt")
    earlier.write_text(EARLIER)
    before = time.time()
    assert run(config, earlier) == 0
    node, gpu = learned(config)
    assert [turn.text for turn in node.turns] == ["How do I start a node?", "Run the container.", ""]
    assert (node.message_ids, node.author_ids) == ((123, 124, 125), (0, 0, 0))
    assert [pair.said_at for pair in (node, gpu)] == ["2026-02-01T03:10:56.228000Z", "2026-02-01T03:10:57Z"]
    assert gpu.turns[1].text == "Update your drivers:\nnvidia-smi"
    assert rfc3339(before, digits=6) <= node.timestamp < gpu.timestamp
    out = capsys.readouterr().out
    assert "2  taken over from other archives\n" in out
    assert "at the next start of the bot, or by --regen" in out
    assert run(config, earlier) == 0
    assert "0  taken over from other archives, 2 more are in the archive already" in capsys.readouterr().out
    assert len(learned(config)) == 2


def test_it_may_come_with_recordings_of_the_same_conversations(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chat = write_chat(config.parent)
    assert run(config, chat) == 0
    before = content(learned(config))
    [week] = week_files(config.parent / "data" / "team-knowledge" / "raw")
    elsewhere = week.rename(config.with_name("elsewhere.txt"))
    capsys.readouterr()
    assert run(config, chat, elsewhere) == 0
    assert content(learned(config)) == before
    out = capsys.readouterr().out
    assert "4  taken over from other archives" in out
    assert "4  captures that the archive holds already" in out


THEIRS = """--- QA ---
id: qa_20260201_031056.228000
timestamp: 2026-02-01T03:10:56.228000Z
said_at: 2026-02-01T03:09:41.120000Z
conversation_id: reply_200
message_ids: 200, 201
author_ids: 1, 902
User: My node shows a blorptang
Team: Update your drivers.

--- QA ---
id: qa_20260201_031057.000000
timestamp: 2026-02-01T03:10:57.000000Z
said_at: 2026-02-01T03:09:42.120000Z
conversation_id: thread_300
message_ids: 300, 301, 302, 303
author_ids: 2, 1, 902, 2
User: How do I start a node?
User: I have a blorptang
Team: Run the container.
User: #NoBot my name is Blorptang

"""


def test_another_archive_is_taken_over_without_people_who_have_opted_out(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of the list, and messages with the marker."""
    config.write_text("discord: {opt_out_marker: '#nobot'}\n")
    files.replace(config.parent / "data" / "state" / "opt-outs.json", json_state.render_ids({1}))
    elsewhere = config.with_name("2026-W05.txt")
    elsewhere.write_text(THEIRS)
    assert run(config, elsewhere) == 0
    (left,) = learned(config)
    assert (left.message_ids, left.author_ids) == ((300, 302), (2, 902))
    assert [turn.text for turn in left.turns] == ["How do I start a node?", "Run the container."]
    line = "{}  taken over from other archives{}, 1 left out for people who have opted out\n"
    assert line.format(1, "") in capsys.readouterr().out
    assert run(config, elsewhere) == 0
    assert line.format(0, ", 1 more are in the archive already") in capsys.readouterr().out
