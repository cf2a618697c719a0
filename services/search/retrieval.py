"""Finds the passages that answer a query, in documentation and the team's answers, and how probably they do."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from model.source_ids import is_topic
from services.search import scoring
from services.search.differences import asks_only_among_others, asks_something_else
from services.search.embedding import Match, Vectors
from services.search.languages import ENGLISH, language_of
from services.search.passage_store import Frame, PassageStore, StoredPassage
from services.search.scoring import Floats, Positions, Postings
from services.search.tokenizer import terms


class Level(StrEnum):
    ANSWER = "answer"
    POINT = "point"
    SILENCE = "silence"


class Signals(NamedTuple):
    """Features of a search result from which confidence is computed.

    Attributes:
        best_cosine: the highest of any passage; None: only words were compared.
        mean_cosine: of all passages: how much the question resembles the documentation; None as above.
        keywords: BM25 of the best passage, in units of a word that occurs nowhere else.
        absent: the share of the query's words that occur in no passage at all.
        agreement: how many sources are among the first five by words and by meaning, 0 to 5.
        coverage: the share of the query's words that the best passage holds, rare ones counting more.
        size: the natural logarithm of how many passages there are: the more, the better the best one fits by chance.
        length: log(1 + words of the query), the sum at most 40. A whole sentence is more likely a question, and many
            words are harder to cover.
        stranger: whether the question names something, in a capital letter, that occurs nowhere.
    """

    best_cosine: float | None
    mean_cosine: float | None
    keywords: float
    absent: float
    agreement: int
    coverage: float
    size: float
    length: float
    stranger: bool = False


_ANSWER_FROM, _POINT_FROM = 0.5, 0.12
"""The lowest probability of a level."""
MIN_SIZE = 500
"""Smaller collections count as having so many passages, since the weights were fitted on larger ones. On the scenes of
tests/services/assistant/extractive/marlstow.py: 75 right, 1 wrong and 1 where it should have been silent; with 200 82
and 3, with 1,000 71 and 1.
"""
MIN_CONFIDENCE_TO_NAME = 0.04
"""No page is named below this. 0.4 % of the questions that find their answer fall below it, and half of those about
something else.
"""

# Fitted by logistic regression to questions about ten documentations: 290 that these answer, 194 that they do not, the
# former asked of the other documentations too, and messages of chats about other things. Figures with one documentation
# left out at a time are in benchmarks/README.md, "Answers". Of no use beside these: BM25 of the best passage, and words
# matched one by one (`embedding.py: Matcher`).
_PAGE_WEIGHTS = {
    "best_cosine": 12.65,
    "mean_cosine": -5.87,
    "absent": -4.15,
    "agreement": 0.31,
    "coverage": 2.87,
    "size": -0.64,
    "length": 1.32,
}
_PAGE_OFFSET = -6.57
# For words alone, fitted to six documentations and fewer questions. A fit to all of the above answers more in large
# documentations and less in small ones in other languages: 12 of 42 in tests/evaluation in place of 18.
_PAGE_WEIGHTS_BY_WORDS = {"keywords": 1.54, "absent": -5.5, "coverage": 1.46, "size": -1.11}
_PAGE_OFFSET_BY_WORDS = 4.02


def is_worth_naming(probability: float, signals: Signals, *, calibrated: bool) -> bool:
    """Return whether the best page may be named: always by words alone, as probabilities are too low to tell then."""
    return probability >= MIN_CONFIDENCE_TO_NAME or not calibrated or signals.best_cosine is None


def judge_pages(signals: Signals, *, calibrated: bool) -> tuple[float, Level]:
    """Return the probability that one of the first three pages answers, and the level that it reaches. Without
    `calibrated`, cosines are ignored: their scale differs with each model and language.
    """
    by_meaning = calibrated and signals.best_cosine is not None
    weights = _PAGE_WEIGHTS if by_meaning else _PAGE_WEIGHTS_BY_WORDS
    probability = _logistic(signals, weights, _PAGE_OFFSET if by_meaning else _PAGE_OFFSET_BY_WORDS)
    # None of 290 questions about ten documentations names such a stranger; a third of those about other things do.
    if probability >= _ANSWER_FROM and not signals.stranger:
        return probability, Level.ANSWER
    return probability, Level.POINT if probability >= _POINT_FROM else Level.SILENCE


def _logistic(signals: NamedTuple, weights: Mapping[str, float], offset: float) -> float:
    total = offset + sum(weight * float(getattr(signals, name)) for name, weight in weights.items())
    return 1 / (1 + math.exp(-total))


JUDGED_PAGES = 3
"""Confidence is the probability that one of so many first pages answers."""
MAX_HITS = 60
"""Twice the default of `ai_response.max_index_entries`."""
MEANING_WEIGHT = 0.65
"""The weight of cosines; words have the rest. On 118 questions about five documentations, 0.6 and 0.7 do as well; 0.5
and 0.8 find the right page among the first three for four in a hundred fewer.
"""
MEANING_WEIGHT_ELSEWHERE = 0.45
"""For queries in other languages, which the packaged model has not learnt. Of 35 questions in seven of them, the right
page is among the first three for 30; with 0.3 for 26, and with 0.65 for 28.
"""
MAX_TERMS = 48
"""The most terms of a query that are looked up: the beginning of a pasted log is enough."""
MAX_QUERY_WORDS = 40
"""A longer query counts as having so many words: text pasted into it is not part of the question."""
_WORD = re.compile(r"\w+")
_CAPITALISED = re.compile(r"(?<=[\w,;)] )[A-Z][A-Za-z0-9]{2,}\b")
"""Within a sentence English capitalises names only."""
_CODE_OR_LINK = re.compile(r"```.*?```|`[^`]*`|https?://\S+", re.DOTALL)
_MIN_EMBEDDED_SHARE = 0.9
"""With a smaller share of passages that have vectors, cosines do not count: those passages would always win."""
_COMPARED_SOURCES = 5
"""So many first sources by words are compared with those by meaning."""


class Hit(NamedTuple):
    """A passage that was found.

    Attributes:
        score: words and meaning together, 0 to 1; comparable within one search only.
        cosine: with the query; None without vectors.
        keywords: BM25, in units of what a word weighs that occurs nowhere else.
        coverage: the share of the query's words that the passage holds, rare ones counting more.
    """

    passage: StoredPassage
    score: float
    cosine: float | None
    keywords: float
    coverage: float = 0.0

    @property
    def source_id(self) -> str:
        return self.passage.source_id


class TeamAnswerSignals(NamedTuple):
    """Features of an earlier answer of the team from which its confidence is computed.

    Attributes:
        keywords: BM25 of the passage, in units of a word that occurs nowhere else.
        ahead: how much higher it ranks than the best other answer.
        near, missing: as in `Match`; None if words were not matched one by one.
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


