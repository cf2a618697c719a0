from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.conversations import Image
from model.messages import Attachment, Place, PlaceKind
from services.team.archive import UNKNOWN, PairTurn, Speaker
from services.team.captures import Capture, CapturedImage, CapturedMessage, RecentCaptures, Revision
from services.team.pair_links import pair_link_line
from services.team.pending import (
    DamagedCapture,
    PendingCapture,
    PendingFolder,
    parse_pending,
    render_pending,
    revise_pending,
)

ids = st.integers(min_value=0, max_value=10**19)
texts = st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=30)
turns = st.builds(PairTurn, st.sampled_from(Speaker), texts)
said = st.builds(CapturedMessage, ids, ids, turns, st.just(UNKNOWN) | ids)


@st.composite
def waitings(draw: st.DrawFn) -> PendingCapture:
    messages = tuple(draw(st.lists(said, min_size=1, max_size=4)))
    conversation = draw(st.builds("thread_{}".format, ids) | st.builds("reply_{}".format, ids))
    capture = Capture(None, conversation, messages)
    pictures: list[CapturedImage] = []
    images: dict[CapturedImage, Image] = {}
    for index in range(draw(st.integers(0, 3))):
        file = Attachment(draw(ids), draw(texts), draw(st.integers(0, 99)), draw(texts), draw(st.none() | texts))
        picture = CapturedImage(messages[-1].message_id, index, -1, file)
        pictures.append(picture)
        if draw(st.booleans()):
            images[picture] = Image(file.filename, "image/png", draw(st.binary(max_size=40)))
    return PendingCapture(draw(st.integers(0, 4_000_000_000)) / 2, capture, tuple(pictures), images)


def waiting(first: int = 1, since: float = 5.0, *images: bytes) -> PendingCapture:
    messages = (
        CapturedMessage(first, 11, PairTurn(Speaker.USER, "It says\n[image: a.png]")),
        CapturedMessage(first + 1, 50, PairTurn(Speaker.TEAM, "Restart.")),
    )
    file = Attachment(7, "a.png", 3, "https://cdn.example/7", "image/png")
    picture = CapturedImage(first, 0, -1, file)
    had = {picture: Image("a.png", "image/png", images[0])} if images else {}
    return PendingCapture(since, Capture(None, f"thread_{first}", messages), (picture,), had)


@given(waitings())
def test_reading_gives_back_what_was_written(one: PendingCapture) -> None:
    read, written = parse_pending(render_pending(one)), render_pending(one)
    assert read == one
    to_ids = [each.addressee_id for each in one.capture.messages]
    assert [each.addressee_id for each in read.capture.messages] == to_ids
    assert written.partition(b"\n")[0].count(b'"addressee_id":"') == len(to_ids) - to_ids.count(UNKNOWN)


def test_a_doubt_is_written_with_the_message() -> None:
    messages = (
        CapturedMessage(1, 2, PairTurn(Speaker.USER, "How?")),
        CapturedMessage(3, 4, PairTurn(Speaker.TEAM, "So.")),
    )
    waiting = PendingCapture(0, Capture(None, "reply_1", (messages[0], replace(messages[1], is_doubted=True))), ())
    assert parse_pending(render_pending(waiting)) == waiting


@pytest.mark.parametrize(
    ("said_of_it", "conversation_id"),
    [
        (b'"conversation_id":"thread_1","continues":null', "thread_1"),
        (b'"conversation_id":null,"continues":"42"', "reply_42"),
        (b'"conversation_id":null,"continues":null', "reply_1"),
    ],
)
def test_what_an_earlier_version_left_to_wait_is_read(said_of_it: bytes, conversation_id: str) -> None:
    one = waiting(1, 5.0, b"PNG")
    written = render_pending(one)
    earlier = written.replace(b'"conversation_id":"thread_1"', said_of_it)
    assert b"continues" not in written
    assert parse_pending(earlier) == replace(one, capture=replace(one.capture, conversation_id=conversation_id))


@given(waitings(), st.data())
def test_a_file_that_was_cut_is_never_taken_for_a_whole_one(one: PendingCapture, data: st.DataObject) -> None:
    whole = render_pending(one)
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    with pytest.raises(DamagedCapture):
        parse_pending(cut)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ((b'"since":"1970', b'"since":"soon'), "its first line: "),
        ((b'"line":-1', b'"line":-9'), "has no place in a message"),
        ((b"PNG", b"GIF"), "is not what was stored"),
        ((b'"message_id":"1"', b'"message_id":"x"'), "its first line: said.0.message_id"),
    ],
)
def test_damage_is_told_in_a_few_words(change: tuple[bytes, bytes], why: str) -> None:
    with pytest.raises(DamagedCapture, match=why):
        parse_pending(render_pending(waiting(1, 5.0, b"PNG")).replace(*change))


