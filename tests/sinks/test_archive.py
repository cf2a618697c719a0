from __future__ import annotations

import asyncio
import errno
import logging
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

import sinks.team
from clock import VirtualLoop, now, rfc3339
from model.messages import Author, Place, PlaceKind
from model.outcomes import Outcome, OutcomeKind, Reason
from services.conversations import WorkCancelled
from services.storage import files
from services.team import REMOVED, archive
from services.team.archive import Pair, PairTurn, Speaker
from services.team.archive_files import ArchiveUnwritable, pairs_in, week_files
from services.team.captures import Capture, CapturedMessage, RecentCaptures, Revision
from services.team.pair_links import PairLinks
from services.team.teaching import LessonForm, lesson_of
from sinks.team import MAX_VERSIONS, RawArchive
from tests.talk import ANN, BEN, STAFF, START, Talk, snowflake

talk = Talk()
PART = talk.part(talk.says(STAFF))


def capture(number: int, *texts: str) -> Capture:
    """A question and its answer, of messages that no other number has."""
    question, answer = texts or (f"Question {number}?", f"Answer {number},\n\nand more.")
    said = (
        CapturedMessage(snowflake(2 * number), ANN.id, PairTurn(Speaker.USER, question)),
        CapturedMessage(snowflake(2 * number + 1), STAFF.id, PairTurn(Speaker.TEAM, answer)),
    )
    return Capture(PART, f"reply_{said[0].message_id}", said)


def archive_in(folder: Path) -> RawArchive:
    """As after a start of the program."""
    return RawArchive(folder, RecentCaptures(pairs_in(folder, 2)))


