"""Move an installation between files and NATS: `adopt` uploads a data folder to the servers, `export` makes one.

    knowledge-base, guilds/*/knowledge-base       the log, scope `knowledge`
    team-knowledge, guilds/*/team-knowledge       the log, scope `team`
    state, feedback.jsonl                         the log, the scopes of the partitions of their channels
    who opted out, shown runbooks, the key of
    votes, files that must not be read again      the bucket `people`
    budgets, watermarks of servers                the buckets `budgets` and `seen`
    evidence, runbooks                            the bucket `evidence`

Recordings of models and collections that are made from knowledge are left where they are.
"""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import zlib
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from nats.errors import TimeoutError as NothingHeard
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError
from nats.js.kv import KeyValue
from pydantic import TypeAdapter, ValidationError

from clock import now
from services.conversations import Watermark, read_posts, read_started, read_watermarks, render_watermarks
from services.documents import CLOSED, GONE, SHOWN, read_tombstones, render_tombstones
from services.llm import read_spent, read_token_days, render_spent, render_token_days, summed_token_days
from services.storage import DataFolder, Record, files, json_state, read_text
from services.storage.backups import DamagedDatabase, writing
from transport import budgets, folder_log
from transport.document_store import collection_of, pack
from transport.errors import ServersUnusable
from transport.fenced_log import FencedLog
from transport.folder_log import FolderPublisher, files_below, recorded_files, restore
from transport.key_value import read_values
from transport.members import Member, Members
from transport.object_store import ObjectBucket
from transport.people import FEEDBACK_KEY, FORGET, OPT_OUTS
from transport.streams import (
    CAPTURES,
    EVIDENCE,
    KNOWLEDGE,
    LOG,
    MESSAGES,
    PEOPLE,
    SEEN,
    TEAM,
    Layout,
    partition_of,
    scope_of,
)

# The origin of an exported folder

MARK = ".exported.json"


@dataclass(frozen=True, slots=True)
class FolderOrigin:
    """Where an exported folder is from. With it, changes that were made in the folder can be adopted, and nothing else
    is lost.

    The folder keeps it in `.exported.json`:

        {"id": "5f2c…", "log": "2026-11-23T07:00:00Z", "last": {"team": 17, …}}

    Attributes:
        log: when the stream was made that it is from.
        last: by scope, the number of the last entry then.
    """

    id: str = ""
    log: str = ""
    last: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def owner(self) -> str:
        """Who owns what is adopted from this folder, until a process takes it over."""
        return f"app.py --adopt {self.id}".strip()


_ORIGIN = TypeAdapter(FolderOrigin)


async def origin_of(streams: JetStreamContext, layout: Layout) -> FolderOrigin:
    """Of an export that begins now."""
    last = {name: (await _last(streams, f"log.{name}.>"))[0] for name in layout.scopes()}
    return FolderOrigin(secrets.token_hex(8), await _made(streams), last)


def write_origin(root: Path, origin: FolderOrigin) -> None:
    files.replace_derived(root / MARK, json.dumps(asdict(origin)).encode() + b"\n", flush=False)


def read_origin(root: Path) -> FolderOrigin:
    """One of nothing where the folder is not from an export."""
    try:
        return _ORIGIN.validate_json(read_text(root / MARK) or "{}")
    except ValidationError:
        return FolderOrigin()


async def untouched(streams: JetStreamContext, name: str, origin: FolderOrigin) -> bool:
    """Return whether a scope is as it was exported into the folder, but for what was adopted from there since."""
    if not origin.id or origin.log != await _made(streams):
        return False
    last, _ = await _last(streams, f"log.{name}.>")
    _, epoch = await _last(streams, f"log.{name}.epoch")
    # Entries run out; but whoever changes a scope begins with an epoch.
    return last <= origin.last.get(name, 0) or epoch.get("owner") == origin.owner


async def _made(streams: JetStreamContext) -> str:
    return str((await streams.stream_info(LOG)).created)


async def _last(streams: JetStreamContext, subject: str) -> tuple[int, Mapping[str, Any]]:
    """The number of the last entry, and what it says where it is an epoch."""
    try:
        found = await streams.get_last_msg(LOG, subject)
    except NotFoundError:
        return 0, {}
    return found.seq or 0, json.loads(found.data or b"{}") if subject.endswith(".epoch") else {}


# Requests to be forgotten

