"""The role knowledge: one process at a time fetches and describes the documents; others wait to take over."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from assembly.answering import open_llms
from assembly.data_folder import read_state
from assembly.distributed.process import EVERYTHING, Process
from assembly.graph_parts import server_knowledge_kept_current
from assembly.knowledge import knowledge_kept_current
from assembly.running import Meters, in_background
from clock import now
from services.storage import files
from services.telemetry import number_of
from settings import Settings
from transport.connection import streams_of
from transport.errors import Fenced
from transport.fence import FencedLog
from transport.layout import KNOWLEDGE, ROLES
from transport.lease import Lease
from transport.mirror import FolderPublisher, restore
from transport.mirror.orphans import OrphanedBlobs
from transport.standby import stand_by, wait_for_any

SUBJECT = "roles.knowledge"
PUBLISH_SECONDS = 1.0
"""Between two looks at what has changed on the disk."""

log = logging.getLogger(__name__)


class _Held:
    """`transport.standby.Holder`, of a lease without messages."""

    def __init__(self, process: Process) -> None:
        seconds = process.layout.lease_seconds
        self.lease = Lease(process.client, ROLES, SUBJECT, process.name, seconds=seconds, most_open=1)

    async def take(self) -> bool:
        return await self.lease.take(_nothing)

    async def release(self) -> None:
        await self.lease.release()


async def _nothing(_message: object) -> None:
    """Nothing is ever sent there."""


async def update(process: Process, stopping: asyncio.Event, meters: Meters) -> None:
    """Play the role: stand by, and keep the knowledge while the lease is held, until `stopping` is set."""
    async for held in stand_by(process.client, ROLES, process.members, lambda: _Held(process), stopping):
        try:
            await _keep(process, held.lease.lost, stopping, meters)
        except Fenced:
            log.warning("the knowledge is kept by another process now")


async def _keep(process: Process, lost: asyncio.Event, stopping: asyncio.Event, meters: Meters) -> None:
    """Update and publish until `stopping` or `lost` is set. Raises Fenced: another process does it now."""
    file_connection, fenced = process.file_connection, FencedLog(process.file_connection.streams, KNOWLEDGE)
    loop = asyncio.get_running_loop()
    fenced.on_lost = lambda: loop.call_soon_threadsafe(lost.set)
    await file_connection.do(fenced.open(process.name, now()))
    # What was fetched and described elsewhere is not paid for again.
    await file_connection.do(restore(fenced, process.settings_for(KNOWLEDGE).app.data_dir, EVERYTHING))
    settings = with_documents(process)
    homes = ["", *(f"guilds/{guild_id}/" for guild_id in settings.servers)]
    publisher = FolderPublisher(
        fenced,
        settings.app.data_dir,
        [f"{home}knowledge-base" for home in homes],
        last=[f"{home}knowledge-base/index.txt" for home in homes],
        elsewhere=_documents(settings),
    )

    async def publish() -> None:
        try:
            done = await file_connection.do(publisher.publish())
        except OSError as error:
            log.error("knowledge is not handed on: %s", files.why(error))  # noqa: TRY400 (a line for the operator)
        else:
            if done.told or done.removed:
                log.info("knowledge: %s handed on, %d removed", number_of(done.told, "file"), done.removed)

    async with AsyncExitStack() as stack:
        _, asker = await stack.enter_async_context(open_llms(settings, observe=meters.observe))
        state = read_state(settings, durable=False, on_tokens=meters.tokens)
        await stack.enter_async_context(knowledge_kept_current(settings, asker, state.usage, meters=meters))
        await stack.enter_async_context(server_knowledge_kept_current(settings, asker, state, meters))
        # One process does it for all scopes, and this role is played by one.
        await stack.enter_async_context(in_background(OrphanedBlobs(streams_of(process.client)).keep_sweeping()))
        log.info("the knowledge is kept here")
        while not stopping.is_set() and not lost.is_set():
            await publish()
            await wait_for_any(PUBLISH_SECONDS, stopping, lost)
    if lost.is_set():
        raise Fenced(KNOWLEDGE)
    await publish()
    await file_connection.do(fenced.hand_back(now()))


def with_documents(process: Process) -> Settings:
    """In a folder of its own, but for the documents, which are the operator's; where there are none, those that the log
    has are left.
    """
    moved, written = process.settings_for(KNOWLEDGE), process.configured
    servers = {guild_id: _documented(server, written.servers[guild_id]) for guild_id, server in moved.servers.items()}
    return _documented(moved, written).with_servers(servers)


def _documented(moved: Settings, written: Settings) -> Settings:
    given = {
        name: getattr(written.kb, name)
        for name in ("sources_dir", "links_file_path")
        if getattr(written.kb, name).exists()
    }
    return moved.model_copy(update={"kb": moved.kb.model_copy(update=given)})


def _documents(settings: Settings) -> Mapping[str, Path]:
    """Where the documents are, by their place in the default layout."""
    found: dict[str, Path] = {}
    homes = {"": settings, **{f"guilds/{guild_id}/": server for guild_id, server in settings.servers.items()}}
    for home, each in homes.items():
        found[f"{home}knowledge-base/sources"] = each.kb.sources_dir
        found[f"{home}knowledge-base/links.txt"] = each.kb.links_file_path
    return found
