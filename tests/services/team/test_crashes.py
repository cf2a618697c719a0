"""The writer of team knowledge is cut off wherever it can be, and started again (Pitfalls 7, 14 and 48)."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from services.team.archive import Pair, render
from services.team.captures import RecentCaptures
from services.team.decisions import Action, Actor, Decision, DecisionLog
from services.team.decisions import render as line_of
from services.team.filing import allowed_removals
from services.team.library import LibraryUnwritable, TeamLibrary
from sinks.team import RawArchive
from tests.services.storage.power import Machine, leftovers
from tests.services.team.pairs import (
    START,
    added,
    captured,
    decided,
    everything,
    is_whole,
    noted,
    opened,
    places_in,
    store,
    stored,
    topic_files,
)
from tests.sinks.test_archive import capture

CHARS = 400
pytestmark = pytest.mark.usefixtures("impatient_disk")
CONVERSATIONS = (1, 2, 1, 3, 4)
"""The third capture goes on with the first."""


@pytest.fixture
def impatient_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of starts and ends: nobody waits for the real disk."""

    def fsync(_descriptor: int) -> None:
        pass

    monkeypatch.setattr(os, "fsync", fsync)


def decide(library: TeamLibrary, pair: Pair, number: int, *, put_off: bool = False) -> None:
    """What a model would decide about the pair that is the `number`th of the archive."""
    held = library.pairs_of_topic("gpu")
    gone = allowed_removals(pair, held, [each.id for each in held[:1]])
    if number % 4 == 3:
        library.decide(decided(pair, Action.SKIPPED, remove_ids=gone), put_off=put_off)
    else:
        topic = "net" if number == 1 else "gpu"
        library.decide(added(pair, topic, remove_ids=gone if number == 4 else ()), put_off=put_off)


def decide_all(folder: Path, library: TeamLibrary, *, put_off: bool = False) -> None:
    while (pair := library.oldest_undecided()) is not None:
        decide(library, pair, [each.id for each in stored(folder)].index(pair.id), put_off=put_off)
        for topic in library.find_undescribed(list(library.topics.values())):
            library.describe(topic, f"{len(topic.pairs)} pairs", "key", put_off=put_off)


def a_day(folder: Path, acknowledged: list[str], together: int = 1) -> None:
    """Captures come, so many at a time, and are filed: those that come together with files written together."""
    raw = RawArchive(places_in(folder).raw, RecentCaptures())
    library = opened(folder, chars=CHARS)
    coming = [
        replace(
            capture(number, f"Question {number}?", "An answer.\n" * number), conversation_id=f"reply_{conversation}"
        )
        for number, conversation in enumerate(CONVERSATIONS)
    ]
    for start in range(0, len(coming), together):
        pairs = raw.write(coming[start : start + together], START.timestamp() + start)
        acknowledged += [pair.id for pair in pairs]
        decide_all(folder, library, put_off=together > 1)
    library.decide(decided(acknowledged[0], Action.RESTORED, by=Actor.OPERATOR))
    library.decide(decided(acknowledged[1], Action.REMOVED, by=Actor.OPERATOR))


