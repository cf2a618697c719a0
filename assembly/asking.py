"""What answers single questions outside of the bot: for a terminal, and for assistants."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from assembly.answering import answer_rules, library_of, server_library
from assembly.llm import assistant_of, open_llm
from assembly.redaction import redactor_of
from assembly.searching import open_embedder, open_search, point_rules
from model.conversations import Conversation, Role, Turn
from services.assistant import Assistant
from services.knowledge import Library, Search
from services.llm import Limiter, StructuredLLM, Usage
from services.search.embedding import Embedder
from services.telemetry import number_of
from settings import Settings
from streams.answer_rules import AnswerRules
from streams.answers import Answerer

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAnswering:
    """The open parts that answer single questions. None of them writes to the data folder.

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
    budget: Limiter | None = None,
    usage: Usage | None = None,
    guild_id: int | None = None,
) -> AsyncGenerator[OpenAnswering]:
    """Open an answerer for single questions outside of the bot, until the end of the block. `budget` and `usage` count
    the answers (None: not counted). `guild_id`: the server in which questions are asked; None: a server without
    knowledge of its own.
    """
    library = library_of(settings)
    async with (
        open_llm(settings, settings.ai_response.llm, record=record, replay=replay) as llm,
        open_embedder(settings.search.embeddings) as embedder,
        open_search(settings, library, embedder) as search,
    ):
        lacking = await search.unembedded()
        if lacking:
            lack = number_of(lacking, "passage has no vector yet", "passages have no vector yet")
            log.warning("%s; without one, a passage is found by words alone; --init-kb makes vectors", lack)

        def opened(assistant: Assistant, library: Library, search: Search, rules: AnswerRules) -> OpenAnswering:
            answerer = Answerer(assistant, library, search, rules, budget=budget, usage=usage)
            return OpenAnswering(answerer=answerer, library=library, search=search, embedder=embedder, llm=llm)

        if guild_id is None:
            yield opened(assistant_of(settings, search, llm), library, search, answer_rules(settings))
            return
        server = settings.servers[guild_id]
        own, both = server_library(settings, guild_id, library)
        rules = replace(answer_rules(server), pointing=point_rules(server, settings))
        async with open_search(server, own, embedder, beside=search) as searching:
            yield opened(assistant_of(server, searching, llm, settings), both, searching, rules)


def conversation_of(settings: Settings, question: str) -> Conversation:
    """A conversation that is one question, without secrets."""
    text = redactor_of(settings).text(question.strip())
    return Conversation((Turn(Role.USER, text, asked_now=True),))
