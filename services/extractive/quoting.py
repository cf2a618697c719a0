"""Answers a query in the words of the sources."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from services.extractive.index import query_terms
from services.extractive.passages import Passage, passages
from services.extractive.ranking import Corpus, Fit, rank
from services.extractive.recent import Recent
from services.extractive.team_answers import team_answers
from services.extractive.words import terms
from services.library import Source

NOTICE = "(Quoted from the documentation; no language model is configured.)"
FROM = "From "
"""Opens the line that says where a quote was taken."""

_KEPT_CHARS = 8_000_000
_LONGEST_QUOTE = 1_200
"""Characters. Whoever asked wants the passage, not the page."""
_SHORTEST_QUOTE = 40
"""Characters: cut below that, a quote says nothing."""
_MIN_SCORE = 2.5
_MIN_COVERAGE = 0.4
_MANY_MATCHES = 4
"""Words found make up for a long question of which most is circumstance."""
_MIN_COVERAGE_OF_MANY = 0.2
_RUNNER_UP = 0.8
"""The second best passage is quoted as well when it fits nearly as well as the best."""


class Quote(NamedTuple):
    source: Source
    passage: Passage
    fit: Fit


class _Cut(NamedTuple):
    """A source, cut into passages, and their words."""

    passages: list[Passage]
    corpus: Corpus


def best_quotes(query: str, sources: Sequence[Source]) -> list[Quote]:
    """At most two passages that answer the query; none when nothing fits well enough. Ties: team first, then by id."""
    ordered = sorted(sources, key=lambda source: (not source.id.startswith("team:"), source.id))
    cuts = [(source, _cuts((source.text, source.id.startswith("team:")))) for source in ordered]
    candidates = [(source, passage) for source, cut in cuts for passage in cut.passages]
    fits = rank(query_terms(query), [cut.corpus for _, cut in cuts])
    if not fits or not is_good(fits[0]):
        return []
    good = [fit for fit in fits[:2] if fit.score >= _RUNNER_UP * fits[0].score]
    return [Quote(*candidates[fit.place], fit) for fit in good]


def is_good(fit: Fit) -> bool:
    """Whether a passage says enough about what was asked. A wrong answer is worse than none."""
    many = fit.matches >= _MANY_MATCHES and fit.coverage >= _MIN_COVERAGE_OF_MANY
    return fit.score >= _MIN_SCORE and (fit.coverage >= _MIN_COVERAGE or many)


def compose(quotes: Iterable[Quote], max_chars: int) -> tuple[str, list[str]]:
    """The answer, at most `max_chars` characters with its notice, and the ids quoted; empty when nothing fits."""
    room = max_chars - len(NOTICE) - 2
    parts: list[str] = []
    cited: list[str] = []
    for quote in quotes:
        origin = _origin(quote)
        text = shortened(quote.passage.text, min(_LONGEST_QUOTE, room - len(origin) - 4))
        if not text:
            break
        parts.append(f"{origin}\n\n{text}")
        cited.append(quote.source.id)
        room -= len(parts[-1]) + 2
    return ("\n\n".join([*parts, NOTICE]) if parts else "", list(dict.fromkeys(cited)))


def shortened(text: str, max_chars: int) -> str:
    """`text`, cut after a line or else a word, its code fence closed; empty when next to nothing would be left."""
    if len(text) <= max_chars:
        return text
    room = max_chars - len("\n```\n…")
    if room < _SHORTEST_QUOTE:
        return ""
    cut = text[: room + 1]
    at = cut.rfind("\n") if cut.rfind("\n") >= room // 2 else cut.rfind(" ")
    cut = cut[: at if at > 0 else room].rstrip()
    return f"{cut}\n```\n…" if cut.count("```") % 2 else f"{cut}\n…"


def _origin(quote: Quote) -> str:
    if quote.source.id.startswith("team:"):
        return f"{FROM}an earlier answer by the team:"
    title = " ".join(quote.passage.heading.replace("*", "").replace("`", "").split())[:120]
    name = "the documentation" if quote.source.url else f"`{quote.source.id.removeprefix('kb:').replace('`', '')}`"
    return f"{FROM}{name}, *{title}*:" if title else f"{FROM}{name}:"


def _cut(content: tuple[str, bool]) -> _Cut:
    text, by_team = content
    found = team_answers(text) if by_team else passages(text)
    return _Cut(found, Corpus(terms(passage.heading) + terms(passage.text) for passage in found))


_cuts = Recent(_cut, lambda content: len(content[0]), _KEPT_CHARS)
