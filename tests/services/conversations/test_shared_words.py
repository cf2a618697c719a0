"""How rare a word is, is said by the newest messages alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.conversations import tracking
from services.conversations.tracking import Rarity, words_of
from tests.services.quickly import QUICKLY

MESSAGES = st.lists(st.frozensets(st.sampled_from(["cable", "lamp", "moon", "port"])), max_size=12)


def told(*messages: frozenset[str]) -> Rarity:
    rarity = Rarity()
    for words in messages:
        rarity.add(words)
    return rarity


@QUICKLY
@given(MESSAGES)
def test_what_came_before_the_newest_messages_counts_no_longer(messages: list[frozenset[str]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tracking, "COUNTED_MESSAGES", 3)
        every, newest = told(*messages), told(*messages[-3:])
    for word in ("cable", "lamp", "moon", "port"):
        assert every.shared_weight([word], [word]) == newest.shared_weight([word], [word])


def test_the_rarer_a_word_the_more_it_weighs_and_a_word_of_every_message_nothing() -> None:
    rarity = told(frozenset({"lamp", "moon"}), frozenset({"lamp"}), frozenset({"lamp"}))
    weights = [rarity.shared_weight([word], [word]) for word in ("lamp", "moon", "port")]
    assert weights == pytest.approx([0.0, 0.693, 1.386], abs=0.001)
    assert rarity.shared_weight(["lamp", "moon"], ["moon", "port"]) == weights[1]


def test_of_a_long_message_the_beginning_is_read() -> None:
    log = "lamp " * 400
    assert words_of(log + "moon") == words_of("lamp")
    assert words_of(log[:-5] + "moon") > words_of("moon")


def test_of_a_text_without_blanks_the_first_words_are_read() -> None:
    text = "".join(map(chr, range(0x4E00, 0x4E00 + 2_000)))
    words = words_of(text)
    assert len(words) == tracking.MAX_WORDS
    assert words == words_of(text[: tracking.MAX_WORDS + 1])