class SearchResult(NamedTuple):
    """The result of a search.

    Attributes:
        hits: best first.
        confidence: the probability that one of the first three pages answers, or the team's first answer, 0 to 1.
        signals: the features that the confidence in pages was computed from; None if nothing was found.
        documents: the hits that are no answers of the team, as they rank among themselves; all hits, until
            `services.knowledge.LibrarySearch` has judged the team's answers.
        documents_confidence: the probability that one of `judged_pages` answers.
        team_answers: the surest first.
        is_near: whether the best page is near enough to be named.
    """

    hits: tuple[Hit, ...] = ()
    confidence: float = 0.0
    level: Level = Level.SILENCE
    signals: Signals | None = None
    documents: tuple[Hit, ...] = ()
    documents_confidence: float = 0.0
    team_answers: tuple[TeamAnswer, ...] = ()
    is_near: bool = True

    @property
    def answer_of_team(self) -> TeamAnswer | None:
        """The surest of the team's answers if it may be quoted."""
        return next((each for each in self.team_answers if each.level is Level.ANSWER), None)

    @property
    def judged_pages(self) -> frozenset[str]:
        """The ids of the first pages of `documents`, which `documents_confidence` is about."""
        return frozenset(hit.source_id for hit in pages_of(self.documents)[:JUDGED_PAGES])

    @property
    def pages(self) -> tuple[Hit, ...]:
        """The best passage of each source, best first."""
        return pages_of(self.hits)


