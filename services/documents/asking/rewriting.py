"""Questions that only make sense after the ones before them (DOCUMENT_QA 5.5). Keeps nothing; never fails."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from pydantic import BaseModel

from services.documents import prompts
from services.documents.asking import aggregates, files_named, levels, line_spans, mentions, positions, times, wording
from services.documents.asking.positions import Position
from services.documents.results import Citation, ConversationContext
from services.llm import Asker, CallOptions, LLMError, Usage
from services.search import QUERY_STOP_WORDS

log = logging.getLogger(__name__)

KEPT_TURNS = 3
TURN_CHARS = 200
MAX_CHARS = 300
SECONDS = 3.0
MANNER = CallOptions(temperature=0.0, max_tokens=150, retries=1)
_FEW_WORDS = 4

_POINTS_BACK = re.compile(
    r"\b(?:it|its|this|these|those|they|them|their|he|she|him|(?<!is )(?<!are )(?<!was )(?<!were )there(?! (?:is|are|was|were|any|an?)\b)|the same|the other (?:one|two)|another one)\b|\bthat\b(?!\s+\w)|\b(?:is|was)\s+that\s+an?\b|\bthat\s+(?:happen|occur|one|be|was|is|did|time|error|line|entry|file|message|request"
    r"|block|user|host|session|connection|warning|exception|process|job|task|service|value|setting|key|port|address|node)\w*",
    re.IGNORECASE,
)
_GOES_ON = re.compile(
    r"^\s*(?:and|but|in|of|for|from|at|on|between|since|so|or|also|ok(?:ay)?,?|then|what about|how about|which (?:file|line|one|time|component|host|user)\s*\?|why\s*\?|when\s*\?"
    r"|where\s*\?|who\s*\?|how\s*\?|really\s*\?|since when|how come|anything else|what else|more|again|next|previous|before|after)\b",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"\b(?:wh(?:at(?! about)|ich|en|ere|o|y)|how(?! about)|is|are|was|were|did|does|do|show|list)\b", re.IGNORECASE
)
_ANSWER_LIKE = re.compile(
    r"^\s*(?:yes|no|it is|it was|there (?:is|are|was|were)|the answer|according to|i |sorry)\b", re.IGNORECASE
)


class RewrittenQuestion(BaseModel):
    question: str


class Rewriter(Protocol):
    async def rewrite(self, question: str, turns: tuple[tuple[str, str], ...]) -> str:
        """One question that makes sense by itself; it is checked before it is used.

        Raises:
            LLMError: there is none.
        """
        ...


@dataclass(frozen=True, slots=True)
class Resolved:
    """A question, ready to be looked for."""

    question: str
    """As asked."""
    query: str
    """What is looked for."""
    how: str = "as asked"
    """`as asked`, `rewritten`, `with the previous question`, `beside the cited line`, `around the cited lines`,
    `the cited lines`."""
    refused: bool = False
    """Whether a rewrite was thrown away."""
    anchors: tuple[Citation, ...] = ()
    """The lines that the question starts from."""
    position: Position | None = None
    steps: int = 1
    """How many lines of that side."""


class ModelRewriter:
    def __init__(self, asker: Asker, usage: Usage) -> None:
        self._asker = asker
        self._usage = usage

    async def rewrite(self, question: str, turns: tuple[tuple[str, str], ...]) -> str:
        prompt = prompts.rewrite_question(question, turns, MAX_CHARS)
        result = await self._asker.ask("rewrite", prompt, RewrittenQuestion, self._usage, options=MANNER)
        return result.question


async def resolve(question: str, context: ConversationContext | None, rewriter: Rewriter | None) -> Resolved:
    """`question` in a form that can be looked for, whatever happens."""
    if context is None or not (context.turns or context.citations) or not needs_context(question):
        return Resolved(question, question)
    anchored = _from_the_cited_lines(question, context.citations)
    if anchored is not None:
        return anchored
    turns = _shortened(context)
    if not turns:
        return Resolved(question, question)
    refused = False
    if rewriter is not None:
        rewritten = await _rewritten(question, turns, rewriter)
        if rewritten is not None and accepted(question, rewritten, turns):
            return Resolved(question, rewritten, "rewritten")
        refused = rewritten is not None
    previous = _without_what_changes(turns[-1][0], question)
    return Resolved(question, f"{previous} {question}", "with the previous question", refused=refused)


def _from_the_cited_lines(question: str, cited: tuple[Citation, ...]) -> Resolved | None:
    """What asks about the lines cited before, or those beside them; None: it asks for others."""
    if not cited or _stands_alone(question):
        return None
    reach = positions.around(question)
    if reach:
        wider = tuple(
            replace(each, line_start=max(1, each.line_start - reach), line_end=each.line_end + reach) for each in cited
        )
        return Resolved(question, question, "around the cited lines", anchors=wider)
    steps, plain = positions.without_steps(question)
    position = positions.position(plain)
    if position in {Position.NEXT, Position.PREVIOUS}:
        return Resolved(question, question, "beside the cited line", anchors=cited, position=position, steps=steps)
    # "And WARN?" asks for other lines, "was it an error?" about these.
    about_them = levels.severity(question) is None or _points_back(question)
    counted = aggregates.aggregate(question) is not None or bool(aggregates.grouping(question)[0].columns)
    if about_them and position is None and not counted and _about_it(question):
        return Resolved(question, question, "the cited lines", anchors=cited)
    return None


def _without_what_changes(previous: str, question: str) -> str:
    """What a question says anew is not taken from before: "and the last WARN?" after "how many ERROR entries"."""
    for said, without in _FACTS:
        if said(question):
            previous = without(previous)
    if positions.position(question) and not aggregates.aggregate(question):
        previous = aggregates.without_count(previous)
    return " ".join(previous.split())


def _without_period(question: str) -> str:
    period = times.find(question)
    return question if period is None else question.replace(period.text, " ", 1)


# What a question may say anew, each with what takes it out of the question before.
_FACTS: tuple[tuple[Callable[[str], object], Callable[[str], str]], ...] = (
    (levels.severity, lambda previous: levels.find(previous)[1]),
    (positions.first_or_last, positions.without_position),
    (files_named.is_named, files_named.without),
    (line_spans.find, line_spans.without),
    (times.find, _without_period),
)


def needs_context(question: str) -> bool:
    """A pronoun, an ellipsis, or next to nothing of its own."""
    if _only_another_fact(question):
        return True
    own = _stands_alone(question)
    if _GOES_ON.search(question) and not own:
        return True
    if _points_back(question) and not own:
        return True
    return len(_words(question)) < _FEW_WORDS and not own and levels.severity(question) is None


def _only_another_fact(question: str) -> bool:
    """Says a file, a line, a time or a level, and not what is asked of it: "and in worker.log?", "at 10:03?"."""
    if not _GOES_ON.search(question) or aggregates.aggregate(question) or positions.position(question):
        return False
    rest = question
    for _, without in _FACTS:
        rest = without(rest)
    found, _ = mentions.find(rest)
    return rest != question and not found and not _ASKS.search(rest) and _about_it(rest)


def _points_back(question: str) -> bool:
    _, plain = positions.without_steps(_without_quotes(question))
    return _POINTS_BACK.search(plain) is not None


def accepted(question: str, rewritten: str, turns: tuple[tuple[str, str], ...]) -> bool:
    """Whether a rewrite may stand for the question: it keeps what was there, and invents nothing."""
    text = rewritten.strip()
    if not text or "\n" in text or len(text) > MAX_CHARS or _ANSWER_LIKE.match(text):
        return False
    folded = text.casefold()
    if any(kept.casefold() not in folded for kept in _exact_parts(question)):
        return False
    known = " ".join((question, *(part for turn in turns for part in turn))).casefold()
    return all(part.casefold() in known for part in _exact_parts(text))


async def _rewritten(question: str, turns: tuple[tuple[str, str], ...], rewriter: Rewriter) -> str | None:
    try:
        async with asyncio.timeout(SECONDS):
            return await rewriter.rewrite(question, turns)
    except (LLMError, TimeoutError) as error:
        log.info("A follow-up question is looked for as it is: %s", type(error).__name__)
        return None


def _shortened(context: ConversationContext) -> tuple[tuple[str, str], ...]:
    return tuple((asked[:TURN_CHARS], answered[:TURN_CHARS]) for asked, answered in context.turns[-KEPT_TURNS:])


def _exact_parts(text: str) -> list[str]:
    found, _ = mentions.find(text)
    numbers = re.findall(r"(?<![\w.])\d+(?:[.:]\d+)*(?![\w])", text)
    return [mention.text for mention in found if not mention.forms] + numbers


def _stands_alone(question: str) -> bool:
    """It names a line, a time, a file or an identifier itself."""
    _, plain = positions.without_steps(question)
    found, _ = mentions.find(plain)
    return bool(found or line_spans.find(plain) or times.find(plain) or _named_file(plain))


def _named_file(question: str) -> bool:
    return re.search(r"\b[\w-]+\.[a-z]{2,5}\b", question, re.IGNORECASE) is not None


def _about_it(question: str) -> bool:
    """Only what a cited line itself can tell: its time, its component, its text."""
    return len(_words(wording.content(question))) == 0


def _words(question: str) -> list[str]:
    return [word for word in re.findall(r"[\w.-]+", question) if word.casefold() not in QUERY_STOP_WORDS]


def _without_quotes(question: str) -> str:
    return re.sub(r"\"[^\"]*\"|`[^`]*`", " ", question)
