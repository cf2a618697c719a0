"""The assistant that needs no model: rules decide, BM25 selects, and what is found is the answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from model.conversations import Conversation, Role
from services.assistant.answering import AnswerResult, GatingResult, SelectionResult, VerificationResult
from services.assistant.extractive.corpus import Corpus, excerpts_of
from services.assistant.extractive.looking_up import look_up
from services.assistant.extractive.quoting import best_quotes, compose, foreign_lines, is_good
from services.documents import Toolset
from services.knowledge import IndexEntry, Library, Source
from services.llm import Usage
from services.search import BEFORE, continues, is_question, read_query

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
