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
from typing import Any, cast

from nats.errors import TimeoutError as NatsTimeout
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError
from nats.js.kv import KeyValue
from pydantic import TypeAdapter, ValidationError

from clock import now
from services.conversations import (
    Watermark,
    read_drafts,
    read_posts,
    read_started,
    read_watermarks,
    render_watermarks,
)
from services.documents import CLOSED, GONE, SHOWN, read_tombstones, render_tombstones
from services.llm import SHARED_GROUP, read_spent, read_token_days, render_spent, render_token_days, summed_token_days
from services.storage import DataFolder, Record, files, json_state, read_text, temporary_folder
from services.storage.backups import DamagedDatabase, writing
from transport import budgets, folder_log
from transport.address import ServersUnusable
from transport.document_store import collection_of, pack
from transport.fenced_log import FencedLog
from transport.folder_log import FolderPublisher, files_below, read_recorded, restore
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

ORIGIN_FILE = ".exported.json"


@dataclass(frozen=True, slots=True)
class FolderOrigin:
    """The origin of an exported folder. With it the folder can be changed and adopted again, if the log has not been
    written since.

    The folder keeps it in `.exported.json`:

        {"id": "5f2c…", "log": "2026-11-23T07:00:00Z", "last": {"team": 17, …}}

    Attributes:
        id: empty: the folder was not exported.
        log: when the stream LOG was created.
        last: by scope, the number of its last entry at the export.
    """

    id: str = ""
    log: str = ""
    last: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def owner(self) -> str:
        """The owner of adopted scopes in the log, until a process takes them over."""
        return f"app.py --adopt {self.id}".strip()


_ORIGIN = TypeAdapter(FolderOrigin)


async def read_log_origin(streams: JetStreamContext, layout: Layout) -> FolderOrigin:
    """Return the origin of a folder whose export begins now."""
    last = {name: (await _last_entry(streams, f"log.{name}.>"))[0] for name in layout.scopes()}
    return FolderOrigin(secrets.token_hex(8), await _log_created(streams), last)


def write_origin(root: Path, origin: FolderOrigin) -> None:
    files.replace_derived(root / ORIGIN_FILE, json.dumps(asdict(origin)).encode() + b"\n", flush=False)


def read_origin(root: Path) -> FolderOrigin:
    """Read the origin of a folder; an empty one if the folder was not exported."""
    try:
        return _ORIGIN.validate_json(read_text(root / ORIGIN_FILE) or "{}")
    except ValidationError:
        return FolderOrigin()


async def is_untouched(streams: JetStreamContext, name: str, origin: FolderOrigin) -> bool:
    """Return whether a scope was written by nothing but adoptions of this folder since the export."""
    if not origin.id or origin.log != await _log_created(streams):
        return False
    last, _ = await _last_entry(streams, f"log.{name}.>")
    _, epoch = await _last_entry(streams, f"log.{name}.epoch")
    # Entries may expire, but every writer of a scope begins with an epoch.
    return last <= origin.last.get(name, 0) or epoch.get("owner") == origin.owner


async def _log_created(streams: JetStreamContext) -> str:
    return str((await streams.stream_info(LOG)).created)


async def _last_entry(streams: JetStreamContext, subject: str) -> tuple[int, Mapping[str, Any]]:
    """Return the number of the last entry (0: none), and its fields if it is an epoch."""
    try:
        found = await streams.get_last_msg(LOG, subject)
    except NotFoundError:
        return 0, {}
    return found.seq or 0, json.loads(found.data or b"{}") if subject.endswith(".epoch") else {}


# Requests to be forgotten

LISTEN_SECONDS = 0.3
"""How long to listen, once all is read, for requests made just before."""


