from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.assistant.extractive.curator import teaches
from services.knowledge import topic_blocks, topic_for_model
from services.knowledge.topic_files import read_topic
from services.team import archive
from services.team.archive import (
    REMOVED,
    UNKNOWN,
    Pair,
    PairTurn,
    Speaker,
    has_several_askers,
    labelled_turns,
    labels_of,
    may_replace,
    utterances_of,
)
from services.team.topics import Topic, exchanges_of, topic_block
from tests.services.team.pairs import added, is_whole, opened, places_in, store
from tests.services.team.test_archive import a_pair, pairs
from tests.talk import snowflake

ANN, BEN, KIM, LEE = 311, 312, 902, 903
TEAM = {KIM, LEE}


def talk(*said: tuple[int, str], second: int = 57, to: Sequence[int] = ()) -> Pair:
    """A pair in which these people wrote these messages, `to` these users."""
    turns = tuple(PairTurn(Speaker.TEAM if who in TEAM else Speaker.USER, text) for who, text in said)
    numbers = tuple(range(len(said)))
    pair = replace(a_pair(second=second), message_ids=numbers, author_ids=tuple(who for who, _ in said), turns=turns)
    return archive.with_addressees(pair, to) if to else pair


MIXED = talk(
    (ANN, "no GPU?"),
    (KIM, "@ann, which driver?"),
    (BEN, "no network?"),
    (ANN, "550"),
    (KIM, "@ben Restart it."),
    (LEE, "@Ann: that is too old"),
    (KIM, "Both are in the notes."),
    to=(UNKNOWN, ANN, UNKNOWN, UNKNOWN, KIM, ANN, KIM),
)


def test_with_one_asker_there_is_nothing_to_tell_apart() -> None:
    one = talk((ANN, "a"), (KIM, "b"), (ANN, "c"), (LEE, "d"))
    assert labels_of(one) == ("User", "Team", "User", "Team")
    assert not has_several_askers(one)
    assert topic_block(one).speakers == ()


def test_users_have_letters_and_the_team_speaks_to_one_where_that_is_known() -> None:
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


def test_an_answer_that_was_doubted_is_found_and_not_quoted_and_costs_no_other_its_quote() -> None:
    said = talk((ANN, ASKED), (KIM, ANSWER), (ANN, "How do I print labels of a returned parcel at home?"), (KIM, FIRST))
    plain = sections(said)
    assert [quotable for *_, quotable in plain] == [True, True]
    first = replace(said, doubted_ids=said.message_ids[1:2])
    assert labels_of(first)[1] == "Team (doubted)"
    assert sections(first) == [(*plain[0][:2], False), plain[1]]
    assert may_replace(said)
    assert not may_replace(first)
    several = replace(talk((BEN, OTHER), (ANN, ASKED), (KIM, ANSWER), to=(UNKNOWN, UNKNOWN, ANN)), doubted_ids=(2,))
    assert labels_of(several)[-1] == "Team (to User B) (doubted)"
    assert not any(quotable for *_, quotable in sections(several))


def test_an_answer_after_a_question_back_is_found_below_the_words_of_the_user_to_whom_it_is_given() -> None:
    said = talk(
        (ANN, ASKED),
        (KIM, "@ann which lamp?"),
        (BEN, OTHER),
        (ANN, "the backup lamp"),
        (KIM, f"@ann {ANSWER}"),
        to=(UNKNOWN, ANN, UNKNOWN, UNKNOWN, ANN),
    )
    [(headings, text, quotable)] = sections(said)
    assert (headings, text) == ((f"{ASKED} the backup lamp",), f"@ann which lamp?\n@ann {ANSWER}")
    assert not quotable  # the answer may be to either part of it


