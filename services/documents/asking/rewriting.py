"""Questions that only make sense after the ones before them (DOCUMENT_QA 5.5). Keeps nothing; never fails."""

from __future__ import annotations

import asyncio
import logging
import re
from dataclasses import dataclass
from typing import Protocol

from pydantic import BaseModel

from services import prompts
from services.assistant import Usage
from services.documents.asking import mentions, times, wording
from services.documents.asking.wording import Position
from services.documents.results import Citation, ConversationContext
from services.documents.store.tokens import QUERY_STOP_WORDS
from services.llm.endpoint import Manner
from services.llm.errors import LLMError
from services.model_assistant import MeasuredAsker

log = logging.getLogger(__name__)

KEPT_TURNS = 3
TURN_CHARS = 200
MAX_CHARS = 300
SECONDS = 3.0
MANNER = Manner(temperature=0.0, max_tokens=150, retries=1)
_FEW_WORDS = 4

_POINTS_BACK = re.compile(
    r"\b(?:it|its|this|these|those|they|them|their|he|she|him|(?<!is )(?<!are )(?<!was )(?<!were )there(?! (?:is|are|was|were|any|an?)\b)|the same|the other (?:one|two)|another one)\b|\bthat\b(?!\s+\w)|\b(?:is|was)\s+that\s+an?\b|\bthat\s+(?:happen|occur|one|be|was|is|did|time|error|line|entry|file|message|request"
    r"|block|user|host|session|connection|warning|exception|process|job|task|service|value|setting|key|port|address|node)\w*",
    re.IGNORECASE,
)
_GOES_ON = re.compile(
    r"^\s*(?:and|but|so|or|also|ok(?:ay)?,?|then|what about|how about|which (?:file|line|one|time|component|host|user)\s*\?|why\s*\?|when\s*\?"
    r"|where\s*\?|who\s*\?|how\s*\?|really\s*\?|since when|how come|anything else|what else|more|again|next|previous|before|after)\b",
    re.IGNORECASE,
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
    """`as asked`, `rewritten`, `with the previous question`, `beside the cited line`, `the cited lines`."""
    refused: bool = False
    """Whether a rewrite was thrown away."""
    anchors: tuple[Citation, ...] = ()
    """The lines that the question starts from."""
    position: Position | None = None


class ModelRewriter:
    def __init__(self, asker: MeasuredAsker, usage: Usage) -> None:
        self._asker = asker
        self._usage = usage

    async def rewrite(self, question: str, turns: tuple[tuple[str, str], ...]) -> str:
        prompt = prompts.rewrite_question(question, turns, MAX_CHARS)
        result = await self._asker.ask(
            "rewrite", prompt.system, prompt.user, RewrittenQuestion, self._usage, manner=MANNER
        )
        return result.question


async def resolve(question: str, context: ConversationContext | None, rewriter: Rewriter | None) -> Resolved:
    """`question` in a form that can be looked for, whatever happens."""
    if context is None or not (context.turns or context.citations) or not needs_context(question):
        return Resolved(question, question)
    position = wording.position(question)
    if context.citations and not _own_words(question):
        if position in {Position.NEXT, Position.PREVIOUS}:
            return Resolved(question, question, "beside the cited line", anchors=context.citations, position=position)
        if position is None and wording.aggregate(question) is None and _about_it(question):
            return Resolved(question, question, "the cited lines", anchors=context.citations)
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


def _without_what_changes(previous: str, question: str) -> str:
    """What a question says anew is not taken from before: "and the last WARN?" after "how many ERROR entries"."""
    level, new_level = wording.severity(previous), wording.severity(question)
    if level and new_level:
        previous = previous.replace(level.text, " ", 1)
    if wording.first_or_last(question):
        previous = wording.without_position(previous)
    if wording.position(question) and not wording.aggregate(question):
        previous = wording.without_count(previous)
    return " ".join(previous.split())


def needs_context(question: str) -> bool:
    """A pronoun, an ellipsis, or next to nothing of its own."""
    own = _stands_alone(question)
    if _GOES_ON.search(question) and not own:
        return True
    if _POINTS_BACK.search(_without_quotes(question)) and not own:
        return True
    return len(_words(question)) < _FEW_WORDS and not own and not _about_levels(question)


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
    """It names a line, a time or an identifier itself."""
    found, _ = mentions.find(question)
    return bool(found or wording.line_span(question) or times.find(question) or _named_file(question))


def _named_file(question: str) -> bool:
    return re.search(r"\b[\w-]+\.[a-z]{2,5}\b", question, re.IGNORECASE) is not None


def _about_levels(question: str) -> bool:
    """As in: how many errors? It is short, and whole."""
    return wording.severity(question) is not None


def _own_words(question: str) -> bool:
    return _stands_alone(question)


def _about_it(question: str) -> bool:
    """Only what a cited line itself can tell: its time, its component, its text."""
    return len(_words(wording.content(question))) == 0


def _words(question: str) -> list[str]:
    return [word for word in re.findall(r"[\w.-]+", question) if word.casefold() not in QUERY_STOP_WORDS]


def _without_quotes(question: str) -> str:
    return re.sub(r"\"[^\"]*\"|`[^`]*`", " ", question)
