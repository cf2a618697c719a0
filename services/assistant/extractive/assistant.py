"""The assistant that needs no model: rules decide, BM25 selects, and the sources themselves are the answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from model.conversations import Conversation, Role
from services.assistant.extractive.checking import foreign_lines
from services.assistant.extractive.corpus import Corpus, cut_all
from services.assistant.extractive.fitness import is_good
from services.assistant.extractive.looking_up import look_up
from services.assistant.extractive.quoting import best_quotes, compose
from services.assistant.protocol import AnswerResult, GatingResult, SelectionResult, VerificationResult
from services.documents import Toolset
from services.knowledge import IndexEntry, Library, Source
from services.llm import Usage
from services.search import BEFORE, continues, is_question, read_query

_WORTH_READING: Final = 0.6
"""Share of the best source's score from which another one is selected too."""
_EARLIER_TURNS: Final = 2
_READ_AT_EACH_END: Final = 4_000
"""Characters of what is asked."""
_STANDS_ALONE: Final = 5
"""Words from which a question in a running conversation is taken to say all that it is about."""


class ExtractiveAssistant:
    """Implements `services.assistant.protocol.Assistant`. Calls no model, so that it counts nothing in `Usage`."""

    def __init__(self, library: Library) -> None:
        """`library`: what questions are compared with."""
        self._shelf = Corpus(library)

    async def gate(
        self,
        conversation: Conversation,
        usage: Usage,  # noqa: ARG002 - the Protocol's
        *,
        files: Sequence[str] = (),
    ) -> GatingResult:
        asked, earlier = _asked(conversation)
        goes_on = bool(earlier) and continues(asked)
        if not goes_on and not is_question(asked):
            return _gated(None, "Not put as a question.", is_question=False)
        if earlier and (goes_on or len(read_query(asked).counted) < _STANDS_ALONE):
            asked = "\n".join([asked, *(BEFORE + " ".join(turn.split()) for turn in earlier)])
        rewritten = asked if asked != conversation.last_user_text else None
        query = read_query(asked)
        if files:
            return _gated(rewritten, f"Files to look in: {len(files)}.", is_answerable=True)
        best = next(iter(await self._shelf.search(query)), None)
        if best is None or not is_good(query, best.passage, best.fit, self._shelf.corpus):
            return _gated(rewritten, "No passage of the sources resembles it.")
        return _gated(rewritten, f"Resembles {best.source_id} (BM25 {best.fit.score:.1f}).", is_answerable=True)

    async def select(
        self,
        query: str,
        index: Sequence[IndexEntry],
        max_sources: int,
        usage: Usage,  # noqa: ARG002 - the Protocol's
        *,
        files: Sequence[str] = (),
    ) -> SelectionResult:
        asked = read_query(query)
        found = await self._shelf.search(asked, (entry.id for entry in index))
        if files and not (found and is_good(asked, found[0].passage, found[0].fit, self._shelf.corpus)):
            return SelectionResult(selected_source_ids=[])
        chosen = [one.source_id for one in found if one.fit.score >= _WORTH_READING * found[0].fit.score]
        return SelectionResult(selected_source_ids=chosen[:max_sources])

    async def generate(
        self,
        conversation: Conversation,  # noqa: ARG002 - the query says it all
        query: str,
        sources: Sequence[Source],
        usage: Usage,  # noqa: ARG002 - the Protocol's
        *,
        max_chars: int,
        shorten: bool = False,  # noqa: ARG002 - what is quoted is never too long
        toolset: Toolset | None = None,
    ) -> AnswerResult:
        looked_up = None if toolset is None else await look_up(toolset, query, max_chars, instead=not sources)
        if looked_up is not None:
            return looked_up
        quotes = best_quotes(read_query(query), sources, await cut_all(sources), self._shelf.corpus)
        answer, cited = compose(quotes, max_chars)
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
    return _ends_of("\n".join(turn.text for turn in now)), earlier[-_EARLIER_TURNS:]


def _ends_of(text: str) -> str:
    """What asks stands before a pasted log or after it."""
    return text if len(text) <= 2 * _READ_AT_EACH_END else f"{text[:_READ_AT_EACH_END]}\n{text[-_READ_AT_EACH_END:]}"


def _gated(
    rewritten: str | None, reason: str, *, is_question: bool = True, is_answerable: bool = False
) -> GatingResult:
    return GatingResult(is_question=is_question, is_answerable=is_answerable, rewrite_query=rewritten, reason=reason)
