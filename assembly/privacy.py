"""`/privacy`: what people decide about themselves, effective at once in the running bot."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from assembly.documents import Documents
from assembly.graph_parts import Parts
from services.discord.slash import Call, CommandRefused
from services.documents.store import StoreUnavailable
from services.privacy import Forgotten, forget, note_documents
from services.storage import in_thread
from services.team import REMOVED
from services.telemetry import number_of

OPTED_OUT = (
    "From now on I read, learn and record nothing that you write. What I have kept until now stays; "
    "`/privacy forget` removes it, and `/privacy opt-in` counts you in again."
)
OPTED_IN = "You are counted in again: I answer your questions, and learn from what the team tells you."
ALREADY_OUT = "You have opted out already. `/privacy opt-in` counts you in again."
ALREADY_IN = "You have not opted out."
NOTHING_KEPT = "I have kept nothing of yours."
NOT_WRITTEN = "This holds until the bot is restarted; it could not be written down. Please tell those who run the bot."
NOT_FORGOTTEN = "Not all could be removed. Please try again; if it goes on, tell the people who run this bot."
OUT_OF_REACH = (
    "Out of my reach: your messages on Discord, what others wrote about you, logs, backups and recordings elsewhere. "
    "As long as you have not opted out, I may come across your messages again: `/privacy opt-out`."
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Privacy:
    parts: Parts
    raw: Path
    """The raw archive."""
    documents: Documents | None = None

    async def opt_out(self, call: Call) -> str:
        if call.user_id in self.parts.state.opt_outs:
            return ALREADY_OUT
        self.parts.services.in_flight.withdraw(call.user_id)
        try:
            await self.parts.state.opt_outs.add(call.user_id)
        except OSError as error:
            raise _unwritten(error) from error
        finally:
            if self.documents is not None:
                await self.documents.leave_alone(call.user_id)
        return OPTED_OUT

    async def opt_in(self, call: Call) -> str:
        if call.user_id not in self.parts.state.opt_outs:
            return ALREADY_IN
        try:
            await self.parts.state.opt_outs.discard(call.user_id)
        except OSError as error:
            raise _unwritten(error) from error
        return OPTED_IN

    async def forget(self, call: Call) -> str:
        """As `--forget`, in the process that holds the data folder: first memory, then the files."""
        services = self.parts.services
        services.in_flight.withdraw(call.user_id)
        services.posts.forget(call.user_id)
        counted = services.budget.forget(call.user_id)
        self.parts.captures.forget(call.user_id, REMOVED)
        try:
            team = None if services.curation is None else services.curation.library
            done = await in_thread(forget, self.parts.state.folder, self.raw, call.user_id, team)
            if self.documents is not None:
                note_documents(done, self.parts.state.folder, *await self.documents.forget(call.user_id))
        except (OSError, StoreUnavailable) as error:
            log.error("/privacy forget: %s", error)  # noqa: TRY400 (one line for the operator)
            raise CommandRefused(NOT_FORGOTTEN) from error
        for line in done.left:
            log.warning("/privacy forget: %s", line)
        return summary(done, counted=counted)


def summary(done: Forgotten, *, counted: bool) -> str:
    """What was removed, for the person."""
    found = (
        (done.turns, "message", " in captured conversations"),
        (done.posts, "answer", " that I remembered giving you"),
        (done.topics, "topic", " of the team that your words stood in"),
        (done.pending, "conversation", " that waited to be kept"),
        (done.votes, "vote", ""),
        (done.questions, "question", " under others' votes"),
        (done.files, "file", " in threads"),
        (done.runbooks, "runbook", ""),
        (done.exchanges, "recorded exchange", " with a language model"),
        (int(done.usage or counted), "count", " of your questions"),
    )
    lines = [f"- {number_of(count, what)}{more}" for count, what, more in found if count]
    removed = "Removed:\n" + "\n".join(lines) if lines else NOTHING_KEPT
    return f"{removed}\n\n{OUT_OF_REACH}"


def _unwritten(error: OSError) -> CommandRefused:
    log.error("/privacy: %s", error)
    return CommandRefused(NOT_WRITTEN)
