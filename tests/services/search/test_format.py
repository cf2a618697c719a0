"""What search keeps of a topic follows the rules of its version: an upgrade must not go on quoting by old ones."""

from __future__ import annotations

import hashlib
from itertools import product

from services.knowledge import PairTurn, Speaker, render_block
from services.knowledge.topic_files import read_topic
from services.search import passages
from services.search.passage_store import FORMAT

ASKED = PairTurn(Speaker.USER, "How do I reset the password of my forgotten wallet?")
ANSWERS = (
    "No. Open the settings and use your recovery code there.",
    "hey tobie, one sec. Never: give it to anybody, whoever asks for it.",
    "What? No!",
    "Can you share your log? It is in the folder of the program. Let me know if that helps!",
    "Yes, that is completely fine, and we recommend it to everybody.\n`lamp --on` does it.",
)
OTHERS = ("me too", "And is it okay to leave the lamp on overnight?", "thanks, that works", "I have a cat as well.")
SPEAKERS = ("", "User A, Team (to User A), User B, Team", "User A, Team (to User A), User A, Team (to User A)")
PINNED = {14: "f7da94a3721eadc2"}


def digest_of_rules() -> str:
    """Return a digest of what search keeps of topics with each of these answers, messages and speakers."""
    found: list[object] = []
    for answer, other, speakers in product(ANSWERS, OTHERS, SPEAKERS):
        headers = [("id", "qa_20260301_000000.000000"), ("timestamp", "2026-03-01T00:00:00.000000Z")]
        headers += [("speakers", speakers)] if speakers else []
        said = (Speaker.TEAM, answer), (Speaker.USER, other), (Speaker.TEAM, ANSWERS[-1])
        turns = [ASKED, *(PairTurn(speaker, text) for speaker, text in said)]
        article = read_topic(render_block(headers, turns))
        assert article.sections
        found += [*article.sections, *passages(article)]
    return hashlib.sha256(repr(found).encode()).hexdigest()[:16]


def test_other_rules_have_another_format() -> None:
    """If this fails, raise `passage_store.FORMAT`, and pin the new digest here."""
    assert {FORMAT: digest_of_rules()} == PINNED