@asynccontextmanager
async def no_open_forget_requests(streams: JetStreamContext) -> AsyncGenerator[Callable[[], Awaitable[None]]]:
    """Raises ServersUnusable if a request to be forgotten is open. Yields a function to await when all is read: it
    raises ServersUnusable if there was a new request meanwhile, since some data was read before it.
    """
    watching = await (await streams.key_value(PEOPLE)).watch(f"{FORGET}.*")
    try:
        known = await read_values(streams, PEOPLE, f"{FORGET}.*")
        left = {scope for key, value in known.items() for scope in _scopes_left(key, value)}
        if left:
            raise ServersUnusable(
                f"--export: a wish to be forgotten is not carried out yet ({', '.join(sorted(left))}): let processes "
                "with the roles worker and team run until it is, then export again"
            )

        async def require_none() -> None:
            while True:
                try:
                    update = await watching.updates(timeout=LISTEN_SECONDS)
                except NatsTimeout:
                    return
                if isinstance(update, KeyValue.Entry) and update.value and update.value != known.get(update.key):
                    raise ServersUnusable("--export: somebody has wished to be forgotten meanwhile: export again")

        yield require_none
    finally:
        await watching.stop()


def _scopes_left(key: str, value: bytes) -> list[str]:
    """Return the scopes that have not carried out a request. A damaged request counts as open."""
    if not value:
        return []
    try:
        entry = cast("dict[str, Any]", json.loads(value))
        return [str(each) for each in entry["left"]]
    except (ValueError, KeyError, TypeError):
        return [f"{key} is damaged"]


# State: divided among partitions, and merged

NO_CHANNEL_PARTITION = 0
"""The partition for data that belongs to no channel."""
STATE_PATHS = ("state", "feedback.jsonl")
SHARED_PATHS = (
    "state/usage.json",
    "state/opt-outs.json",
    "state/shown-runbooks.json",
    "state/feedback.key",
    "state/gone-files.json",
)
"""Files whose content all processes share in buckets, not in the log."""


@dataclass(frozen=True)
class Splitter:
    """Divides the state of `folder` among `partitions` partitions."""

    folder: DataFolder
    partitions: int

    def split(self) -> Mapping[int, Mapping[str, bytes]]:
        """Return the contents of the files of each partition, by partition and path. Raises OSError: a file cannot be
        read.
        """
        found: dict[int, dict[str, bytes]] = defaultdict(dict)
        for path in files_below(self.folder.root, STATE_PATHS):
            if path not in SHARED_PATHS:
                for partition, content in self._split_file(path).items():
                    found[partition][path] = content
        return found

    def _split_file(self, name: str) -> Mapping[int, bytes]:
        folder, path = self.folder, self.folder.root / name
        if path == folder.posts:
            return self._split_lines(path, self._partitions_of_post)
        if path == folder.feedback:
            places = {post.message_id: post.place_id for post in read_posts(folder.posts)}
            return self._split_lines(path, lambda row: self._partitions_of(places.get(int(row["message_id"]))))
        if path.parent == folder.outcomes and path.suffix == ".jsonl":
            return self._split_lines(path, lambda row: self._partitions_of(row.get("place_id")))
        if path == folder.watermarks:
            return self._split_watermarks()
        return {self._partitions_of_answers.get(path, NO_CHANNEL_PARTITION): path.read_bytes()}

    def _partitions_of(self, *places: int | str | None) -> set[int]:
        return {self._partition_of(int(place)) for place in places if place is not None} or {NO_CHANNEL_PARTITION}

    def _partition_of(self, place_id: int) -> int:
        """Return the partition of a channel, or of a thread's channel."""
        return partition_of(self._channels.get(place_id, place_id), self.partitions)

    @cached_property
    def _channels(self) -> Mapping[int, int]:
        """The channel of each thread that the bot has opened, by the id of the thread."""
        return {post.place_id: post.asked_in for post in read_posts(self.folder.posts) if post.opened_thread}

    def _partitions_of_post(self, row: Record) -> Collection[int]:
        """Return the partition of a post's place; all of them if it may be a thread of an unknown channel."""
        place_id = int(row["place_id"])
        known = row["opened_thread"] or place_id in self._channels
        return self._partitions_of(place_id) if known else range(self.partitions)

    @cached_property
    def _partitions_of_answers(self) -> Mapping[Path, int]:
        """The partition of each reply that is being posted, and of each draft, by the path of its file."""
        folder = self.folder
        replies = {folder.outbox / f"{each.id}.json": each.post.asked_in for each in read_started(folder.outbox)}
        drafts = {folder.drafts / f"{each.id}.json": each.channel_id for each in read_drafts(folder.drafts)}
        return {path: self._partition_of(channel_id) for path, channel_id in {**replies, **drafts}.items()}

    def _split_watermarks(self) -> Mapping[int, bytes]:
        divided: dict[int, dict[int, Watermark]] = defaultdict(dict)
        for place_id, mark in read_watermarks(self.folder.watermarks).items():
            partition = self._partition_of(place_id) if place_id > 0 else NO_CHANNEL_PARTITION
            divided[partition][place_id] = mark
        return {partition: render_watermarks(marks) for partition, marks in divided.items()}

    def _split_lines(self, path: Path, partitions_of: Callable[[Record], Collection[int]]) -> Mapping[int, bytes]:
        divided: dict[int, bytearray] = defaultdict(bytearray)
        for line in lines_of(path.read_bytes()):
            try:
                partitions = partitions_of(cast("Record", json.loads(line)))
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
                partitions = (NO_CHANNEL_PARTITION,)  # damaged lines are kept
            for partition in partitions:
                divided[partition] += line
        return {partition: bytes(content) for partition, content in divided.items()}


