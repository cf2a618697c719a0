"""The assistant that needs no model: rules decide, BM25 selects, and the sources themselves are the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from model.conversations import Conversation, Role
from services.assistant import AnswerResult, GatingResult, SelectionResult, Usage, VerificationResult
from services.extractive.checking import foreign_lines
from services.extractive.index import rank_index
from services.extractive.questions import continues, is_question
from services.extractive.quoting import best_quotes, compose
from services.library import IndexEntry, Source

_MIN_SCORE: Final = 2.0
"""Of the best entry, for a question to count as answerable; tuned in tests/services/extractive/test_gate.py."""
_MIN_COVERAGE: Final = 0.2
_WORTH_READING: Final = 0.4
"""Share of the best entry's score from which another one is selected too."""
_EARLIER_TURNS: Final = 2


class ExtractiveAssistant:
    """Implements `services.assistant.Assistant`. Calls no model, so that it counts nothing in `Usage`."""

    def __init__(self, read_index: Callable[[], Awaitable[Sequence[IndexEntry]]]) -> None:
        """`read_index`: the combined index, for instance `library.index`. The gate compares questions with it."""
        self._read_index = read_index

    async def gate(self, conversation: Conversation, usage: Usage) -> GatingResult:  # noqa: ARG002 - the Protocol's
        asked, earlier = _asked(conversation)
        goes_on = bool(earlier) and continues(asked)
        query = "\n".join([asked, *earlier]) if goes_on else asked
        rewritten = query if query != conversation.last_user_text else None
        if not goes_on and not is_question(asked):
            return GatingResult(
                is_question=False, is_answerable=False, rewrite_query=None, reason="Not put as a question."
            )
        best = next(iter(rank_index(query, await self._read_index())), None)
        if best is None or best.fit.score < _MIN_SCORE or best.fit.coverage < _MIN_COVERAGE:
            return GatingResult(
                is_question=True,
                is_answerable=False,
                rewrite_query=rewritten,
                reason="No entry of the index resembles it.",
            )
        return GatingResult(
            is_question=True,
            is_answerable=True,
            rewrite_query=rewritten,
            reason=f"Resembles {best.entry.id} (BM25 {best.fit.score:.1f}).",
        )

    async def select(
        self,
        query: str,
        index: Sequence[IndexEntry],
        max_sources: int,
        usage: Usage,  # noqa: ARG002 - the Protocol's
    ) -> SelectionResult:
        ranked = rank_index(query, index)
        chosen = [found.entry.id for found in ranked if found.fit.score >= _WORTH_READING * ranked[0].fit.score]
        return SelectionResult(selected_source_ids=list(dict.fromkeys(chosen))[:max_sources])

    async def generate(
        self,
        conversation: Conversation,  # noqa: ARG002 - the query says it all
        query: str,
        sources: Sequence[Source],
        usage: Usage,  # noqa: ARG002 - the Protocol's
        *,
        max_chars: int,
        shorten: bool = False,  # noqa: ARG002 - what is quoted is never too long
    ) -> AnswerResult:
        answer, cited = compose(best_quotes(query, sources), max_chars)
        return AnswerResult(answer=answer or None, citations=cited)

    async def verify(
        self,
        conversation: Conversation,  # noqa: ARG002 - a quote is judged by its source alone
        draft: str,
        sources: Sequence[Source],
        usage: Usage,  # noqa: ARG002 - the Protocol's
    ) -> VerificationResult:
        issues = [f"Not in the sources: {line}" for line in foreign_lines(draft, sources)]
        return VerificationResult(is_good_enough=not issues, issues=issues, suggested_fix=None)


def _asked(conversation: Conversation) -> tuple[str, list[str]]:
    """What is asked now, and the latest of what users wrote before."""
    turns = conversation.turns
    now = [turn for turn in turns if turn.asked_now]
    earlier = [turn.text for turn in turns if turn.role is Role.USER and not turn.asked_now]
    if not now:
        return conversation.last_user_text, earlier[-1 - _EARLIER_TURNS : -1]
    return "\n".join(turn.text for turn in now), earlier[-_EARLIER_TURNS:]
