"""What is left of captured messages that were edited or deleted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from services.team import REMOVED
from services.team.archive import PairTurn, Speaker, render, week_file
from services.team.archive_files import last_captures
from services.team.captures import RecentCaptures, Revision, apply_revisions
from tests.services.team.test_captures import capture, kept, pair, said
from tests.talk import ANN, BEN


def left(words: str, *revisions: Revision) -> str:
    by_id = {each.message_id: each for each in revisions}
    return " ".join(each.turn.text for each in apply_revisions(said(words), by_id))


@pytest.mark.parametrize(
    ("words", "message_ids", "wanted"),
    [
        ("a1 s2", {2}, "a1 -"),
        ("a1 s2", {1}, "- -"),
        ("a1 a2 s3", {1}, "- a2 s3"),
        ("a1 a2 s3", {2}, "a1 - s3"),
        ("a1 s2 a3 s4 s5", {3}, "a1 s2 - - -"),
        ("a1 b2 s3 s4", {1}, "- b2 s3 s4"),
        ("s1 a2 s3", {2}, "s1 - -"),
        ("a1 s2 a3", {3}, "a1 s2 -"),
        ("a1 s2", {9}, "a1 s2"),
    ],
)
def test_a_deleted_message_is_removed_and_an_answer_with_the_last_of_its_question(
    words: str, message_ids: set[int], wanted: str
) -> None:
    assert left(words, *map(Revision, message_ids)).replace(REMOVED, "-") == wanted


@pytest.mark.parametrize(
    ("words", "message_ids", "wanted"),
    [
        ("b1 s2 b3 a4 s5", {3}, "b1 s2 - a4 -"),
        ("b1 s2 b3 a4 s5", {4}, "b1 s2 b3 - s5"),
        ("b1 b3 a4 s5", {3}, "b1 - a4 s5"),
        ("b1 s2 a4 s5", {1}, "- - a4 -"),
    ],
)
def test_an_answer_goes_with_the_last_question_of_the_user_whom_it_is_to(
    words: str, message_ids: set[int], wanted: str
) -> None:
    """Message 5 is to Ben; what Ann has said since does not keep it below an earlier question of his."""
    *before, answer = said(words)
    after = apply_revisions([*before, replace(answer, addressee_id=BEN.id)], {i: Revision(i) for i in message_ids})
    assert " ".join(each.turn.text for each in after).replace(REMOVED, "-") == wanted


def test_an_edit_changes_what_the_team_said() -> None:
    assert left("a1 s2 a3", Revision(2, "new2"), Revision(3, "a3 new3")) == "a1 new2 a3"


ASKED = "How do I install it?\nMy number is 4711-42, and my name Anna."


@pytest.mark.parametrize(
    ("edited", "wanted"),
    [
        (ASKED, ASKED),
        (f"EDIT: solved, thanks! {ASKED}", ASKED),
        ("How do I install it?", "How do I install it?\n…"),
        ("How do I install it now, Anna?\nAnna.", "How do I install … Anna."),
        ("How do I install it? … My name is\nAnna.", "How do I install it?\nMy … is … name Anna."),
        ("…", REMOVED),
        ("Is that safe?", REMOVED),
    ],
)
def test_what_a_user_edits_out_is_left_out_and_nothing_is_added(edited: str, wanted: str) -> None:
    revision = Revision(1, edited)
    turn = revision.apply_to(PairTurn(Speaker.USER, ASKED))
    assert turn.text == wanted
    assert revision.apply_to(turn) == turn
    assert Revision(1, ASKED).apply_to(turn) == turn


def test_an_answer_to_what_was_edited_is_no_longer_certain_and_goes_with_all_of_its_question() -> None:
    asked, *rest = said("a1 s2 a3 s4")
    messages = [
        replace(asked, turn=PairTurn(Speaker.USER, ASKED)),
        *(replace(each, addressee_id=ANN.id) for each in rest),
    ]
    edited = apply_revisions(messages, {1: Revision(1, "How do I install it?")})
    assert [each.turn for each in edited[1:]] == [each.turn for each in rest]
    answers = [each for each in edited if each.turn.speaker is Speaker.TEAM]
    assert [each.addressee_id for each in answers] == [each.author_id for each in answers]
    rewritten = apply_revisions(messages, {1: Revision(1, "Is that safe?")})
    assert [each.turn.text for each in rewritten] == [REMOVED, REMOVED, "a3", "s4"]


def test_what_was_removed_is_not_brought_back() -> None:
    assert Revision(2, "new").apply_to(PairTurn(Speaker.TEAM, REMOVED)).text == REMOVED


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("See\n[image: a.png]", "See\n[image: a red line]"),  # a preview was added, or nothing
        ("Look\n[image: a.png]", "Look\n[image: a.png]"),
    ],
)
def test_the_description_of_an_image_stays_while_the_words_do(text: str, wanted: str) -> None:
    turn = PairTurn(Speaker.TEAM, "See\n[image: a red line]")
    assert Revision(2, text, placeholders=1).apply_to(turn).text == wanted


def test_a_capture_on_its_way_is_stored_as_its_messages_read_by_then() -> None:
    captures = RecentCaptures()
    captures.revise([Revision(2), Revision(3, "new3")])
    assert kept(captures, capture("a1 s2 s3")) == "reply_1: a1 new3"
    assert captures.is_withheld(said("s2")[0])
    assert not captures.is_withheld(said("s3")[0])


def test_what_is_stored_already_stays_in_its_place() -> None:
    captures = RecentCaptures()
    kept(captures, capture("a1 s2"))
    captures.revise([Revision(2)])
    assert kept(captures, capture("a1 s3")) == f"reply_1: a1 {REMOVED} s3"


def doubted(captures: RecentCaptures, words: str) -> str:
    """Join and remember; tell what is doubted."""
    joined = captures.join(capture(words))
    ids = tuple(each.message_id for each in joined.messages if each.is_doubted)
    captures.remember(replace(pair(joined.messages, joined.conversation_id), doubted_ids=ids))
    return " ".join(each.turn.text for each in joined.messages if each.is_doubted)


def test_a_doubt_comes_before_the_capture_and_stays_when_the_conversation_goes_on() -> None:
    captures = RecentCaptures()
    captures.revise([Revision(2, is_doubt=True), Revision(1, is_doubt=True), Revision(2, "new2")])
    assert doubted(captures, "a1 s2 s3") == "new2", "what a user says is not doubted"
    assert doubted(captures, "a1 s2 s3 a4 s5") == "new2"
    again = RecentCaptures([pair("a1 s2", "reply_1")])
    again.revise([Revision(2, is_doubt=True)])
    assert doubted(again, "a1 s2 s3") == "s2", "it was stored before"


def test_a_person_who_is_forgotten_leaves_no_edit_behind() -> None:
    captures = RecentCaptures()
    captures.revise([Revision(1, "my name", ANN.id)])
    captures.forget(ANN.id)
    assert kept(captures, capture("a1 s2")) == "reply_1: a1 s2"


def test_it_is_known_which_messages_were_stored_lately() -> None:
    captures = RecentCaptures([pair("a1 s2", "reply_1"), pair("a3 s4", "thread_9")])
    assert [captures.holds([number]) for number in (2, 3, 5)] == [True, True, False]


def test_of_each_conversation_with_a_message_the_last_capture_is_found(tmp_path: Path) -> None:
    pairs = [
        pair("a1 s2", "reply_1", 1),
        pair("a1 s2 s3", "reply_1", 2),
        pair("a2 s5", "thread_9", 3),
        pair("a7 s8", "thread_9", 4),  # in a thread what is gone is not captured again
        pair("a12 s21", "reply_12", 5),  # other ids, which begin alike
    ]
    path = tmp_path / week_file(pairs[0].key)
    path.write_text("".join(map(render, pairs)))
    assert last_captures(tmp_path, [2]) == [pairs[1], pairs[3]]
    assert last_captures(tmp_path, [21]) == [pairs[4]]
    assert last_captures(tmp_path, [9999]) == []


def test_weeks_before_a_message_was_written_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "2020-W01.txt").mkdir()  # reading it would fail
    late = replace(pair("a1 s2", "reply_1"), message_ids=(1 << 60, (1 << 60) + 1))
    (tmp_path / "2026-W01.txt").write_text(render(late))
    assert last_captures(tmp_path, [1 << 60]) == [late]
