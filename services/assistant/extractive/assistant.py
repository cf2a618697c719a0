"""The assistant that needs no model: rules decide, BM25 selects, and what is found is the answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from model.conversations import Conversation, Role
from services.assistant.answering import AnswerResult, GatingResult, SelectionResult, VerificationResult
from services.assistant.extractive.corpus import Corpus, excerpts_of
from services.assistant.extractive.quoting import best_quotes, compose, foreign_lines, is_good
from services.documents import QAResult, Status, Toolset
from services.knowledge import IndexEntry, Library, Source
from services.llm import Usage
from services.search import BEFORE, asked_now, continues, is_question, read_query

# ruff: noqa: ARG002 (the Protocol's arguments: quoting needs no `usage`, and no `conversation` once there is a query)


_WORTH_READING: Final = 0.6
"""Share of the best source's score from which another one is selected too."""
_EARLIER_TURNS: Final = 2
_READ_AT_EACH_END: Final = 4_000
"""Characters of a question: it comes before a pasted log or after it."""
_SELF_CONTAINED: Final = 5
"""Counted words from which a question in a running conversation needs no earlier ones."""


class ExtractiveAssistant:
    """Implements `Assistant` over `library`. Calls no model, so that it counts nothing in `Usage`."""

    def __init__(self, library: Library) -> None:
        self._corpus = Corpus(library)

    async def gate(self, conversation: Conversation, usage: Usage, *, files: Sequence[str] = ()) -> GatingResult:
        asked, earlier = _asked(conversation)
        goes_on = bool(earlier) and continues(asked)
        if not goes_on and not is_question(asked):
            return _gated(None, "Not put as a question.", is_question=False)
        if earlier and (goes_on or len(read_query(asked).counted) < _SELF_CONTAINED):
            asked = "\n".join([asked, *(BEFORE + " ".join(turn.split()) for turn in earlier)])
        rewritten = asked if asked != conversation.last_user_text else None
        query = read_query(asked)
        if files:
            return _gated(rewritten, f"Files to look in: {len(files)}.", is_answerable=True)
        found = await self._corpus.search(query)
        if not is_good(query, found, self._corpus.postings):
            return _gated(rewritten, "No passage of the sources resembles it.")
        best = found[0]
        return _gated(rewritten, f"Resembles {best.source_id} (BM25 {best.fit.score:.1f}).", is_answerable=True)

    async def select(
        self, query: str, index: Sequence[IndexEntry], max_sources: int, usage: Usage, *, files: Sequence[str] = ()
    ) -> SelectionResult:
        asked = read_query(query)
        found = await self._corpus.search(asked, (entry.id for entry in index))
        if files and not is_good(asked, found, self._corpus.postings):
            found = []
        chosen = [one.source_id for one in found if one.fit.score >= _WORTH_READING * found[0].fit.score]
        return SelectionResult(selected_source_ids=chosen[:max_sources])

    async def generate(
        self,
        conversation: Conversation,
        query: str,
        sources: Sequence[Source],
        usage: Usage,
        *,
        max_chars: int,
        shorten: bool = False,
        toolset: Toolset | None = None,
    ) -> AnswerResult:
        looked_up = None if toolset is None else await look_up(toolset, query, max_chars, instead=not sources)
        if looked_up is not None:
            return looked_up
        quotes = best_quotes(read_query(query), sources, await excerpts_of(sources), self._corpus.postings)
        answer, cited = compose(quotes, max_chars)
        return AnswerResult(answer=answer or None, citations=cited)

    async def verify(
        self, conversation: Conversation, draft: str, sources: Sequence[Source], usage: Usage
    ) -> VerificationResult:
        issues = [f"Not in the sources: {line}" for line in foreign_lines(draft, sources)]
        return VerificationResult(is_good_enough=not issues, issues=issues, suggested_fix=None)


