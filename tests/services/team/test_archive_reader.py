from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.storage import files
from services.team import archive, archive_files
from services.team.archive import Pair, render
from services.team.archive_files import ArchiveReader, StoredBlock
from tests.services.quickly import QUICKLY
from tests.services.team.pairs import captured, places_in, store

WEEK = 24 * 7


def anything(_pair: Pair) -> bool:
    return True


def all_of(reader: ArchiveReader) -> list[Pair]:
    """Asked for one after another, as if each were decided about."""
    done: list[Pair] = []
    while (pair := reader.oldest(lambda pair: pair not in done)) is not None:
        done.append(pair)
    return done


@pytest.mark.parametrize("chunk", [1, 200, 1000, 1 << 20])
def test_however_little_is_read_at_once_every_pair_comes_in_order(
    chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_files, "CHUNK_BYTES", chunk)
    pairs = [captured(number * 40, "Q?", "é\n" * 40 * number) for number in range(12)]
    store(tmp_path, *pairs)
    reader = ArchiveReader(places_in(tmp_path).raw)
    assert list(reader.survey(lambda pair: pair == pairs[7])) == pairs
    # Later it goes on where something was wanted, or a little before; the other weeks are done with.
    week = [pair for pair in pairs if archive.week_file(pair.key) == archive.week_file(pairs[7].key)]
    later = all_of(reader)
    assert pairs[7] in later
    assert later == week[-len(later) :]
    assert all_of(ArchiveReader(places_in(tmp_path).raw)) == pairs
    assert reader.find(map(archive.instant, (pairs[3].id, pairs[11].id, captured(1).id))) == {
        archive.instant(pair.id): pair for pair in (pairs[3], pairs[11])
    }


def test_only_what_was_read_last_is_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_files, "CHUNK_BYTES", 2000)
    store(tmp_path, *(captured(number) for number in range(100)))
    reader = ArchiveReader(places_in(tmp_path).raw)
    assert reader.oldest(anything) == captured(0)
    assert len(reader._waiting) < 10  # pyright: ignore[reportPrivateUsage] (what is in memory shows nowhere else)