def lines_of(content: bytes) -> Iterator[bytes]:
    """Return the lines that are not blank, each with its newline, also the last one."""
    return (
        line if line.endswith(b"\n") else line + b"\n" for line in content.splitlines(keepends=True) if line.strip()
    )


def merge_partitions(partitions: Sequence[Path], into: Path) -> Collection[str]:
    """Merge the state of the folders of partitions into `into`. Returns the paths of its files. Raises OSError: a file
    cannot be read or written.
    """
    holders: dict[str, list[Path]] = defaultdict(list)
    for root in partitions:
        for path in files_below(root, STATE_PATHS):
            if path not in SHARED_PATHS:
                holders[path].append(root / path)
    for path, parts in holders.items():
        files.replace_derived(into / path, _merge(DataFolder(into), into / path, parts), flush=False)
    return holders.keys()


def _merge(folder: DataFolder, path: Path, parts: Sequence[Path]) -> bytes:
    if path in (folder.posts, folder.feedback, folder.audit) or path.parent == folder.outcomes:
        return _merge_by_time(parts)
    if path == folder.watermarks:
        return render_watermarks(_merge_watermarks(map(read_watermarks, parts)))
    if path == folder.token_days:
        return render_token_days(summed_token_days(map(read_token_days, parts)))
    return parts[0].read_bytes()


def _merge_by_time(parts: Iterable[Path]) -> bytes:
    """Return all lines by their time, in a stable order; a line that several partitions have comes once."""
    lines = {line: _time_of(line) for part in parts for line in lines_of(part.read_bytes())}
    return b"".join(sorted(lines, key=lines.__getitem__))