@pytest.mark.parametrize(("to", "quoted"), [(ANN, ASKED), (BEN, OTHER), (KIM, None), (UNKNOWN, None)])
def test_an_answer_is_quoted_below_the_words_of_the_user_whose_message_it_replies_to(
    to: int, quoted: str | None
) -> None:
    said = talk((ANN, ASKED), (BEN, OTHER), (KIM, ANSWER), to=(UNKNOWN, UNKNOWN, to))
    [(headings, text, quotable)] = sections(said)
    assert (text, quotable) == (ANSWER, quoted is not None)
    assert quoted is None or headings == (quoted,)
    assert [each.quotable for each in exchanges_of(said)] == [quotable]
    assert archive.parse(archive.render(said)) == [said]


def test_each_of_two_answers_is_quoted_below_its_own_question() -> None:
    more = "Write it down and keep it at home."
    said = talk((ANN, ASKED), (BEN, OTHER), (KIM, more), (LEE, ANSWER), to=(UNKNOWN, UNKNOWN, BEN, ANN))
    assert sections(said) == [((OTHER,), more, True), ((ASKED,), ANSWER, True)]


def test_a_name_that_the_team_mentions_says_nothing() -> None:
    said = talk((BEN, OTHER), (KIM, "@ben one sec"), (ANN, ASKED), (KIM, f"@ben {ANSWER}"))
    assert labels_of(said) == ("User A", "Team (to User A)", "User B", "Team")
    assert [quotable for *_, quotable in sections(said)] == [False]


@pytest.mark.parametrize("to", [KIM, BEN])
def test_an_answer_to_somebody_whose_words_are_not_there_is_not_quoted_below_those_of_the_only_user(to: int) -> None:
    said = talk((ANN, ASKED), (KIM, ANSWER), to=(UNKNOWN, to))
    assert said.addressee_ids == (UNKNOWN, KIM)
    assert labels_of(said) == ("User A", "Team")
    assert [(text, quotable) for _, text, quotable in sections(said)] == [(ANSWER, False)]
    assert archive.parse(archive.render(said)) == [said]


def test_a_piece_of_a_pair_says_to_whom_it_is_as_the_pair_did() -> None:
    said = talk((ANN, ASKED), (BEN, OTHER), (KIM, ANSWER), (KIM, "So."), to=(UNKNOWN, UNKNOWN, ANN, BEN))
    pieces = [archive.piece_of(said, messages) for messages in (None, {0, 2}, {0, 2, 3}, {1, 2}, {9})]
    assert [piece and piece.addressee_ids for piece in pieces] == [
        (UNKNOWN, UNKNOWN, ANN, BEN),
        (),
        (UNKNOWN, ANN, KIM),
        (UNKNOWN, KIM),
        None,
    ]


def test_a_conversation_with_one_user_is_archived_as_before() -> None:
    said = (ANN, ASKED), (KIM, ANSWER)
    assert archive.render(talk(*said, to=(UNKNOWN, ANN))) == archive.render(talk(*said))


@given(pairs(), st.data())
def test_to_whom_turns_are_is_read_back_whatever_they_say(pair: Pair, data: st.DataObject) -> None:
    known = st.sampled_from([UNKNOWN, 77, *pair.author_ids])
    size = len(pair.turns)
    told = archive.with_addressees(pair, data.draw(st.lists(known, min_size=size, max_size=size)))
    assert archive.parse(archive.render(told)) == [told]
    assert [label.split(" ")[0] for label in labels_of(told)] == [turn.speaker for turn in told.turns]
    assert list(topic_blocks(topic_block(told).text)) == [block for block in [topic_block(told)] if block.turns]


def test_what_the_team_goes_on_with_after_another_users_words_is_not_part_of_the_quote() -> None:
    more = "Restart it with the green button, and it works again."
    said = talk((ANN, ASKED), (KIM, ANSWER), (BEN, "that didn't work"), (KIM, more))
    assert sections(said) == [((ASKED,), ANSWER, False), (("that didn't work",), more, False)]


WRONG = "What stands above was wrong: never press the green button."


Said = tuple[int, str, int]
"""Who writes what to whom."""


def talk_to(*said: Said) -> Pair:
    return talk(*((who, text) for who, text, _ in said), to=[to for *_, to in said])