LAST_SECONDS = 0.3
"""How long it is listened, once all is read, for what was wished just before."""


@asynccontextmanager
async def no_open_forget_requests(streams: JetStreamContext) -> AsyncGenerator[Callable[[], Awaitable[None]]]:
    """Gives what is to be awaited when all is read.

    Both raise ServersUnusable: a request to be forgotten is not carried out in full; or somebody asked meanwhile,
    so that some of what was read is from before.
    """
    watching = await (await streams.key_value(PEOPLE)).watch(f"{FORGET}.*")
    try:
        known = await read_values(streams, PEOPLE, f"{FORGET}.*")
        left = {scope for key, value in known.items() for scope in _left(key, value)}
        if left:
            raise ServersUnusable(
                f"--export: a wish to be forgotten is not carried out yet ({', '.join(sorted(left))}): let processes "
                "with the roles worker and team run until it is, then export again"
            )

        async def still_none() -> None:
            while True:
                try:
                    heard = await watching.updates(timeout=LAST_SECONDS)
                except NothingHeard:
                    return
                if isinstance(heard, KeyValue.Entry) and heard.value and heard.value != known.get(heard.key):
                    raise ServersUnusable("--export: somebody has wished to be forgotten meanwhile: export again")

        yield still_none
    finally:
        await watching.stop()


def _left(key: str, value: bytes) -> list[str]:
    """The scopes that are still to be dealt with. A damaged request counts as one that nobody has carried out."""
    if not value:
        return []
    try:
        told = cast("dict[str, Any]", json.loads(value))
        return [str(each) for each in told["left"]]
    except (ValueError, KeyError, TypeError):
        return [f"{key} is damaged"]


# State: divided among partitions, and merged

NO_CHANNEL_PARTITION = 0
"""The partition of what belongs to no channel."""
STATE = ("state", "feedback.jsonl")
SHARED = (
    "state/usage.json",
    "state/opt-outs.json",
    "state/shown-runbooks.json",
    "state/feedback.key",
    "state/gone-files.json",
)
"""What all processes share: it is in buckets, not in the log."""


@dataclass(frozen=True)
class Splitter:
    """Divides the state of `folder` among so many partitions."""

    folder: DataFolder
    partitions: int

    def split(self) -> Mapping[int, Mapping[str, bytes]]:
        """By partition, the files that it gets and their contents.

        Raises:
            OSError: a file cannot be read.
        """
        found: dict[int, dict[str, bytes]] = defaultdict(dict)
        for path in files_below(self.folder.root, STATE):
            if path not in SHARED:
                for partition, content in self._divided(path).items():
                    found[partition][path] = content
        return found

    def _divided(self, name: str) -> Mapping[int, bytes]:
        folder, path = self.folder, self.folder.root / name
        if path == folder.posts:
            return self._lines(path, self._of_post)
        if path == folder.feedback:
            places = {post.message_id: post.place_id for post in read_posts(folder.posts)}
            return self._lines(path, lambda row: self._of(places.get(int(row["message_id"]))))
        if path.parent == folder.outcomes and path.suffix == ".jsonl":
            return self._lines(path, lambda row: self._of(row.get("place_id")))
        if path == folder.seen:
            return self._marks()
        if path.parent == folder.outbox:
            return {self._started.get(path.name, NO_CHANNEL_PARTITION): path.read_bytes()}
        return {NO_CHANNEL_PARTITION: path.read_bytes()}

    def _of(self, *places: int | str | None) -> set[int]:
        return {self._at(int(place)) for place in places if place is not None} or {NO_CHANNEL_PARTITION}

    def _at(self, place_id: int) -> int:
        """The partition of a place, which for a thread is that of its channel."""
        return partition_of(self._channels.get(place_id, place_id), self.partitions)

    @cached_property
    def _channels(self) -> Mapping[int, int]:
        """Of the threads that the bot has opened."""
        return {post.place_id: post.asked_in for post in read_posts(self.folder.posts) if post.opened_thread}

    def _of_post(self, row: Record) -> Collection[int]:
        """Where it was asked for. Nothing tells which channel a thread of somebody else is in: there it is known to all
        partitions.
        """
        place_id = int(row["place_id"])
        known = row["opened_thread"] or place_id in self._channels
        return self._of(place_id) if known else range(self.partitions)

    @property
    def _started(self) -> Mapping[str, int]:
        started = read_started(self.folder.outbox)
        return {f"{reply.id}.json": self._at(reply.post.asked_in) for reply in started}

    def _marks(self) -> Mapping[int, bytes]:
        divided: dict[int, dict[int, Watermark]] = defaultdict(dict)
        for place_id, mark in read_watermarks(self.folder.seen).items():
            partition = self._at(place_id) if place_id > 0 else NO_CHANNEL_PARTITION
            divided[partition][place_id] = mark
        return {partition: render_watermarks(marks) for partition, marks in divided.items()}

    def _lines(self, path: Path, partitions_of: Callable[[Record], Collection[int]]) -> Mapping[int, bytes]:
        divided: dict[int, bytearray] = defaultdict(bytearray)
        for line in lines_of(path.read_bytes()):
            try:
                partitions = partitions_of(cast("Record", json.loads(line)))
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
                partitions = (NO_CHANNEL_PARTITION,)  # damaged: it is kept, as it was
            for partition in partitions:
                divided[partition] += line
        return {partition: bytes(content) for partition, content in divided.items()}