def _asked(conversation: Conversation) -> tuple[str, list[str]]:
    """What is asked now, and the latest of what users wrote before."""
    now = [turn.text for turn in conversation.turns if turn.asked_now]
    earlier = [turn.text for turn in conversation.turns if turn.role is Role.USER and not turn.asked_now]
    if not now:
        return conversation.last_user_text, earlier[-1 - _EARLIER_TURNS : -1]
    asked = "\n".join(now)
    if len(asked) > 2 * _READ_AT_EACH_END:
        asked = f"{asked[:_READ_AT_EACH_END]}\n{asked[-_READ_AT_EACH_END:]}"
    return asked, earlier[-_EARLIER_TURNS:]


def _gated(
    rewritten: str | None, reason: str, *, is_question: bool = True, is_answerable: bool = False
) -> GatingResult:
    return GatingResult(is_question=is_question, is_answerable=is_answerable, rewrite_query=rewritten, reason=reason)


NOTICE: Final = "(Quoted as it was found; no language model is configured.)"

_EXACT: Final = ("file", "lines", "time", "severity", "identifiers", "position", "aggregate")
"""What a question may name that is looked up exactly, not ranked (services.documents.asking.plan)."""

_ASKING: Final = re.compile(r"[^\s.!?](?:[^.!?\n]|[.!?](?=\S))*\?")
_ENOUGH_WORDS: Final = 4

_CASE_TOOL: Final = "answer_from_case_evidence"
_TOOLS: Final = (_CASE_TOOL, "answer_from_user_kb")
"""The tools that know what no documentation does, in the order in which they are asked."""

PASSAGES: Final = 3
"""They are shown as they are: more would bury the answer."""

_WORTH_SAYING: Final = frozenset({Status.NOT_FOUND, Status.INDEXING, Status.NOT_INDEXED})
"""Shown if a question is about a file and nothing else."""


async def look_up(toolset: Toolset, query: str, max_chars: int, *, instead: bool) -> AnswerResult | None:
    """The answer of the first tool that has one; None if the sources know better.

    `instead`: there are no sources. If there are, only what was looked up exactly takes precedence over them.
    """
    offered = {tool.name for tool in toolset.tools}
    unanswered: str | None = None
    for name in _TOOLS:
        if name not in offered:
            continue
        result = await toolset.ask(name, _question(query), PASSAGES)
        if not (instead or any(result.plan.get(part) for part in _EXACT)):
            continue
        if result.status is Status.OK:
            return AnswerResult(answer=_shown(toolset, name, result, max_chars), citations=_cited(result))
        if result.status in _WORTH_SAYING and unanswered is None:
            unanswered = result.answer
    return None if unanswered is None else AnswerResult(answer=_with_notice(unanswered, max_chars), citations=[])


def _question(query: str) -> str:
    """The sentences that ask, if they say enough by themselves: the text around them names other things.

    Earlier questions are left out: the tools know the conversation, and recognise what refers to it.
    """
    now = asked_now(query)
    asking = " ".join(_ASKING.findall(now))
    return asking if len(asking.split()) >= _ENOUGH_WORDS else now


def _shown(toolset: Toolset, name: str, result: QAResult, max_chars: int) -> str:
    """Lines of files as they are, in a code block that they cannot end; runbooks as their author wrote them."""
    if name != _CASE_TOOL:
        return _with_notice(toolset.text(name, result), max_chars)
    tail = f"{toolset.text(name, replace(result, answer='')).strip()}\n{NOTICE}"
    room = max_chars - len(tail) - len("```\n\n```\n\n")
    # Backticks with an invisible character between them are no fence.
    quoted = _cut(result.answer, room).replace("```", "`\u200b`\u200b`")
    return f"```\n{quoted}\n```\n\n{tail}"


def _with_notice(text: str, max_chars: int) -> str:
    return f"{_cut(text, max_chars - len(NOTICE) - 2)}\n\n{NOTICE}"


def _cited(result: QAResult) -> list[str]:
    """The best place, and the other files."""
    first = next((f"{each.source}:{each.line_start}" for each in result.citations), None)
    named = [source for source in result.sources if first is None or not first.startswith(f"{source}:")]
    return named if first is None else [first, *named]


def _cut(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else f"{text[: max_chars - 1].rstrip()}…"
