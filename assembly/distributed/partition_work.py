"""The graph of one partition with its folder, and how it is drained or cut off."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from reactivex.subject import Subject

from assembly.distributed.forgetting import ForgetHandler
from assembly.forgetting import TeamKnowledgeFiles
from assembly.graph_parts import Parts
from assembly.running import GraphRun
from assembly.slash_commands import Privacy
from services.discord import Dispatch
from services.privacy import Forgotten
from services.storage import DataFolder, files, in_thread
from settings import Settings
from transport.errors import Fenced
from transport.layout import scope
from transport.mirror import LogJournal


@dataclass(slots=True, kw_only=True)
class PartitionWork:
    """`transport.partition.PartitionGraph`: one graph over one folder, which is a copy of what the log says."""

    number: int
    folder: Path
    source: Subject[Dispatch]
    run: GraphRun
    stack: AsyncExitStack
    parts: Parts
    privacy: Privacy
    journal: LogJournal
    forget_handler: ForgetHandler
    grace_seconds: float
    _closing: bool = field(default=False, init=False)
    _forgetting: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    def feed(self, dispatch: Dispatch) -> None:
        self.source.on_next(dispatch)

    def leave_alone(self, user_id: int) -> None:
        """Somebody has opted out, who may wait for an answer."""
        self.parts.services.in_flight.withdraw(user_id)

    async def forget(self, user_id: int) -> Forgotten:
        """For `ForgetHandler`."""
        async with self._forgetting:
            if self._closing:
                raise Fenced(scope(self.number))
            with self.journal.erasing():
                return await self.privacy.remove(user_id)

    async def drain(self, seconds: float | None = None) -> None:
        self._leave()
        self.source.on_completed()
        await self.run.drain(self.grace_seconds if seconds is None else min(seconds, self.grace_seconds))
        await self._close()

    async def cut(self) -> None:
        self._leave()
        self.run.cut_off()
        # What would be saved now belongs to somebody else.
        with suppress(Fenced):
            await self._close()

    def _leave(self) -> None:
        self._closing = True
        self.forget_handler.disown(scope(self.number))

    async def _close(self) -> None:
        async with self._forgetting:
            await self.stack.aclose()
        # Whoever owns the partition now may be told to forget what is in this copy.
        await in_thread(files.remove_folder, self.folder)


def privacy_of(settings: Settings, parts: Parts) -> Privacy:
    """What the folder of a partition, in which `settings` live, holds of people. The archive is another one's."""
    folder = DataFolder(settings.app.data_dir)
    archives = [each.kb.team_raw_dir for each in (settings, *settings.servers.values())]
    return Privacy(parts, TeamKnowledgeFiles(folder, folder.team_raw), others=archives)