def lines_of(content: bytes) -> Iterator[bytes]:
    """Each with its end, also the last one."""
    return (
        line if line.endswith(b"\n") else line + b"\n" for line in content.splitlines(keepends=True) if line.strip()
    )


def merge_partitions(partitions: Sequence[Path], into: Path) -> Collection[str]:
    """Write the state below `into`, of folders with one part of it each. Gives the paths of the files.

    Raises:
        OSError: a file cannot be read or written.
    """
    holders: dict[str, list[Path]] = defaultdict(list)
    for root in partitions:
        for path in files_below(root, STATE):
            if path not in SHARED:
                holders[path].append(root / path)
    for path, parts in holders.items():
        files.replace_derived(into / path, _merged(DataFolder(into), into / path, parts), flush=False)
    return holders.keys()


def _merged(folder: DataFolder, path: Path, parts: Sequence[Path]) -> bytes:
    if path in (folder.posts, folder.feedback) or path.parent == folder.outcomes:
        return _by_time(parts)
    if path == folder.seen:
        return render_watermarks(_newest(map(read_watermarks, parts)))
    if path == folder.token_days:
        return render_token_days(summed_token_days(map(read_token_days, parts)))
    return parts[0].read_bytes()


def _by_time(parts: Iterable[Path]) -> bytes:
    """Lines of equal times stay together as they were; one that several partitions have is there once."""
    lines = {line: _time_of(line) for part in parts for line in lines_of(part.read_bytes())}
    return b"".join(sorted(lines, key=lines.__getitem__))