class Uncut:
    """The topics of the same archive and the same judgements without any crash, operators' corrections last."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[tuple[object, ...], dict[str, str]] = {}

    def topics(self, pairs: list[Pair], decisions: list[Decision]) -> dict[str, str]:
        corrections = [each for each in decisions if each.by is Actor.OPERATOR]
        key = (*(pair.id for pair in pairs), *(each.action for each in corrections))
        if key not in self._known:
            folder = self._folder / str(len(self._known))
            store(folder, *pairs)
            library = opened(folder, chars=CHARS)
            decide_all(folder, library)
            for each in corrections:
                library.decide(each)
            self._known[key] = topic_files(folder)
        return self._known[key]


def check(folder: Path, acknowledged: list[str], uncut: Uncut, together: int = 1) -> None:
    """After the power is back: what counts is there, once, and a second start changes nothing."""
    filed = "".join(topic_files(folder).values())
    decided_about = [each.qa_id for each in noted(folder)]
    assert all(pair.id in decided_about for pair in stored(folder) if f"id: {pair.id}\n" in filed)
    library = opened(folder, chars=CHARS)
    assert is_whole(folder, library)
    there = [pair.id for pair in stored(folder)]
    assert there[: len(acknowledged)] == acknowledged
    assert len(there) <= len(acknowledged) + together
    before = everything(folder)
    opened(folder, chars=CHARS)
    assert everything(folder) == before
    assert leftovers(folder) == []
    decide_all(folder, library)
    assert is_whole(folder, library)
    assert topic_files(folder) == uncut.topics(stored(folder), noted(folder))
    assert opened(folder, chars=CHARS).oldest_undecided() is None


@pytest.mark.slow
@pytest.mark.parametrize("together", [1, 2])
def test_a_crash_at_any_system_call_loses_nothing_and_doubles_nothing(together: int, tmp_path: Path) -> None:
    """Pitfalls 7 and 14: at most the captures are lost that did not count as stored."""
    uncut = Uncut(tmp_path / "uncut")
    calls: set[str] = set()

    def cut_at(last: int) -> bool:
        acknowledged: list[str] = []
        folder = tmp_path / str(last)
        machine = Machine(last)
        whole = machine.run(lambda: a_day(folder, acknowledged, together))
        check(folder, acknowledged, uncut, together)
        shutil.rmtree(folder, ignore_errors=True)
        calls.update(machine.calls)
        return whole

    assert next(last for last in count() if cut_at(last)) > 100 // together
    assert {"open", "write", "fsync", "rename", "unlink"} <= calls


@pytest.mark.slow
def test_a_crash_while_a_start_mends_what_a_crash_left_is_mended_as_well(tmp_path: Path) -> None:
    """Pitfalls 14 and 48."""
    uncut = Uncut(tmp_path / "uncut")

    def cut_twice(first: int, second: int) -> bool:
        acknowledged: list[str] = []
        folder = tmp_path / f"{first}-{second}"
        Machine(first).run(lambda: a_day(folder, acknowledged))
        done = Machine(second).run(lambda: opened(folder, chars=CHARS))
        check(folder, acknowledged, uncut)
        shutil.rmtree(folder, ignore_errors=True)
        return done

    counting = Machine()
    counting.run(lambda: a_day(tmp_path / "whole", []))
    for first in range(0, len(counting.calls), 7):
        assert any(cut_twice(first, second) for second in count())


@pytest.mark.parametrize("action", [Action.ADDED, Action.SKIPPED])
def test_a_crash_at_any_byte_of_a_decision_is_mended_by_the_next_start(
    action: Action, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Pitfall 48."""
    pairs = [captured(number) for number in (1, 2)]
    store(tmp_path, *pairs)
    opened(tmp_path).decide(added(pairs[0], "gpu"))
    sound = places_in(tmp_path).decisions.read_bytes()
    last = decided(pairs[1], action, "gpu" if action is Action.ADDED else None)
    line = line_of(last).encode()
    for written in range(len(line) + 1):
        folder = tmp_path / "copies" / str(written)
        shutil.copytree(tmp_path / "team-knowledge", folder / "team-knowledge")
        library = opened(folder)
        # The file is opened, then written to.
        assert not Machine(1, written).run(lambda: library.decide(last))  # noqa: B023 (called at once)
        assert places_in(folder).decisions.read_bytes() == sound + line[:written]
        caplog.clear()
        again = opened(folder)
        assert is_whole(folder, again)
        whole = written == len(line)
        assert again.oldest_undecided() == (None if whole else pairs[1])
        aside = places_in(folder).decisions.with_name("decisions.jsonl.torn")
        assert (aside.read_bytes() if aside.exists() else b"") == (
            b"" if whole or not written else line[:written] + b"\n"
        )
        assert any("truncated last line" in message for message in caplog.messages) == aside.exists()
        if not whole:
            again.decide(last)
        assert noted(folder) == [added(pairs[0], "gpu"), last]
        shutil.rmtree(folder, ignore_errors=True)


def test_a_crash_at_any_byte_of_a_capture_leaves_tier_2_whole(tmp_path: Path) -> None:
    """Pitfall 48: half a block is no pair, and is not taken for one when the rest of another comes."""
    store(tmp_path, captured(1))
    opened(tmp_path).decide(added(captured(1), "gpu"))
    [week] = places_in(tmp_path).raw.iterdir()
    sound, block = week.read_bytes(), render(captured(2)).encode()
    for written in range(len(block)):
        week.write_bytes(sound + block[:written])
        library = opened(tmp_path)
        assert library.oldest_undecided() is None
        assert is_whole(tmp_path, library)
        # The next capture moves the torn end aside while the library looks on.
        ninth = replace(capture(9), conversation_id="reply_9")
        [pair] = RawArchive(week.parent, RecentCaptures()).write([ninth], START.timestamp() + 9000)
        assert library.oldest_undecided() == pair
    week.write_bytes(sound + block)
    assert opened(tmp_path).oldest_undecided() == captured(2)


