"""The slash commands of the running bot: what each of them does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import discord

from assembly.answering import library_of
from assembly.callbacks import EvidenceCommands, Privacy, RunbookCommands
from assembly.documents import Documents
from assembly.graph_parts import Parts
from assembly.llm import assistant_of
from assembly.redaction import redactor_of
from assembly.searching import for_team
from model.conversations import Conversation, Role, Turn
from model.messages import Author
from model.outcomes import OutcomeKind, Reason
from services.assistant import Assistant
from services.conversations import Phrases, in_language, phrases
from services.discord.slash import Call, Callbacks, CommandRefused, Commands
from services.knowledge import Library, LibrarySearch, Search
from services.llm import StructuredLLM
from services.search import language_of
from settings import Settings
from streams.answers import AIResult, Answerer, RequestContext

log = logging.getLogger(__name__)


def shown(result: AIResult, said: Phrases) -> str:
    """The answer, or in a few words why there is none."""
    if result.reply_text is not None:
        return result.reply_text
    if result.debug["result"] == OutcomeKind.FAILED:
        return said.failed
    refusals: dict[str | None, str] = {Reason.NOT_ANSWERABLE: said.not_answerable, Reason.BUDGET: said.used_up}
    return refusals.get(result.debug["reason"], said.no_answer)


def asking(
    settings: Settings, parts: Parts, llm: StructuredLLM | None, reply_language: str
) -> Callable[[Call, str], Coroutine[Any, Any, str]]:
    """`/ask`: the answer chain for one person, which counts against the budget like any answer. The team is also
    answered from the internal topics.
    """
    services, rules = parts.services, parts.rules.answers

    def answerer(assistant: Assistant, library: Library, search: Search) -> Answerer:
        return Answerer(
            assistant,
            library,
            search,
            rules,
            budget=services.budget,
            usage=services.usage,
            lookup=services.lookup,
        )

    for_everybody = for_insiders = answerer(services.assistant, services.library, services.search)
    if settings.kb.internal_topics and isinstance(services.search, LibrarySearch):
        library = library_of(settings, for_team=True)
        search = for_team(services.search, library)
        for_insiders = answerer(assistant_of(settings, search, llm), library, search)
    redactor, slots = redactor_of(settings), asyncio.Semaphore(rules.max_concurrent)

    async def ask(call: Call, question: str) -> str:
        if parts.state.opted_out(call.user_id, question):
            raise CommandRefused(phrases(call.language).not_read)
        conversation = Conversation((Turn(Role.USER, redactor.text(question.strip()), asked_now=True),))
        from_team = services.people.is_team(Author(call.user_id, "", role_ids=call.role_ids))
        context = RequestContext(call.guild_id, call.place_id, call.id, call.user_id, from_team, call.can_view)
        async with slots:
            result = await (for_insiders if from_team else for_everybody).generate_reply(conversation, context)
        parts.state.changed.set()
        log.info("/ask: %s", result.debug["reason"] or result.debug["result"])
        return shown(result, phrases(in_language(reply_language, language_of(question))))

    return ask


@asynccontextmanager
async def slash_commands(
    client: discord.Client,
    settings: Settings,
    parts: Parts,
    llm: StructuredLLM | None,
    documents: Documents | None = None,
) -> AsyncGenerator[Commands]:
    """The commands in a client, until the end of the block; `Commands.arrived` registers them in a guild.

    `llm`: the one that answers; None: the extractive assistant does. Unless `ai_response.reply_language` fixes one,
    commands speak the language that Discord speaks to the caller.
    """
    search = parts.services.search
    kept = search if isinstance(search, LibrarySearch) else None
    privacy = Privacy(parts, settings.kb.team_raw_dir, documents, kept)
    runbooks = evidence = None
    if documents is not None:
        runbooks = RunbookCommands(documents.runbooks, documents.intake.attachments)
        evidence = EvidenceCommands(documents, parts.services.history, parts.services.viewing)

    reply_language = settings.ai_response.reply_language

    def speaks(locale: str) -> Phrases:
        return phrases(in_language(reply_language, locale))

    ask = asking(settings, parts, llm, reply_language)
    callbacks = Callbacks(ask, privacy.opt_out, privacy.opt_in, privacy.forget, speaks, runbooks, evidence)
    commands = Commands(client, callbacks)
    try:
        yield commands
    finally:
        await commands.close()
