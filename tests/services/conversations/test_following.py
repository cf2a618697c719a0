"""Which conversation each message belongs to, rule by rule; `test_following_model.py` has what holds of any chat."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.evaluation.taught import taught, teaches
from model.conversations import KINDS, REPLY, ConversationKind
from model.conversations import THREAD as THREAD_KIND
from model.messages import Author, AuthorType, Place, PlaceKind, Reference
from services.conversations import tracking
from services.conversations.tracking import ConversationTracker, Rule
from tests.services.conversations.followed import FollowedChat
from tests.talk import ANN, BEN, BOT, CHANNEL, OTHER_BOT, POST, STAFF, STAFF_TOO, THREAD, Talk

CEM = Author(3, "Cem")


def test_who_goes_on_without_replying_is_still_in_the_conversation() -> None:
    """Pitfall 63."""
    chat = FollowedChat()
    asked = chat.says(0, ANN, "It does not start.")
    answered = chat.says(50, STAFF, "What does it say?", to=asked)
    went_on = chat.says(100, ANN, "It says E7.")
    assert chat.found == (asked.id, Rule.HEARD, ())
    assert chat.together(asked, answered, went_on)
    assert chat.tracker.messages_of(asked.id) == (asked.id, answered.id, went_on.id)
    assert chat.tracker.conversation_of(answered.id) == asked.id


@pytest.mark.parametrize(("seconds", "same"), [(299, True), (300, False)])
def test_after_a_silence_something_else_begins(seconds: float, same: bool) -> None:
    chat = FollowedChat()
    first, second = chat.says(0, ANN), chat.says(seconds, ANN)
    assert chat.together(first, second) is same


def test_who_goes_on_with_their_own_words_is_told_from_who_goes_on_with_others() -> None:
    chat = FollowedChat()
    first = chat.says(0, ANN)
    chat.says(10, ANN)
    assert chat.found == (first.id, Rule.OWN, ())
    chat.says(20, BEN, to=first)
    chat.says(30, ANN)
    assert chat.found == (first.id, Rule.HEARD, ())


def test_what_was_said_to_a_person_counts_for_longer_than_what_they_said() -> None:
    chat = FollowedChat()
    asked = chat.says(0, ANN)
    answered = chat.says(290, STAFF, to=asked)
    assert chat.together(asked, answered, chat.says(880, ANN))


@pytest.mark.parametrize(("count", "spoken_to"), [(1, True), (2, True), (3, False)])
def test_a_user_who_mentions_many_speaks_to_none_of_them(count: int, spoken_to: bool) -> None:
    """One message must not keep all from an answer."""
    chat, people = FollowedChat(), [Author(500 + number, f"p{number}") for number in range(count)]
    mentioned = chat.says(0, CEM, "Have a look here", mentions=people)
    for second, person in enumerate(people, 1):
        said = chat.says(second, person, "And now I am here")
        assert chat.together(mentioned, said) is spoken_to
        assert chat.tracker.others_wrote(said.id) is spoken_to


@pytest.mark.parametrize(
    ("author", "said", "answered", "same"),
    [
        (CEM, "Hello", "How can I restore a backup?", False),
        (CEM, "Hello", "The green one.", True),
        (CEM, "Did the backup work?", "Which backup?", True),
        (STAFF, "One moment", "How can I restore it?", True),
    ],
)
def test_a_mention_by_a_user_makes_no_answer_of_another_question(
    author: Author, said: str, answered: str, same: bool
) -> None:
    chat = FollowedChat()
    assert chat.together(chat.says(0, author, said, mentions=[ANN]), chat.says(10, ANN, answered)) is same


def test_who_has_taken_part_goes_on_with_whatever_they_ask() -> None:
    chat = FollowedChat()
    asked = chat.says(0, ANN, "Where is the lamp?")
    answered = chat.says(10, CEM, "On the left", to=asked)
    assert chat.together(asked, answered, chat.says(400, ANN, "Which colour?"))


@pytest.mark.parametrize("deleted", [False, True])
def test_what_was_deleted_was_said_to_nobody(deleted: bool) -> None:
    chat = FollowedChat()
    mentioned = chat.says(0, STAFF, "ann, look here", mentions=[ANN])
    chat.tracker.delete([mentioned.id] if deleted else [])
    assert chat.together(mentioned, chat.says(10, ANN, "It does not start")) is not deleted


def test_whoever_is_spoken_to_by_a_namesake_has_been_spoken_to() -> None:
    chat = FollowedChat()
    asked = chat.says(0, ANN)
    answered = chat.says(290, Author(9, ANN.name), f"{ANN.name}: does the other port work?")
    assert chat.together(asked, answered, chat.says(880, ANN))


def test_others_wrote_once_somebody_else_than_a_bot_has_spoken_before() -> None:
    """Pitfall 63."""
    chat = FollowedChat()
    among = chat.tracker.others_wrote
    asked = chat.says(0, ANN)
    more = chat.says(10, ANN)
    answered = chat.says(20, BOT, to=asked)
    chat.says(25, OTHER_BOT, to=asked)
    follow_up = chat.says(30, ANN)
    helped = chat.says(40, STAFF, to=asked)
    thanks = chat.says(50, ANN)
    assert [among(each.id) for each in (asked, more, answered, follow_up)] == [False, False, True, False]
    assert [among(each.id) for each in (helped, thanks)] == [True, True]
    assert not among(thanks.id, since_id=helped.id), "what was said in between counts, not the message itself"
    assert among(thanks.id, since_id=follow_up.id)
    assert not among(12345), "a message that has not come is among nobody"


def test_when_something_was_last_said_in_a_conversation_is_known() -> None:
    chat = FollowedChat()
    asked = chat.says(0, ANN)
    chat.says(20, STAFF, to=asked)
    thanks = chat.says(50, ANN)
    chat.says(400, BEN)
    assert chat.tracker.last_said(asked.id) == thanks.at
    assert chat.tracker.last_said(12345) is None


def test_the_team_helps_a_user_where_one_has_spoken_before() -> None:
    chat = FollowedChat()
    announced = chat.says(0, STAFF, "Version 2 is out")
    more = chat.says(10, STAFF)
    other = chat.says(20, STAFF_TOO, to=announced)
    asked = chat.says(30, ANN, to=announced)
    answered = chat.says(40, STAFF, to=asked)
    helps = [chat.tracker.helps_user(each.id) for each in (announced, more, other, asked, answered)]
    assert helps == [False, False, False, False, True]
    assert not chat.tracker.helps_user(12345)


def test_the_messages_of_a_conversation_are_told_by_place_where_that_is_asked_for() -> None:
    chat = FollowedChat()
    asked = chat.says(0, ANN)
    thread = replace(THREAD, id=asked.id)
    inside = chat.says(10, STAFF, place=thread)
    more = chat.says(20, ANN)
    tracker = chat.tracker
    assert tracker.messages_of(asked.id) == (asked.id, inside.id, more.id)
    assert tracker.messages_of(asked.id, CHANNEL.id) == (asked.id, more.id)
    assert tracker.messages_of(asked.id, thread.id) == (inside.id,)
    assert tracker.messages_of(asked.id, 77) == tracker.messages_of(77) == ()


def test_whoever_has_no_name_is_not_named_by_who_names_nobody() -> None:
    chat = FollowedChat()
    nameless, question = chat.says(0, Author(5, "")), chat.says(1, ANN, "How do I install it?")
    assert chat.apart(nameless, question)
    assert chat.apart(nameless, chat.says(2, BEN, ", what else?"))


def test_who_is_helped_by_somebody_who_helps_three_goes_on_with_their_own() -> None:
    """They reply to whatever the team said last, as on IRC, or press "reply" on the wrong answer."""
    chat = FollowedChat()
    askers = (ANN, BEN, CEM)
    asked = [chat.says(10 * i, asker, "Why?") for i, asker in enumerate(askers)]
    answers = [chat.says(100 + 10 * i, STAFF, "Because.", to=question) for i, question in enumerate(asked)]
    thanked = [chat.says(200 + 10 * i, asker, "Thanks!", to=answers[-1]) for i, asker in enumerate(askers)]
    assert chat.apart(*asked)
    assert all(chat.together(*each) for each in zip(asked, answers, thanked, strict=True))


def test_who_turns_to_the_team_while_it_helps_somebody_else_begins_a_conversation() -> None:
    chat = FollowedChat()
    asked = chat.says(0, ANN)
    answered = chat.says(10, STAFF, to=asked)
    assert chat.apart(asked, chat.says(20, BEN, "Another thing", to=answered))
    assert chat.found.rule is Rule.BEGUN


def test_who_replies_to_an_asker_or_to_an_announcement_or_to_the_bot_joins() -> None:
    chat = FollowedChat()
    asked, announced = chat.says(0, ANN), chat.says(900, STAFF, "Version 2 is out")
    answered = chat.says(910, BOT, to=asked)
    assert chat.together(asked, chat.says(920, BEN, "Here too", to=asked))
    assert chat.together(announced, chat.says(930, CEM, "At last", to=announced))
    assert chat.together(asked, chat.says(940, Author(4, "Dee"), "And on Fedora?", to=answered))


def test_who_mentions_the_bot_does_not_join_whom_it_has_answered() -> None:
    chat = FollowedChat()
    asked = chat.says(0, ANN)
    answered = chat.says(10, BOT, to=asked)
    new = chat.says(20, BEN, mentions=[BOT])
    assert chat.together(asked, answered)
    assert chat.apart(asked, new)


def test_another_member_of_the_team_takes_over() -> None:
    chat = FollowedChat()
    asked = chat.says(0, ANN)
    chat.says(10, STAFF, to=asked)
    other = chat.says(20, BEN)
    busy = chat.says(30, STAFF_TOO, to=other)
    assert chat.together(asked, chat.says(40, ANN, "And now?", to=busy))


def test_a_helper_of_the_community_who_helps_two_is_told_apart_as_well() -> None:
    chat = FollowedChat()
    asked, other = chat.says(0, ANN), chat.says(1, BEN)
    chat.says(10, CEM, to=asked)
    last = chat.says(20, CEM, to=other)
    assert chat.together(asked, chat.says(30, ANN, to=last))


def test_a_reply_to_another_user_joins_them() -> None:
    chat = FollowedChat()
    chat.says(0, ANN)
    other = chat.says(10, BEN)
    assert chat.together(other, chat.says(20, ANN, to=other))


def test_the_team_s_reply_is_always_with_what_it_answers() -> None:
    chat = FollowedChat()
    first, second = chat.says(0, ANN), chat.says(1, BEN)
    assert chat.together(first, chat.says(10, STAFF, to=first))
    assert chat.together(second, chat.says(11, STAFF, to=second))
    assert chat.apart(first, second)


def test_the_team_s_reply_stays_there_also_to_whom_it_was_helping_with_something_else() -> None:
    chat = FollowedChat()
    first, other = chat.says(0, ANN), chat.says(1, BEN)
    chat.says(5, ANN, "Same as I said", to=other)
    chat.says(10, STAFF, to=first)
    assert chat.together(other, chat.says(400, STAFF_TOO, to=other), chat.says(410, STAFF, "yes", to=other))
    second = chat.says(900, ANN, "Something else")
    assert chat.together(second, chat.says(910, STAFF, to=second))
    assert chat.apart(first, second)
    assert chat.together(other, chat.says(920, STAFF_TOO, to=other))
    assert chat.together(second, chat.says(930, STAFF_TOO, to=second))


def test_a_mention_leads_to_what_that_person_was_talking_about() -> None:
    chat = FollowedChat()
    asked, other = chat.says(0, ANN), chat.says(5, BEN)
    assert chat.together(asked, chat.says(900, STAFF, "still there?", mentions=[ANN]))
    assert chat.found.rule is Rule.NAMED
    assert chat.together(asked, chat.says(1_200, ANN)), "what mentions a person was said to them"
    assert chat.together(other, chat.says(1_300, STAFF, mentions=[BEN]))
    assert chat.apart(other, chat.says(9_000, STAFF, mentions=[BEN])), "long ago"


@pytest.mark.parametrize("opening", ["cem: try again", "@Cem try again", "Cem, try again", " @cem", "CEM：好了"])
def test_a_name_at_the_beginning_is_a_mention(opening: str) -> None:
    chat = FollowedChat()
    asked = chat.says(0, CEM)
    chat.says(1, BEN)
    assert chat.together(asked, chat.says(700, STAFF, opening))


@pytest.mark.parametrize("opening", ["cem try again", "try again, Cem", "cement: no", "http://cem/", "", "@"])
def test_a_bare_word_is_no_name(opening: str) -> None:
    chat = FollowedChat()
    asked = chat.says(0, CEM)
    assert chat.apart(asked, chat.says(700, STAFF, opening))


def test_who_mentions_a_helper_with_something_new_does_not_join_those_who_are_being_helped() -> None:
    chat = FollowedChat()
    asked = chat.says(0, ANN)
    chat.says(10, STAFF, to=asked)
    new = chat.says(20, BEN, "sue: hi, can I …")
    assert chat.found == (new.id, Rule.BEGUN, ())
    assert chat.together(new, chat.says(30, STAFF, "yes")) is False, "she goes on in a breath with what she was saying"
    assert chat.together(new, chat.says(130, STAFF, "yes")), "after that, with what was said to her"


def test_who_mentions_the_helper_they_are_in_a_conversation_with_goes_on_with_it() -> None:
    chat = FollowedChat()
    asked, other = chat.says(0, ANN), chat.says(1, BEN)
    chat.says(10, STAFF, to=asked)
    assert chat.together(asked, chat.says(20, ANN, mentions=[STAFF]))
    chat.says(30, STAFF, to=other)
    assert chat.together(asked, chat.says(600, ANN, mentions=[STAFF]))


def test_who_mentions_somebody_of_their_own_conversation_goes_on_with_it_whatever_that_one_does_meanwhile() -> None:
    """Ben helps Ann, then others."""
    chat = FollowedChat()
    asked = chat.says(0, ANN, "The red light blinks.")
    chat.says(10, BEN, "Which one?", to=asked)
    others = chat.says(20, CEM, "No sound at all.")
    chat.says(30, BEN, "Since when?", to=others)
    went_on = chat.says(40, ANN, "the left one", mentions=[BEN])
    assert chat.together(asked, went_on)
    assert chat.apart(others, went_on)
    assert chat.found.rule is Rule.NAMED


def test_whoever_spoke_lately_is_a_member_however_many_have_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracking, "KEPT_MEMBERS", 3)
    chat = FollowedChat()
    asked = chat.says(0, ANN)
    for number in range(2):
        chat.says(number + 1, Author(10 + number, f"n{number}"), to=asked)
    more = chat.says(3, ANN)
    helped = chat.says(4, STAFF, to=more)
    chat.says(800, ANN, "Something else")
    # Who replies to a helper and takes no part in what was said there goes on with their own.
    thanks = chat.says(810, ANN, to=helped)
    assert chat.together(asked, thanks)


def test_a_team_member_goes_on_in_a_breath_whatever_is_said_in_between() -> None:
    chat = FollowedChat()
    asked = chat.says(0, ANN, "Where is the log?")
    answered = chat.says(10, STAFF, "In the folder.", to=asked)
    chat.says(20, BEN, "sue: another thing")
    assert chat.together(asked, answered, chat.says(99, STAFF, "The one named log."))


def test_a_team_member_answers_what_was_last_said_to_them() -> None:
    chat = FollowedChat()
    asked, other = chat.says(0, ANN), chat.says(1, BEN)
    chat.says(10, STAFF, to=asked)
    chat.says(20, STAFF, to=other)
    went_on = chat.says(100, ANN, "and then?")
    assert chat.together(went_on, chat.says(200, STAFF, "then wait"))
    assert chat.together(went_on, asked)


def test_an_asker_who_goes_on_speaks_to_who_has_just_helped() -> None:
    chat = FollowedChat()
    asked = chat.says(0, ANN)
    chat.says(10, STAFF, to=asked)
    chat.says(100, ANN, "and then?")
    newer = chat.says(110, BEN, "another thing")
    assert chat.together(asked, chat.says(200, STAFF, "then wait"))
    assert chat.together(newer, chat.says(210, STAFF_TOO, "yes?")), "to whom nobody has spoken"


def test_a_team_member_without_a_word_to_whom_answers_the_newest_question() -> None:
    chat = FollowedChat()
    first, second = chat.says(0, ANN, "Where are the keys?"), chat.says(10, BEN, "How do I install it?")
    answered = chat.says(60, STAFF, "there is no good way")
    assert chat.found.rule is Rule.WAITING
    assert chat.together(second, answered)
    assert chat.together(first, chat.says(200, STAFF_TOO, "hm")), "the other one still waits"
    assert chat.found.rule is Rule.WAITING


def test_a_question_waits_for_ten_minutes() -> None:
    chat = FollowedChat()
    asked = chat.says(0, ANN)
    assert chat.apart(asked, chat.says(600, STAFF))


@pytest.mark.parametrize(
    ("keys", "install", "answer"),
    [
        ("Where do I put the license keys?", "How do I install it on Fedora?", "keys are in keys.txt"),
        ("Wohin mit dem Lizenzschlüssel?", "Wie geht das unter Fedora?", "der Lizenzschlüssel gehört nach /etc"),
        ("¿Dónde pongo la licencia?", "¿Cómo se instala en Fedora?", "la licencia va en la carpeta"),
        ("许可证密钥放在哪里？", "如何在服务器上安装？", "密钥放在配置文件夹里"),
    ],
)  # fmt: skip
def test_the_words_in_common_tell_which_question_is_answered(keys: str, install: str, answer: str) -> None:
    """The rarer the word, the more: those of every message say nothing, in any language."""
    chat = FollowedChat()
    asked, other = chat.says(0, ANN, keys), chat.says(10, BEN, install)
    assert chat.together(asked, chat.says(60, STAFF, answer))
    assert chat.apart(asked, other)


def test_a_helper_turns_to_the_question_whose_words_they_use() -> None:
    chat = FollowedChat()
    asked = chat.says(0, ANN, "How do I get into this channel?")
    chat.says(10, CEM, "With any client, just connect to the server.", to=asked)
    new = chat.says(200, BEN, "How steep is the learning curve?")
    assert chat.together(new, chat.says(205, CEM, "It has a bit of a learning curve"))
    assert chat.apart(asked, new)


def test_a_helper_stays_where_no_other_question_has_more_of_their_words() -> None:
    chat = FollowedChat()
    asked = chat.says(0, ANN, "How do I get into this channel?")
    chat.says(10, CEM, "Connect to the server.", to=asked)
    chat.says(150, BEN, "How steep is the learning curve?")
    assert chat.together(asked, chat.says(200, CEM, "yes"))
    assert chat.together(asked, chat.says(289, CEM, "as in any learning curve")), "within a breath"


def test_one_rare_word_says_more_than_two_frequent_ones() -> None:
    chat = FollowedChat()
    for second in range(0, 40, 2):
        chat.says(second, OTHER_BOT, "build failed")
        chat.says(second + 1, OTHER_BOT, f"see entry {second}")
    asked = chat.says(1_000, ANN, "What is a chandelier?")
    chat.says(1_010, BEN, "My build failed")
    assert chat.together(asked, chat.says(1_020, STAFF, "the chandelier is why a build failed"))


def test_an_asker_stays_with_what_they_asked_whatever_words_they_use() -> None:
    chat = FollowedChat()
    asked = chat.says(0, ANN, "How steep is it?")
    chat.says(10, BEN, "Tell me of the learning curve")
    assert chat.together(asked, chat.says(200, ANN, "the learning curve"))


def test_the_lines_that_lead_to_a_reply_are_moved_to_it() -> None:
    """Pitfall 1."""
    chat = FollowedChat()
    asked = chat.says(0, ANN)
    first, second = chat.says(1_000, STAFF, "Back."), chat.says(1_030, STAFF, "Let me look.")
    assert chat.apart(asked, first)
    reply = chat.says(1_089, STAFF, "It is E7.", to=asked)
    assert chat.found == (asked.id, Rule.REPLY, (first.id, second.id))
    assert chat.together(asked, first, second, reply)
    assert chat.tracker.messages_of(first.id) == ()
    assert chat.tracker.messages_of(asked.id) == (asked.id, first.id, second.id, reply.id)
    assert chat.tracker.conversation_of(first.id) == asked.id


def test_a_line_that_seemed_to_answer_a_question_lets_it_wait_again() -> None:
    chat = FollowedChat()
    first, second = chat.says(0, ANN), chat.says(10, BEN)
    leading = chat.says(20, STAFF, "One moment.")
    assert chat.together(second, leading)
    chat.says(30, STAFF, "E7.", to=first)
    assert chat.found.moved == (leading.id,)
    assert chat.together(second, chat.says(40, STAFF_TOO, "and for you"))


def test_a_line_of_a_minute_ago_does_not_lead_and_no_line_of_a_user_does() -> None:
    chat = FollowedChat()
    asked = chat.says(0, ANN)
    chat.says(1_000, STAFF)
    chat.says(1_060, STAFF, to=asked)
    assert chat.found.moved == ()
    chat.says(2_000, BEN)
    chat.says(2_010, BEN, to=asked)
    assert chat.found.moved == ()


def test_what_goes_on_with_an_answer_does_not_lead() -> None:
    chat = FollowedChat()
    first, second = chat.says(0, ANN), chat.says(1, BEN)
    chat.says(10, STAFF, to=first)
    chat.says(20, STAFF, "and so on")
    chat.says(30, STAFF, to=second)
    assert chat.found.moved == ()


def test_what_follows_the_bot_s_own_answer_is_a_follow_up_to_it() -> None:
    chat = FollowedChat()
    asked = chat.says(0, ANN)
    answered = chat.says(60, BOT, "See the docs.", to=asked)
    assert chat.together(asked, answered, chat.says(500, ANN, "They do not say."))


def test_what_the_bot_has_answered_waits_for_the_team_all_the_same() -> None:
    chat = FollowedChat()
    asked = chat.says(0, ANN)
    chat.says(60, BOT, "See the docs.", to=asked)
    assert chat.together(asked, chat.says(200, STAFF, "not only there"))


def test_bots_answer_nothing_by_chance_and_go_on_in_a_breath() -> None:
    chat = FollowedChat()
    asked = chat.says(0, ANN)
    reported = chat.says(10, OTHER_BOT, "build 7 failed")
    assert chat.apart(asked, reported)
    assert chat.together(reported, chat.says(20, OTHER_BOT, "see the log"))
    assert chat.together(asked, chat.says(60, STAFF, "it waits all the same"))


def test_a_thread_is_one_conversation_however_long_it_takes() -> None:
    chat = FollowedChat()
    asked = chat.says(0, ANN, "It does not start", place=THREAD)
    assert chat.found == (THREAD.id, Rule.THREAD, ())
    others = [
        chat.says(7_200, STAFF, "What does it say?", place=THREAD),
        chat.says(14_400, BEN, "Same here", place=THREAD),
        chat.says(90_000, ANN, "E7", place=THREAD),
    ]
    assert chat.together(asked, *others)


def test_a_thread_goes_on_with_the_message_that_it_was_opened_on() -> None:
    chat = FollowedChat()
    asked = chat.says(0, ANN, "It does not start")
    thread = Place(asked.id, PlaceKind.THREAD, parent_id=CHANNEL.id)
    answered = chat.says(60, BOT, "Look here", place=thread)
    went_on = chat.says(7_000, ANN, "Does that help?", place=thread)
    assert chat.together(asked, answered, went_on)


def test_a_thread_goes_on_with_the_whole_conversation_of_the_message_that_it_was_opened_on() -> None:
    chat = FollowedChat()
    asked, opened_on = chat.says(0, ANN, "Hello"), chat.says(5, ANN, "It does not start")
    thread = Place(opened_on.id, PlaceKind.THREAD, parent_id=CHANNEL.id)
    assert chat.together(asked, opened_on, chat.says(60, BOT, "Look here", place=thread))


def test_in_a_thread_what_was_said_to_somebody_counts_for_ever() -> None:
    chat = FollowedChat()
    asked = chat.says(0, ANN, "Where do the license keys go?", place=POST)
    other = chat.says(100, BEN, "Does it run on Fedora?", place=POST)
    told = chat.says(200, STAFF, "Where is what?", to=asked, place=POST)
    assert chat.together(asked, chat.says(7_200, ANN, "what I said", to=told, place=POST))
    chat.says(10_000, BEN, "hm", place=POST)
    last = chat.says(14_400, STAFF, "I see", place=POST)
    assert chat.together(asked, last)
    assert chat.together(other, chat.says(21_600, BEN, "and me", to=last, place=POST))


def test_several_questions_in_a_thread_are_told_apart_by_who_asked_and_what_the_team_says() -> None:
    """Pitfall 77."""
    chat = FollowedChat()
    asked = chat.says(0, ANN, "Where do the license keys go?", place=POST)
    other = chat.says(100, BEN, "Does the installer run on Fedora?", place=POST)
    assert chat.found == (other.id, Rule.BEGUN, ())
    answers = chat.says(300, STAFF, "keys go to keys.txt", place=POST), chat.says(500, STAFF, "Fedora, yes", place=POST)
    assert chat.together(asked, answers[0], chat.says(9_000, ANN, "Are they read at start?", place=POST))
    assert chat.together(other, answers[1], chat.says(9_100, BEN, "And the next one?", place=POST))
    assert chat.apart(asked, other)


def test_a_reply_to_a_message_that_never_came_is_named_after_it() -> None:
    chat = FollowedChat()
    old = chat.talk.says(ANN, second=0)
    replies = chat.says(10, STAFF, to=old), chat.says(900, STAFF_TOO, to=old)
    assert chat.together(*replies)
    assert chat.names[replies[0].id] == old.id


def test_a_reply_to_a_deleted_message_or_into_another_place_is_none() -> None:
    chat = FollowedChat()
    asked = chat.says(0, ANN)
    elsewhere = replace(chat.talk.says(BEN, second=10), reply_to=Reference(asked.id, THREAD.id))
    chat.hears(elsewhere)
    gone = replace(chat.talk.says(CEM, second=20), reply_to=Reference(asked.id, CHANNEL.id, gone=True))
    chat.hears(gone)
    assert chat.apart(asked, elsewhere, gone)


def test_a_message_that_comes_twice_keeps_its_name_and_changes_nothing() -> None:
    chat = FollowedChat()
    asked = chat.says(0, ANN)
    chat.says(10, STAFF, to=asked)
    chat.hears(asked)
    assert chat.found == (asked.id, None, ())
    assert len(chat.tracker.messages_of(asked.id)) == 2


def test_two_places_know_nothing_of_each_other() -> None:
    chat = FollowedChat()
    here, there = chat.says(0, ANN), chat.says(10, ANN, place=THREAD)
    assert chat.apart(here, there)


def test_who_names_themselves_speaks_to_nobody() -> None:
    chat = FollowedChat()
    first = chat.says(0, ANN)
    assert chat.apart(first, chat.says(400, ANN, "ann: that is me", mentions=[ANN]))


def test_a_follower_that_has_heard_nothing_says_so() -> None:
    assert ConversationTracker().conversation_of(1) is None
    assert ConversationTracker().messages_of(1) == ()


def test_learned_from_is_where_the_team_speaks_after_a_user() -> None:
    user, team, bot = AuthorType.COMMUNITY_USER, AuthorType.TEAM_MEMBER, AuthorType.BOT
    assert teaches([team, user, bot, team])
    assert not teaches([team, user])
    assert not teaches([user, bot])
    assert not teaches([team])
    names = {4: 1, 2: 2, 1: 1, 3: 1}
    assert taught(names, {1: user, 2: user, 3: team, 4: user}) == {1: (1, 3, 4)}


def test_a_line_of_the_team_without_a_word_to_whom_is_tentative() -> None:
    """Pitfall 63: "good morning" is no answer to the question that waits."""
    chat = FollowedChat()
    asked = chat.says(0, ANN)
    greeting = chat.says(10, STAFF, "good morning")
    assert chat.together(asked, greeting)
    assert chat.tracker.is_tentative(greeting)
    reply = chat.says(30, STAFF_TOO, to=asked)
    assert not chat.tracker.is_tentative(reply)
    assert not chat.tracker.is_tentative(asked)


def test_the_kind_of_a_conversation_is_told_by_its_place() -> None:
    chat = FollowedChat()
    asked = chat.says(0, ANN)
    thread = replace(THREAD, id=asked.id)
    inside, other = chat.says(10, STAFF, place=thread), chat.says(20, BEN, "And mine?", place=thread)
    kinds = [chat.tracker.kind_of(message_id) for message_id in (asked.id, inside.id, other.id, 12345)]
    assert kinds == [REPLY, THREAD_KIND, REPLY, REPLY]


@pytest.mark.parametrize("place", [CHANNEL, THREAD])
def test_a_message_with_the_opening_of_a_kind_is_a_conversation_by_itself(
    monkeypatch: pytest.MonkeyPatch, place: Place
) -> None:
    tip = ConversationKind(prefix="tip_", opening="!tip ")
    monkeypatch.setattr(tracking, "KINDS", (*KINDS, tip))
    chat = FollowedChat()
    asked = chat.says(0, ANN, "!tip or not?", place=place)
    looking = chat.says(10, STAFF, "let me look", to=asked, place=place)
    told = chat.says(20, STAFF, "!tip It is the fuse.", to=asked, place=place)
    went_on = [chat.says(30, ANN, "It says E7.", place=place), chat.says(40, STAFF, "The fuse.", place=place)]
    assert chat.together(asked, looking, *went_on)
    assert chat.tracker.conversation_of(told.id) == told.id
    assert [each.id for each in (asked, told, *went_on) if chat.tracker.kind_of(each.id) is tip] == [told.id]


def test_the_place_of_a_message_is_known_while_it_is_remembered() -> None:
    talk = Talk()
    assert talk.tracker.place_of(talk.says(ANN, place=POST).id) == POST.id
    assert talk.tracker.place_of(talk.says(ANN, unheard=True).id) is None
