"""Answers a query in the words of the sources, if a passage says enough: a wrong answer is worse than none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from services.assistant.extractive.corpus import Excerpts, RankedPassage
from services.knowledge import Source
from services.search import Passage, Postings, Query, rank, terms, weigh

NOTICE = "(Quoted from the documentation; no language model is configured.)"
FROM = "From "
"""Opens the line that names the source of a quote."""

MIN_STRENGTH = 0.8
"""Tuned on one half of tests/services/assistant/extractive/marlstow.py, for no wrong answer rather than for many."""
MIN_FOCUS = 0.28
_RUNNER_UP = 0.8
"""The second best passage is quoted as well if it has this share of the best one's score."""

_STATEMENT = re.compile(r"(?<=[.!?:;])\s+|\n\s*\n|\n(?=\s*(?:[-*|]|\d+\.)\s)")
_JUDGED_CHARS = 4_000
"""A longer passage is a listing, and is judged by its beginning."""
_MAX_QUOTE_CHARS = 1_200
_MIN_QUOTE_CHARS = 40


def best_quotes(
    query: Query, sources: Sequence[Source], excerpts: Mapping[str, Excerpts], library: Postings
) -> list[RankedPassage]:
    """At most two passages that answer the query; none if none fits well enough. Ties: team first, then by id."""
    ids = sorted((source.id for source in sources), key=lambda each: (not each.startswith("team:"), each))
    candidates = [(source_id, passage) for source_id in ids for passage in excerpts[source_id].passages]
    fits = rank(query, [excerpts[source_id].postings for source_id in ids], library)
    best = [RankedPassage(*candidates[fit.place], fit) for fit in fits[:2] if fit.score >= _RUNNER_UP * fits[0].score]
    return best if is_good(query, best, library) else []


def is_good(query: Query, found: Sequence[RankedPassage], library: Postings) -> bool:
    """Whether the first passage has rare words of the query, most of them in one statement, read with its heading.

    Words that are scattered over a long passage only meet there by chance. `library` tells how rare words are.
    """
    if not found or found[0].fit.score * found[0].fit.coverage < MIN_STRENGTH:
        return False
    share = _focus(query, found[0].passage, library)
    return share >= MIN_FOCUS and found[0].fit.score * share >= MIN_STRENGTH


def _focus(query: Query, passage: Passage, library: Postings) -> float:
    """The share of the counted words that the heading and the best statement hold, 0 to 1, rare words weighing more."""
    weights = {word: weigh(word, library) * query.weights[word] for word in query.counted}
    heading = set(terms(passage.heading.rpartition(" › ")[2]))
    held = max(
        sum(weight for word, weight in weights.items() if word in said)
        for said in (heading.union(terms(text)) for text in _STATEMENT.split(passage.text[:_JUDGED_CHARS]))
    )
    return held / (sum(weights.values()) or 1.0)


def compose(quotes: Iterable[RankedPassage], max_chars: int) -> tuple[str, list[str]]:
    """The answer, at most `max_chars` characters with its notice, and the ids quoted; empty if nothing fits in."""
    room = max_chars - len(NOTICE) - 2
    parts: list[str] = []
    cited: list[str] = []
    for quote in quotes:
        origin = _origin(quote)
        text = shortened(quote.passage.text, min(_MAX_QUOTE_CHARS, room - len(origin) - 4))
        if not text:
            break
        parts.append(f"{origin}\n\n{text}")
        cited.append(quote.source_id)
        room -= len(parts[-1]) + 2
    return ("\n\n".join([*parts, NOTICE]) if parts else "", list(dict.fromkeys(cited)))


def first_quote(answer: str) -> str:
    """An answer without the line that `compose` puts above it."""
    head, _, rest = answer.partition("\n\n")
    return rest if _names_origin(head) else answer


def foreign_lines(draft: str, sources: Sequence[Source]) -> list[str]:
    """The lines of `draft` that are neither in a source nor added by `compose`. White space does not count."""
    held = " ".join(" ".join(source.text.split()) for source in sources)
    lines = [" ".join(line.split()) for line in draft.split("\n")]
    ours = {"", "…", "```", NOTICE}
    return [line for line in lines if line not in ours and line not in held and not _names_origin(line)]


def shortened(text: str, max_chars: int) -> str:
    """`text`, cut after a line or else a word, its code fence closed; empty if hardly anything would be left."""
    if len(text) <= max_chars:
        return text
    room = max_chars - len("\n```\n…")
    if room < _MIN_QUOTE_CHARS:
        return ""
    cut = text[: room + 1]
    at = cut.rfind("\n") if cut.rfind("\n") >= room // 2 else cut.rfind(" ")
    cut = cut[: at if at > 0 else room].rstrip()
    return f"{cut}\n```\n…" if cut.count("```") % 2 else f"{cut}\n…"


def _origin(quote: RankedPassage) -> str:
    if quote.source_id.startswith("team:"):
        return f"{FROM}an earlier answer by the team:"
    title = " ".join(quote.passage.heading.replace("*", "").replace("`", "").split())[:120]
    file = quote.source_id.removeprefix("kb:").replace("`", "")
    name = "the documentation" if Source(quote.source_id, "").url else f"`{file}`"
    return f"{FROM}{name}, *{title}*:" if title else f"{FROM}{name}:"


def _names_origin(line: str) -> bool:
    return line.startswith(FROM) and line.endswith(":")