def _time_of(line: bytes) -> tuple[float, str]:
    """Return a sort key: posts have a time in seconds, other lines one as text. Damaged lines come first."""
    try:
        at: object = json.loads(line)["at"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return 0.0, ""
    return (float(at), "") if isinstance(at, int | float) else (0.0, str(at))


def _merge_watermarks(parts: Iterable[Mapping[int, Watermark]]) -> Mapping[int, Watermark]:
    """Merge the watermarks of partitions: each place gets its highest one, each server (key: minus its id) its lowest.
    The lowest is safe: messages above it are only read once more.
    """
    newest: dict[int, Watermark] = {}
    for marks in parts:
        for place_id, mark in marks.items():
            better: Callable[..., Watermark] = max if place_id > 0 else min
            newest[place_id] = better(newest.get(place_id, mark), mark, key=_reach)
    return newest


def _reach(mark: Watermark) -> tuple[int, int]:
    return mark.up_to, len(mark.done)


# What all processes share, in buckets


async def upload_people(streams: JetStreamContext, folder: DataFolder) -> None:
    """Raises OSError: a file cannot be read; DamagedIds: it is no list of ids."""
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
    """`parts`: the folders of partitions, which may hold some of the files as well."""
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
    for group, path in _usage_paths(folder, servers).items():
        if path.exists():
            await budgets.write_budget(streams, group, await asyncio.to_thread(read_spent, path))


async def download_budgets(streams: JetStreamContext, folder: DataFolder) -> None:
    found = await budgets.read_budgets(streams)
    paths = _usage_paths(folder, [int(group) for group in found if group.isdecimal()])
    for group, spent in found.items():
        if group in paths:
            files.replace_derived(paths[group], render_spent(spent), flush=False)


def _usage_paths(folder: DataFolder, servers: Collection[int]) -> Mapping[str, Path]:
    own = {str(guild_id): DataFolder(folder.guilds / str(guild_id)).usage for guild_id in servers}
    return {SHARED_GROUP: folder.usage, **own}


async def upload_watermarks(streams: JetStreamContext, folder: DataFolder) -> None:
    """Upload the watermarks from which gateways go on. Those of a folder do not tell the server of a place. So if there
    are several servers, each goes on from its first contact, and messages that are done already are recognised.
    """
    marks = await asyncio.to_thread(read_watermarks, folder.watermarks)
    servers = [-place_id for place_id in marks if place_id < 0]
    seen = await streams.key_value(SEEN)
    for guild_id in servers:
        known = [place_id for place_id in marks if place_id == -guild_id or (place_id > 0 and len(servers) == 1)]
        entry = {str(place_id): str(marks[place_id].up_to) for place_id in known}
        await seen.put(str(guild_id), json.dumps(entry, separators=(",", ":")).encode())


async def guild_watermarks(streams: JetStreamContext) -> Mapping[int, Watermark]:
    """Return the watermark of each server, by minus its id. Those of its places are left out: they tell which messages
    are in NATS, and these may have no result yet.
    """
    met: dict[int, Watermark] = {}
    for guild_id, value in (await read_values(streams, SEEN)).items():
        below = json.loads(value).get(f"-{guild_id}")
        if below is not None:
            met[-int(guild_id)] = Watermark(int(below))
    return met


async def upload_collections(streams: JetStreamContext, folder: DataFolder) -> int:
    """Upload all collections of a folder, and delete those that it lacks. Returns their number. Raises OSError,
    DamagedDatabase: a file cannot be read.
    """
    bucket, paths = ObjectBucket(streams, EVIDENCE), collections_in(folder)
    for path in paths:
        content = await asyncio.to_thread(_pack, folder.root / path)
        await bucket.put(await bucket.find_head(path), content, {})
    for head in await bucket.heads():
        if head.name not in paths and collection_of(head.name) is not None:
            await bucket.delete(head.name)
    return len(paths)


async def download_collections(streams: JetStreamContext, folder: DataFolder) -> int:
    """Download all collections into a folder. Returns their number."""
    bucket, count = ObjectBucket(streams, EVIDENCE), 0
    for name in [head.name for head in await bucket.heads() if collection_of(head.name) is not None]:
        content = await bucket.read(name)
        if content is not None:  # else it was deleted meanwhile
            await asyncio.to_thread(_unpack, folder.root / name, content)
            count += 1
    return count


def collections_in(folder: DataFolder) -> Sequence[str]:
    """Return the paths of collections, relative to the folder."""
    found = [path for each in (folder.evidence, folder.runbooks) for path in each.glob("*.sqlite")]
    return sorted(path.relative_to(folder.root).as_posix() for path in found)


def _pack(path: Path) -> bytes:
    with temporary_folder() as scratch:
        copy = scratch / path.name
        try:
            writing.copy_database(path, copy)  # including its write-ahead log
        except DamagedDatabase as error:
            raise DamagedDatabase(f"{path}: {error}") from None
        return pack(copy)


def _unpack(path: Path, content: bytes) -> None:
    files.replace_derived(path, zlib.decompress(content), flush=False)


# The commands


@dataclass(slots=True)
class MigrationProgress:
    """Counts `paths` and `collections` that were moved; `messages` and `captures` stay: they have no result yet."""

    paths: set[str] = field(default_factory=set[str])
    collections: int = 0
    messages: int = 0
    captures: int = 0


@dataclass(frozen=True, slots=True)
class Installation:
    """The paths of an installation.

    Attributes:
        root: its data folder.
        outside_paths: by the usual path in the data folder, the actual path of a file or folder outside of it.
    """

    root: Path
    outside_paths: Mapping[str, Path] = field(default_factory=dict[str, Path])

    @property
    def folder(self) -> DataFolder:
        return DataFolder(self.root)

    @property
    def prefixes(self) -> list[str]:
        """The beginnings of paths below `root`: the empty one, and one for each server with its own knowledge."""
        return ["", *(f"guilds/{guild_id}/" for guild_id in self.servers)]

    @property
    def servers(self) -> list[int]:
        return sorted(int(path.name) for path in self.folder.guilds.glob("*") if path.name.isdecimal())

    def publisher(self, fenced: FencedLog) -> FolderPublisher:
        """Return the publisher of what one role writes."""
        below = "team-knowledge" if fenced.scope == TEAM else "knowledge-base"
        folders = [f"{home}{below}" for home in self.prefixes]
        indexes = [f"{each}/index{'-team' if fenced.scope == TEAM else ''}.txt" for each in folders]
        own = {path: outside for path, outside in self.outside_paths.items() if f"{below}/" in path}
        return FolderPublisher(fenced, self.root, folders, indexes, own)


async def adopt(
    streams: JetStreamContext, layout: Layout, installation: Installation, moved: MigrationProgress
) -> None:
    """Make the log and the buckets equal to an installation. After an interruption, adopt it again to complete it.

    `moved` is counted up meanwhile. If the folder was exported from these servers, files that were deleted in it are
    removed from the log.

    Raises:
        ServersUnusable: processes are running, or the log holds other files, or newer ones than were exported.
        Fenced: a process has started and taken a scope over.
        OSError, DamagedDatabase: a file cannot be read, or the server does not answer.
    """
    origin = await asyncio.to_thread(read_origin, installation.root)
    members = await Members(streams, Member(origin.owner, ())).list_alive()
    if members:
        raise ServersUnusable(
            f"--adopt: {', '.join(sorted(members))} is at work with these servers; stop all processes first"
        )
    with temporary_folder() as scratch:
        parts = await asyncio.to_thread(_split_state, installation.folder, layout, scratch)
        logs = {name: FencedLog(streams, name) for name in layout.scopes()}
        publishers = {
            name: installation.publisher(fenced)
            if name in (TEAM, KNOWLEDGE)
            else FolderPublisher(fenced, parts[name], (".",))
            for name, fenced in logs.items()
        }
        for name, publisher in publishers.items():
            await _require_ours(streams, name, publisher, origin)

        for name, publisher in publishers.items():
            if await publisher.find_files() or (await read_recorded(streams, name)).files:
                await logs[name].open(origin.owner, now())
                await publisher.publish(moved.paths.add)
    folder = installation.folder
    await upload_people(streams, folder)
    await upload_budgets(streams, folder, installation.servers)
    await upload_watermarks(streams, folder)
    moved.collections = await upload_collections(streams, folder)


def _split_state(folder: DataFolder, layout: Layout, scratch: Path) -> Mapping[str, Path]:
    parts = {scope_of(number): scratch / scope_of(number) for number in range(layout.partitions)}
    for number, contents in Splitter(folder, layout.partitions).split().items():
        for path, content in contents.items():
            files.replace_derived(parts[scope_of(number)] / path, content, flush=False)
    return parts


async def _require_ours(streams: JetStreamContext, name: str, publisher: FolderPublisher, origin: FolderOrigin) -> None:
    """Raises ServersUnusable: the log has files that differ from the installation's, and were changed elsewhere."""
    if await is_untouched(streams, name, origin):
        return
    found = await publisher.find_files()
    for path, known in (await read_recorded(streams, name)).files.items():
        file = found.get(path)
        if file is None or known.digest != await asyncio.to_thread(_digest, file):
            raise ServersUnusable(
                f"--adopt: NATS holds other data ({name}: {path!r}), perhaps since this folder was exported; export "
                "again and work with that, or adopt it with another server"
            )


def _digest(path: Path) -> str:
    return folder_log.content_digest(path.read_bytes())


UNFINISHED = ".unfinished-export"
"""The ending of the folder that an export builds; a leftover is deleted by the next export."""


async def export(streams: JetStreamContext, layout: Layout, into: Path, moved: MigrationProgress) -> None:
    """Make `into` a data folder with all that the log and the buckets hold. It appears only when it is complete.

    `moved` is counted up meanwhile. If processes are running, its files may be of different moments.

    Raises:
        ServersUnusable: the folder is not empty, or a request to be forgotten is open.
        OSError: the folder cannot be written, or the server does not answer.
    """
    async with no_open_forget_requests(streams) as require_none:
        target, building = await asyncio.to_thread(_make_building_folder, into)
        try:
            await _build(streams, layout, building, moved)
            await require_none()
            await asyncio.to_thread(_sync_files, building)
            building.rename(target)
        except BaseException:
            await asyncio.to_thread(shutil.rmtree, building, ignore_errors=True)
            raise


async def _build(streams: JetStreamContext, layout: Layout, building: Path, moved: MigrationProgress) -> None:
    folder = DataFolder(building)
    write_origin(building, await read_log_origin(streams, layout))  # first: later changes may not be in the folder
    with temporary_folder() as scratch:
        parts = [scratch / scope_of(number) for number in range(layout.partitions)]
        moved.paths.update(await restore_all_scopes(streams, building, parts))
        await download_people(streams, folder, [DataFolder(part) for part in parts])
    await download_budgets(streams, folder)
    await _add_guild_watermarks(streams, folder)
    moved.collections = await download_collections(streams, folder)
    moved.messages = (await streams.stream_info(MESSAGES)).state.messages
    moved.captures = (await streams.stream_info(CAPTURES)).state.messages


async def restore_all_scopes(streams: JetStreamContext, into: Path, parts: Sequence[Path]) -> set[str]:
    """Make one folder of the whole log; returns the paths of its files. `parts`: empty folders for the partitions, with
    the names of their scopes.

    Raises OSError: a folder cannot be written, or the server does not answer.
    """
    paths = set[str]()
    for name in (KNOWLEDGE, TEAM):
        paths.update(await restore(FencedLog(streams, name), into))
    for part in parts:
        await restore(FencedLog(streams, part.name), part)
    paths.update(await asyncio.to_thread(merge_partitions, parts, into))
    return paths


def _make_building_folder(into: Path) -> tuple[Path, Path]:
    """Return the path of the export, and an empty folder beside it in which it is built."""
    target = Path(os.path.realpath(into))
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ServersUnusable(f"--export: {into} is not an empty folder; name another one")
    building = target.with_name(f"{target.name}{UNFINISHED}")
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(mode=0o700, parents=True)
    return target, building


async def _add_guild_watermarks(streams: JetStreamContext, folder: DataFolder) -> None:
    marks, met = read_watermarks(folder.watermarks), await guild_watermarks(streams)
    missing: Mapping[int, object] = {key: mark for key, mark in met.items() if key not in marks}
    if missing:
        files.replace_derived(folder.watermarks, render_watermarks({**met, **marks}), flush=False)


def _sync_files(root: Path) -> None:
    for path in sorted(root.rglob("*")):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
    files.sync_folder(root)
