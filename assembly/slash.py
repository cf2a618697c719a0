"""The slash commands of the running bot: what each of them does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import discord

from assembly.documents import Documents
from assembly.file_commands import EvidenceCommands, RunbookCommands
from assembly.graph_parts import Parts, redactor_of
from assembly.privacy import Privacy
from model.conversations import Conversation, Role, Turn
from model.messages import Author
from model.outcomes import OutcomeKind, Reason
from services.assistant import Assistant
from services.conversations import People
from services.discord.slash import Call, Callbacks, CommandRefused, Commands
from services.knowledge import Library
from settings import Settings
from streams.single_answer import AIResult, Answerer, RequestContext

NO_ANSWER = "I have no answer to that in what I know."
NOT_ANSWERABLE = "I cannot answer that. Ask one clear question, with what one needs to know to answer it."
USED_UP = "No more questions can be answered just now. Please try again later."
OPTED_OUT = "You have opted out, so I read nothing that you write. `/privacy opt-in` counts you in again."
FAILED = "That did not work. Please try again later."

_SAID: dict[str | None, str] = {Reason.NOT_ANSWERABLE: NOT_ANSWERABLE, Reason.BUDGET: USED_UP}

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ask:
    """`/ask`: the chain of answering, for one person. What it costs counts like any answer."""

    answerer: Answerer
    for_team: Answerer
    """The same, which also knows what is for the team only."""
    people: People
    redact: Callable[[str], str]
    left_alone: Callable[[int, str], bool]
    spent: Callable[[], None]
    """Told when there is something new to save."""
    slots: asyncio.Semaphore

    async def ask(self, call: Call, question: str) -> str:
        if self.left_alone(call.user_id, question):
            raise CommandRefused(OPTED_OUT)
        conversation = Conversation((Turn(Role.USER, self.redact(question.strip()), asked_now=True),))
        of_team = self.people.is_team(Author(call.user_id, "", role_ids=call.role_ids))
        whence = RequestContext(call.guild_id, call.place_id, call.id, call.user_id, of_team, call.can_view)
        async with self.slots:
            answerer = self.for_team if of_team else self.answerer
            result = await answerer.generate_reply(conversation, whence)
        self.spent()
        log.info("/ask: %s", result.debug["reason"] or result.debug["result"])
        return said(result)


def said(result: AIResult) -> str:
    """The answer, or in a few words why there is none."""
    if result.reply_text is not None:
        return result.reply_text
    if result.debug["result"] == OutcomeKind.FAILED:
        return FAILED
    return _SAID.get(result.debug["reason"], NO_ANSWER)


@asynccontextmanager
async def slash_commands(
    client: discord.Client,
    settings: Settings,
    parts: Parts,
    spent: Callable[[], None],
    documents: Documents | None = None,
    for_team: tuple[Assistant, Library] | None = None,
) -> AsyncGenerator[Commands]:
    """The commands in a client, until the end of the block. Guilds are to be told to them as they arrive.

    `for_team`: who answers the team, and what from; None: as everybody is answered.
    """
    services, rules = parts.services, parts.rules.answers

    def answerer(assistant: Assistant, library: Library) -> Answerer:
        return Answerer(assistant, library, rules, services.budget, services.usage, services.lookup)

    asking = Ask(
        answerer(services.assistant, services.library),
        answerer(*for_team or (services.assistant, services.library)),
        services.people,
        redactor_of(settings).text,
        parts.left_alone,
        spent,
        asyncio.Semaphore(rules.max_concurrent),
    )
    privacy = Privacy(parts, settings.kb.team_raw_dir, documents)
    runbooks = evidence = None
    if documents is not None:
        runbooks = RunbookCommands(documents.runbooks, documents.intake.attachments)
        evidence = EvidenceCommands(documents, services.history, services.viewing)
    callbacks = Callbacks(asking.ask, privacy.opt_out, privacy.opt_in, privacy.forget, runbooks, evidence)
    commands = Commands(client, callbacks)
    try:
        yield commands
    finally:
        await commands.close()
