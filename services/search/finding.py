"""Finds the passages that answer a query, with the confidence that they do."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from services.search import scoring
from services.search.confidence import FEW, Level, Signals, is_worth_naming, judged
from services.search.embedding import Vectors
from services.search.languages import ENGLISH, language_of
from services.search.scoring import Floats, Places, Postings
from services.search.store import Frame, PassageStore, StoredPassage
from services.search.words import terms

DEPTH = 60
"""So many passages are looked at; an index of sources is narrowed to half as many."""
MEANING = 0.65
"""What cosines weigh against words. On 118 questions about five documentations, 0.6 and 0.7 do as well; 0.5 and 0.8
find the right page among the first three for four in a hundred fewer.
"""
MEANING_ELSEWHERE = 0.45
"""In other languages, which the packaged model has not learnt. Of 35 questions in seven of them, the right page is
among the first three for 30; with 0.3 for 26, and with 0.65 for 28.
"""
MOST_TERMS = 48
"""Of a query: the beginning of a pasted log says what it is about."""
MOST_WORDS = 40
"""A longer query counts as one of so many words: what is pasted into it is no part of the question."""
_WORD = re.compile(r"\w+")
_NAME = re.compile(r"(?<=[\w,;)] )[A-Z][A-Za-z0-9]{2,}\b")
"""Within a sentence: English writes nothing else like that."""
_QUOTED = re.compile(r"```.*?```|`[^`]*`|https?://\S+", re.DOTALL)
_WITH_VECTORS = 0.9
"""Cosines count from this share of the passages on; until then, those that are embedded already would always win."""
_NEAR = 5
"""Pages of each of the two orders that are compared."""


class Hit(NamedTuple):
    """A passage that was found.

    Attributes:
        score: words and meaning together, 0 to 1; comparable within one search only.
        cosine: with the query; None without vectors.
        keywords: BM25, in units of what a word weighs that occurs nowhere else.
    """

    kept: StoredPassage
    score: float
    cosine: float | None
    keywords: float

    @property
    def source_id(self) -> str:
        return self.kept.source_id


class TeamAnswerSignals(NamedTuple):
    """Features of an earlier answer of the team from which its confidence is computed.

    Attributes:
        keywords: BM25 of the passage, in units of a word that occurs nowhere else.
        ahead: how far it is before the second best answer.
        near, missing: as of `Match`; None where words were not matched one by one.
    """

    keywords: float
    ahead: float
    near: float | None = None
    missing: float | None = None


class TeamAnswer(NamedTuple):
    """An earlier answer of the team: its best passage, and the probability that it answers the question, 0 to 1."""

    hit: Hit
    confidence: float
    level: Level
    signals: TeamAnswerSignals


class Found(NamedTuple):
    """The result of a search.

    Attributes:
        hits: best first.
        confidence: that one of the first three pages answers, or the team's first answer does, 0 to 1.
        signals: what the confidence of pages was told from; None where nothing was found.
        documents: those of `hits` that are no answers of the team, as they rank among themselves.
        of_pages: the confidence that one of their first three pages answers.
        taught: the team's answers that fit best, the surest first.
        is_near: whether the best page is near enough to be named.
    """

    hits: tuple[Hit, ...] = ()
    confidence: float = 0.0
    level: Level = Level.SILENCE
    signals: Signals | None = None
    documents: tuple[Hit, ...] = ()
    of_pages: float = 0.0
    taught: tuple[TeamAnswer, ...] = ()
    is_near: bool = True

    @property
    def answer_of_team(self) -> TeamAnswer | None:
        """The team's answer that is sure enough to be quoted, if there is one."""
        return next((each for each in self.taught if each.level is Level.ANSWER), None)

    @property
    def pages(self) -> tuple[Hit, ...]:
        """The best passage of each source, best first."""
        return pages_of(self.hits)