def test_a_file_of_a_new_week_is_seen_although_the_folder_looks_the_same(tmp_path: Path) -> None:
    """Two files may be made within one tick of the file system's clock, as in a replay."""
    raw = places_in(tmp_path).raw
    store(tmp_path, captured(0))
    reader = ArchiveReader(raw)
    assert all_of(reader) == [captured(0)]
    before = raw.stat()
    store(tmp_path, captured(WEEK))
    os.utime(raw, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert all_of(reader) == [captured(WEEK)]


def test_half_a_block_waits_for_its_end(tmp_path: Path) -> None:
    """Pitfall 48."""
    raw = places_in(tmp_path).raw
    store(tmp_path, captured(0))
    reader = ArchiveReader(raw)
    assert all_of(reader) == [captured(0)]
    [week] = raw.iterdir()
    block = render(captured(1)).encode()
    for piece in (block[:30], block[30:-1]):
        with week.open("ab") as file:
            file.write(piece)
        assert reader.oldest(anything) is None
    with week.open("ab") as file:
        file.write(block[-1:])
    assert all_of(reader) == [captured(1)]


def test_a_file_that_was_put_in_the_place_of_another_is_read_from_its_beginning(tmp_path: Path) -> None:
    raw = places_in(tmp_path).raw
    store(tmp_path, captured(0, "Q?", "x" * 500), captured(1))
    reader = ArchiveReader(raw)
    assert len(all_of(reader)) == 2
    [week] = raw.iterdir()
    other = week.with_name("other")
    other.write_text("".join(map(render, (captured(0), captured(1), captured(2), captured(3, "Q?", "y" * 900)))))
    other.rename(week)
    assert all_of(reader) == [captured(0), captured(1), captured(2), captured(3, "Q?", "y" * 900)]


def test_a_file_that_was_cut_short_in_its_place_is_read_from_its_beginning(tmp_path: Path) -> None:
    raw = places_in(tmp_path).raw
    store(tmp_path, captured(0, "Q?", "x" * 500), captured(1))
    reader = ArchiveReader(raw)
    assert len(all_of(reader)) == 2
    [week] = raw.iterdir()
    with week.open("r+b") as file:
        file.truncate()
        file.write(render(captured(2)).encode())
    assert all_of(reader) == [captured(2)]


def test_a_file_that_went_away_holds_nothing(tmp_path: Path) -> None:
    raw = places_in(tmp_path).raw
    store(tmp_path, captured(0), captured(WEEK))
    reader = ArchiveReader(raw)
    assert reader.oldest(anything) == captured(0)
    reader.rewind()
    old, new = sorted(raw.iterdir())
    reader._find_unread()  # pyright: ignore[reportPrivateUsage] (the file goes away at this very moment)
    old.unlink()
    assert reader.oldest(anything) == captured(WEEK)
    new.unlink()
    assert reader.oldest(lambda pair: pair != captured(WEEK)) is None
    raw.rmdir()
    assert reader.oldest(lambda pair: pair != captured(WEEK)) is None
    store(tmp_path, captured(2))
    assert all_of(reader) == [captured(2)]


def append(folder: Path, pair: Pair) -> StoredBlock:
    path = places_in(folder).raw / archive.week_file(pair.key)
    return StoredBlock(path.name, files.append(path, render(pair).encode()), render(pair), pair)


def test_a_block_that_follows_what_was_read_need_not_be_read(tmp_path: Path) -> None:
    store(tmp_path, captured(0))
    reader = ArchiveReader(places_in(tmp_path).raw)
    assert all_of(reader) == [captured(0)]
    assert reader.peek(anything) is None
    told = append(tmp_path, captured(1))
    (places_in(tmp_path).raw / told.name).rename(tmp_path / "elsewhere")
    reader.add_block(told)
    assert reader.peek(anything) == captured(1)
    assert reader.peek(lambda pair: pair != captured(1)) is None


def test_damage_behind_blocks_that_were_told_is_reported_with_its_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store(tmp_path, captured(0))
    reader = ArchiveReader(places_in(tmp_path).raw)
    assert all_of(reader) == [captured(0)]
    told = append(tmp_path, captured(1, "Over\nthree\nlines", "Yes."))
    reader.add_block(told)
    week = places_in(tmp_path).raw / told.name
    line = week.read_text().count("\n") + 1
    files.append(week, b"--- QA ---\nnonsense\n\n")
    assert all_of(reader) == [told.pair]
    assert f"{week}:{line}: " in caplog.text


def test_the_first_block_of_a_week_is_read_behind_what_is_left_of_the_week_before(tmp_path: Path) -> None:
    store(tmp_path, captured(0))
    reader = ArchiveReader(places_in(tmp_path).raw)
    assert all_of(reader) == [captured(0)]
    append(tmp_path, captured(1))
    reader.add_block(append(tmp_path, captured(WEEK)))
    assert reader.peek(anything) is None
    assert reader.oldest(lambda pair: pair != captured(0)) == captured(1)


@pytest.mark.parametrize("looked", [True, False])
def test_a_block_after_one_that_was_not_read_waits_for_its_turn(tmp_path: Path, *, looked: bool) -> None:
    store(tmp_path, captured(0))
    reader = ArchiveReader(places_in(tmp_path).raw)
    if looked:
        assert all_of(reader) == [captured(0)]
    append(tmp_path, captured(1))
    reader.add_block(append(tmp_path, captured(2)))
    assert reader.peek(anything) is None
    assert all_of(reader) == [captured(0), captured(1), captured(2)][looked:]


@given(steps=st.lists(st.sampled_from(["told", "not told", "next week", "asked", "read again"]), max_size=30))
@QUICKLY
def test_whatever_is_told_or_not_every_pair_comes_once_and_in_order(
    steps: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("archive")
    reader = ArchiveReader(places_in(folder).raw)
    written: list[Pair] = []
    done: list[Pair] = []
    hour = 0

    def ask() -> None:
        known = reader.peek(lambda pair: pair not in done)
        found = reader.oldest(lambda pair: pair not in done)
        assert known in {None, found}
        if found is not None:
            done.append(found)

    for step in steps:
        if step == "asked":
            ask()
        elif step == "read again":
            reader.rewind()
        else:
            hour += WEEK if step == "next week" else 1
            pair = captured(hour)
            written.append(pair)
            block = append(folder, pair)
            if step != "not told":
                reader.add_block(block)
    while len(done) < len(written):
        ask()
    assert done == written
    assert reader.oldest(lambda pair: pair not in done) is None


# Conversations that go on


def test_the_oldest_that_is_ready_comes_first_and_the_others_wait(tmp_path: Path) -> None:
    pairs = [captured(number) for number in range(4)]
    store(tmp_path, *pairs)
    reader = ArchiveReader(places_in(tmp_path).raw)
    assert reader.oldest(anything, lambda pair: pair in pairs[2:]) == pairs[2]
    assert reader.oldest(anything, lambda _pair: False) is None
    assert reader.in_memory(anything) == pairs
    assert reader.oldest(lambda pair: pair != pairs[2]) == pairs[0]
    assert reader.in_memory(lambda pair: pair != pairs[2]) == [pairs[0], pairs[1], pairs[3]]


def test_what_is_not_wanted_does_not_wait(tmp_path: Path) -> None:
    first, later, other = captured(0, conversation=1), captured(1, conversation=1), captured(2)
    store(tmp_path, first, later, other)
    reader = ArchiveReader(places_in(tmp_path).raw)
    assert reader.oldest(lambda pair: pair != later) == first
    assert reader.in_memory(anything) == [first, other]
    assert reader.later_capture(first) is None


def test_of_the_captures_of_a_conversation_the_last_is_that_with_the_latest_time(tmp_path: Path) -> None:
    store(tmp_path, captured(0))
    reader = ArchiveReader(places_in(tmp_path).raw)
    assert all_of(reader) == [captured(0)]
    long, short = captured(3, conversation=1), captured(2, conversation=1)  # the clock was set back
    for pair in (long, short):
        reader.add_block(append(tmp_path, pair))
    assert (reader.later_capture(short), reader.later_capture(long)) == (long.id, None)


@pytest.mark.parametrize("chunk", [1, 1 << 20])
def test_one_that_is_ready_is_found_however_many_before_are_not(
    chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_files, "CHUNK_BYTES", chunk)
    pairs = [captured(number * 40) for number in range(8)]
    store(tmp_path, *pairs)
    reader = ArchiveReader(places_in(tmp_path).raw)
    assert reader.oldest(anything, lambda pair: pair == pairs[6]) == pairs[6]


def test_the_last_capture_of_a_conversation_is_known_as_long_as_it_waits(tmp_path: Path) -> None:
    pairs = [captured(number, conversation=number % 2) for number in range(5)]
    store(tmp_path, *pairs[:4])
    raw = places_in(tmp_path).raw
    reader = ArchiveReader(raw)
    assert reader.oldest(anything) == pairs[0]
    assert [reader.later_capture(pair) for pair in pairs[:4]] == [pairs[2].id, pairs[3].id, None, None]
    assert reader.oldest(lambda _pair: False) is None
    name = archive.week_file(pairs[4].key)
    store(tmp_path, pairs[4])
    start = (raw / name).stat().st_size - len(render(pairs[4]).encode())
    reader.add_block(StoredBlock(name, start, render(pairs[4]), pairs[4]))
    assert reader.later_capture(pairs[2]) == pairs[4].id
    assert reader.peek(lambda _pair: False) is None
    assert reader.later_capture(pairs[2]) is None
