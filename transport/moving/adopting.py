"""Copy a data folder into the log and the buckets (`--adopt`)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from nats.js import JetStreamContext

from clock import now
from services.storage import DataFolder, files
from transport.errors import ServersUnusable
from transport.fence import FencedLog
from transport.layout import KNOWLEDGE, TEAM, Layout, scope
from transport.members import Members, Peer
from transport.mirror import FolderPublisher, entries
from transport.mirror.writing import recorded_files
from transport.moving import shared
from transport.moving.origin import FolderOrigin, read_origin, untouched
from transport.moving.splitting import Splitter


@dataclass(slots=True)
class MigrationProgress:
    """How much was moved so far: the paths of files, and how many collections of documents. `messages`, `captures`: how
    many are on their way in NATS, which no folder has.
    """

    paths: set[str] = field(default_factory=set[str])
    collections: int = 0
    messages: int = 0
    captures: int = 0


@dataclass(frozen=True, slots=True)
class Installation:
    """Where an installation is on the disk.

    Attributes:
        root: its data folder.
        elsewhere: by their path in the layout of a data folder, what is somewhere else.
    """

    root: Path
    elsewhere: Mapping[str, Path] = field(default_factory=dict[str, Path])

    @property
    def folder(self) -> DataFolder:
        return DataFolder(self.root)

    @property
    def homes(self) -> list[str]:
        """Of what all servers share, and of each server that has knowledge of its own."""
        return ["", *(f"guilds/{guild_id}/" for guild_id in self.servers)]

    @property
    def servers(self) -> list[int]:
        return sorted(int(path.name) for path in self.folder.guilds.glob("*") if path.name.isdecimal())

    def publisher(self, fenced: FencedLog) -> FolderPublisher:
        """Of what one role writes."""
        below = "team-knowledge" if fenced.scope == TEAM else "knowledge-base"
        folders = [f"{home}{below}" for home in self.homes]
        indexes = [f"{each}/index{'-team' if fenced.scope == TEAM else ''}.txt" for each in folders]
        own = {path: place for path, place in self.elsewhere.items() if f"{below}/" in path}
        return FolderPublisher(fenced, self.root, folders, indexes, own)


async def adopt(
    streams: JetStreamContext, layout: Layout, installation: Installation, moved: MigrationProgress
) -> None:
    """Make the log and the buckets what an installation is; what an adoption that was cut off has told stays.

    `moved` is counted up meanwhile. A folder that was exported from these servers may have been changed: what it does
    not have any more is removed.

    Raises:
        ServersUnusable: somebody works with it, or the log holds other files, or newer ones than were exported.
        Fenced: somebody has begun to work with it.
        OSError, DamagedDatabase: a file cannot be read, or the server does not answer.
    """
    origin = await asyncio.to_thread(read_origin, installation.root)
    members = await Members(streams, Peer(origin.owner, ())).alive()
    if members:
        raise ServersUnusable(
            f"--adopt: {', '.join(sorted(members))} is at work with these servers; stop all processes first"
        )
    with TemporaryDirectory() as scratch:
        parts = await asyncio.to_thread(_divided, installation.folder, layout, Path(scratch))
        logs = {name: FencedLog(streams, name) for name in layout.scopes()}
        publishers = {
            name: installation.publisher(fenced)
            if name in (TEAM, KNOWLEDGE)
            else FolderPublisher(fenced, parts[name], (".",))
            for name, fenced in logs.items()
        }
        for name, publisher in publishers.items():
            await _must_be_ours(streams, name, publisher, origin)

        for name, publisher in publishers.items():
            if await publisher.found() or await recorded_files(streams, name):
                await logs[name].open(origin.owner, now())
                await publisher.publish(moved.paths.add)
    folder = installation.folder
    await shared.upload_people(streams, folder)
    await shared.upload_budgets(streams, folder, installation.servers)
    await shared.upload_watermarks(streams, folder)
    moved.collections = await shared.upload_collections(streams, folder)


def _divided(folder: DataFolder, layout: Layout, scratch: Path) -> Mapping[str, Path]:
    parts = {scope(number): scratch / scope(number) for number in range(layout.partitions)}
    for number, contents in Splitter(folder, layout.partitions).split().items():
        for path, content in contents.items():
            files.renew(parts[scope(number)] / path, content, flush=False)
    return parts


async def _must_be_ours(streams: JetStreamContext, name: str, publisher: FolderPublisher, origin: FolderOrigin) -> None:
    """Raises ServersUnusable: the log has files that the installation does not have, and did not have when it was exported."""
    if await untouched(streams, name, origin):
        return
    found = await publisher.found()
    for path, known in (await recorded_files(streams, name)).items():
        place = found.get(path)
        if place is None or known.digest != await asyncio.to_thread(_digest, place):
            raise ServersUnusable(
                f"--adopt: NATS holds other data ({name}: {path!r}), perhaps since this folder was exported; export "
                "again and work with that, or adopt it with another server"
            )


def _digest(path: Path) -> str:
    return entries.digest(path.read_bytes())