ANSWERED: tuple[Said, ...] = (ANN, ASKED, UNKNOWN), (KIM, ANSWER, ANN)


@pytest.mark.parametrize(
    ("later", "quoted"),
    [
        ([(BEN, OTHER, UNKNOWN), (KIM, ANSWER, BEN)], True),
        ([(ANN, "thanks!", UNKNOWN), (ANN, OTHER, UNKNOWN), (KIM, ANSWER, ANN), (BEN, "hi", UNKNOWN)], True),
        ([(BEN, OTHER, UNKNOWN), (KIM, WRONG, UNKNOWN)], False),
        ([(BEN, OTHER, UNKNOWN), (KIM, ANSWER, BEN), (KIM, WRONG, UNKNOWN)], False),
        ([(BEN, OTHER, UNKNOWN), (KIM, WRONG, ANN)], False),
        ([(BEN, OTHER, UNKNOWN), (KIM, ANSWER, BEN), (LEE, WRONG, ANN)], False),
        (
            [(BEN, "hi", UNKNOWN), (ANN, "Does that button not delete it?", UNKNOWN), (KIM, f"It does. {WRONG}", ANN)],
            False,
        ),
    ],
)
def test_an_answer_that_may_have_been_corrected_later_is_not_quoted(later: list[Said], quoted: bool) -> None:
    assert sections(talk_to(*ANSWERED, *later))[0] == ((ASKED,), ANSWER, quoted)


@pytest.mark.parametrize(("who", "helped"), [(ANN, False), (BEN, None)])
def test_only_the_asker_says_whether_the_answer_helped(who: int, helped: bool | None) -> None:
    [exchange] = exchanges_of(talk((ANN, ASKED), (KIM, ANSWER), (who, "that didn't work")))
    assert exchange.helped is helped
    assert not exchange.quotable


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


TOLD = replace(MIXED, addressee_ids=(UNKNOWN, ANN, UNKNOWN, UNKNOWN, BEN, ANN, UNKNOWN))


