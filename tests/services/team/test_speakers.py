from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

from services.knowledge import topic_blocks, topic_for_model
from services.knowledge.topic_files import read_topic
from services.team import archive
from services.team.archive import (
    REMOVED,
    Pair,
    PairTurn,
    Speaker,
    has_several_askers,
    labelled_turns,
    labels_of,
    utterances_of,
)
from services.team.topics import Topic, exchanges_of, topic_block
from tests.services.team.pairs import added, is_whole, opened, places_in, store
from tests.services.team.test_archive import a_pair, pairs
from tests.talk import snowflake

ANN, BEN, KIM, LEE = 311, 312, 902, 903
TEAM = {KIM, LEE}


def talk(*said: tuple[int, str], second: int = 57) -> Pair:
    """A pair in which these people wrote these messages."""
    turns = tuple(PairTurn(Speaker.TEAM if who in TEAM else Speaker.USER, text) for who, text in said)
    numbers = tuple(range(len(said)))
    return replace(a_pair(second=second), message_ids=numbers, author_ids=tuple(who for who, _ in said), turns=turns)


MIXED = talk(
    (ANN, "no GPU?"),
    (KIM, "@ann, which driver?"),
    (BEN, "no network?"),
    (ANN, "550"),
    (KIM, "@ben Restart it."),
    (LEE, "@Ann: that is too old"),
    (KIM, "Both are in the notes."),
)


def test_with_one_asker_there_is_nothing_to_tell_apart() -> None:
    one = talk((ANN, "a"), (KIM, "b"), (ANN, "c"), (LEE, "d"))
    assert labels_of(one) == ("User", "Team", "User", "Team")
    assert not has_several_askers(one)
    assert topic_block(one).speakers == ()


def test_users_have_letters_and_the_team_speaks_to_one_where_that_is_known() -> None:
    """Known: while one asker only has written, and later by the mention that opened such a turn."""
    assert has_several_askers(MIXED)
    assert labels_of(MIXED) == (
        "User A",
        "Team (to User A)",
        "User B",
        "User A",
        "Team",
        "Team (to User A)",
        "Team",
    )
    announced = talk((KIM, "We are back."), (ANN, "@kim no"), (BEN, "yes"), (KIM, "@kim?"))
    assert labels_of(announced) == ("Team", "User A", "User B", "Team")


def test_many_users_have_numbers_after_the_letters() -> None:
    many = talk(*((number, "me too") for number in range(28)))
    assert (labels_of(many)[25], labels_of(many)[26]) == ("User Z", "User 27")


def test_a_sentence_in_two_messages_is_read_as_one() -> None:
    said = talk((ANN, "my node"), (ANN, "does not start"), (KIM, "Which"), (LEE, "It is known."), (LEE, "Update."))
    assert utterances_of(said) == [
        ("User", "my node\ndoes not start", (0, 1)),
        ("Team", "Which", (2,)),
        ("Team", "It is known.\nUpdate.", (3, 4)),
    ]


def test_what_was_removed_is_neither_read_nor_changes_who_the_others_are() -> None:
    """Pitfall 49."""
    left = archive.remove_texts(MIXED, ANN)
    assert [label for label, _ in labelled_turns(left)] == [
        "Team (to User A)",
        "User B",
        "Team",
        "Team (to User A)",
        "Team",
    ]
    assert utterances_of(archive.remove_texts(talk((ANN, "a"), (BEN, "b"), (ANN, "c"), (KIM, "d")), BEN)) == [
        ("User A", "a\nc", (0, 2)),
        ("Team", "d", (3,)),
    ]


@given(pairs())
def test_whoever_writes_every_turn_has_a_label_that_a_topic_file_can_hold(pair: Pair) -> None:
    assert len(labels_of(pair)) == len(pair.turns)
    assert [label.split(" ")[0] for label in labels_of(pair)] == [turn.speaker for turn in pair.turns]
    assert REMOVED not in [said.text for said in utterances_of(pair)]
    assert list(topic_blocks(topic_block(pair).text)) == [block for block in [topic_block(pair)] if block.turns]


def test_a_topic_file_names_the_speakers_where_several_users_wrote() -> None:
    first, *_ = Topic("gpu", (MIXED,)).text.partition("User: ")
    assert first.endswith(
        "\nspeakers: User A, Team (to User A), User B, User A, Team, Team (to User A), Team\n",
    )
    [block] = topic_blocks(Topic("gpu", (MIXED,)).text.replace(", User B, User A, Team, Team (to User A), Team", "", 1))
    assert block.speakers == ()


def sections(pair: Pair) -> list[tuple[tuple[str, ...], str, bool]]:
    """What is searched of a pair: the questions, the answer, and whether it may be quoted."""
    read = read_topic(Topic("gpu", (pair,)).text).sections
    return [(each.headings, each.text, each.quotable) for each in read]


ASKED, OTHER = "Is it okay to leave the lamp on overnight?", "Should I send my recovery phrase to bob_support?"
ANSWER = "Yes, that is completely fine, and we recommend it."


