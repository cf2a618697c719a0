"""The parts of every process, whatever its roles: name, folder, connections, and the status that it reports."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import secrets
import socket
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from assembly import Unusable
from assembly.forgetting import NATS_FOLDER
from assembly.health import HealthMonitor
from assembly.running import in_background
from clock import now
from model.health import Condition, HealthTopic, Trouble, merge_conditions
from model.outcomes import Ignored, Outcome, OutcomeKind, Removed, Result
from model.processes import ROLES, VERSION, Fleet, ProcessStatus
from model.servers import Servers
from services.llm import Limiter
from services.storage import FolderBusy, files, lock
from settings import NatsSettings, Settings
from transport.address import NO_CREDENTIALS_WARNING, ServersUnusable
from transport.connection import (
    AWAY_ERRORS,
    Address,
    Client,
    FileConnection,
    close_client,
    connect,
    connected_server,
    streams_of,
)
from transport.folder_log import FolderFollower
from transport.members import Member, Members, answer_presence, gather_statuses
from transport.people import has_people_bucket
from transport.rebalancing import WORKER
from transport.streams import KNOWLEDGE, TEAM, Layout, create_streams

REPORT_FOLDER = "gathered"
"""The temporary folder, below that of the process, in which the state of all partitions is collected for a report."""
COPIES = (
    "p[0-9]*",
    TEAM,
    REPORT_FOLDER,
    *(f"{WORKER}/{each}" for each in ("team-knowledge", "guilds/*/team-knowledge", "evidence", "runbooks")),
)
"""Patterns of the folders, below that of a process, with copies of what people wrote. Once the process has ended,
nobody would update them, or remove a person from them.
"""
EVERYTHING = (".",)
"""All subfolders, for `restore`."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """The connections and settings that all roles of one process use.

    Attributes:
        folder: its own folder, below `app.data_dir`, whose content no other process needs.
        configured: the settings as the operator wrote them.
        client: the connection on the running loop.
        file_connection: the connection in a thread, for writes that block.
    """

    name: str
    roles: tuple[str, ...]
    folder: Path
    configured: Settings
    layout: Layout
    client: Client
    file_connection: FileConnection
    members: Members

    @property
    def grace_seconds(self) -> float:
        return self.configured.app.shutdown_grace_seconds

    def settings_for(self, role: str) -> Settings:
        """Return the settings with all data in a folder of this role alone."""
        return self.configured.with_data_in(self.folder / role)


def homes(settings: Settings) -> Mapping[str, Settings]:
    """Return the settings of each server, by the prefix of its paths in the data folder."""
    return {"" if guild_id is None else f"guilds/{guild_id}/": server for guild_id, server in settings.servers.items()}


@asynccontextmanager
async def follow_knowledge(file_connection: FileConnection, settings: Settings) -> AsyncGenerator[None]:
    """Keep copies of the knowledge in `app.data_dir`, of the team's and of everybody's, up to date until the end of the
    block, which begins once they hold what NATS holds.
    """
    async with AsyncExitStack() as stack:
        for name, folder in ((TEAM, "team-knowledge"), (KNOWLEDGE, "knowledge-base")):
            below = [f"{home}{folder}" for home in homes(settings)]
            follower = FolderFollower(file_connection, name, settings.app.data_dir, below)
            await stack.enter_async_context(in_background(follower.run()))
            await follower.wait_caught_up()
        yield


def layout_of(settings: NatsSettings) -> Layout:
    return Layout(settings.partitions, settings.lease_seconds, settings.replicas)


def address_of(settings: Settings) -> Address:
    return Address(tuple(settings.transport.split(",")), settings.nats.credentials_env)


def make_name() -> str:
    """Return a name that is unique, also among containers, and allowed as a key of a bucket."""
    host = re.sub(r"[^A-Za-z0-9_-]", "-", socket.gethostname())[:40]
    return f"{host}-{os.getpid()}-{secrets.token_hex(3)}"


@asynccontextmanager
async def connected_client(settings: Settings) -> AsyncGenerator[Client]:
    """Connect for a command, until the end of the block. Raises Unusable: the servers are, or hold nothing of ours."""
    address = address_of(settings)
    try:
        client = await connect(address, make_name())
    except ServersUnusable as error:
        raise Unusable(str(error)) from None
    try:
        if not await has_people_bucket(client):
            where = ", ".join(address.servers)
            raise Unusable(f"transport: {where}: nothing is kept there; is this the right --config?")
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def open_process(settings: Settings, roles: Sequence[str]) -> AsyncGenerator[Process]:
    """Connect, and send heartbeats to the other processes until the context ends.

    Raises:
        Unusable: the servers cannot be used.
        OSError: the data folder cannot be written.
    """
    address, layout, name = address_of(settings), layout_of(settings.nats), make_name()
    if (server := address.unprotected_server) is not None:
        log.warning("transport: %s %s", server, NO_CREDENTIALS_WARNING)
    async with AsyncExitStack() as stack:
        folder = _own_folder(stack, settings.app.data_dir / NATS_FOLDER)
        try:
            client = await connect(address, name)
            stack.push_async_callback(close_client, client)
            await create_streams(client, layout)
            file_connection = await stack.enter_async_context(FileConnection(address, f"{name}-files"))
        except ServersUnusable as error:
            raise Unusable(str(error)) from None
        except AWAY_ERRORS as error:
            why = str(error) or type(error).__name__
            raise Unusable(f"transport: NATS does not serve ({why}); look into its log, and try again") from None
        members = Members(streams_of(client), Member(name, tuple(roles)))
        await answer_presence(client, name)
        await members.send_heartbeat()
        stack.push_async_callback(_leave, members)
        await stack.enter_async_context(in_background(_send_heartbeats(members, layout.lease_seconds / 3)))
        log.info("process %s: %s", name, ", ".join(roles))
        yield Process(
            name=name,
            roles=tuple(roles),
            folder=folder,
            configured=settings,
            layout=layout,
            client=client,
            file_connection=file_connection,
            members=members,
        )


def _own_folder(stack: AsyncExitStack, above: Path) -> Path:
    """Lock the first free folder `1`, `2`, … so that a restarted process finds the search index it built before."""
    for number in count(1):
        folder = above / str(number)
        try:
            stack.enter_context(lock(folder, "app.py --role"))
        except FolderBusy:
            continue
        drop_copies(folder)  # which a crash has left
        stack.callback(_drop_copies_at_end, folder)
        return folder
    raise AssertionError  # unreachable: `count` has no end


def drop_copies(folder: Path) -> None:
    """Delete the copies in the folder of a process, for the holder of its lock. Blocking. Raises OSError."""
    for copy in [path for pattern in COPIES for path in folder.glob(pattern)]:
        files.remove_folder(copy)


def drop_copies_of_ended_processes(above: Path) -> None:
    """Delete the copies that killed processes have left in their folders below `above`. Blocking. Raises OSError."""
    for folder in sorted(above.glob("[0-9]*")):
        try:
            with lock(folder, "app.py --forget"):
                drop_copies(folder)
        except FolderBusy:
            continue  # it runs


def _drop_copies_at_end(folder: Path) -> None:
    try:
        drop_copies(folder)
    except OSError as error:
        log.warning(
            "%s. Copies of what people wrote stay until the next process begins there", files.describe_error(error)
        )


async def _send_heartbeats(members: Members, seconds: float) -> None:
    while True:
        await asyncio.sleep(seconds)
        try:
            await members.send_heartbeat()
        except AWAY_ERRORS as error:
            log.debug("nats: not seen by the others (%s)", error)


async def _leave(members: Members) -> None:
    try:
        await members.leave()
    except AWAY_ERRORS:
        return  # its key expires


@dataclass(slots=True)
class ProcessStatusReporter:
    """Counts results. `owned`: gives the messages in flight by partition; `health`: has the conditions to report."""

    process: Process
    health: HealthMonitor
    owned: Callable[[], Mapping[int, int]] = dict
    results: Counter[str] = field(default_factory=Counter[str])
    since: float = field(default_factory=time.monotonic)

    def add(self, result: Result) -> None:
        """Count a result of any graph of this process."""
        match result:
            case Outcome():
                self.results[result.result] += 1
            case Ignored():
                self.results["ignored"] += 1
            case Removed():
                self.results["removed"] += 1

    def status(self) -> ProcessStatus:
        return ProcessStatus(
            name=self.process.name,
            roles=self.process.roles,
            version=VERSION,
            uptime_seconds=time.monotonic() - self.since,
            partitions=self.owned(),
            results=dict(self.results),
            failures=self.results[OutcomeKind.FAILED],
            memory_mb=memory_mb(),
            connection=connected_server(self.process.client),
            conditions=self.health.latest,
        )


def memory_mb() -> float:
    """Return the resident memory of this process in MiB; 0 if the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, IndexError, ValueError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024**2


async def fleet_conditions(
    process: Process, monitor: HealthMonitor, budgets: Servers[Limiter] | None = None
) -> list[Condition]:
    """Return one condition a topic, of all processes; none while NATS is away. `budgets`: those that all share."""
    own = await monitor.sample(budgets)
    try:
        fleet = await fleet_of(process)
    except AWAY_ERRORS:
        return []
    found = merge_conditions([own, *(each.conditions for each in fleet.processes if each.name != process.name)])
    known, at = {each.topic for each in found}, now()
    lacking = [
        Condition(
            topic=topic, troubles={"": Trouble(at, at)}, detail=f"no process reports it: does any play the role {role}?"
        )
        for topic, role in ((HealthTopic.DISCORD, "gateway"), (HealthTopic.KNOWLEDGE, "knowledge"))
        if topic not in known
    ]
    return merge_conditions([found, lacking])


async def fleet_of(process: Process) -> Fleet:
    """Ask all processes for their status."""
    expected = len(await process.members.list_alive())
    found = await gather_statuses(process.client, expected=expected)
    return Fleet(tuple(found), ROLES, process.layout.partitions)
