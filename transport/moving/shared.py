"""State that lies in buckets with NATS and in files without: opt-outs, the key for pseudonyms, budgets, watermarks and
collections of documents. Copied in both directions.
"""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import base64
import json
import re
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nats.js import JetStreamContext
from nats.js.errors import NotFoundError, ObjectNotFoundError
from nats.js.object_store import ObjectStore

from services.conversations import Mark, read_marks
from services.llm import read_spent, render_spent
from services.storage import DataFolder, files, json_state
from services.storage.backups import DamagedDatabase, databases
from transport import budgets
from transport.bucket import values
from transport.layout import EVIDENCE, PEOPLE, SEEN

OPT_OUTS, SHOWN, FEEDBACK_KEY = "opt-outs.", "shown.", "feedback-key"
GONE, CLOSED = "gone.", "closed."
TOGETHER = "shared"
"""The group of budgets of the servers without limits of their own."""
COLLECTIONS = ("evidence", "runbooks")
SUFFIX = ".sqlite"
_COLLECTION = re.compile(r"(?:evidence|runbooks)/[^/\0]+\.sqlite")
LEVEL = 1


async def upload_people(streams: JetStreamContext, folder: DataFolder) -> None:
    """Raises OSError: a file cannot be read."""
    people, known = await streams.key_value(PEOPLE), await values(streams, PEOPLE)
    notes = dict(_tombstones(await asyncio.to_thread(json_state.read_object, folder.tombstones)))
    for prefix, path in ((OPT_OUTS, folder.opt_outs), (SHOWN, folder.shown_runbooks)):
        ids = await asyncio.to_thread(json_state.read_ids, path)
        notes |= {f"{prefix}{user_id}": b"true" for user_id in ids}
    for key, value in notes.items():
        if known.get(key) != value:
            await people.put(key, value)
    for key in known:
        if key.startswith((OPT_OUTS, SHOWN, GONE, CLOSED)) and key not in notes:
            await people.purge(key)
    if folder.feedback_key.exists():
        await people.put(FEEDBACK_KEY, folder.feedback_key.read_bytes())


async def download_people(streams: JetStreamContext, folder: DataFolder, parts: Sequence[DataFolder]) -> None:
    """`parts`: the folders of partitions, whose processes may have noted some of it themselves."""
    known = await values(streams, PEOPLE)
    for prefix, path, own in (
        (OPT_OUTS, folder.opt_outs, [part.opt_outs for part in parts]),
        (SHOWN, folder.shown_runbooks, [part.shown_runbooks for part in parts]),
    ):
        ids = {int(key.removeprefix(prefix)) for key in known if key.startswith(prefix)}
        ids = ids.union(*(json_state.read_ids(each) for each in own))
        if ids:
            files.renew(path, json_state.render_ids(ids), flush=False)
    gone = _gone(known)
    if any(gone.values()):
        files.renew(folder.tombstones, json.dumps(gone, indent=0).encode() + b"\n", flush=False)
    keys = [each.feedback_key.read_bytes() for each in parts if each.feedback_key.exists()]
    key = known.get(FEEDBACK_KEY) or next(iter(keys), None)
    if key is not None:
        files.renew(folder.feedback_key, key, flush=False)