def pages_of(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the best passage of each source, in the order of `hits`."""
    best: dict[str, Hit] = {}
    for hit in hits:
        best.setdefault(hit.source_id, hit)
    return tuple(best.values())


def best_passage(source_id: str, hits: Sequence[Hit]) -> StoredPassage:
    """Return the first passage of a source in `hits`; without one, a passage that says nothing but its source."""
    nothing = StoredPassage(source_id, title="", permalink="", section=0, headings=(), anchor="", text="")
    return next((hit.passage for hit in hits if hit.source_id == source_id), nothing)


NOTHING = SearchResult()


class QueryVector(NamedTuple):
    """The vector of a query. `calibrated`: whether confidence may be computed from its cosines."""

    vector: Vectors
    embedder_id: str
    calibrated: bool


def find(
    stores: Sequence[PassageStore],
    query: str,
    query_vector: QueryVector | None,
    allowed: Collection[str] | None = None,
) -> SearchResult:
    """Search all `stores` as if they were one; `allowed`: the sources that may be found, None for all. Blocking."""
    own = language_of(query)
    embedder_id = "" if query_vector is None else query_vector.embedder_id
    # In all stores the same words are looked up: those of the languages of each.
    languages = [store.frame(embedder_id).languages for store in stores]
    words = list(dict.fromkeys(word for each in languages for word in query_terms(query, each, own)))
    looked_up = [store.frame_and_postings(embedder_id, words) for store in stores]
    frames = [frame for frame, _ in looked_up]
    count = sum(len(frame.numbers) for frame in frames)
    if not count or not words:
        return NOTHING
    offsets = np.cumsum([0, *(len(frame.numbers) for frame in frames)])
    postings = [_merged_postings([holders[at] for _, holders in looked_up], offsets) for at in range(len(words))]
    lengths = np.concatenate([frame.lengths for frame in frames])
    keywords, coverage = scoring.bm25(postings, lengths, imagined=scoring.IMAGINED_TEXTS)
    keywords = keywords / scoring.rarity(0, count + scoring.IMAGINED_TEXTS)
    cosines = _cosines(frames, offsets, query_vector, count)
    scores = _combined_scores(keywords, cosines, MEANING_WEIGHT if own == ENGLISH else MEANING_WEIGHT_ELSEWHERE)
    source_ids = [source_id for frame in frames for source_id in frame.source_ids]
    order = _order(scores, source_ids, allowed)
    if not len(order):
        return NOTHING
    nowhere = {word for word, holders in zip(words, postings, strict=True) if not len(holders.positions)}
    signals = Signals(
        best_cosine=None if cosines is None else float(cosines.max()),
        mean_cosine=None if cosines is None else float(cosines.mean()),
        keywords=float(keywords[order[0]]),
        absent=len(nowhere) / len(words),
        agreement=_agreement(keywords, cosines, source_ids),
        coverage=float(coverage[order[0]]),
        size=float(np.log(max(count, MIN_SIZE))),
        length=float(np.log(min(MAX_QUERY_WORDS, 1 + len(_WORD.findall(query))))),
        stranger=count >= MIN_SIZE and own == ENGLISH and _names_unknown_thing(query, nowhere),
    )
    calibrated = query_vector is not None and query_vector.calibrated
    confidence, level = judge_pages(signals, calibrated=calibrated)
    passages = _passages_at(stores, frames, offsets, order)
    hits = tuple(
        Hit(
            passages[position],
            float(scores[position]),
            None if cosines is None else float(cosines[position]),
            float(keywords[position]),
            float(coverage[position]),
        )
        for position in map(int, order)
        if position in passages
    )
    near = is_worth_naming(confidence, signals, calibrated=calibrated)
    return SearchResult(hits, confidence, level, signals, hits, confidence, is_near=near)


def _names_unknown_thing(query: str, nowhere: Collection[str]) -> bool:
    """Return whether `query` has a capitalised name of which every word occurs `nowhere`."""
    names = _CAPITALISED.findall(_CODE_OR_LINK.sub(" ", query))
    return any(all(word in nowhere for word in words) for words in map(terms, names) if words)


def query_terms(query: str, languages: frozenset[str], own: str) -> list[str]:
    """Return the terms to search for, each once: as in the language `own` of the query if a source is in it, else as in
    each of the sources' `languages`.
    """
    known = [own] if own in languages else sorted(languages) or [own]
    return list(dict.fromkeys(word for language in known for word in terms(query, language)[:MAX_TERMS]))


def _merged_postings(postings: Sequence[Postings], offsets: Positions) -> Postings:
    if len(postings) == 1:
        return postings[0]
    positions = [each.positions + offset for each, offset in zip(postings, offsets, strict=False)]
    return Postings(np.concatenate(positions), np.concatenate([each.times for each in postings]))


def _cosines(
    frames: Sequence[Frame], offsets: Positions, query_vector: QueryVector | None, count: int
) -> Floats | None:
    """Return the cosine of every passage, the mean for those without a vector; None where too few have one."""
    embedded = sum(len(frame.embedded) for frame in frames)
    if query_vector is None or embedded < _MIN_EMBEDDED_SHARE * count:
        return None
    cosines = np.full(count, np.nan, dtype=np.float32)
    for frame, offset in zip(frames, offsets, strict=False):
        if len(frame.embedded):
            cosines[frame.embedded + offset] = frame.vectors @ query_vector.vector.reshape(-1)
    return np.where(np.isnan(cosines), np.nanmean(cosines), cosines).astype(np.float32)


def _combined_scores(keywords: Floats, cosines: Floats | None, cosine_weight: float) -> Floats:
    words = keywords / max(float(keywords.max()), 1e-9)
    return words if cosines is None else cosine_weight * scoring.scaled_to_one(cosines) + (1 - cosine_weight) * words


def _order(scores: Floats, source_ids: Sequence[str], allowed: Collection[str] | None) -> Positions:
    """Return the best positions; on a tie answers of the team come first, then earlier passages."""
    if allowed is not None:
        scores = np.where([source_id in allowed for source_id in source_ids], scores, 0)
    depth = min(len(scores), MAX_HITS)
    cutoff = np.partition(scores, len(scores) - depth)[len(scores) - depth]
    positions = np.flatnonzero((scores >= cutoff) & (scores > 0))
    not_team = np.array([not is_topic(source_ids[position]) for position in map(int, positions)], dtype=bool)
    return positions[np.lexsort((positions, not_team, -scores[positions]))][:MAX_HITS]


def _agreement(keywords: Floats, cosines: Floats | None, source_ids: Sequence[str]) -> int:
    """Count the sources that are among the first by words and by meaning."""
    if cosines is None:
        return 0
    return len(_first_sources(keywords, source_ids) & _first_sources(cosines, source_ids))


def _first_sources(scores: Floats, source_ids: Sequence[str]) -> set[str]:
    some = min(len(scores), 10 * _COMPARED_SOURCES)
    candidates = np.argpartition(-scores, some - 1)[:some]
    first: dict[str, None] = {}
    for position in candidates[np.lexsort((candidates, -scores[candidates]))]:
        first[source_ids[int(position)]] = None
        if len(first) == _COMPARED_SOURCES:
            break
    return set(first)


def _passages_at(
    stores: Sequence[PassageStore], frames: Sequence[Frame], offsets: Positions, order: Positions
) -> dict[int, StoredPassage]:
    found: dict[int, StoredPassage] = {}
    for store, frame, start in zip(stores, frames, map(int, offsets), strict=False):
        mine = [int(position) for position in order if start <= position < start + len(frame.numbers)]
        if mine:
            numbers = {int(frame.numbers[position - start]): position for position in mine}
            found |= {numbers[number]: passage for number, passage in store.passages(list(numbers)).items()}
    return found


MAX_TEAM_ANSWERS = 6
KEYWORD_WEIGHT = 0.05
"""The weight of BM25 when answers are ranked; the cosine has 1."""
WORD_MATCH_WEIGHT = 0.5
"""The weight of how alike single words are, which is added to both."""
_AHEAD_ALONE = 0.12
"""How far an answer without a rival counts as ahead: else the first that a team gives would be told to everybody."""
_SAME_QUESTION_SHARE = 0.6
"""Two questions that share this part of their words count as the same question."""
_TEAM_ANSWER_FROM, _TEAM_POINT_FROM, _UNSURE = 0.5, 0.1, 0.49
# Fitted by `benchmarks.evaluation.teaching` to two courses of an FAQ and two chats, whose figures with one of them left
# out are in benchmarks/README.md, "Answers of the team".
_TEAM_WEIGHTS: Mapping[str, float] = {"keywords": 0.51, "ahead": 5.5, "near": 6.77, "missing": -2.0}
_TEAM_OFFSET = -6.96
_TEAM_WEIGHTS_BY_WORDS: Mapping[str, float] = {"keywords": 0.77, "ahead": 25.8}
_TEAM_OFFSET_BY_WORDS = -4.31


def team_candidates(found: SearchResult) -> list[Hit]:
    """Return the best passage of each answer, the best answers first. `found`: from the team's texts alone."""
    best: dict[tuple[str, int], Hit] = {}
    for hit in sorted(found.hits, key=_rank, reverse=True):
        best.setdefault((hit.source_id, hit.passage.section), hit)
    return list(best.values())[:MAX_TEAM_ANSWERS]


def judge_team_answers(query: str, hits: Sequence[Hit], matches: Sequence[Match]) -> list[TeamAnswer]:
    """Return each candidate with its confidence, the surest first; among equally sure ones, those to this very
    question, then those that helped before.
    Of answers to the same question the oldest comes first, as a newer one replaces it unless it says less. An answer to
    another question (`asks_something_else`), or to one of which this is a part (`asks_only_among_others`), is never
    sure; neither is one with a later answer to the same question that somebody has doubted, as that may have replaced
    it. `matches`: one for each candidate, or none at all.
    """
    ranks = [_rank(hit) + (WORD_MATCH_WEIGHT * matches[at].near if matches else 0.0) for at, hit in enumerate(hits)]
    same = _with_same_question(hits)
    found: list[TeamAnswer] = []
    for at, hit in enumerate(hits):
        rivals = [rank for other, rank in enumerate(ranks) if other not in {at, *same[at]}]
        ahead = ranks[at] - max(rivals) if rivals else min(ranks[at], _AHEAD_ALONE)
        signals = TeamAnswerSignals(hit.keywords, ahead, *(matches[at] if matches else ()))
        confidence = team_probability(signals) if hit.passage.quotable else 0.0
        if confidence >= _TEAM_ANSWER_FROM and (
            any(hits[other].passage.doubted and not _is_before(hits[other], hit) for other in same[at])
            or asks_something_else(query, _question_of(hit), hit.passage.text)
            or asks_only_among_others(query, _question_of(hit), hit.passage.text)
        ):
            confidence = _UNSURE
        found.append(TeamAnswer(hit, confidence, level_of(confidence), signals))
    return _in_order(query, found, same)


def _in_order(query: str, answers: Sequence[TeamAnswer], same: Sequence[Sequence[int]]) -> list[TeamAnswer]:
    wanted = _WORD.findall(query.casefold())
    # What was answered word for word goes first, whatever its age.
    sure = [
        (
            -round(each.confidence, 1),
            wanted != _WORD.findall(_question_of(each.hit).casefold()),
            not each.hit.passage.helped,
        )
        for each in answers
    ]

    def order(at: int) -> tuple[object, ...]:
        best = max(answers[each].confidence for each in {at, *same[at]} if sure[each] == sure[at])
        return (*sure[at], -best, answers[at].hit.passage.day, answers[at].hit.passage.section)

    return [answers[at] for at in sorted(range(len(answers)), key=order)]


def _with_same_question(hits: Sequence[Hit]) -> list[list[int]]:
    """Return for each answer the positions of those to the same question, with its own unless no word was asked."""
    asked = [frozenset(terms(_question_of(hit))) for hit in hits]
    return [
        [at for at, other in enumerate(asked) if len(one & other) >= _SAME_QUESTION_SHARE * len(one | other) > 0]
        for one in asked
    ]


def _question_of(answer: Hit) -> str:
    return answer.passage.headings[-1] if answer.passage.headings else ""


def team_probability(signals: TeamAnswerSignals) -> float:
    if signals.near is None:
        return _logistic(signals, _TEAM_WEIGHTS_BY_WORDS, _TEAM_OFFSET_BY_WORDS)
    return _logistic(signals, _TEAM_WEIGHTS, _TEAM_OFFSET)


def level_of(confidence: float) -> Level:
    if confidence >= _TEAM_ANSWER_FROM:
        return Level.ANSWER
    return Level.POINT if confidence >= _TEAM_POINT_FROM else Level.SILENCE


def _is_before(one: Hit, other: Hit) -> bool:
    """Return True if an answer is certainly older than another one."""
    mine, its = one.passage, other.passage
    return mine.day < its.day or (mine.source_id == its.source_id and mine.section < its.section)


def _rank(hit: Hit) -> float:
    return (hit.cosine or 0.0) + KEYWORD_WEIGHT * hit.keywords