def test_what_is_appended_is_damage() -> None:
    with pytest.raises(DamagedCapture, match="more in it than was stored"):
        parse_pending(render_pending(waiting()) + b"x")


def test_those_who_wait_longest_come_first_and_are_gone_once_dropped(tmp_path: Path) -> None:
    folder = PendingFolder(tmp_path / "pending")
    assert list(folder.all()) == []
    late, early = waiting(1, 9.0), waiting(3, 4.0, b"PNG")
    folder.keep(late)
    folder.keep(early)
    assert list(folder.all()) == [early, late]
    folder.drop(early)
    folder.drop(early)
    assert list(folder.all()) == [late]


def test_one_at_a_time_is_read_and_none_that_cannot_hold_what_is_asked_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Each has up to 10 MB of images."""
    folder = PendingFolder(tmp_path)
    for number in (1, 11):
        folder.keep(waiting(number))
    first = next(folder.all())
    (tmp_path / waiting(11).name).write_bytes(b"damaged")
    revise_pending(folder, RecentCaptures(), [Revision(1, "Why?"), Revision(5), Revision(99, is_doubt=True)])
    assert "damaged" not in caplog.text
    assert first == waiting(1)


def test_it_says_whether_anything_waits(tmp_path: Path) -> None:
    folder = PendingFolder(tmp_path / "pending")
    assert folder.is_empty()
    one = waiting()
    folder.keep(one)
    (folder.folder / "notes.txt").write_text("no capture")
    assert not folder.is_empty()
    folder.drop(one)
    assert folder.is_empty()
    # Where that cannot be told, something may.
    assert not PendingFolder(folder.folder / "notes.txt").is_empty()


def test_a_capture_that_is_kept_again_takes_the_place_of_its_file(tmp_path: Path) -> None:
    folder = PendingFolder(tmp_path)
    folder.keep(waiting(1, 5.0))
    folder.keep(waiting(1, 5.0, b"PNG"))
    assert list(folder.all()) == [waiting(1, 5.0, b"PNG")]


def test_a_damaged_file_is_reported_and_set_aside_and_the_others_are_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    folder = PendingFolder(tmp_path)
    folder.keep(waiting(1))
    folder.keep(waiting(5))
    (tmp_path / waiting(1).name).write_bytes(b"{}")
    (tmp_path / "notes.txt").write_text("not ours")
    (tmp_path / "7-8.capture").mkdir()
    assert list(folder.all()) == [waiting(5)]
    assert list(folder.all()) == [waiting(5)]
    assert caplog.text.count("holds no capture: its first line has no end; set aside") == 1
    assert (tmp_path / f"{waiting(1).name}.damaged").read_bytes() == b"{}"


def test_what_waits_in_a_deleted_place_is_dropped_and_where_it_was_is_known_to_the_next_start(tmp_path: Path) -> None:
    folder, captures = PendingFolder(tmp_path), RecentCaptures()
    for number, place in ((1, None), (11, Place(5, PlaceKind.THREAD, guild_id=7, parent_id=6))):
        known = waiting(number)
        folder.keep(replace(known, capture=replace(known.capture, noted_place=place)))
    assert '"channel_id": "5"' in (pair_link_line("qa_1", list(folder.all())[-1].capture) or "")
    revise_pending(folder, captures, [Revision(7, is_place=True)])
    assert len(list(folder.all())) == 2
    revise_pending(folder, captures, [Revision(6, is_place=True)])
    assert list(folder.all()) == [waiting(1)]


def test_what_is_edited_deleted_or_doubted_is_written_into_what_waits(tmp_path: Path) -> None:
    """A restart forgets it otherwise, and stores the words as they were."""
    folder, captures = PendingFolder(tmp_path), RecentCaptures()
    edited, deleted, other = waiting(1, 5.0, b"abc"), waiting(11), waiting(21)
    for each in (edited, deleted, other):
        folder.keep(each)
    revisions = [Revision(1, "It\n[image: a.png]", 11, 1), Revision(2, is_doubt=True), Revision(11)]
    captures.revise(revisions)
    revise_pending(folder, captures, revisions)
    first, last = folder.all()
    asked, answer = first.capture.messages
    assert ("says" in asked.turn.text, answer.is_doubted, first.images) == (False, True, edited.images)
    assert last == other
    captures.revise([Revision(1)])
    revise_pending(folder, captures, [Revision(1)])
    assert list(folder.all()) == [other]
