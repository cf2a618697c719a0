"""The answer, from the sources."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any

from model.outcomes import Outcome, Reason
from services.assistant import (
    AnswerResult,
    Assistant,
    Inquiry,
    keep_citations,
    linkable_texts,
    remove_foreign_links,
    skipped,
)

log = logging.getLogger(__name__)


def generate(
    assistant: Assistant, max_chars: int, require_citations: bool
) -> Callable[[Inquiry], Coroutine[Any, Any, Inquiry | Outcome]]:
    """Draft an answer and check its length, then its citations, then its links.

    An answer over `max_chars` is requested once more. Citations of what was not loaded are dropped. With file tools,
    quotations and line references that nothing supports are marked. Links that neither a source, nor the team, nor the
    asker has given are removed.
    """

    async def generated(inquiry: Inquiry) -> Inquiry | Outcome:
        answer = text_of(await ask(inquiry, shorten=False))
        if answer is not None and len(answer[0]) > max_chars:
            log.info("generate: %d characters, asking for %d", len(answer[0]), max_chars)
            answer = text_of(await ask(inquiry, shorten=True))
        if answer is None:
            inquiry.decisions["generate"] = {"answer": False}
            return skipped(inquiry, Reason.NO_ANSWER_IN_SOURCES)
        text, named = answer
        if len(text) > max_chars:
            inquiry.decisions["generate"] = {"answer": True, "characters": len(text)}
            return skipped(inquiry, Reason.TOO_LONG)
        citations = tuple(keep_citations(named, [source.id for source in inquiry.sources]))
        if inquiry.toolset is not None:
            citations += tuple(inquiry.toolset.citations(each for each in named if each.strip() not in citations))
            quotable = [source.text for source in inquiry.sources] + [turn.text for turn in inquiry.conversation.turns]
            text = inquiry.toolset.checked(text, quotable)
        inquiry.decisions["generate"] = {"answer": True, "characters": len(text), "citations": list(citations)}
        if require_citations and inquiry.read_sources and not citations:
            return skipped(inquiry, Reason.NO_CITATION)
        draft = remove_foreign_links(text, linkable_texts(inquiry.sources, inquiry.conversation))
        if not draft.strip():
            return skipped(inquiry, Reason.NO_ANSWER_IN_SOURCES)
        return inquiry._replace(draft=draft, citations=citations)

    async def ask(inquiry: Inquiry, *, shorten: bool) -> AnswerResult:
        return await assistant.generate(
            inquiry.conversation,
            inquiry.query,
            inquiry.sources,
            inquiry.usage,
            max_chars=max_chars,
            shorten=shorten,
            toolset=inquiry.toolset,
        )

    return generated


def text_of(result: AnswerResult) -> tuple[str, list[str]] | None:
    """The answer and its citations; None for one that is null, blank, or says "null"."""
    text = (result.answer or "").strip()
    return None if not text or text.lower() == "null" else (text, result.citations)
