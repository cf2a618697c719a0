from __future__ import annotations

import tracemalloc
from dataclasses import replace

import pytest

from services.team import captures as module
from services.team.archive import Pair, PairTurn, Speaker, qa_id
from services.team.captures import Capture, CapturedMessage, RecentCaptures
from tests.talk import ANN, BEN, STAFF, THREAD, Talk

PEOPLE = {"a": (ANN.id, Speaker.USER), "b": (BEN.id, Speaker.USER), "s": (STAFF.id, Speaker.TEAM)}
talk = Talk()
PART = talk.part(talk.says(STAFF))


def said(words: str) -> tuple[CapturedMessage, ...]:
    """`a1 s2`: Ann's message 1, Sue's message 2."""
    return tuple(
        CapturedMessage(int(word[1:]), author, PairTurn(speaker, word))
        for word in words.split()
        for author, speaker in [PEOPLE[word[0]]]
    )


def capture(words: str, conversation_id: str | None = None) -> Capture:
    return Capture(PART, conversation_id or f"reply_{said(words)[0].message_id}", said(words))


def pair(words: str | tuple[CapturedMessage, ...], conversation_id: str, second: int = 0) -> Pair:
    timestamp = f"2026-01-01T00:00:{second:02}Z"
    each = said(words) if isinstance(words, str) else words
    ids, authors = tuple(s.message_id for s in each), tuple(s.author_id for s in each)
    return Pair(qa_id(timestamp), timestamp, timestamp, conversation_id, ids, authors, tuple(s.turn for s in each))


def kept(captures: RecentCaptures, new: Capture) -> str:
    """Join and remember; tell what was kept."""
    joined = captures.join(new)
    captures.remember(pair(joined.messages, joined.conversation_id))
    return f"{joined.conversation_id}: {' '.join(each.turn.text for each in joined.messages)}"


def test_captures_that_share_a_users_message_are_one_conversation_with_the_messages_of_both() -> None:
    captures = RecentCaptures()
    assert kept(captures, capture("a1 a2 s3")) == "reply_1: a1 a2 s3"
    assert kept(captures, capture("a2 s4", "reply_2")) == "reply_1: a1 a2 s3 s4"
    assert kept(captures, capture("a2 b5 s6", "reply_2")) == "reply_1: a1 a2 s3 s4 b5 s6"


def test_a_shared_message_of_the_team_joins_nothing() -> None:
    captures = RecentCaptures()
    assert kept(captures, capture("a1 s2")) == "reply_1: a1 s2"
    assert kept(captures, capture("s2 b3 s4", "reply_2")) == "reply_2: s2 b3 s4"


def test_chains_that_begin_with_one_message_of_the_team_lose_nothing() -> None:
    captures = RecentCaptures()
    assert kept(captures, capture("s1 a2 s3")) == "reply_1: s1 a2 s3"
    assert kept(captures, capture("s1 b4 s5")) == "reply_1: s1 a2 s3 b4 s5"


def test_two_earlier_conversations_are_not_joined_and_the_earliest_takes_what_is_new() -> None:
    captures = RecentCaptures()
    assert kept(captures, capture("b2 s3")) == "reply_2: b2 s3"
    assert kept(captures, capture("a1 s4")) == "reply_1: a1 s4"
    assert kept(captures, capture("a1 b2 s5")) == "reply_2: a1 b2 s3 s5"
    # a1 was captured before it came to the other conversation.
    assert kept(captures, capture("a1 s6")) == "reply_1: a1 s4 s6"


def test_threads_are_told_apart_by_themselves() -> None:
    captures = RecentCaptures()
    assert kept(captures, capture("a1 s2", "thread_9")) == "thread_9: a1 s2"
    assert kept(captures, capture("a1 s3")) == "reply_1: a1 s3"
    assert kept(captures, capture("a1 s2 s4", "thread_9")) == "thread_9: a1 s2 s4"


def test_a_thread_that_is_not_read_whole_is_kept_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FULL_PART", 5)
    captures = RecentCaptures()

    def read(words: str) -> str:
        new = capture(words, "thread_1")
        return kept(captures, replace(new, read_from=new.messages[0].message_id))

    assert kept(captures, capture("a1 s2 a3 s4", "thread_1")) == "thread_1: a1 s2 a3 s4"
    assert read("s4 a5 s6") == "thread_1: a1 s2 a3 s4 a5 s6"
    assert read("a5 s6 b7 s8") == "thread_7: b7 s8"
    captures = RecentCaptures([pair("a1 s2 a3 s4 a5 s6", "thread_1"), pair("b7 s8", "thread_7")])
    assert read("s8 b9 s10") == "thread_7: b7 s8 b9 s10"
    # What was looked for and is not there has been deleted.
    assert read("s8 s10 a11 s12") == "thread_7: b7 s8 [removed] a11 s12"
    assert read("s12 a13 s14") == "thread_13: a13 s14"
    assert read("s14") == "thread_13: a13 s14"
    # Nothing of what is stored is among what was read, or its part has been forgotten.
    assert read("a40 s41") == "thread_40: a40 s41"