@pytest.mark.parametrize("mixed", [MIXED, TOLD])
@pytest.mark.parametrize("gone", [ANN, BEN, KIM, LEE])
def test_a_topic_file_from_before_somebody_was_forgotten_is_not_taken_for_changed(
    mixed: Pair, gone: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A crash between archive and topic file; whom the team speaks to is no longer known in all turns."""
    store(tmp_path, mixed)
    opened(tmp_path).decide(added(mixed, "gpu"))
    [path] = places_in(tmp_path).raw.iterdir()
    path.write_text(archive.render(archive.remove_texts(mixed, gone)))
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


@pytest.mark.parametrize("no", ["No!", "lol no", "What? No.", "Never!", "please don't"])
def test_a_bare_no_ends_the_question_that_it_answers(no: str) -> None:
    """Else the answer to the next question would be quoted under both."""
    pair = talk(
        (ANN, "Should I give my key to bob?"), (KIM, no), (ANN, "And may the lamp burn overnight?"), (KIM, ANSWER)
    )
    assert [(each.question, each.quotable) for each in exchanges_of(pair)] == [
        ("Should I give my key to bob?", False),
        ("And may the lamp burn overnight?", False),
    ]


@pytest.mark.parametrize(
    ("matter", "answers"),
    [
        ("I have a funny picture of my cat here, it would be great to show it to all.", 2),
        ("By the way, I hope it is allowed to post a picture of my cat in here.", 2),
        ("thanks a lot!", 1),
    ],
)
def test_what_the_team_says_to_another_matter_is_no_part_of_the_answer_before(matter: str, answers: int) -> None:
    """Also if that matter is not put as a question."""
    first, then = "It is best to write it on a sheet of paper.", "Go on, please send it to everybody in this channel."
    pair = talk((ANN, "What may I do with the recovery phrase of my wallet?"), (KIM, first), (ANN, matter), (KIM, then))
    found = [each.answer for each in exchanges_of(pair)]
    assert found == ([first, then] if answers > 1 else [f"{first}\n{then}"])


PHRASE, GO_ON = (
    "What may I do with the recovery phrase of my wallet?",
    "Go on, please send it to everybody in this channel.",
)
FIRST = "It is best to write it on a sheet of paper."


@pytest.mark.parametrize(
    "said",
    [
        "That is a lie, right? The support team resets wallets on telegram.",
        "Glad you ask, as it is a scam! The support team resets wallets on telegram.",
        "Forbidden: give the recovery phrase to the support team on telegram.",
        "Oh nonsense! The support team resets wallets on telegram.",
        "Use the option skip_raw for that. Sorry, that was for the old version!",
        "Stop the lamp first.\nSend the wallet file to your own backup disk.\nThen delete the folder of the lamp.",
        "Tess: with the left lever, and what is <!-- here --> stays.",
        "> everybody sends the recovery phrase to bob_support\nThat is a scam, and none of us is called so.",
    ],
)
def test_an_answer_is_quoted_whole(said: str) -> None:
    """A sentence at an end of it may deny it, correct it or tell a step."""
    assert sections(talk((ANN, PHRASE), (KIM, said))) == [((PHRASE,), said, True)]
    before = "Never ever do that, okay?"
    assert sections(talk((ANN, PHRASE), (KIM, before), (KIM, said))) == [((PHRASE,), f"{before}\n{said}", True)]
    assert sections(talk((ANN, PHRASE), (KIM, "one sec"), (KIM, said), (ANN, "thanks!"), (KIM, "you're welcome"))) == [
        ((PHRASE,), said, True)
    ]


@pytest.mark.parametrize(
    "said",
    ["> everybody sends the phrase to bob_support\nlol", "Did he tell you to run this?\n```\nrm -rf wallets\n```"],
)
def test_what_the_team_only_cites_or_asks_about_answers_nothing(said: str) -> None:
    assert [quotable for *_, quotable in sections(talk((ANN, PHRASE), (KIM, said)))] == [False]


@pytest.mark.parametrize("own", ["I have reset it for you.", "That server is down today."])
def test_what_is_for_the_asker_or_the_day_alone_keeps_the_whole_answer_from_being_quoted(own: str) -> None:
    for said in ((own, FIRST), (FIRST, own)):
        pair = talk((ANN, PHRASE), *((KIM, each) for each in said))
        assert [quotable for *_, quotable in sections(pair)] == [False]
        assert not teaches(pair)  # without a model it replaces no other answer


def test_an_answer_to_what_is_asked_about_this_week_is_filed_and_not_quoted() -> None:
    pair = talk((ANN, "May I send the recovery phrase of my wallet this week?"), (KIM, FIRST))
    assert [quotable for *_, quotable in sections(pair)] == [False]
    assert teaches(pair)


@pytest.mark.parametrize("file", ["[image: screen.png]", "[file: mill.zip, 3 KB]"])
def test_an_answer_with_a_file_is_filed_and_not_quoted(file: str) -> None:
    """It may mean nothing without it."""
    pair = talk((ANN, PHRASE), (KIM, f"{FIRST}\n{file}"))
    assert [quotable for *_, quotable in sections(pair)] == [False]
    assert teaches(pair)


@pytest.mark.parametrize(
    "back", ["Are you serious?", "Let me check with the others.", "Let me check.", "lol", "🚫🚫🚫"]
)
def test_an_answer_to_what_the_user_says_after_a_message_of_the_team_is_not_quoted(back: str) -> None:
    """It may be to that, or to the question before."""
    said = talk((ANN, PHRASE), (KIM, back), (ANN, "Forget it. I have a picture of my cat."), (KIM, GO_ON))
    assert [quotable for *_, quotable in sections(said)] == [False]


@pytest.mark.parametrize(("words", "quoted"), [(399, True), (400, False)])
def test_a_long_answer_is_not_quoted_as_it_would_be_cut(words: int, quoted: bool) -> None:
    said = f"{'Lamp ' * words}off."
    article = read_topic(Topic("gpu", (talk((ANN, PHRASE), (KIM, said)),)).text)
    assert [each.quotable for each in article.sections] == [quoted]


@pytest.mark.parametrize(
    ("between", "to"),
    [("I like it here.", KIM), ("I like it here.", UNKNOWN), ("Does that not destroy my wallet for ever?", BEN)],
)
def test_an_answer_that_the_team_may_have_corrected_is_not_quoted(between: str, to: int) -> None:
    corrected = "Scrap that, it destroys the wallet for ever: never do it."
    said = talk((ANN, PHRASE), (KIM, FIRST), (BEN, between), (LEE, corrected), to=(UNKNOWN, ANN, UNKNOWN, to))
    assert not any(each.quotable for each in exchanges_of(said) if each.question == PHRASE)


@pytest.mark.parametrize("remark", ["📸🐱👉👥❓", "and this here too?", "thanks :)", "ty", "thanks a lot!"])
def test_what_the_team_states_after_a_remark_or_thanks_makes_the_answer_unclear(remark: str) -> None:
    said = talk((ANN, PHRASE), (KIM, FIRST), (ANN, remark), (KIM, GO_ON))
    assert not any(quotable for *_, quotable in sections(said))


@pytest.mark.parametrize("thanks", ["thanks :)", "ty", "thanks a lot!"])
def test_thanks_alone_doubt_nothing(thanks: str) -> None:
    assert [quotable for *_, quotable in sections(talk((ANN, PHRASE), (KIM, FIRST), (ANN, thanks)))] == [True]


DOUBTS = (
    ((ANN, "Won't that burn the house down overnight?"),),
    ((ANN, "omg my house is on fire"),),
    ((BEN, "Is Kim right about the lamp?"), (LEE, "No, she mixed up two lamps.")),
    ((KIM, "Sorry, let me check that"),),
    ((KIM, "Let me check that again."),),
    ((KIM, "Scratch that, it burns the house down!"),),
    ((ANN, "Thank you, I will try that tonight."), (KIM, "Let me check that again.")),
)


@pytest.mark.parametrize("doubt", DOUBTS)
def test_an_answer_that_somebody_doubts_is_not_quoted(doubt: tuple[tuple[int, str], ...]) -> None:
    to = [UNKNOWN, ANN, *(BEN if who == LEE else ANN if who == KIM else UNKNOWN for who, _ in doubt)]
    assert not sections(talk((ANN, ASKED), (KIM, ANSWER), *doubt, to=to))[0][-1]


@pytest.mark.parametrize(
    "more", ["Then turn it off.", "Don't forget the plug.", "Wait until it is cold, then turn it."]
)
def test_an_answer_in_two_messages_is_quoted(more: str) -> None:
    said = talk((ANN, PHRASE), (KIM, FIRST), (KIM, more))
    assert sections(said) == [((PHRASE,), f"{FIRST}\n{more}", True)]


@pytest.mark.parametrize("back", ["Let me check that again.", "Scratch that, it burns the house down!"])
@pytest.mark.parametrize(("to", "quoted"), [(ANN, False), (UNKNOWN, False), (BEN, True)])
def test_the_team_takes_an_answer_back_without_saying_to_whom(back: str, to: int, *, quoted: bool) -> None:
    said = talk((ANN, PHRASE), (BEN, "hm"), (KIM, FIRST), (KIM, back), to=(UNKNOWN, UNKNOWN, ANN, to))
    assert [each.quotable for each in exchanges_of(said) if each.question == PHRASE] == [quoted]


def test_a_heading_keeps_lines_of_a_question_apart() -> None:
    asked = "How do I pull the lever of the press\nThe answer is: run it.\nIs that right?"
    article = read_topic(Topic("gpu", (talk((ANN, asked), (KIM, "Pull it with the left hand.")),)).text)
    assert article.sections[0].headings == (
        "How do I pull the lever of the press – The answer is: run it. Is that right?",
    )
