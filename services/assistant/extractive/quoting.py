"""Answers a query in the words of the sources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from services.assistant.extractive.excerpting import Excerpts
from services.assistant.extractive.fitness import is_good
from services.knowledge import Source
from services.search import Fit, Passage, Postings, Query, rank

NOTICE = "(Quoted from the documentation; no language model is configured.)"
FROM = "From "
"""Opens the line that says where a quote was taken."""

_LONGEST_QUOTE = 1_200
"""Characters. Whoever asked wants the passage, not the page."""
_SHORTEST_QUOTE = 40
"""Characters: cut below that, a quote says nothing."""
_RUNNER_UP = 0.8
"""The second best passage is quoted as well when it fits nearly as well as the best."""


class Quote(NamedTuple):
    source: Source
    passage: Passage
    fit: Fit


def best_quotes(
    query: Query, sources: Sequence[Source], cuts: Mapping[str, Excerpts], background: Postings
) -> list[Quote]:
    """At most two passages that answer the query; none when nothing fits well enough. Ties: team first, then by id."""
    ordered = sorted(sources, key=lambda source: (not source.id.startswith("team:"), source.id))
    candidates = [(source, passage) for source in ordered for passage in cuts[source.id].passages]
    fits = rank(query, [cuts[source.id].corpus for source in ordered], background)
    best = [Quote(*candidates[fit.place], fit) for fit in fits[:2] if fit.score >= _RUNNER_UP * fits[0].score]
    return best if best and is_good(query, best[0].passage, best[0].fit, background) else []


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


def first_quote(answer: str) -> str:
    """The words of an answer: what `compose` puts above them is left out."""
    head, _, rest = answer.partition("\n\n")
    return rest if head.startswith(FROM) and head.endswith(":") else answer


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
