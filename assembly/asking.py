"""What answers single questions outside of the bot: for a terminal, and for assistants."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from assembly.answering import answer_rules, library_of
from assembly.llm import assistant_of, open_llm
from assembly.redaction import redactor_of
from assembly.searching import open_embedder, open_search
from model.conversations import Conversation, Role, Turn
from services.knowledge import Library, Search
from services.llm import Budget, StructuredLLM, Usage
from services.search.embedding import Embedder
from settings import Settings
from streams.answers import Answerer


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAnswering:
    """What is open while questions are answered. Nothing of it writes to the data folder.

    Attributes:
        library: the sources that everybody may be answered from.
        llm: None: there is no model.
    """

    answerer: Answerer
    library: Library
    search: Search
    embedder: Embedder | None
    llm: StructuredLLM | None


@asynccontextmanager
async def open_answering(
    settings: Settings,
    *,
    record: Path | None = None,
    replay: Path | None = None,
    budget: Budget | None = None,
    usage: Usage | None = None,
) -> AsyncGenerator[OpenAnswering]:
    """What answers single questions from the knowledge base, for as long as the block lasts. `budget` and `usage`: what
    the answers count against; None: nothing.
    """
    library = library_of(settings)
    async with (
        open_llm(settings, settings.ai_response.llm, record=record, replay=replay) as llm,
        open_embedder(settings.search.embeddings) as embedder,
        open_search(settings, library, embedder) as search,
    ):
        assistant, rules = assistant_of(settings, search, llm), answer_rules(settings)
        answerer = Answerer(assistant, library, search, rules, budget=budget, usage=usage)
        yield OpenAnswering(answerer=answerer, library=library, search=search, embedder=embedder, llm=llm)


def conversation_of(settings: Settings, question: str) -> Conversation:
    """A conversation that is one question, without secrets."""
    text = redactor_of(settings).text(question.strip())
    return Conversation((Turn(Role.USER, text, asked_now=True),))
