"""Slash commands in a worker; and its work outside of partitions when a person opts out or asks to be forgotten."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from assembly.distributed.forgetting import forget_from_slash_command
from assembly.distributed.process import Process, drop_copies_of_ended_processes
from assembly.documents import Documents
from assembly.forgetting import TeamKnowledgeFiles, newest_by_now, not_forgotten, summary
from assembly.graph_parts import GraphParts
from clock import BackgroundTasks, run_blocking
from model.events import Event
from services.conversations import phrases
from services.discord import Dispatch
from services.discord.slash import Call, Commands
from services.documents.tools import TEAM as TEAM_TOOL
from services.privacy import ForgetResult, has_archived_text, new_pseudonym_key
from services.storage import DataFolder, files, in_thread
from services.team import REMOVED
from transport.locks import claim_once
from transport.people import ForgetRequest, SharedPeople
from transport.streams import TEAM

REGISTERED_SECONDS = 60
"""How long other workers leave registering the commands of a server to the first one."""
LOOK_SECONDS, FOLLOW_SECONDS = 0.25, 30.0
SETTLE_SECONDS = 1.0
"""So much later than the archive its topics may arrive."""

log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class PeopleServices:
    """Serves commands, opt-outs and requests to be forgotten for everything that belongs to no partition.

    Attributes:
        parts: the parts for commands, which know all places, and store nothing.
        team_files: copies of the team's knowledge, which the role team keeps, and their search indexes.
        commands: None in a rehearsal: nobody can call any.
    """

    process: Process
    people: SharedPeople
    parts: GraphParts
    team_files: Sequence[TeamKnowledgeFiles]
    documents: Documents | None
    commands: Commands | None = None
    _stale: dict[int, list[TeamKnowledgeFiles]] = field(default_factory=dict[int, list[TeamKnowledgeFiles]], init=False)
    _tasks: BackgroundTasks = field(default_factory=BackgroundTasks, init=False)

    def on_dispatch(self, dispatch: Dispatch, events: Sequence[Event]) -> None:
        """Take a dispatch about a server, channel, role or thread, with its events."""
        for event in events:
            self.parts.services.history.observe(event)
        if dispatch.t == "GUILD_CREATE" and not dispatch.d.get("unavailable") and self.commands is not None:
            self._tasks.start(self._register(int(str(dispatch.d["id"])), self.commands))

    def on_opt_out(self, user_id: int) -> None:
        self.parts.services.in_flight.withdraw(user_id)
        if self.documents is not None:
            self._tasks.start(self.documents.stop_reading_of(user_id))

    async def forget(self, user_id: int, renamed: Mapping[str, str]) -> ForgetResult:
        """Forget a person in the scope DOCUMENTS, for `ForgetHandler`."""
        self.parts.services.in_flight.withdraw(user_id)
        done = ForgetResult()
        await in_thread(drop_copies_of_ended_processes, self.process.folder.parent)
        known = self._stale.get(user_id, ())  # of a call before the archive was cleaned
        stale = [
            each for each in self.team_files if each in known or await in_thread(has_archived_text, each.raw, user_id)
        ]
        self._stale[user_id] = stale
        if (request := self.people.forget_requests.by_user.get(user_id)) is not None:
            self.on_progress(request)
        for server in self.parts.servers.values():
            server.captures.recent.forget(user_id, REMOVED)
        await self.parts.state.record.forget(user_id, newest_by_now(self.parts.services.history))
        await self.parts.state.record.rename_sources(renamed)
        if self.documents is not None:
            done.files, done.runbooks = await self.documents.forget(user_id)
        recorded = self.parts.state.folder.llm_recordings
        if await in_thread(recorded.is_dir):
            done.left.append(f"{recorded}: not looked into; it is from a time without NATS")
        return done

    def on_progress(self, request: ForgetRequest) -> None:
        """Once the role team has carried a request out, rebuild this process's search indexes of the archive."""
        if TEAM not in request.left and (stale := self._stale.pop(request.user_id, None)):
            self._tasks.start(self._rebuild_search(request.user_id, stale))

    async def answer_forget_command(self, call: Call) -> str:
        """Carry out `/privacy forget`, and return the reply."""
        try:
            done, complete = await forget_from_slash_command(self.process, self.people, call.user_id)
        except OSError as error:
            raise not_forgotten(call, error) from error
        return summary(done, phrases(call.language), complete=complete)

    async def aclose(self) -> None:
        await self._tasks.close()

    async def _register(self, guild_id: int, commands: Commands) -> None:
        """Register commands, unless another process does: Discord limits registrations."""
        if await claim_once(self.process.client, f"commands-{guild_id}", self.process.name, REGISTERED_SECONDS):
            commands.register_in(guild_id)

    async def _rebuild_search(self, user_id: int, stale: Sequence[TeamKnowledgeFiles]) -> None:
        for _ in range(int(FOLLOW_SECONDS / LOOK_SECONDS)):
            if not [each for each in stale if await in_thread(has_archived_text, each.raw, user_id)]:
                break
            await asyncio.sleep(LOOK_SECONDS)
        await asyncio.sleep(SETTLE_SECONDS)
        try:
            async with AsyncExitStack() as stack:
                for each in stale:
                    if each.search is not None:
                        await stack.enter_async_context(each.search.team_passages_dropped())
                if self.documents is not None:
                    self.documents.answers.purge(TEAM_TOOL)
        except OSError as error:
            log.error("forget: copies of topics for searching may hold words: %s", error)  # noqa: TRY400 (a line for the operator)


async def use_shared_feedback_key(people: SharedPeople, folder: DataFolder) -> bytes:
    """Write the key that all processes share to a folder, and return it. Raises OSError."""
    own = await run_blocking(_content, folder.feedback_key)
    key = await people.feedback_key(own or new_pseudonym_key())
    if key != own:
        await run_blocking(files.replace, folder.feedback_key, key)
    return key


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
