"""Rewrites follow-up questions so that they make sense alone. Keeps nothing; never fails."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from services.documents.asking import clauses, grammar
from services.documents.asking.grammar import Kind, Phrase
from services.documents.asking.names import NameMention, read_mention
from services.documents.asking.passages import Citation
from services.documents.asking.plan import Position, lines_around, plan_without_files
from services.documents.store.protocol import Document
from services.search import QUERY_STOP_WORDS

log = logging.getLogger(__name__)

KEPT_TURNS = 3
TURN_CHARS = 200
MAX_CHARS = 300
SECONDS = 3.0
_FEW_WORDS = 4
_MAX_CITED = 10

_POINTS_BACK = re.compile(
    r"\b(?:it|its|this|these|those|they|them|their|he|she|him|the same|the other (?:one|two)|another one"
    r"|(?<!is )(?<!are )(?<!was )(?<!were )there(?! (?:is|are|was|were|any|an?)\b))\b"
    r"|\bthat\b(?!\s+\w)|\b(?:is|was)\s+that\s+an?\b|\bthat\s+(?:happen|occur|one|be|was|is|did|does|time|error|line|entry|file"
    r"|message|request|block|user|host|session|connection|warning|exception|process|job|task|service|value|setting|key|port"
    r"|address|node)",
    re.IGNORECASE,
)
_GOES_ON = re.compile(
    r"^\s*(?:(?:and|but|in|of|for|from|at|on|between|since|so|or|also|ok(?:ay)?|then|(?:what|how) about|how come"
    r"|(?:anything|what) else|more|again|next|previous|before|after)\b"
    r"|(?:which (?:file|line|one|time|component|host|user)|why|when|where|who|how|really)\s*\?)",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"\b(?:wh(?:at(?! about)|ich|en|ere|o|y)|how(?! about)|is|are|was|were|did|does|do|show|list)\b", re.IGNORECASE
)
_ANSWER_LIKE = re.compile(
    r"^\s*(?:yes|no|it is|it was|there (?:is|are|was|were)|the answer|according to|i |sorry)\b", re.IGNORECASE
)
_NUMBER = re.compile(r"(?<![\w.])\d+(?:[.:]\d+)*(?![\w])")
_FACTS: tuple[frozenset[Kind], ...] = (
    frozenset({"levels"}),
    frozenset({"first", "last", "began", "stopped"}),
    frozenset({"file"}),
    frozenset({"line"}),
    frozenset({"time"}),
)
"""Kinds of phrases that in a follow-up question replace those of the question before."""


@dataclass(frozen=True, slots=True)
class ConversationContext:
    """Earlier questions and answers, which a follow-up question refers to."""

    turns: tuple[tuple[str, str], ...] = ()  # pairs of question and answer, oldest first
    citations: tuple[Citation, ...] = ()  # of the last tool result; "what came right after it?" refers to them


class Rewriter(Protocol):
    async def rewrite(self, question: str, turns: tuple[tuple[str, str], ...]) -> str | None:
        """Return one question that makes sense by itself, which is checked before it is used; None: it failed."""
        ...


@dataclass(frozen=True, slots=True)
class ResolvedQuestion:
    """A question that can be searched.

    Attributes:
        how: `as asked`, `rewritten`, `with the previous question`, `beside the cited line`, `around the cited lines`,
            `the cited lines`.
    """

    question: str  # as asked
    query: str  # for the search
    how: str = "as asked"
    refused: bool = False  # True if a rewrite was rejected
    anchors: tuple[Citation, ...] = ()  # the cited lines that the question starts from
    position: Position | None = None  # the side of the anchors
    side_lines: int = 1  # the number of lines on that side


class _FollowUp:
    """A question, with its own conditions and its references to the conversation."""

    def __init__(self, question: str) -> None:
        self.reading = grammar.read(question)
        self.plan = plan = plan_without_files(self.reading)
        self.facts = frozenset[Kind]().union(*(fact for fact in _FACTS if self.reading.has(*fact)))
        self.stands_alone = bool(plan.mentions or plan.lines or plan.period or "file" in self.facts)
        """It names a line, a time, a file or an identifier itself."""
        plain = self.reading.without({"quoted", "steps_next", "steps_previous"})
        self.points_back = _POINTS_BACK.search(plain) is not None
        self.is_about_it = all(word.casefold() in QUERY_STOP_WORDS for word in plan.words)
        """It asks only for properties of a cited line: its time, its component, its text."""


def _needs_context(asked: _FollowUp) -> bool:
    """Return True if a question needs the earlier ones: it has a pronoun, an ellipsis, or hardly any words."""
    goes_on = _GOES_ON.search(asked.reading.text) is not None
    if goes_on and _is_only_a_fact(asked):
        return True
    if asked.stands_alone or goes_on or asked.points_back:
        return not asked.stands_alone
    words = [word for word in re.findall(r"[\w.-]+", asked.reading.text) if word.casefold() not in QUERY_STOP_WORDS]
    return len(words) < _FEW_WORDS and asked.plan.severity is None


def _is_only_a_fact(asked: _FollowUp) -> bool:
    """Return True if a question is only a file, line, time or level: "and in worker.log?", "at 10:03?"."""
    if not asked.facts or asked.plan.aggregate or asked.plan.position:
        return False
    names = _names(phrase for phrase in asked.reading.phrases if phrase.kind not in asked.facts)
    rest = asked.reading.without(asked.facts)
    return not names and not _ASKS.search(rest) and _FollowUp(rest).is_about_it


async def resolve(question: str, context: ConversationContext | None, rewriter: Rewriter | None) -> ResolvedQuestion:
    """Return `question` in a form that can be searched."""
    await clauses.prepare()
    asked = _FollowUp(question)
    if context is None or not (context.turns or context.citations) or not _needs_context(asked):
        return ResolvedQuestion(question, question)
    anchored = _resolve_by_citations(asked, context.citations)
    if anchored is not None:
        return anchored
    turns = tuple((said[:TURN_CHARS], answered[:TURN_CHARS]) for said, answered in context.turns[-KEPT_TURNS:])
    if not turns:
        return ResolvedQuestion(question, question)
    refused = False
    if rewriter is not None:
        rewritten = await _ask_rewriter(question, turns, rewriter)
        if rewritten is not None and is_acceptable(question, rewritten, turns):
            return ResolvedQuestion(question, rewritten, "rewritten")
        refused = rewritten is not None
    previous = _drop_replaced(turns[-1][0], asked)
    return ResolvedQuestion(question, f"{previous} {question}", "with the previous question", refused=refused)


def _resolve_by_citations(asked: _FollowUp, cited: tuple[Citation, ...]) -> ResolvedQuestion | None:
    """Resolve a question about the lines cited before, or their neighbours. None: it asks for other lines."""
    if not cited or asked.stands_alone:
        return None
    plan, reach = asked.plan, lines_around(asked.reading)
    at_cited = ResolvedQuestion(plan.question, plan.question, "the cited lines", anchors=cited)
    if reach:
        wider = (
            replace(each, line_start=max(1, each.line_start - reach), line_end=each.line_end + reach) for each in cited
        )
        return replace(at_cited, how="around the cited lines", anchors=tuple(wider))
    if plan.asks_for_neighbour:
        return replace(at_cited, how="beside the cited line", position=plan.position, side_lines=plan.side_lines)
    # "And WARN?" asks for other lines, "was it an error?" about these.
    about_them = plan.severity is None or asked.points_back
    return at_cited if about_them and not plan.position and not plan.aggregate and asked.is_about_it else None


def _drop_replaced(previous: str, asked: _FollowUp) -> str:
    """Return the previous question without what the new one replaces: "and the last WARN?" after "how many ERROR"."""
    changed = set(asked.facts)
    if asked.plan.severity is None:
        changed.discard("levels")
    if asked.plan.position and not asked.plan.aggregate:
        changed.add("count")
    return " ".join(grammar.read(previous).without(changed).split())


def is_acceptable(question: str, rewritten: str, turns: tuple[tuple[str, str], ...]) -> bool:
    """Return True if a rewrite may replace the question: it keeps names and numbers, and invents none."""
    text = rewritten.strip()
    if not text or "\n" in text or len(text) > MAX_CHARS or _ANSWER_LIKE.match(text):
        return False
    folded = text.casefold()
    if any(kept.casefold() not in folded for kept in _exact_parts(question)):
        return False
    known = " ".join((question, *(part for turn in turns for part in turn))).casefold()
    return all(part.casefold() in known for part in _exact_parts(text))


async def _ask_rewriter(question: str, turns: tuple[tuple[str, str], ...], rewriter: Rewriter) -> str | None:
    try:
        async with asyncio.timeout(SECONDS):
            return await rewriter.rewrite(question, turns)
    except TimeoutError:
        log.info("A follow-up question is searched for as it is: TimeoutError")
        return None


def _exact_parts(text: str) -> list[str]:
    return [name.text for name in _names(grammar.read(text).phrases) if not name.forms] + _NUMBER.findall(text)


def _names(phrases: Iterable[Phrase]) -> list[NameMention]:
    return [name for phrase in phrases if (name := read_mention(phrase))]


def with_citations(context: ConversationContext | None, documents: Sequence[Document]) -> ConversationContext | None:
    """Return `context` with the citations of its last answer, which are read from its text if they are missing."""
    if context is None or context.citations or not context.turns:
        return context
    return replace(context, citations=find_citations(context.turns[-1][1], documents))


def find_citations(answer: str, documents: Sequence[Document]) -> tuple[Citation, ...]:
    """Find `app.log:40`, `app.log:40-44` and "line 40 of app.log" in an answer, in order, for files that exist."""
    found: dict[int, Citation] = {}
    # The longest name first: what it matched is no other file's.
    for doc in sorted(documents, key=lambda doc: -len(doc.filename)):
        name = re.escape(doc.filename)
        for place in re.finditer(
            rf"(?<![\w./-]){name}:(?P<first>\d{{1,7}})(?:-(?P<last>\d{{1,7}}))?\b"
            rf"|\blines? (?P<only>\d{{1,7}}) (?:of|in) {name}(?![\w/-])",
            answer,
            re.IGNORECASE,
        ):
            first = int(place["first"] or place["only"])
            last = max(first, int(place["last"] or first))
            if last <= doc.n_lines and place.start() not in found:
                found[place.start()] = Citation(doc.doc_id, doc.filename, first, last, None, f"{doc.doc_id}:L{first}")
    return tuple(found[at] for at in sorted(found))[:_MAX_CITED]