def test_what_the_team_alone_says_goes_to_the_conversation_of_its_name() -> None:
    captures = RecentCaptures()
    kept(captures, capture("a1 s2"))
    kept(captures, capture("b3 s4"))
    assert kept(captures, capture("s5", "reply_1")) == "reply_1: a1 s2 s5"
    assert kept(captures, capture("s6", "reply_3")) == "reply_3: b3 s4 s6"
    assert kept(captures, capture("s7")) == "reply_7: s7"


def test_a_conversation_that_has_another_name_after_a_restart_is_the_one_that_is_in_the_archive() -> None:
    """Only its newest messages were followed: it is named after the first of these."""
    captures = RecentCaptures([pair("a1 s2 a3 s4", "reply_1")])
    assert kept(captures, capture("a3 s4 a5 s6", "reply_3")) == "reply_1: a1 s2 a3 s4 a5 s6"


def test_what_was_read_just_now_wins_over_what_was_captured_before_but_for_what_the_team_had_answered() -> None:
    captures = RecentCaptures()
    kept(captures, capture("a1 s2 a3"))
    edited = tuple(replace(each, turn=replace(each.turn, text=f"new{each.message_id}")) for each in said("a1 s2 a3"))
    assert kept(captures, replace(capture("a1 s4"), messages=(*edited, *said("s4")))) == "reply_1: a1 new2 new3 s4"


def test_what_somebody_wrote_who_has_opted_out_since_is_not_captured_again() -> None:
    opted_out: set[int] = set()
    captures = RecentCaptures(withheld=lambda said: said.author_id in opted_out or "!nobot" in said.turn.text)
    kept(captures, capture("a1 b2 s3"))
    opted_out.add(BEN.id)
    assert kept(captures, capture("a1 b2 s4")) == "reply_1: a1 s3 s4"


def test_the_memory_is_built_again_from_the_archive() -> None:
    earlier = [pair("a1 s2", "reply_1", 1), pair("a1 s2 s3", "reply_1", 2), pair("a4 s5", f"thread_{THREAD.id}", 3)]
    captures = RecentCaptures(earlier)
    assert len(captures) == 2
    assert kept(captures, capture("a1 s6")) == "reply_1: a1 s2 s3 s6"


def test_the_memory_is_bounded_and_forgets_what_was_captured_longest_ago() -> None:
    captures = RecentCaptures(kept=2)
    kept(captures, capture("a1 s2"))
    kept(captures, capture("a3 s4"))
    kept(captures, capture("a1 s5"))
    kept(captures, capture("a6 s7"))
    assert len(captures) == 2
    assert kept(captures, capture("a3 s8")) == "reply_3: a3 s8"
    for number in range(100, 200, 2):
        kept(captures, capture(f"a{number} s{number + 1}"))
    assert len(captures) == 2
    assert captures.stored_as(capture("a198 s199")) is not None
    assert captures.stored_as(capture("a100 s101")) is None
    assert len(captures._owners) == 4  # pyright: ignore[reportPrivateUsage] (a leak shows nowhere else)


def test_a_message_whose_first_conversation_is_forgotten_belongs_to_the_next_that_holds_it() -> None:
    captures = RecentCaptures(kept=2)
    for words, conversation_id in (("b2 s3", "reply_2"), ("a1 s4", "reply_1"), ("a1 b2 s5", "reply_1")):
        captures.remember(pair(words, conversation_id))
    kept(captures, capture("a6 s7"))  # reply_2 is forgotten
    captures.remember(pair("a1 b2 s5 s8", "reply_1"))
    assert kept(captures, capture("b2 s9", "reply_2")) == "reply_1: a1 b2 s5 s8 s9"


def test_a_message_that_a_conversation_has_lost_is_forgotten_with_it() -> None:
    captures = RecentCaptures(kept=1)
    captures.remember(pair("a1 b2 s3", "reply_1"))
    captures.remember(pair("a1 s3 s4", "reply_1"))
    assert kept(captures, capture("b2 s5", "reply_2")) == "reply_1: a1 b2 s3 s4 s5"
    kept(captures, capture("a6 s7"))
    assert kept(captures, capture("b2 s8", "reply_2")) == "reply_2: b2 s8"
    assert len(captures._owners) == 2  # pyright: ignore[reportPrivateUsage] (a leak shows nowhere else)


def test_what_is_remembered_of_each_of_many_conversations_is_small() -> None:
    numbers = range(1_000, 4_000, 4)
    tracemalloc.start()
    captures = RecentCaptures(pair(f"a{n} b{n + 1} a{n + 2} s{n + 3}", f"reply_{n}") for n in numbers)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held / len(captures) < 1_200


def test_a_person_who_is_forgotten_is_not_captured_again_out_of_memory() -> None:
    captures = RecentCaptures()
    kept(captures, capture("a1 b2 s3"))
    captures.forget(BEN.id)
    assert kept(captures, capture("a1 s4")) == "reply_1: a1 [removed] s3 s4"