def pages_of(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """The best passage of each source, in the order of `hits`."""
    best: dict[str, Hit] = {}
    for hit in hits:
        best.setdefault(hit.source_id, hit)
    return tuple(best.values())


NOTHING = Found()


class QueryVector(NamedTuple):
    """The vector of a query. `calibrated`: whether confidence can be computed from its cosines."""

    vector: Vectors
    embedder_id: str
    calibrated: bool


def find(
    stores: Sequence[PassageStore], query: str, meaning: QueryVector | None, allowed: Collection[str] | None = None
) -> Found:
    """Search all `stores` as if they were one; `allowed`: the sources that may be found, None for all. Blocking."""
    own = language_of(query)
    said: dict[str, None] = {}

    def add_words(languages: frozenset[str]) -> Sequence[str]:
        said.update(dict.fromkeys(query_terms(query, languages, own)))
        return ()

    embedder_id = "" if meaning is None else meaning.embedder_id
    for store in stores:  # each adds the words of its languages, so that all are asked for the same ones
        store.look(embedder_id, add_words)
    words = list(said)
    looked = [store.look(embedder_id, lambda _: words) for store in stores]
    frames = [frame for frame, _ in looked]
    count = sum(len(frame.numbers) for frame in frames)
    if not count or not words:
        return NOTHING
    offsets = np.cumsum([0, *(len(frame.numbers) for frame in frames)])
    held = [_joined([holders[at] for _, holders in looked], offsets) for at in range(len(words))]
    lengths = np.concatenate([frame.lengths for frame in frames])
    keywords, coverage = scoring.bm25(held, lengths, imagined=scoring.IMAGINED)
    keywords = keywords / scoring.rarity(0, count + scoring.IMAGINED)
    cosines = _cosines(frames, offsets, meaning, count)
    scores = _both(keywords, cosines, MEANING if own == ENGLISH else MEANING_ELSEWHERE)
    source_ids = [source_id for frame in frames for source_id in frame.source_ids]
    order = _order(scores, source_ids, allowed)
    if not len(order):
        return NOTHING
    nowhere = {word for word, holders in zip(words, held, strict=True) if not len(holders.places)}
    signals = Signals(
        best_cosine=None if cosines is None else float(cosines.max()),
        mean_cosine=None if cosines is None else float(cosines.mean()),
        keywords=float(keywords[order[0]]),
        absent=len(nowhere) / len(words),
        agreement=_agreement(keywords, cosines, source_ids),
        coverage=float(coverage[order[0]]),
        size=float(np.log(max(count, FEW))),
        length=float(np.log(min(MOST_WORDS, 1 + len(_WORD.findall(query))))),
        stranger=count >= FEW and own == ENGLISH and _names_a_stranger(query, nowhere),
    )
    calibrated = meaning is not None and meaning.calibrated
    confidence, level = judged(signals, calibrated=calibrated)
    kept = _kept(stores, frames, offsets, order)
    hits = tuple(
        Hit(
            kept[place],
            float(scores[place]),
            None if cosines is None else float(cosines[place]),
            float(keywords[place]),
        )
        for place in map(int, order)
        if place in kept
    )
    near = is_worth_naming(confidence, signals, calibrated=calibrated)
    return Found(hits, confidence, level, signals, hits, confidence, is_near=near)


def _names_a_stranger(query: str, nowhere: Collection[str]) -> bool:
    """Whether `query` names something of which every word occurs `nowhere`: a product, a person, a type of another
    language.
    """
    names = _NAME.findall(_QUOTED.sub(" ", query))
    return any(all(word in nowhere for word in said) for said in map(terms, names) if said)


def query_terms(query: str, languages: frozenset[str], own: str) -> list[str]:
    """Return the terms to search for, each once: in the language `own` of the query if a source is in it, else in every
    form that the languages of the sources give them.
    """
    known = [own] if own in languages else sorted(languages) or [own]
    return list(dict.fromkeys(word for language in known for word in terms(query, language)[:MOST_TERMS]))


def _joined(held: Sequence[Postings], offsets: Places) -> Postings:
    if len(held) == 1:
        return held[0]
    places = [each.places + offset for each, offset in zip(held, offsets, strict=False)]
    return Postings(np.concatenate(places), np.concatenate([each.times for each in held]))


def _cosines(frames: Sequence[Frame], offsets: Places, meaning: QueryVector | None, count: int) -> Floats | None:
    """Of every passage; of those without a vector the mean of all. None where too few have one."""
    embedded = sum(len(frame.embedded) for frame in frames)
    if meaning is None or embedded < _WITH_VECTORS * count:
        return None
    cosines = np.full(count, np.nan, dtype=np.float32)
    for frame, offset in zip(frames, offsets, strict=False):
        if len(frame.embedded):
            cosines[frame.embedded + offset] = frame.vectors @ meaning.vector.reshape(-1)
    return np.where(np.isnan(cosines), np.nanmean(cosines), cosines).astype(np.float32)


def _both(keywords: Floats, cosines: Floats | None, meaning: float) -> Floats:
    words = keywords / max(float(keywords.max()), 1e-9)
    return words if cosines is None else meaning * scoring.spread(cosines) + (1 - meaning) * words


def _order(scores: Floats, source_ids: Sequence[str], allowed: Collection[str] | None) -> Places:
    """The best places; on a tie what the team said, then the earlier passage."""
    if allowed is not None:
        scores = np.where([source_id in allowed for source_id in source_ids], scores, 0)
    depth = min(len(scores), DEPTH)
    near = np.partition(scores, len(scores) - depth)[len(scores) - depth]
    places = np.flatnonzero((scores >= near) & (scores > 0))
    team = np.array([not source_ids[place].startswith("team:") for place in map(int, places)], dtype=bool)
    return places[np.lexsort((places, team, -scores[places]))][:DEPTH]


def _agreement(keywords: Floats, cosines: Floats | None, source_ids: Sequence[str]) -> int:
    """How many sources both orders have among their first ones."""
    if cosines is None:
        return 0
    return len(_first_sources(keywords, source_ids) & _first_sources(cosines, source_ids))


def _first_sources(scores: Floats, source_ids: Sequence[str]) -> set[str]:
    some = min(len(scores), 10 * _NEAR)
    near = np.argpartition(-scores, some - 1)[:some]
    first: dict[str, None] = {}
    for place in near[np.lexsort((near, -scores[near]))]:
        first[source_ids[int(place)]] = None
        if len(first) == _NEAR:
            break
    return set(first)


def _kept(
    stores: Sequence[PassageStore], frames: Sequence[Frame], offsets: Places, order: Places
) -> dict[int, StoredPassage]:
    found: dict[int, StoredPassage] = {}
    for store, frame, start in zip(stores, frames, map(int, offsets), strict=False):
        mine = [int(place) for place in order if start <= place < start + len(frame.numbers)]
        if mine:
            numbers = {int(frame.numbers[place - start]): place for place in mine}
            found |= {numbers[number]: kept for number, kept in store.passages(list(numbers)).items()}
    return found