def _tombstones(kept: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    """Files that must not be read again, as `services.documents.tombstones` notes them by key."""
    for message_id, marks in kept.get("files", {}).items():
        for mark in marks:
            yield f"{GONE}{message_id}.{base64.urlsafe_b64encode(mark.encode()).decode()}", b"true"
    for case_id, closed in kept.get("closed", {}).items():
        yield f"{CLOSED}{case_id}", json.dumps(closed).encode()


def _gone(notes: Mapping[str, bytes]) -> dict[str, dict[str, Any]]:
    """The other way round."""
    found: dict[str, dict[str, Any]] = {"files": {}, "closed": {}}
    for key, value in sorted(notes.items()):
        if key.startswith(GONE):
            message_id, _, mark = key.removeprefix(GONE).partition(".")
            found["files"].setdefault(message_id, []).append(base64.urlsafe_b64decode(mark).decode())
        elif key.startswith(CLOSED):
            found["closed"][key.removeprefix(CLOSED)] = json.loads(value)
    return found


async def upload_budgets(streams: JetStreamContext, folder: DataFolder, servers: Collection[int]) -> None:
    for group, path in _usage(folder, servers).items():
        if path.exists():
            await budgets.write(streams, group, await asyncio.to_thread(read_spent, path))


async def download_budgets(streams: JetStreamContext, folder: DataFolder) -> None:
    found = await budgets.read(streams)
    paths = _usage(folder, [int(group) for group in found if group.isdecimal()])
    for group, spent in found.items():
        if group in paths:
            files.renew(paths[group], render_spent(spent), flush=False)


def _usage(folder: DataFolder, servers: Collection[int]) -> Mapping[str, Path]:
    own = {str(guild_id): DataFolder(folder.guilds / str(guild_id)).usage for guild_id in servers}
    return {TOGETHER: folder.usage, **own}


async def upload_watermarks(streams: JetStreamContext, folder: DataFolder) -> None:
    """Where gateways go on from. Marks do not tell which server a place is in: where there are several, each goes on
    from when it was first met, and what is old is known to have its end.
    """
    marks = await asyncio.to_thread(read_marks, folder.seen)
    servers = [-place_id for place_id in marks if place_id < 0]
    seen = await streams.key_value(SEEN)
    for guild_id in servers:
        known = [place_id for place_id in marks if place_id == -guild_id or (place_id > 0 and len(servers) == 1)]
        told = {str(place_id): str(marks[place_id].below) for place_id in known}
        await seen.put(str(guild_id), json.dumps(told, separators=(",", ":")).encode())


async def guild_watermarks(streams: JetStreamContext) -> Mapping[int, Mark]:
    """By minus the id of a server, since when none of its messages may be missed. The marks of its places are those of
    what was handed on, which need not have its end yet.
    """
    met: dict[int, Mark] = {}
    for guild_id, value in (await values(streams, SEEN)).items():
        below = json.loads(value).get(f"-{guild_id}")
        if below is not None:
            met[-int(guild_id)] = Mark(int(below))
    return met


async def upload_collections(streams: JetStreamContext, folder: DataFolder) -> int:
    """Gives how many.

    Raises:
        OSError, DamagedDatabase: a file cannot be read.
    """
    bucket, paths = await streams.object_store(EVIDENCE), collections_in(folder)
    for path in paths:
        await bucket.put(path, await asyncio.to_thread(_packed, folder.root / path))
    for name in await _objects(bucket):
        if name not in paths:
            await bucket.delete(name)
    return len(paths)


async def download_collections(streams: JetStreamContext, folder: DataFolder) -> int:
    """Gives how many."""
    bucket, count = await streams.object_store(EVIDENCE), 0
    for name in await _objects(bucket):
        try:
            content = (await bucket.get(name)).data or b""
        except ObjectNotFoundError:
            continue  # deleted meanwhile
        await asyncio.to_thread(_unpack, folder.root / name, content)
        count += 1
    return count


async def _objects(bucket: ObjectStore) -> Sequence[str]:
    """The names of collections; others are nobody's path."""
    try:
        kept = [each.name or "" for each in await bucket.list(ignore_deletes=True)]
    except NotFoundError:
        return ()
    return [name for name in kept if _COLLECTION.fullmatch(name)]


def collections_in(folder: DataFolder) -> Sequence[str]:
    """Their paths below the folder."""
    found = [path for name in COLLECTIONS for path in (folder.root / name).glob(f"*{SUFFIX}")]
    return sorted(path.relative_to(folder.root).as_posix() for path in found)


def _packed(path: Path) -> bytes:
    with TemporaryDirectory() as scratch:
        copy = Path(scratch, path.name)
        try:
            databases.copy(path, copy)  # with what is in its log
        except DamagedDatabase as error:
            raise DamagedDatabase(f"{path}: {error}") from None
        return zlib.compress(copy.read_bytes(), LEVEL)


def _unpack(path: Path, content: bytes) -> None:
    files.renew(path, zlib.decompress(content), flush=False)