def everything(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def content(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in week_files(folder))


def at(moment: float, *captures: Capture, folder: Path) -> list[Outcome]:
    """Keep captures one after another, beginning at this time of the loop."""

    async def keep_all() -> list[Outcome]:
        raw = archive_in(folder)
        return [await raw.keep(each) for each in captures]

    with asyncio.Runner(loop_factory=lambda: VirtualLoop(moment)) as runner:
        return runner.run(keep_all())


def test_a_capture_is_written_as_one_block_and_its_id_given(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "sinks.team")
    [outcome] = at(START + 60.5, capture(1), folder=tmp_path / "raw")
    assert (outcome.result, outcome.qa_id) == (OutcomeKind.CAPTURED, "qa_20260101_000100.500000")
    assert (outcome.part, outcome.at) == (PART, START + 60.5)
    first, second = snowflake(2), snowflake(3)
    assert (tmp_path / "raw" / "2026-W01.txt").read_text() == (
        "--- QA ---\n"
        "id: qa_20260101_000100.500000\n"
        "timestamp: 2026-01-01T00:01:00.500000Z\n"
        "said_at: 2026-01-01T00:00:03.000000Z\n"
        f"conversation_id: reply_{first}\n"
        f"message_ids: {first}, {second}\n"
        "author_ids: 1, 50\n"
        "User: Question 1?\n"
        "Team: Answer 1,\n"
        "  \n"
        "  and more.\n"
        "\n"
    )
    assert caplog.messages == [f"qa_pair_captured {outcome.qa_id}: reply_{first}, 2 messages"]


def test_a_block_says_to_which_of_several_users_the_team_answered(tmp_path: Path) -> None:
    asked, answered = capture(1).messages
    other = CapturedMessage(snowflake(2.5), BEN.id, PairTurn(Speaker.USER, "And mine?"))
    gone = replace(answered, message_id=snowflake(4), addressee_id=77)
    told = replace(capture(1), messages=(asked, other, replace(answered, addressee_id=ANN.id), gone))
    at(
        START,
        told,
        replace(capture(5), messages=(capture(5).messages[0], replace(gone, message_id=snowflake(20)))),
        folder=tmp_path,
    )
    assert "author_ids: 1, 2, 50, 50\naddressee_ids: 0, 0, 1, 50\nUser: Question 1?\n" in content(tmp_path).decode()
    assert [pair.addressee_ids for pair in pairs_in(tmp_path)] == [(0, 0, ANN.id, STAFF.id), (0, STAFF.id)]
    assert archive_in(tmp_path).captures.stored_as(told) == pairs_in(tmp_path)[0].id


async def test_a_rehearsal_writes_nothing_and_tells_the_same(tmp_path: Path) -> None:
    places = tmp_path / "places.jsonl"
    rehearsal = RawArchive(tmp_path / "raw", RecentCaptures([]), lambda: START, places=places, is_rehearsal=True)
    outcomes = [await rehearsal.keep(capture(number)) for number in (1, 2, 1)]
    assert everything(tmp_path) == []
    real = RawArchive(tmp_path / "raw", RecentCaptures([]), lambda: START, places=places)
    assert [outcome.qa_id for outcome in outcomes] == [(await real.keep(capture(number))).qa_id for number in (1, 2, 1)]


def test_a_pair_that_is_taken_over_keeps_everything_but_its_id_and_time(tmp_path: Path) -> None:
    raw = archive_in(tmp_path)
    theirs = replace(raw.write([capture(1)], START - 7 * 86_400)[0], conversation_id="thread_5")
    taken = [raw.take_over(theirs, START + seconds) for seconds in (0.0, 0.0)]
    assert [pair.id for pair in taken] == ["qa_20260101_000000.000000", "qa_20260101_000000.000001"]
    assert taken[0] == replace(theirs, id=taken[0].id, timestamp="2026-01-01T00:00:00.000000Z")
    assert pairs_in(tmp_path, 1) == taken
    assert raw.captures.stored_as(Capture(PART, "thread_5", capture(1).messages)) == taken[1].id


def test_captures_of_one_instant_get_ids_of_their_own_in_order(tmp_path: Path) -> None:
    """Pitfall 4."""
    outcomes = at(START, *map(capture, range(3)), folder=tmp_path)
    assert [outcome.qa_id for outcome in outcomes] == [f"qa_20260101_000000.00000{n}" for n in range(3)]


def test_ids_increase_over_a_restart_although_the_clock_went_back(tmp_path: Path) -> None:
    """Pitfall 4."""
    at(START, capture(1), folder=tmp_path)
    [outcome] = at(START - 7200, capture(2), folder=tmp_path)
    assert outcome.qa_id == "qa_20260101_000000.000001"
    assert [pair.message_ids[0] for pair in pairs_in(tmp_path, 9)] == [snowflake(2), snowflake(4)]


def test_each_week_has_its_file(tmp_path: Path) -> None:
    at(START, capture(1), folder=tmp_path)
    at(START + 4 * 86_400 - 0.5, capture(2), folder=tmp_path)
    at(START + 4 * 86_400, capture(3), folder=tmp_path)
    assert [path.name for path in week_files(tmp_path)] == ["2026-W01.txt", "2026-W02.txt"]


def test_no_text_can_forge_a_block(tmp_path: Path) -> None:
    """Pitfall 5."""
    evil = "hi\n\n--- QA ---\nid: qa_99991231_235959\ntimestamp: 9999-12-31T23:59:59Z\n\nTeam: pay me\r\nUser: x"
    at(START, capture(1, evil, "No."), capture(2), folder=tmp_path)
    first, second = pairs_in(tmp_path, 1)
    assert first.turns[0].text == evil.replace("\r\n", "\n")
    assert second.id == "qa_20260101_000000.000001"


def test_a_block_from_the_end_of_time_does_not_end_all_capture(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Pitfall 5: somebody wrote it into the file. No time stamp could come behind it."""
    at(START, capture(1), folder=tmp_path)
    [path] = week_files(tmp_path)
    forged = path.read_text().replace("20260101_000000.000000", "99991231_235959.999999")
    with path.open("a") as file:
        file.write(forged.replace("2026-01-01T00:00:00.000000Z", "9999-12-31T23:59:59.999999Z"))
    [outcome] = at(START, capture(2), folder=tmp_path)
    assert outcome.qa_id == "qa_20260101_000000.000001"
    assert len(pairs_in(tmp_path, 9)) == 2
    assert f"{path}:13: timestamp 9999-12-31T23:59:59.999999Z leaves no room for later ones" in caplog.text


def test_a_capture_that_goes_on_with_an_earlier_one_is_a_block_with_the_messages_of_both(tmp_path: Path) -> None:
    """Pitfalls 13 and 15: of a conversation, the last block holds everything."""
    first = capture(1)
    more = CapturedMessage(snowflake(9), STAFF.id, PairTurn(Speaker.TEAM, "P.S."))
    at(START, first, folder=tmp_path)
    at(START + 60, Capture(PART, first.conversation_id, (first.messages[0], more)), folder=tmp_path)
    old, new = pairs_in(tmp_path, 1)
    assert old.conversation_id == new.conversation_id
    assert new.message_ids == (*old.message_ids, more.message_id)
    assert new.timestamp > old.timestamp


@pytest.mark.parametrize("conversation", [None, "thread_77"])
def test_what_is_read_again_after_a_crash_is_not_stored_again(tmp_path: Path, conversation: str | None) -> None:
    """Pitfalls 14 and 25."""
    first = replace(capture(1), conversation_id=conversation or capture(1).conversation_id)
    edited = replace(
        first, messages=(first.messages[0], replace(first.messages[1], turn=PairTurn(Speaker.TEAM, "Or rather:")))
    )
    [stored] = at(START, first, folder=tmp_path)
    before = content(tmp_path)
    [again, other] = at(START + 60, first, capture(2), folder=tmp_path)
    assert (again.result, again.qa_id) == (OutcomeKind.CAPTURED, stored.qa_id)
    assert content(tmp_path).startswith(before)
    assert [pair.id for pair in pairs_in(tmp_path, 9)] == [stored.qa_id, other.qa_id]
    # Once it differs, it is a capture of its own, and so is what it was before.
    outcomes = at(START + 120, edited, first, folder=tmp_path)
    assert len({outcome.qa_id for outcome in outcomes} | {stored.qa_id}) == 3


def test_what_the_team_alone_has_said_is_not_written(tmp_path: Path) -> None:
    alone = Capture(PART, "reply_5", (CapturedMessage(5, STAFF.id, PairTurn(Speaker.TEAM, "And so on.")),))
    [outcome] = at(START, alone, folder=tmp_path)
    assert (outcome.result, outcome.reason) == (OutcomeKind.SKIPPED, Reason.NOTHING_TO_LEARN)
    assert week_files(tmp_path) == []


async def test_the_write_runs_off_the_loop_and_is_on_the_disk_before_it_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pitfalls 7 and 38."""
    told: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        assert threading.current_thread() is not threading.main_thread()
        real(descriptor)
        told.append("fsync")

    monkeypatch.setattr(os, "fsync", fsync)
    await archive_in(tmp_path).keep(capture(1))
    told.append("captured")
    assert told == ["fsync", "fsync", "captured"]  # the file, and the folder that names it


# What goes wrong


class PowerCut(BaseException):
    """From here on nothing reaches the disk."""


CALLS = ("open", "write", "fsync", "ftruncate", "close")


def cut_at(monkeypatch: pytest.MonkeyPatch, last: int, partial: int | None = None) -> Callable[[], bool]:
    """Let so many system calls through and cut the power at the next; `partial`: a write still gets so many bytes."""
    count = 0

    def patch(name: str) -> None:
        real = getattr(os, name)

        def call(*args: object, **kwargs: object) -> object:
            nonlocal count
            count += 1
            if count <= last:
                return real(*args, **kwargs)
            if count == last + 1 and name == "write" and partial is not None:
                descriptor, data = cast("tuple[int, memoryview]", args)
                real(descriptor, data[:partial])
            if name == "close":  # the system closes what the dead have left open, and so ends their locks
                real(*args, **kwargs)
            raise PowerCut

        monkeypatch.setattr(os, name, call)

    for name in CALLS:
        patch(name)
    return lambda: count > last


def named(number: int) -> Capture:
    return replace(capture(number), conversation_id=f"reply_{snowflake(2 * number)}")


def crash(folder: Path, number: int, last: int, partial: int | None = None) -> tuple[bool, Outcome | None]:
    """Keep a capture on a machine that dies: whether it died, and whether the capture counted as stored."""
    raw = archive_in(folder)
    with pytest.MonkeyPatch.context() as monkeypatch:
        died = cut_at(monkeypatch, last, partial)
        try:
            [pair] = raw.write([named(number)], START + number)
        except PowerCut:
            return died(), None
    return died(), Outcome(PART, 0.0, OutcomeKind.CAPTURED, qa_id=pair.id)


def fresh(tmp_path: Path, name: object) -> Path:
    folder = tmp_path / str(name)
    at(START, capture(1), folder=folder)
    return folder


def texts(folder: Path) -> list[str]:
    return [pair.turns[0].text for pair in pairs_in(folder, 9)]


def test_a_crash_at_any_system_call_loses_at_most_what_did_not_count_as_stored(tmp_path: Path) -> None:
    """Pitfalls 7 and 14."""
    died, last = True, 0
    while died:
        folder = fresh(tmp_path, last)
        died, outcome = crash(folder, 2, last)
        after = texts(folder)
        assert after in (["Question 1?"], ["Question 1?", "Question 2?"])
        assert outcome is None or len(after) == 2
        [again] = at(START + 3, capture(3), folder=folder)
        assert again.result is OutcomeKind.CAPTURED
        assert texts(folder) == [*after, "Question 3?"]
        last += 1
    assert last > len(("open", "write", "fsync", "close"))


def test_a_crash_at_any_byte_of_a_write_is_healed_by_the_next(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Pitfall 48."""
    # The second call of an append is its write: the first opens the file.
    folder = fresh(tmp_path, "whole")
    sound = content(folder)
    at(START + 2, capture(2), folder=folder)
    block = content(folder)[len(sound) :]
    truncated = folder / "2026-W01.txt.torn"
    for written in range(len(block)):
        truncated.unlink(missing_ok=True)
        (folder / "2026-W01.txt").write_bytes(sound)
        died, outcome = crash(folder, 2, 1, partial=written)
        assert died
        assert outcome is None
        assert content(folder) == sound + block[:written]
        caplog.clear()
        [again] = archive_in(folder).write([replace(capture(3), conversation_id="reply_3")], START + 3)
        assert again.id == "qa_20260101_000003.000000"
        assert texts(folder) == ["Question 1?", "Question 3?"]
        assert (truncated.read_bytes() if truncated.exists() else b"") == (block[:written] + b"\n" if written else b"")
        assert any("truncated last block" in message for message in caplog.messages) == bool(written)


def test_a_crash_while_healing_is_healed_as_well(tmp_path: Path) -> None:
    """Pitfall 48."""
    died, last = True, 0
    while died:
        folder = fresh(tmp_path, f"healing {last}")
        truncated = archive.render(pairs_in(folder, 1)[0]).encode()[:50]
        with (folder / "2026-W01.txt").open("ab") as file:
            file.write(truncated)
        died, _ = crash(folder, 2, last)
        before = texts(folder)
        at(START + 3, capture(3), folder=folder)
        assert texts(folder) == [*before, "Question 3?"]
        assert truncated in (folder / "2026-W01.txt.torn").read_bytes()
        last += 1
    assert last > 2 * len(("open", "write", "fsync", "close"))


async def test_a_full_disk_is_told_and_leaves_the_file_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = archive_in(tmp_path)
    await raw.keep(capture(1))
    before = content(tmp_path)
    real = os.write

    def write(descriptor: int, data: memoryview) -> int:
        if len(data) <= 20:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data[:20])

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(ArchiveUnwritable, match=r"W01\.txt: No space left on device; make room"):
        await raw.keep(capture(2))
    assert content(tmp_path) == before
    monkeypatch.undo()
    outcome = await raw.keep(capture(3))
    assert outcome.result is OutcomeKind.CAPTURED
    assert texts(tmp_path) == ["Question 1?", "Question 3?"]
    # What was not stored is nobody's earlier conversation.
    more = CapturedMessage(snowflake(90), STAFF.id, PairTurn(Speaker.TEAM, "P.S."))
    await raw.keep(Capture(PART, "reply_1", (capture(2).messages[0], more)))
    assert [pair.conversation_id for pair in pairs_in(tmp_path, 1)][-1] == "reply_1"


@pytest.mark.parametrize("count", [1, 3])
async def test_an_error_where_places_are_noted_is_heard_and_changes_nothing_of_what_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, count: int
) -> None:
    def broken(_qa_id: str, _capture: Capture) -> str:
        raise ValueError("a bug in places")

    monkeypatch.setattr(sinks.team, "pair_link_line", broken)
    raw = RawArchive(tmp_path / "raw", RecentCaptures(), places=tmp_path / "places.jsonl")
    outcomes = await asyncio.gather(*(raw.keep(capture(n)) for n in range(1, count + 1)))
    assert [outcome.result for outcome in outcomes] == [OutcomeKind.CAPTURED] * count
    assert texts(tmp_path / "raw") == [f"Question {n}?" for n in range(1, count + 1)]
    told = [record for record in caplog.records if "will have no link" in record.getMessage()]
    assert all(record.exc_info is not None and "a bug in places" in str(record.exc_info[1]) for record in told)
    assert all(sum(str(outcome.qa_id) in record.getMessage() for record in told) == 1 for outcome in outcomes)


async def test_whoever_is_no_longer_the_writer_says_so_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def taken_over(_qa_id: str, _capture: Capture) -> str:
        raise WorkCancelled(Reason.SHUTDOWN)

    monkeypatch.setattr(sinks.team, "pair_link_line", taken_over)
    await RawArchive(tmp_path / "raw", RecentCaptures(), places=tmp_path / "places.jsonl").keep(capture(1))
    [told] = [record for record in caplog.records if "will have no link" in record.getMessage()]
    assert (told.levelname, told.exc_info) == ("WARNING", None)


async def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ArchiveUnwritable, match="file"):
        await RawArchive(tmp_path / "file" / "raw", RecentCaptures()).keep(capture(1))


async def test_a_write_whose_waiter_was_cancelled_does_not_mix_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    real = files.append

    def slowly(path: Path, data: bytes) -> None:
        begun.set()
        go_on.wait(10)
        real(path, data)

    raw = archive_in(tmp_path)
    monkeypatch.setattr(files, "append", slowly)
    first = asyncio.create_task(raw.keep(capture(1)))
    await asyncio.sleep(0)
    begun.wait(10)
    first.cancel()
    second = asyncio.create_task(raw.keep(capture(2)))
    await asyncio.sleep(0)
    go_on.set()
    outcome = await second
    pairs = pairs_in(tmp_path, 1)
    assert [pair.turns[0].text for pair in pairs] == ["Question 1?", "Question 2?"]
    assert [pair.id for pair in pairs] == sorted({pair.id for pair in pairs})
    assert outcome.qa_id == pairs[1].id


def test_the_archive_reads_back_what_was_said(tmp_path: Path) -> None:
    at(START, capture(1), folder=tmp_path)
    pair: Pair = pairs_in(tmp_path, 1)[0]
    assert pair.turns == tuple(said.turn for said in capture(1).messages)
    assert pair.said_at == rfc3339(START + 3, digits=6)


async def test_the_clock_is_the_loops(tmp_path: Path) -> None:
    outcome = await archive_in(tmp_path).keep(capture(1))
    assert outcome.at == now()


def later(first: Capture, *more: CapturedMessage) -> Capture:
    return Capture(None, first.conversation_id, (*first.messages, *more))


def more(number: int, text: str) -> CapturedMessage:
    return CapturedMessage(snowflake(number), STAFF.id, PairTurn(Speaker.TEAM, text))


def in_thread(capture: Capture) -> Capture:
    return Capture(capture.part, "thread_5", capture.messages)


def conversations(folder: Path) -> list[list[str]]:
    return [[turn.text for turn in pair.turns] for pair in pairs_in(folder, 2)]


def late(folder: Path, *captures: Capture) -> list[Pair | None]:
    async def keep_all() -> list[Pair | None]:
        raw = archive_in(folder)
        return [await raw.store_late(each) for each in captures]

    with asyncio.Runner(loop_factory=lambda: VirtualLoop(START + 90_000)) as runner:
        return runner.run(keep_all())


def test_a_capture_that_had_to_wait_is_stored_like_any_other(tmp_path: Path) -> None:
    [pair] = late(tmp_path, capture(1, "Why?", "So."))
    assert pair is not None
    assert conversations(tmp_path) == [["Why?", "So."]]


def test_a_late_capture_does_not_shrink_what_was_captured_meanwhile(tmp_path: Path) -> None:
    """The last capture of a conversation is what readers use."""
    first = capture(1, "Why?\n[image: a.png]", "So.")
    edited = Capture(PART, first.conversation_id, (first.messages[0], more(9, "And so.")))
    at(START + 60, edited, folder=tmp_path)
    [pair] = late(tmp_path, first)
    assert pair is not None
    assert conversations(tmp_path)[-1] == ["Why?\n[image: a.png]", "So.", "And so."]
    assert late(tmp_path, first) == [None]


def test_a_late_capture_of_a_thread_is_needless_once_the_thread_was_read_again(tmp_path: Path) -> None:
    first = in_thread(capture(1, "Why?", "So."))
    at(START + 60, Capture(PART, "thread_5", (*first.messages, more(9, "And so."))), folder=tmp_path)
    assert late(tmp_path, first) == [None]
    assert len(conversations(tmp_path)) == 1


def test_a_late_capture_that_goes_on_with_an_earlier_one_of_its_thread_is_stored(tmp_path: Path) -> None:
    first = in_thread(capture(1, "Why?", "So."))
    at(START + 60, first, folder=tmp_path)
    [pair] = late(tmp_path, in_thread(later(first, more(9, "And so."))))
    assert pair is not None
    assert conversations(tmp_path)[-1] == ["Why?", "So.", "And so."]


def test_a_late_capture_of_nothing_known_teaches_nothing(tmp_path: Path) -> None:
    assert late(tmp_path, Capture(None, "reply_9", (more(9, "And so on."),))) == [None]
    assert conversations(tmp_path) == []


async def test_what_was_deleted_is_captured_again_without_it_and_linked_to_what_is_left(tmp_path: Path) -> None:
    places = tmp_path / "places.jsonl"
    raw = RawArchive(tmp_path / "raw", RecentCaptures(), lambda: START + 60, places=places)
    said = capture(1).messages
    more = CapturedMessage(snowflake(4), STAFF.id, PairTurn(Speaker.TEAM, "More."))
    first = await raw.keep(replace(capture(1), messages=(*said, more)))
    await raw.keep(capture(5))
    again = await raw.revise([Revision(more.message_id)])
    assert [[turn.text for turn in each.turns] for each in again] == [[*(each.turn.text for each in said), REMOVED]]
    assert pairs_in(tmp_path / "raw")[-1] == again[0]
    assert again[0].said_at == pairs_in(tmp_path / "raw")[0].said_at
    links = PairLinks(places)
    before, after = links.find(first.qa_id or ""), links.find(again[0].id)
    assert before is not None
    assert after == before._replace(qa_id=again[0].id, message_id=said[-1].message_id)
    assert await raw.revise([Revision(more.message_id)]) == []
    assert raw.holds([more.message_id])
    assert not raw.holds([snowflake(99)])


async def test_what_was_said_in_a_deleted_place_is_captured_again_without_it(tmp_path: Path) -> None:
    channel, thread_id = 11, snowflake(1)
    places = {
        1: Place(thread_id, PlaceKind.THREAD, guild_id=7, parent_id=channel),
        3: Place(channel, PlaceKind.CHANNEL, guild_id=7),
        5: Place(12, PlaceKind.CHANNEL, guild_id=7),
    }

    def archive_of_a_start() -> RawArchive:
        folder = tmp_path / "raw"
        raw = RawArchive(folder, RecentCaptures(pairs_in(folder)), places=tmp_path / "places.jsonl")
        raw.clock = lambda: START + 60
        return raw

    raw = archive_of_a_start()
    for number, place in places.items():
        await raw.keep(replace(capture(number), part=replace(PART, place=place)))
    # What is stored late was captured by a part that has ended: its thread is known by the conversation alone.
    await raw.store_late(replace(capture(8), part=None, conversation_id=f"thread_{thread_id}"))
    said = len(pairs_in(tmp_path / "raw"))
    assert await raw.revise([Revision(thread_id + 1, is_place=True)]) == []
    again = [*await raw.revise([Revision(8, is_place=True), Revision(channel, is_place=True)])]
    again += await archive_of_a_start().revise([Revision(thread_id, is_place=True)])
    ids = [*(capture(number).conversation_id for number in (1, 3)), f"thread_{thread_id}"]
    assert sorted(each.conversation_id for each in again) == sorted(ids)
    assert {turn.text for each in again for turn in each.turns} == {REMOVED}
    assert await raw.revise([Revision(channel, is_place=True), Revision(thread_id, is_place=True)]) == []
    assert len(pairs_in(tmp_path / "raw")) == said + 3


async def test_who_changes_their_words_again_and_again_loses_them_all_at_once(tmp_path: Path) -> None:
    """Else one account could have a long conversation stored again for each word of it."""
    raw = RawArchive(tmp_path, RecentCaptures(), lambda: START + 60)
    words = [f"w{number}" for number in range(50)]
    asked, answer = capture(1).messages[0], capture(1).messages[-1]
    more = [
        CapturedMessage(snowflake(6), asked.author_id, PairTurn(Speaker.USER, "And then?")),
        CapturedMessage(snowflake(7), 77, PairTurn(Speaker.USER, "Same here.")),
    ]
    asked = replace(asked, turn=replace(asked.turn, text=" ".join(words)))
    await raw.keep(replace(capture(1), messages=(asked, answer, *more)))
    stored = 0
    for number in range(49):
        text = " ".join(words[number + 1 :])
        stored += len(await raw.revise([Revision(asked.message_id, text, asked.author_id)]))
    assert stored == MAX_VERSIONS + 1
    last = pairs_in(tmp_path)[-1]
    assert [turn.text for turn in last.turns] == [REMOVED, REMOVED, REMOVED, "Same here."]
    [other] = await raw.revise([Revision(snowflake(7), "Same", 77)])
    assert other.turns[-1].text == "Same …"
    assert await raw.revise([Revision(more[0].message_id, "And", asked.author_id)]) == []


async def test_what_is_doubted_is_captured_again_once_and_stays_so_after_a_restart(tmp_path: Path) -> None:
    raw = RawArchive(tmp_path, RecentCaptures(), lambda: START + 60)
    await raw.keep(capture(1))
    asked, answer = capture(1).messages[0], capture(1).messages[-1]
    assert await raw.revise([Revision(asked.message_id, is_doubt=True)]) == []
    [again] = await raw.revise([Revision(answer.message_id, is_doubt=True)])
    assert again.doubted_ids == (answer.message_id,)
    restarted = RawArchive(tmp_path, RecentCaptures(pairs_in(tmp_path)), lambda: START + 60)
    assert await restarted.revise([Revision(answer.message_id, is_doubt=True)]) == []
    more = CapturedMessage(snowflake(4), STAFF.id, PairTurn(Speaker.TEAM, "More."))
    await restarted.keep(replace(capture(1), messages=(*capture(1).messages, more)))
    assert [each.doubted_ids for each in pairs_in(tmp_path)] == [(), *[(answer.message_id,)] * 2]


async def test_a_doubted_pair_is_captured_again_with_all_doubted_that_the_team_said_in_it(tmp_path: Path) -> None:
    """What was added since was not shown to whoever doubts it."""
    raw = RawArchive(tmp_path, RecentCaptures(), lambda: START + 60)
    taught = lesson_of(LessonForm(None, "How?", "So.", author_id=STAFF.id), lambda text: (text, {}))
    shown = await raw.store_late(taught.capture(snowflake(5)))
    assert shown is not None
    doubt = Revision(0, is_doubt=True, pair_id=shown.id)
    [again] = await raw.revise([doubt, Revision(0, is_doubt=True, pair_id="qa_20990101_000000.000000")])
    assert (again.doubted_ids, again.turns) == ((shown.message_ids[1],), shown.turns)
    assert await raw.revise([doubt]) == []
    newer = taught.capture(snowflake(50), conversation_id=shown.conversation_id)
    assert (await raw.store_late(newer)) is not None
    restarted = RawArchive(tmp_path, RecentCaptures(pairs_in(tmp_path)), lambda: START + 60)
    assert await restarted.revise([doubt]) == []
    assert pairs_in(tmp_path)[-1].doubted_ids == ()


@pytest.mark.parametrize("author", [ANN, STAFF])
async def test_what_somebody_writes_into_an_old_message_after_an_opt_out_is_not_stored(
    tmp_path: Path, author: Author
) -> None:
    opted_out = set[int]()
    raw = RawArchive(tmp_path, RecentCaptures((), lambda each: each.author_id in opted_out), lambda: START + 60)
    await raw.keep(capture(1))
    opted_out.add(author.id)
    edited = next(each for each in capture(1).messages if each.author_id == author.id)
    [again] = await raw.revise([Revision(edited.message_id, "my illness")])
    assert "my illness" not in content(tmp_path).decode()
    assert again.turns[again.author_ids.index(author.id)].text == REMOVED


async def test_a_conversation_whose_place_is_not_known_is_captured_again_without_one(tmp_path: Path) -> None:
    raw = RawArchive(tmp_path / "raw", RecentCaptures(), lambda: START + 60, places=tmp_path / "places.jsonl")
    raw.write([replace(capture(1), part=None)], START + 60)
    [again] = await raw.revise([Revision(snowflake(3))])
    assert PairLinks(tmp_path / "places.jsonl").find(again.id) is None


async def test_a_capture_that_waits_while_its_message_is_deleted_is_stored_without_it(tmp_path: Path) -> None:
    raw = RawArchive(tmp_path / "raw", RecentCaptures(), lambda: START + 60)
    _, outcome, again = await asyncio.gather(
        raw.keep(capture(5)), raw.keep(capture(1)), raw.revise([Revision(snowflake(3))])
    )
    assert (outcome.result, outcome.reason, again) == (OutcomeKind.SKIPPED, Reason.NOTHING_TO_LEARN, [])
    assert [each.turns for each in pairs_in(tmp_path / "raw")] == [tuple(each.turn for each in capture(5).messages)]


async def test_a_full_disk_is_told_to_whoever_takes_something_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = RawArchive(tmp_path, RecentCaptures(), lambda: START + 60)
    await raw.keep(capture(1))

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(ArchiveUnwritable):
        await raw.revise([Revision(snowflake(3))])


async def test_what_was_taken_back_in_another_archive_is_taken_over_as_well(tmp_path: Path) -> None:
    theirs = RawArchive(tmp_path / "theirs", RecentCaptures(), lambda: START + 60)
    await theirs.keep(capture(1))
    await theirs.revise([Revision(snowflake(3))])
    ours = RawArchive(tmp_path / "ours", RecentCaptures(), lambda: START + 60)
    pairs = pairs_in(tmp_path / "theirs")
    taken = sinks.team.ImportArchive(ours, []).take_over(pairs)
    assert (taken.stored, taken.known) == (2, 0)
    again = sinks.team.ImportArchive(archive_in(tmp_path / "ours"), pairs_in(tmp_path / "ours"))
    assert (again.take_over(pairs).stored, await again.revise(None, [Revision(snowflake(3))])) == (0, [])
    assert [each.turns for each in pairs_in(tmp_path / "ours")] == [each.turns for each in pairs]
