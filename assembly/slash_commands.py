"""The slash commands of the running bot: what each of them does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

import discord

from assembly.answering import library_of, server_library
from assembly.callbacks import EvidenceCommands, Privacy, RunbookCommands
from assembly.documents import Documents
from assembly.graph_parts import Parts, ServerParts
from assembly.llm import assistant_of
from assembly.redaction import redactor_of
from assembly.searching import for_team
from assembly.teachings import taught
from model.conversations import Conversation, Role, Turn
from model.messages import Author
from model.outcomes import OutcomeKind, Reason
from services.assistant import Assistant
from services.conversations import Phrases, in_language, phrases
from services.discord.slash import Call, Callbacks, CommandRefused, Commands
from services.knowledge import Library, LibrarySearch, Search
from services.llm import StructuredLLM, Usage
from services.search import language_of
from settings import Settings
from streams.answer_rules import AnswerRules
from streams.answers import AIResult, Answerer, RequestContext
from streams.desks import Desk

log = logging.getLogger(__name__)


def shown(result: AIResult, said: Phrases) -> str:
    """Give the reply to `/ask`: the answer, or a short reason why there is none."""
    if result.reply_text is not None:
        return result.reply_text
    if result.debug["result"] == OutcomeKind.FAILED:
        return said.failed
    refusals: dict[str | None, str] = {Reason.NOT_ANSWERABLE: said.not_answerable, Reason.BUDGET: said.used_up}
    return refusals.get(result.debug["reason"], said.no_answer)


class Answerers(NamedTuple):
    """The answerers of one server: one for everybody, and one for its team, which also sees internal topics.

    `reply_language`: of what is said where there is no answer.
    """

    for_everybody: Answerer
    for_team: Answerer
    reply_language: str


def server_answerers(
    desk: Desk, settings: Settings, usage: Usage, rules: AnswerRules, insiders: tuple[Assistant, Library, Search] | None
) -> Answerers:
    """Make the answerers of one server. `insiders`: assistant, library and search for its team, where there are
    internal topics.
    """

    def answerer(assistant: Assistant, library: Library, search: Search) -> Answerer:
        at_desk = replace(rules, pointing=desk.pointing)
        return Answerer(assistant, library, search, at_desk, budget=desk.budget, usage=usage, lookup=desk.lookup)

    for_everybody = answerer(desk.assistant, desk.library, desk.search)
    for_team = for_everybody if insiders is None else answerer(*insiders)
    return Answerers(for_everybody, for_team, settings.ai_response.reply_language)


def all_answerers(
    settings: Settings, parts: Parts, llm: StructuredLLM | None, opened: ExitStack
) -> tuple[Answerers, Mapping[int, Answerers]]:
    """Make the shared answerers and those of each server with its own knowledge. What they open is closed with
    `opened`.
    """
    services, rules = parts.services, parts.rules.answers
    desk = services.desk(rules.pointing)
    insiders = library = search = None
    if isinstance(desk.search, LibrarySearch) and any(
        each.kb.internal_topics for each in (settings, *settings.servers.values())
    ):
        library = library_of(settings, for_team=True)
        search = opened.enter_context(for_team(desk.search, library))
        insiders = assistant_of(settings, search, llm), library, search
    servers: dict[int, Answerers] = {}
    for guild_id, own in services.servers.items():
        server, among = settings.servers[guild_id], None
        if search is not None and isinstance(own.search, LibrarySearch):
            its, both = server_library(settings, guild_id, library, for_team=True)
            searching = opened.enter_context(for_team(own.search, its, search))
            among = assistant_of(server, searching, llm, settings), both, searching
        servers[guild_id] = server_answerers(own, server, services.usages.get(guild_id, services.usage), rules, among)
    return server_answerers(desk, settings, services.usage, rules, insiders), servers


def asking(
    settings: Settings, parts: Parts, llm: StructuredLLM | None, opened: ExitStack
) -> Callable[[Call, str], Coroutine[Any, Any, str]]:
    """Make the callback of `/ask`, which runs the answer chain for the caller and counts against the budget. What it
    opens is closed with `opened`.
    """
    services, rules = parts.services, parts.rules.answers
    shared, servers = all_answerers(settings, parts, llm, opened)
    redactor, slots = redactor_of(settings), asyncio.Semaphore(rules.max_concurrent)

    async def ask(call: Call, question: str) -> str:
        if parts.state.opted_out(call.user_id, question):
            raise CommandRefused(phrases(call.language).not_read)
        conversation = Conversation((Turn(Role.USER, redactor.text(question.strip()), asked_now=True),))
        from_team = services.people.is_team(Author(call.user_id, "", role_ids=call.role_ids), call.guild_id)
        here = servers.get(call.guild_id, shared)
        context = RequestContext(call.guild_id, call.place_id, call.id, call.user_id, from_team, call.can_view)
        async with slots:
            result = await (here.for_team if from_team else here.for_everybody).generate_reply(conversation, context)
        parts.state.changed.set()
        log.info("/ask: %s", result.debug["reason"] or result.debug["result"])
        return shown(result, phrases(in_language(here.reply_language, language_of(question))))

    return ask


@asynccontextmanager
async def slash_commands(
    client: discord.Client,
    settings: Settings,
    parts: Parts,
    llm: StructuredLLM | None,
    documents: Documents | None = None,
    servers: Mapping[int, ServerParts] = MappingProxyType({}),
    forget: Callable[[Call], Coroutine[Any, Any, str]] | None = None,
) -> AsyncGenerator[Commands]:
    """The commands in a client, until the end of the block; `Commands.arrived` registers them in a guild.

    `llm`: the one that answers; None: the extractive assistant does. `forget`: does what `/privacy forget` does; None:
    this process does, which holds the data folder. Unless `ai_response.reply_language` fixes one,
    commands speak the language that Discord speaks to the caller.
    """
    search = parts.services.search
    kept = search if isinstance(search, LibrarySearch) else None
    shared = taught(settings, parts.services.curation, kept)
    own = [taught(each.settings, each.captures.curation, each.search) for each in servers.values()]
    privacy = Privacy(parts, shared, own, documents, settings=settings)
    runbooks = evidence = None
    if documents is not None:
        runbooks = RunbookCommands(documents.runbooks, documents.intake.attachments)
        evidence = EvidenceCommands(documents, parts.services.history, parts.services.viewing)

    reply_language = settings.ai_response.reply_language

    def speaks(locale: str) -> Phrases:
        return phrases(in_language(reply_language, locale))

    with ExitStack() as opened:
        ask = asking(settings, parts, llm, opened)
        callbacks = Callbacks(
            ask, privacy.opt_out, privacy.opt_in, forget or privacy.forget, speaks, runbooks, evidence
        )
        commands = Commands(client, callbacks)
        try:
            yield commands
        finally:
            await commands.close()
