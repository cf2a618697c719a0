"""Sources in pieces, with their words; kept, so that the next question about them costs nothing."""

from __future__ import annotations

from typing import NamedTuple

from services.assistant.extractive.recent import Recent
from services.assistant.extractive.team_answers import team_answers
from services.search import Passage, Postings, passages, terms

_KEPT_CHARS = 10_000_000

Content = tuple[str, bool]
"""A text, and whether it is team knowledge."""


class Excerpts(NamedTuple):
    passages: list[Passage]
    corpus: Postings


def cut(content: Content) -> Excerpts:
    """Takes about a second for a megabyte."""
    text, by_team = content
    found = team_answers(text) if by_team else passages(text)
    return Excerpts(found, Postings(_words(passage) for passage in found))


def _words(passage: Passage) -> list[str]:
    # What a passage is headed by says more of it than any sentence in it.
    return terms(passage.heading) * 2 + terms(passage.text)


kept_cuts: Recent[Content, Excerpts] = Recent(lambda content: len(content[0]), _KEPT_CHARS)
