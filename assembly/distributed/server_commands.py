"""Carries out `--check`, `--adopt`, `--export` and `--mcp` on the NATS servers."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from assembly import Unusable
from assembly.data_folder import KB_PATHS
from assembly.distributed.process import address_of, connected_client, follow_knowledge, homes, layout_of, make_name
from services.storage import DataFolder
from settings import Settings
from transport import migration, server_probe
from transport.address import ServersUnusable
from transport.connection import AWAY_ERRORS, FileConnection, JetStreamContext, connect, streams_of
from transport.fenced_log import Fenced
from transport.migration import Installation, MigrationProgress
from transport.server_probe import ProbeResult
from transport.streams import create_streams


async def check_servers(settings: Settings) -> ProbeResult:
    """Probe the servers for `--check`. Raises Unusable: they refuse these credentials."""
    try:
        return await server_probe.probe_servers(address_of(settings), layout_of(settings.nats), make_name())
    except ServersUnusable as error:
        raise Unusable(str(error)) from None


async def adopt(settings: Settings, folder: Path, moved: MigrationProgress) -> None:
    """Copy the content of `folder` to the servers. The caller must hold its lock.

    Raises:
        Unusable: the servers cannot be used, somebody works with them, or they hold other data.
        OSError, DamagedDatabase: as `transport.migration.adopt`.
    """
    async with _servers(settings) as streams:
        await migration.adopt(streams, layout_of(settings.nats), installation_of(settings, folder), moved)


async def export(settings: Settings, folder: Path, moved: MigrationProgress) -> None:
    """Make `folder` a data folder with the content of the servers. Raises as `adopt`."""
    async with _servers(settings) as streams:
        await migration.export(streams, layout_of(settings.nats), folder, moved)


@asynccontextmanager
async def knowledge_followed(settings: Settings) -> AsyncGenerator[None]:
    """Have `app.data_dir` hold what all processes answer from, and follow its changes until the end of the block. What
    they have spent of the limits is as it is at the beginning. Raises Unusable: the servers cannot be used.
    """
    async with connected_client(settings) as client:
        await migration.download_budgets(streams_of(client), DataFolder(settings.app.data_dir))
    try:
        async with (
            FileConnection(address_of(settings), make_name()) as file_connection,
            follow_knowledge(file_connection, settings),
        ):
            yield
    except ServersUnusable as error:
        raise Unusable(str(error)) from None


def installation_of(settings: Settings, folder: Path) -> Installation:
    """Return the paths in a data folder: as configured for `app.data_dir`, else the usual ones."""
    if os.path.realpath(folder) != os.path.realpath(settings.app.data_dir):
        return Installation(folder)
    outside_paths: dict[str, Path] = {}
    for home, each in homes(settings).items():
        usual = each.with_data_in(folder / home).kb
        places = [(getattr(each.kb, name), getattr(usual, name)) for name in KB_PATHS if name != "sources_dir"]
        for place, there in (*places, *zip(each.kb.document_folders, usual.document_folders, strict=True)):
            if place != there:
                outside_paths[there.relative_to(folder).as_posix()] = place
    return Installation(folder, outside_paths)


@asynccontextmanager
async def _servers(settings: Settings) -> AsyncGenerator[JetStreamContext]:
    try:
        client = await connect(address_of(settings), make_name())
        try:
            await create_streams(client, layout_of(settings.nats))
            yield streams_of(client)
        finally:
            await client.close()
    except ServersUnusable as error:
        raise Unusable(str(error)) from None
    except Fenced:
        raise Unusable("--adopt: another process works with these servers; stop it, and adopt again") from None
    except AWAY_ERRORS as error:
        raise Unusable(f"transport: NATS does not serve ({error}); look into its log, and try again") from None