# A full disk


def full_after(calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From so many writes on, nothing fits."""
    real, left = os.write, count(calls, -1)

    def write(descriptor: int, data: memoryview) -> int:
        if next(left) <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)


@pytest.mark.parametrize("writes", range(4))
def test_a_full_disk_is_told_and_nothing_is_lost_or_done_twice(
    writes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pitfalls 7 and 14: the decision, the topic, the index and the state file are written one after another."""
    pairs = [captured(number) for number in (1, 2)]
    store(tmp_path, *pairs)
    library = opened(tmp_path)
    with monkeypatch.context() as patch:
        full_after(writes, patch)
        with pytest.raises(LibraryUnwritable, match=r": No space left on device; make room\. ") as caught:
            library.decide(added(pairs[0], "gpu"))
        assert "\n" not in str(caught.value)
        assert len(noted(tmp_path)) == (writes > 0)
        if writes:
            with pytest.raises(LibraryUnwritable):  # before anything else is done
                library.oldest_undecided()
    # There is room again.
    assert library.oldest_undecided() == pairs[bool(writes)]
    for pair in pairs[bool(writes) :]:
        library.decide(added(pair, "gpu"))
    assert is_whole(tmp_path, library)
    assert library.oldest_undecided() is None
    assert leftovers(tmp_path) == []
    before = everything(tmp_path)
    opened(tmp_path)
    assert everything(tmp_path) == before


def test_what_was_put_off_is_told_when_the_disk_is_full_and_written_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pitfall 14."""
    pairs = [captured(number) for number in (1, 2)]
    store(tmp_path, *pairs)
    library = opened(tmp_path)
    for pair in pairs:
        library.decide(added(pair, "gpu"), put_off=True)
    with monkeypatch.context() as patch:
        full_after(0, patch)
        with pytest.raises(LibraryUnwritable, match=f"What was decided about {pairs[0].id} is noted at the next"):
            library.oldest_undecided()
        with pytest.raises(LibraryUnwritable):
            library.decide(decided(pairs[0], Action.REMOVED))
    assert noted(tmp_path) == []
    assert library.oldest_undecided() is None
    assert noted(tmp_path) == [added(pair, "gpu") for pair in pairs]
    assert is_whole(tmp_path, library)


def test_a_start_after_a_full_disk_mends_what_was_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Pitfall 14: also when several decisions had reached no topic file."""
    pairs = [captured(number) for number in (1, 2, 3)]
    store(tmp_path, *pairs)
    library = opened(tmp_path)
    library.decide(added(pairs[0], "gpu"))
    log = DecisionLog(places_in(tmp_path).decisions)
    for pair in pairs[1:]:
        log.append(added(pair, "gpu"))
    with monkeypatch.context() as patch:
        full_after(0, patch)
        with pytest.raises(OSError, match="No space left"):
            opened(tmp_path)
    assert is_whole(tmp_path, opened(tmp_path))
    assert caplog.messages == []


@pytest.fixture
def unwritable(tmp_path: Path) -> Callable[[], None]:
    """The folder of topics becomes a file."""
    topics = places_in(tmp_path).topics

    def spoil() -> None:
        topics.rename(topics.with_name("away"))
        topics.touch()

    return spoil


def test_a_folder_of_topics_that_went_away_is_told(tmp_path: Path, unwritable: Callable[[], None]) -> None:
    store(tmp_path, captured(1), captured(2))
    library = opened(tmp_path)
    library.decide(added(captured(1), "gpu"))
    unwritable()
    with pytest.raises(LibraryUnwritable, match=r"gpu\.txt: .*move that away\. What was decided is noted"):
        library.decide(added(captured(2), "gpu"))
    places_in(tmp_path).topics.unlink()
    places_in(tmp_path).topics.with_name("away").rename(places_in(tmp_path).topics)
    assert library.oldest_undecided() is None
    assert is_whole(tmp_path, library)