def _time_of(line: bytes) -> tuple[float, str]:
    """Posts tell seconds, the others a time as text. What is damaged comes first."""
    try:
        at: object = json.loads(line)["at"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return 0.0, ""
    return (float(at), "") if isinstance(at, int | float) else (0.0, str(at))


def _newest(parts: Iterable[Mapping[int, Watermark]]) -> Mapping[int, Watermark]:
    """Of each place what is known best; of a server, below minus its id, what is true for all of its places."""
    newest: dict[int, Watermark] = {}
    for marks in parts:
        for place_id, mark in marks.items():
            better: Callable[..., Watermark] = max if place_id > 0 else min
            newest[place_id] = better(newest.get(place_id, mark), mark, key=_reach)
    return newest


def _reach(mark: Watermark) -> tuple[int, int]:
    return mark.below, len(mark.done)


# What all processes share, in buckets

TOGETHER = "shared"
"""The group of budgets of the servers without limits of their own."""


async def upload_people(streams: JetStreamContext, folder: DataFolder) -> None:
    """Raises OSError: a file cannot be read."""
    people, known = await streams.key_value(PEOPLE), await read_values(streams, PEOPLE)
    notes = await asyncio.to_thread(read_tombstones, folder.tombstones)
    for prefix, path in ((f"{OPT_OUTS}.", folder.opt_outs), (SHOWN, folder.shown_runbooks)):
        ids = await asyncio.to_thread(json_state.read_ids, path)
        notes |= {f"{prefix}{user_id}": b"true" for user_id in ids}
    for key, value in notes.items():
        if known.get(key) != value:
            await people.put(key, value)
    for key in known:
        if key.startswith((f"{OPT_OUTS}.", SHOWN, GONE, CLOSED)) and key not in notes:
            await people.purge(key)
    if folder.feedback_key.exists():
        await people.put(FEEDBACK_KEY, folder.feedback_key.read_bytes())


async def download_people(streams: JetStreamContext, folder: DataFolder, parts: Sequence[DataFolder]) -> None:
    """`parts`: the folders of partitions, whose processes may have noted some of it themselves."""
    known = await read_values(streams, PEOPLE)
    for prefix, path, own in (
        (f"{OPT_OUTS}.", folder.opt_outs, [part.opt_outs for part in parts]),
        (SHOWN, folder.shown_runbooks, [part.shown_runbooks for part in parts]),
    ):
        ids = {int(key.removeprefix(prefix)) for key in known if key.startswith(prefix)}
        ids = ids.union(*(json_state.read_ids(each) for each in own))
        if ids:
            files.replace_derived(path, json_state.render_ids(ids), flush=False)
    if any(key.startswith((GONE, CLOSED)) for key in known):
        files.replace_derived(folder.tombstones, render_tombstones(known), flush=False)
    keys = [each.feedback_key.read_bytes() for each in parts if each.feedback_key.exists()]
    key = known.get(FEEDBACK_KEY) or next(iter(keys), None)
    if key is not None:
        files.replace_derived(folder.feedback_key, key, flush=False)


async def upload_budgets(streams: JetStreamContext, folder: DataFolder, servers: Collection[int]) -> None:
    for group, path in _usage(folder, servers).items():
        if path.exists():
            await budgets.write(streams, group, await asyncio.to_thread(read_spent, path))


async def download_budgets(streams: JetStreamContext, folder: DataFolder) -> None:
    found = await budgets.read(streams)
    paths = _usage(folder, [int(group) for group in found if group.isdecimal()])
    for group, spent in found.items():
        if group in paths:
            files.replace_derived(paths[group], render_spent(spent), flush=False)


def _usage(folder: DataFolder, servers: Collection[int]) -> Mapping[str, Path]:
    own = {str(guild_id): DataFolder(folder.guilds / str(guild_id)).usage for guild_id in servers}
    return {TOGETHER: folder.usage, **own}


async def upload_watermarks(streams: JetStreamContext, folder: DataFolder) -> None:
    """Where gateways go on from. Marks do not tell which server a place is in: where there are several, each goes on
    from when it was first met, and what is old is known to have its end.
    """
    marks = await asyncio.to_thread(read_watermarks, folder.seen)
    servers = [-place_id for place_id in marks if place_id < 0]
    seen = await streams.key_value(SEEN)
    for guild_id in servers:
        known = [place_id for place_id in marks if place_id == -guild_id or (place_id > 0 and len(servers) == 1)]
        told = {str(place_id): str(marks[place_id].below) for place_id in known}
        await seen.put(str(guild_id), json.dumps(told, separators=(",", ":")).encode())


async def guild_watermarks(streams: JetStreamContext) -> Mapping[int, Watermark]:
    """By minus the id of a server, since when none of its messages may be missed. The marks of its places are those of
    what was handed on, which need not have its end yet.
    """
    met: dict[int, Watermark] = {}
    for guild_id, value in (await read_values(streams, SEEN)).items():
        below = json.loads(value).get(f"-{guild_id}")
        if below is not None:
            met[-int(guild_id)] = Watermark(int(below))
    return met


async def upload_collections(streams: JetStreamContext, folder: DataFolder) -> int:
    """Gives how many.

    Raises:
        OSError, DamagedDatabase: a file cannot be read.
    """
    bucket, paths = ObjectBucket(streams, EVIDENCE), collections_in(folder)
    for path in paths:
        content = await asyncio.to_thread(_packed, folder.root / path)
        await bucket.put(await bucket.find_head(path), content, {})
    for head in await bucket.heads():
        if head.name not in paths and collection_of(head.name) is not None:
            await bucket.delete(head.name)
    return len(paths)


async def download_collections(streams: JetStreamContext, folder: DataFolder) -> int:
    """Gives how many."""
    bucket, count = ObjectBucket(streams, EVIDENCE), 0
    for name in [head.name for head in await bucket.heads() if collection_of(head.name) is not None]:
        content = await bucket.read(name)
        if content is not None:  # else it was deleted meanwhile
            await asyncio.to_thread(_unpack, folder.root / name, content)
            count += 1
    return count


def collections_in(folder: DataFolder) -> Sequence[str]:
    """Their paths below the folder."""
    found = [path for each in (folder.evidence, folder.runbooks) for path in each.glob("*.sqlite")]
    return sorted(path.relative_to(folder.root).as_posix() for path in found)


def _packed(path: Path) -> bytes:
    with TemporaryDirectory() as scratch:
        copy = Path(scratch, path.name)
        try:
            writing.copy_database(path, copy)  # with what is in its log
        except DamagedDatabase as error:
            raise DamagedDatabase(f"{path}: {error}") from None
        return pack(copy)


def _unpack(path: Path, content: bytes) -> None:
    files.replace_derived(path, zlib.decompress(content), flush=False)


# The commands


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
    outside_paths: Mapping[str, Path] = field(default_factory=dict[str, Path])

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
        own = {path: place for path, place in self.outside_paths.items() if f"{below}/" in path}
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
    members = await Members(streams, Member(origin.owner, ())).list_alive()
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
            if await publisher.find_files() or await recorded_files(streams, name):
                await logs[name].open(origin.owner, now())
                await publisher.publish(moved.paths.add)
    folder = installation.folder
    await upload_people(streams, folder)
    await upload_budgets(streams, folder, installation.servers)
    await upload_watermarks(streams, folder)
    moved.collections = await upload_collections(streams, folder)


def _divided(folder: DataFolder, layout: Layout, scratch: Path) -> Mapping[str, Path]:
    parts = {scope_of(number): scratch / scope_of(number) for number in range(layout.partitions)}
    for number, contents in Splitter(folder, layout.partitions).split().items():
        for path, content in contents.items():
            files.replace_derived(parts[scope_of(number)] / path, content, flush=False)
    return parts


async def _must_be_ours(streams: JetStreamContext, name: str, publisher: FolderPublisher, origin: FolderOrigin) -> None:
    """Raises ServersUnusable: the log has files that the installation lacks, and lacked when it was exported."""
    if await untouched(streams, name, origin):
        return
    found = await publisher.find_files()
    for path, known in (await recorded_files(streams, name)).items():
        place = found.get(path)
        if place is None or known.digest != await asyncio.to_thread(_digest, place):
            raise ServersUnusable(
                f"--adopt: NATS holds other data ({name}: {path!r}), perhaps since this folder was exported; export "
                "again and work with that, or adopt it with another server"
            )


def _digest(path: Path) -> str:
    return folder_log.content_digest(path.read_bytes())


UNFINISHED = ".unfinished-export"
"""Ends the name of a folder that an export is building; the next one begins it anew."""


async def export(streams: JetStreamContext, layout: Layout, into: Path, moved: MigrationProgress) -> None:
    """Make `into` a data folder of all that the log and the buckets hold; it is there at once, when it is complete.

    `moved` is counted up meanwhile. Processes may be at work: then it is a picture of each part at a moment of its own.

    Raises:
        ServersUnusable: it is not empty, or a request to be forgotten is open.
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
        parts = [Path(scratch, scope_of(number)) for number in range(layout.partitions)]
        moved.paths.update(await restore_all_scopes(streams, building, parts))
        await download_people(streams, folder, [DataFolder(part) for part in parts])
    await download_budgets(streams, folder)
    await _mark_servers(streams, folder)
    moved.collections = await download_collections(streams, folder)
    moved.messages = (await streams.stream_info(MESSAGES)).state.messages
    moved.captures = (await streams.stream_info(CAPTURES)).state.messages


async def restore_all_scopes(streams: JetStreamContext, into: Path, parts: Sequence[Path]) -> set[str]:
    """Make of the whole log one folder. `parts`: empty ones for the partitions, with the names of their scopes. Gives
    the paths of the files.

    Raises OSError: it cannot be written, or the server does not answer.
    """
    paths = set[str]()
    for name in (KNOWLEDGE, TEAM):
        paths.update(await restore(FencedLog(streams, name), into))
    for part in parts:
        await restore(FencedLog(streams, part.name), part)
    paths.update(await asyncio.to_thread(merge_partitions, parts, into))
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
    marks, met = read_watermarks(folder.seen), await guild_watermarks(streams)
    missing: Mapping[int, object] = {key: mark for key, mark in met.items() if key not in marks}
    if missing:
        files.replace_derived(folder.seen, render_watermarks({**met, **marks}), flush=False)


def _flush(root: Path) -> None:
    """What was written without waiting for the disk is on it after this."""
    for path in sorted(root.rglob("*")):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
    files.sync_folder(root)