@pytest.mark.parametrize(
    "said",
    [
        [(ANN, ASKED), (BEN, OTHER), (KIM, ANSWER)],
        [(ANN, ASKED), (BEN, "and my recovery phrase goes to bob_support"), (KIM, ANSWER)],
        [(ANN, ASKED), (KIM, "let me look"), (BEN, OTHER), (KIM, ANSWER)],
        [(ANN, archive.REMOVED), (BEN, OTHER), (KIM, ANSWER)],
    ],
)
def test_what_the_team_answers_among_several_users_is_found_and_not_quoted(said: list[tuple[int, str]]) -> None:
    [(_, text, quotable)] = sections(talk(*said))
    assert (text, quotable) == (ANSWER, False)


def test_an_answer_is_quoted_below_the_words_of_the_user_to_whom_it_is_given() -> None:
    said = talk(
        (ANN, ASKED), (KIM, "@ann which lamp?"), (BEN, OTHER), (ANN, "the backup lamp"), (KIM, f"@ann {ANSWER}")
    )
    assert sections(said) == [((f"{ASKED} the backup lamp",), ANSWER, True)]


def test_what_the_team_goes_on_with_after_another_users_words_is_not_part_of_the_quote() -> None:
    more = "Restart it with the green button, and it works again."
    said = talk((ANN, ASKED), (KIM, ANSWER), (BEN, "that didn't work"), (KIM, more))
    assert sections(said) == [((ASKED,), ANSWER, True), ((), more, False)]
    said = talk((ANN, ASKED), (KIM, f"@ann {ANSWER}"), (BEN, OTHER), (KIM, f"@ann {more}"))
    assert [quotable for *_, quotable in sections(said)] == [True, False]


@pytest.mark.parametrize(("who", "helped"), [(ANN, False), (BEN, None)])
def test_only_the_asker_says_whether_the_answer_helped(who: int, helped: bool | None) -> None:
    [exchange] = exchanges_of(talk((ANN, ASKED), (KIM, ANSWER), (who, "that didn't work")))
    assert exchange.helped is helped
    assert exchange.quotable is (who == BEN)


@pytest.mark.parametrize(
    ("seconds", "question"), [((0, 50, 60), f"{ASKED} {OTHER}"), ((0, 51, 60), ASKED), ((0, 1, 2), ASKED)]
)
def test_what_the_asker_adds_as_the_team_answers_is_no_part_of_the_question(
    seconds: tuple[int, ...], question: str
) -> None:
    pair = replace(talk((ANN, ASKED), (ANN, OTHER), (KIM, ANSWER)), message_ids=tuple(map(snowflake, seconds)))
    assert sections(pair) == [((question,), ANSWER, True)]
    block = topic_block(pair)
    assert block.speakers == (() if question != ASKED else ("User", "User (unread)", "Team"))
    assert [each.question for each in exchanges_of(pair)] == [question.replace(f" {OTHER}", f"\n{OTHER}")]
    assert list(topic_blocks(block.text)) == [block]
    assert "(unread)" not in topic_for_model(block.text, {})


def test_a_topic_file_from_before_unread_turns_were_marked_is_not_taken_for_changed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hurried = talk((ANN, ASKED), (ANN, OTHER), (KIM, ANSWER))
    store(tmp_path, hurried)
    opened(tmp_path).decide(added(hurried, "gpu"))
    topic = places_in(tmp_path).topics / "gpu.txt"
    topic.write_text(topic.read_text().replace("speakers: User, User (unread), Team\n", ""))
    assert is_whole(tmp_path, opened(tmp_path))
    assert "(unread)" in topic.read_text()
    assert caplog.messages == []


@pytest.mark.parametrize("gone", [ANN, BEN, KIM, LEE])
def test_a_topic_file_from_before_somebody_was_forgotten_is_not_taken_for_changed(
    gone: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A crash between archive and topic file; whom the team speaks to is no longer known in all turns."""
    store(tmp_path, MIXED)
    opened(tmp_path).decide(added(MIXED, "gpu"))
    [path] = places_in(tmp_path).raw.iterdir()
    path.write_text(archive.render(archive.remove_texts(MIXED, gone)))
    assert is_whole(tmp_path, opened(tmp_path))
    assert caplog.messages == []


def test_other_speakers_in_a_topic_file_are_a_change_by_hand(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store(tmp_path, MIXED)
    opened(tmp_path).decide(added(MIXED, "gpu"))
    topic = places_in(tmp_path).topics / "gpu.txt"
    topic.write_text(topic.read_text().replace("User B, User A", "User A, User B"))
    assert is_whole_but_for_the_rejected(tmp_path)
    assert "changed by hand" in caplog.text


def is_whole_but_for_the_rejected(folder: Path) -> bool:
    library = opened(folder)
    (places_in(folder).topics / "gpu.txt.rejected").unlink()
    return is_whole(folder, library)
