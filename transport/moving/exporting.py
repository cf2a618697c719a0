"""Make a data folder from the log and the buckets (`--export`)."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from nats.js import JetStreamContext

from services.conversations import read_marks, render_marks
from services.storage import DataFolder, files
from transport.errors import ServersUnusable
from transport.fence import FencedLog
from transport.layout import CAPTURES, KNOWLEDGE, MESSAGES, TEAM, Layout, scope
from transport.mirror import restore
from transport.moving import merging, shared
from transport.moving.adopting import MigrationProgress
from transport.moving.open_wishes import no_open_forget_requests
from transport.moving.origin import origin_of, write_origin

UNFINISHED = ".unfinished-export"
"""Ends the name of a folder that an export is building; the next one begins it anew."""


async def export(streams: JetStreamContext, layout: Layout, into: Path, moved: MigrationProgress) -> None:
    """Make `into` a data folder of all that the log and the buckets hold; it is there at once, when it is complete.

    `moved` is counted up meanwhile. Processes may be at work: then it is a picture of each part at a moment of its own.

    Raises:
        ServersUnusable: it is not empty, or a wish to be forgotten is open.
        OSError: it cannot be written, or the server does not answer.
    """
    async with no_open_forget_requests(streams) as still_none_open:
        target, building = await asyncio.to_thread(_begun, into)
        try:
            await _build(streams, layout, building, moved)
            await still_none_open()
            await asyncio.to_thread(_flush, building)
            building.rename(target)
        except BaseException:
            await asyncio.to_thread(shutil.rmtree, building, ignore_errors=True)
            raise


async def _build(streams: JetStreamContext, layout: Layout, building: Path, moved: MigrationProgress) -> None:
    folder = DataFolder(building)
    write_origin(building, await origin_of(streams, layout))  # first: what is changed meanwhile is not in it
    with TemporaryDirectory() as scratch:
        parts = [Path(scratch, scope(number)) for number in range(layout.partitions)]
        moved.paths.update(await gather(streams, building, parts))
        await shared.download_people(streams, folder, [DataFolder(part) for part in parts])
    await shared.download_budgets(streams, folder)
    await _mark_servers(streams, folder)
    moved.collections = await shared.download_collections(streams, folder)
    moved.messages = (await streams.stream_info(MESSAGES)).state.messages
    moved.captures = (await streams.stream_info(CAPTURES)).state.messages


async def gather(streams: JetStreamContext, into: Path, parts: Sequence[Path]) -> set[str]:
    """Make of the whole log one folder. `parts`: empty ones for the partitions, with the names of their scopes. Gives
    the paths of the files.

    Raises OSError: it cannot be written, or the server does not answer.
    """
    paths = set[str]()
    for name in (KNOWLEDGE, TEAM):
        paths.update(await restore(FencedLog(streams, name), into))
    for part in parts:
        await restore(FencedLog(streams, part.name), part)
    paths.update(await asyncio.to_thread(merging.merge, parts, into))
    return paths


def _begun(into: Path) -> tuple[Path, Path]:
    """Where it is to be, and the empty folder beside it where it is built."""
    target = Path(os.path.realpath(into))
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ServersUnusable(f"--export: {into} is not an empty folder; name another one")
    building = target.with_name(f"{target.name}{UNFINISHED}")
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(mode=0o700, parents=True)
    return target, building


async def _mark_servers(streams: JetStreamContext, folder: DataFolder) -> None:
    marks, met = read_marks(folder.seen), await shared.guild_watermarks(streams)
    missing: Mapping[int, object] = {key: mark for key, mark in met.items() if key not in marks}
    if missing:
        files.renew(folder.seen, render_marks({**met, **marks}), flush=False)


def _flush(root: Path) -> None:
    """What was written without waiting for the disk is on it after this."""
    for path in sorted(root.rglob("*")):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
    files.sync_folder(root)
