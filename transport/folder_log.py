"""A folder kept in the log: its one writer appends each change before it reaches the disk; other processes have copies.

`LogJournal` appends the changes that `services.storage.files` makes; `FolderPublisher` uploads a folder that others
write. `restore` makes a copy, `FolderFollower` keeps one up to date, `read_in_all_scopes` reads one file in all scopes.

`log.<scope>.file.<token>` is a file; its entries since it was last replaced give its content. A large content is an
object of the bucket `blobs`, named by scope, path and digest: each belongs to one file, and is deleted with it.
"""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import base64
import binascii
import errno
import hashlib
import logging
import math
import os
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, TypeVar

from nats.aio.msg import Msg
from nats.errors import ConnectionClosedError
from nats.js import JetStreamContext, api
from nats.js.errors import NotFoundError, ObjectNotFoundError

from clock import DAY, HOUR, from_rfc3339, now
from clock.timeouts import Backoff
from services.storage import FileChange, files
from services.telemetry import number_of
from transport.connection import AWAY_ERRORS, FILE_PATIENCE_SECONDS, TRY_SECONDS, FileConnection, ServerAway, retry
from transport.fenced_log import FencedLog, erase_entry, erase_subject
from transport.object_store import ObjectBucket, ObjectChanged, ObjectInfo
from transport.streams import BLOBS, LOG, TTL, read_stream, watch

T = TypeVar("T")


async def retry_file(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Call `retry` for FILE_PATIENCE_SECONDS. Raises ServerAway, and ObjectNotFoundError at once."""
    return await retry(work, FILE_PATIENCE_SECONDS, per_try=None, unless=ObjectNotFoundError)


DATABASES = (".sqlite", ".sqlite-wal", ".sqlite-shm", ".sqlite-journal")
"""Databases are not kept in the log: each process builds its own from the other files."""

log = logging.getLogger(__name__)


def files_below(root: Path, subfolders: Collection[str]) -> Iterator[str]:
    """Yield the paths of files, relative to `root`, in order; without databases and links out of `root`. Blocking."""
    home = os.path.realpath(root)
    for name in sorted(subfolders):
        top = root / name
        found = [top] if top.is_file() else _walk(top)
        for path in found:
            if path.name.endswith(DATABASES) or path.name.startswith(files.LEFTOVER_PREFIX) or not path.is_file():
                continue
            if not os.path.realpath(path).startswith(f"{home}{os.sep}"):
                log.warning("%s: left out, it leads out of %s", path, root)
                continue
            yield path.relative_to(root).as_posix()


def _walk(top: Path) -> Iterator[Path]:
    visited: set[str] = set()
    for folder, folders, names in os.walk(top, followlinks=True):
        visited.add(os.path.realpath(folder))
        # A link to a folder above it would be walked without end.
        folders[:] = sorted(each for each in folders if os.path.realpath(Path(folder, each)) not in visited)
        yield from (Path(folder, name) for name in sorted(names))


def is_in(path: str, subfolders: Collection[str]) -> bool:
    return any(each in (".", path) or path.startswith(f"{each}/") for each in subfolders)


# Entries of the log, and large contents

FILE_BRANCH = "file"
CHANGE, LENGTH, BLOB, DIGEST = "Change", "Length", "Blob", "Digest"
LARGE_BYTES = 512 * 1024
REUSE_SECONDS = 43_200
"""A blob is reused for this long: half the time before `OrphanedBlobs` may delete it."""
REMOVAL_TTL_SECONDS = DAY
"""How long the entry of a removed file is kept. A follower that was away for longer compares with the whole log."""

_KINDS = ("replace", "append", "truncate", "remove")


class NotAPath(Exception):
    """The path does not name a file inside the folder."""


def path_token(path: str) -> str:
    """Encode a path relative to the folder, with `/`, as a part of a subject. Raises NotAPath."""
    if not is_inside_folder(path):
        raise NotAPath(path)
    return base64.urlsafe_b64encode(path.encode("utf-8", "surrogateescape")).decode().rstrip("=")


def path_of(subject: str) -> str:
    """Return the path that `path_token` has put into a subject. Raises NotAPath."""
    encoded = subject.rsplit(".", 1)[-1]
    try:
        decoded = base64.b64decode(encoded + "=" * (-len(encoded) % 4), b"-_", validate=True)
    except binascii.Error:
        raise NotAPath(encoded) from None
    path = decoded.decode("utf-8", "surrogateescape")
    if not is_inside_folder(path):
        raise NotAPath(path)
    return path


def is_inside_folder(path: str) -> bool:
    """Return whether a relative path stays in its folder, and is in normal form."""
    stays = not path.startswith("/") and ".." not in path.split("/")
    return stays and path not in ("", ".") and "\0" not in path and str(PurePosixPath(path)) == path


@dataclass(frozen=True, slots=True)
class Entry:
    """A change of a file as the log has it. `blob`: the name of the object with its data, if any."""

    change: FileChange
    blob: str = ""

    async def with_data(self, streams: JetStreamContext) -> FileChange:
        """Return the change with its data. Raises ObjectNotFoundError: the file has been replaced meanwhile."""
        if not self.blob:
            return self.change
        found = await (await streams.object_store(BLOBS)).get(self.blob)
        data = bytes(found.data or b"")
        return FileChange(self.change.kind, self.change.path, data, self.change.length)


def parse_entry(message: Msg) -> Entry | None:
    """None, with a warning, if this program has not written it."""
    headers = message.headers or {}
    try:
        kind, length = headers.get(CHANGE, ""), int(headers.get(LENGTH) or 0)
        if kind not in _KINDS:
            raise ValueError(f"{CHANGE}: {kind}")  # noqa: TRY301 (one line for all that can be wrong)
        change = FileChange(kind, path_of(message.subject), message.data, length)
    except (NotAPath, ValueError) as error:
        log.warning("nats: %r is left out, it was not written by this program: %r", message.subject, error)
        return None
    return Entry(change, headers.get(BLOB, ""))


def headers_of(change: FileChange, blob: str, digest: str = "") -> Mapping[str, str]:
    headers = {CHANGE: change.kind}
    if change.length:
        headers[LENGTH] = str(change.length)
    if blob:
        headers[BLOB] = blob
    if digest:
        headers[DIGEST] = digest
    if change.kind == "remove":
        headers[TTL] = f"{REMOVAL_TTL_SECONDS}s"
    return headers


def content_digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


async def put_blob_if_large(streams: JetStreamContext, scope: str, change: FileChange) -> str:
    """Store data that is too large for an entry; returns the name of its object, or "" if it is not too large."""
    if len(change.data) <= LARGE_BYTES:
        return ""
    name = f"{scope}/{change.path}/{content_digest(change.data)}"
    bucket = ObjectBucket(streams, BLOBS)
    while True:
        head = await bucket.find_head(name)
        # An old one without an entry may be deleted at any moment (`OrphanedBlobs`), unless it is written again.
        if head.exists and head.written and from_rfc3339(head.written) > now() - REUSE_SECONDS:
            return name
        with suppress(ObjectChanged):  # it was deleted at this moment
            await bucket.put(head, change.data, {})
            return name


async def drop_blob(streams: JetStreamContext, name: str) -> None:
    """Delete an object, overwriting its bytes."""
    blobs = await streams.object_store(BLOBS)
    try:
        pieces = (await blobs.get_info(name)).nuid
        await erase_subject(streams, f"OBJ_{BLOBS}", f"$O.{BLOBS}.C.{pieces}")
        await blobs.delete(name)
    except (NotFoundError, ObjectNotFoundError):
        return


# Writing: the log of the one writer

MAX_ENTRIES = 100
"""The most entries of one file; then it is written as a whole, so that the next owner need not read each line that was
ever added."""


@dataclass(slots=True)
class KnownFile:
    """A file in the log.

    Attributes:
        digest: of the content; "": its last entry does not tell.
        blobs: the names of objects in its entries.
        numbers: the numbers of its entries.
        length: of the content in bytes; None: not known.
    """

    digest: str = ""
    blobs: list[str] = field(default_factory=list[str])
    numbers: list[int] = field(default_factory=list[int])
    length: int | None = None


@dataclass(slots=True)
class RecordedFiles:
    """The files of a scope by path; superseded entries, and objects of these alone, that a killed writer has left."""

    files: dict[str, KnownFile] = field(default_factory=dict[str, KnownFile])
    superseded: list[int] = field(default_factory=list[int])
    unused: set[str] = field(default_factory=set[str])


class SupersededEntries:
    """Erases entries one after another in the background. `Nats-Rollup` would leave their bytes in the server's files,
    also those of people who ask to be forgotten.
    """

    def __init__(self, streams: JetStreamContext) -> None:
        self._streams = streams
        self._numbers: deque[int] = deque()
        self._erased_count = 0
        self._task: asyncio.Task[None] | None = None

    def add(self, numbers: Iterable[int]) -> None:
        """Call it on the loop of the connection."""
        self._numbers.extend(numbers)
        if self._numbers and (self._task is None or self._task.done()):
            self._task = asyncio.get_running_loop().create_task(self._erase())

    async def wait(self) -> None:
        """Wait until all are erased. Raises OSError: the server has erased none for a minute."""
        while self._numbers:
            before = self._erased_count
            self.add(())
            assert self._task is not None  # noqa: S101 (for the type checker: something is left)
            await asyncio.wait([self._task], timeout=FILE_PATIENCE_SECONDS)
            if self._erased_count == before:
                raise OSError(errno.EIO, "NATS does not erase what was replaced")

    async def _erase(self) -> None:
        def erase_next() -> Coroutine[Any, Any, None]:
            return erase_entry(self._streams, LOG, self._numbers[0])

        with suppress(ConnectionClosedError):  # the next writer of the scope erases the rest
            while self._numbers:
                await retry(erase_next, math.inf, per_try=None, unless=ConnectionClosedError)
                self._numbers.popleft()
                self._erased_count += 1


class Writer:
    """Writes changes of files to the log, on the loop of its connection."""

    def __init__(self, scope: FencedLog) -> None:
        self._log = scope
        self._recorded: dict[str, KnownFile] | None = None
        self._reading = asyncio.Lock()
        self._superseded = SupersededEntries(scope.streams)

    async def write(self, change: FileChange, digest: str = "") -> None:
        """`digest`: of the content, where the change replaces the file.

        Raises:
            NotAPath: the path leads out of the folder.
            Fenced, OSError: as `FencedLog.append`.
        """
        streams = self._log.streams
        token = path_token(change.path)
        known = await self.recorded_files()
        file = known.setdefault(change.path, KnownFile())
        if _must_replace_whole(change, file):
            change = await retry_file(lambda: _as_replacement(streams, self._log.scope, change))
        blob = await retry_file(lambda: put_blob_if_large(streams, self._log.scope, change))
        number = await self._log.append(
            f"{FILE_BRANCH}.{token}", b"" if blob else change.data, headers_of(change, blob, digest)
        )
        unused, superseded = list[str](), list[int]()
        if change.kind in ("replace", "remove"):
            unused, file.blobs = [each for each in file.blobs if each != blob], []
            superseded, file.numbers = file.numbers, []
        file.digest = digest
        file.length = change.length + len(change.data)
        file.numbers.append(number)
        if blob:
            file.blobs.append(blob)
        if change.kind == "remove":
            del known[change.path]
        for each in unused:  # only now: until the entry was written, they were the content
            await retry_file(lambda each=each: drop_blob(streams, each))
        # Erased after their objects: the successor of a killed process still finds both.
        self._superseded.add(superseded)

    async def recorded_files(self) -> dict[str, KnownFile]:
        """Return the files of the log by path. Read once, since nobody else writes it."""
        async with self._reading:
            if self._recorded is None:
                streams = self._log.streams
                recorded = await retry_file(lambda: read_recorded(streams, self._log.scope))
                for each in recorded.unused:
                    await retry_file(lambda each=each: drop_blob(streams, each))
                self._superseded.add(recorded.superseded)
                self._recorded = recorded.files
            return self._recorded

    async def wait_erased(self) -> None:
        """Wait until all replaced and removed bytes are overwritten. Raises OSError."""
        await self.recorded_files()
        await self._superseded.wait()


def _must_replace_whole(change: FileChange, file: KnownFile) -> bool:
    """Return True if the whole file is to be written: it has many entries, or one would keep bytes that are cut off."""
    if change.kind == "append":
        cuts = file.length is not None and change.length < file.length
        return cuts or len(file.numbers) >= MAX_ENTRIES
    return change.kind == "truncate"


class LogJournal:
    """`services.storage.files.Journal`: commits the changes of a folder to the log of its scope. To be called from any
    thread but that of `file_connection`.
    """

    def __init__(self, file_connection: FileConnection, scope: FencedLog) -> None:
        self._file_connection = file_connection
        self._writer = Writer(scope)

    @contextmanager
    def erasing(self) -> Generator[None]:
        """Wait on leaving until all bytes replaced or removed so far are overwritten. Raises OSError."""
        yield
        self._file_connection.start(self._writer.wait_erased()).result()

    def commit(self, change: FileChange) -> None:
        """Raises as `Writer.write`."""
        self._file_connection.start(self._writer.write(change)).result()


async def _as_replacement(streams: JetStreamContext, scope: str, change: FileChange) -> FileChange:
    """Return the change as a replacement of the whole file. Reads the log, since it may be ahead of the disk."""
    contents = ScopeContents()  # it needs only the entries since the last replacement, as earlier ones may be erased
    async for message in read_stream(streams, LOG, f"log.{scope}.{FILE_BRANCH}.{path_token(change.path)}"):
        contents.add(message)
    content = bytearray(await contents.content(streams, change.path))
    change.apply(content)
    return FileChange("replace", change.path, bytes(content))


async def read_recorded(streams: JetStreamContext, scope: str) -> RecordedFiles:
    found = RecordedFiles()
    async for message in read_stream(streams, LOG, f"log.{scope}.{FILE_BRANCH}.>", headers_only=True):
        entry = parse_entry(message)
        if entry is None:
            continue
        path = entry.change.path
        if entry.change.kind in ("replace", "remove") and (before := found.files.pop(path, None)) is not None:
            found.superseded += before.numbers
            found.unused.update(before.blobs)
        if entry.change.kind != "remove":
            file = found.files.setdefault(path, KnownFile())
            file.numbers.append(message.metadata.sequence.stream)
            file.digest = (message.headers or {}).get(DIGEST, "")
            file.blobs += filter(None, [entry.blob])
    found.unused.difference_update(blob for file in found.files.values() for blob in file.blobs)
    return found


# Publishing a folder that others write


@dataclass(slots=True)
class PublishResult:
    """How many files were written to the log and removed from it."""

    published: int = 0
    removed: int = 0


class FolderPublisher:
    """Brings the log up to date with folders, repeatedly; unchanged files are not read again."""

    def __init__(
        self,
        scope: FencedLog,
        root: Path,
        subfolders: Collection[str],
        publish_last: Collection[str] = (),
        outside_paths: Mapping[str, Path] = MappingProxyType({}),
    ) -> None:
        """`subfolders`: folders or files below `root`. `publish_last`: files that name others, to be written after
        them. `outside_paths`: for some of the subfolders, their paths on the disk, outside `root`.
        """
        self._writer = Writer(scope)
        self._root, self._subfolders = root, subfolders
        self._publish_last, self._outside_paths = publish_last, outside_paths
        self._stamps: dict[str, tuple[int, int]] = {}

    async def publish(self, on_file: Callable[[str], object] = lambda _: None) -> PublishResult:
        """Call it on the loop of the connection; nothing else may write the scope. Raises Fenced, OSError: as
        `FencedLog.append`; OSError also if a file cannot be read.
        """
        known = await self._writer.recorded_files()
        found, done = await self.find_files(), PublishResult()
        for path in sorted(found, key=lambda path: (path in self._publish_last, path)):
            stamp = await asyncio.to_thread(_stamp, found[path])
            if self._stamps.get(path) == stamp and path in known:
                continue
            data = await asyncio.to_thread(found[path].read_bytes)
            digest = content_digest(data)
            if path not in known or known[path].digest != digest:
                await self._writer.write(FileChange("replace", path, data), digest)
                done.published += 1
                on_file(path)
            self._stamps[path] = stamp
        for path in [path for path in known if is_in(path, self._subfolders) and path not in found]:
            await self._writer.write(FileChange("remove", path))
            self._stamps.pop(path, None)
            done.removed += 1
        return done

    async def find_files(self) -> dict[str, Path]:
        """Return the files on the disk, by their paths in the log."""
        return await asyncio.to_thread(self._find_files)

    def _find_files(self) -> dict[str, Path]:
        found = {
            path: self._root / path
            for path in files_below(self._root, self._subfolders)
            if not is_in(path, self._outside_paths)
        }
        for prefix, outside in self._outside_paths.items():
            if outside.is_file():
                found[prefix] = outside
            elif outside.is_dir():
                found |= {f"{prefix}/{path}": outside / path for path in files_below(outside, (".",))}
        return found


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size


# Restoring: copies of a scope

RESTORE_TRIES = 8


class ScopeContents:
    """The files of a scope, collected entry by entry of the log, to be written to a folder where it differs."""

    def __init__(self) -> None:
        self._files: dict[str, list[Entry]] = {}

    def add(self, message: Msg) -> None:
        entry = parse_entry(message)
        if entry is None:
            return
        before = self._files.pop(entry.change.path, [])  # so that files are in the order of their last changes
        if entry.change.kind in ("replace", "remove"):
            before = []
        if entry.change.kind != "remove":
            before.append(entry)
            self._files[entry.change.path] = before

    def paths(self) -> Sequence[str]:
        return tuple(self._files)

    async def content(self, streams: JetStreamContext, path: str) -> bytes:
        """Return the content of a file; b"": there is none. Raises ObjectNotFoundError: it has been replaced."""
        content = bytearray()
        for entry in self._files.get(path, ()):
            (await entry.with_data(streams)).apply(content)
        return bytes(content)

    async def write_to(self, streams: JetStreamContext, root: Path, subfolders: Collection[str]) -> list[str]:
        """Write the files to a folder, and delete other files in its `subfolders` ("." is all of the folder). Returns
        the paths of the files that differed.

        Raises:
            ObjectNotFoundError: a file has been replaced meanwhile.
            OSError: the disk cannot be read or written.
        """
        changed: list[str] = []
        for path in self._files:
            content = await self.content(streams, path)
            if await asyncio.to_thread(write_if_changed, root, path, content):
                changed.append(path)
        changed += await asyncio.to_thread(_remove_others, root, subfolders, self._files.keys())
        return changed


async def restore(scope: FencedLog, root: Path, subfolders: Collection[str] = ()) -> list[str]:
    """Make a folder equal to the log, as `ScopeContents.write_to`; on the loop of the connection. Raises OSError: the
    disk cannot be read or written, or NATS does not answer.
    """
    for _ in range(RESTORE_TRIES):
        contents = await retry_file(lambda: _read_contents(scope))
        try:
            return await retry_file(lambda contents=contents: contents.write_to(scope.streams, root, subfolders))
        except ObjectNotFoundError:  # a file was replaced meanwhile
            continue
    raise OSError(errno.EIO, f"the files of {scope.scope} in NATS change faster than they can be read", str(root))


async def _read_contents(scope: FencedLog) -> ScopeContents:
    contents = ScopeContents()
    async for message in scope.entries(branch=f"{FILE_BRANCH}.>"):
        contents.add(message)
    return contents


async def read_in_all_scopes(streams: JetStreamContext, path: str) -> Mapping[str, bytes]:
    """Return the content of one path in every scope that has it, by scope.

    Raises:
        OSError: it is replaced faster than it can be read.
        nats.errors.Error, TimeoutError, APIError: NATS does not answer.
    """
    for _ in range(RESTORE_TRIES):
        found: dict[str, ScopeContents] = {}
        async for message in read_stream(streams, LOG, f"log.*.{FILE_BRANCH}.{path_token(path)}"):
            found.setdefault(message.subject.split(".")[1], ScopeContents()).add(message)
        try:
            there = {scope: contents for scope, contents in found.items() if path in contents.paths()}
            return {scope: await contents.content(streams, path) for scope, contents in there.items()}
        except ObjectNotFoundError:  # somebody writes it meanwhile
            continue
    raise OSError(errno.EIO, "it changes faster than it can be read", path)


def write_if_changed(root: Path, path: str, content: bytes) -> bool:
    """Write this content to a file, atomically. Returns True if it had another. Blocking. Raises OSError."""
    file = root / path
    try:
        if file.read_bytes() == content:
            return False
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        _clear_way(root, file)
    files.replace_derived(file, content, flush=False)
    return True


def _clear_way(root: Path, file: Path) -> None:
    """Remove a folder at the path of a file, or a file at the path of one of its folders."""
    if file.is_dir():
        files.remove_folder(file)
    for folder in file.parents:
        if folder == root:
            break
        if folder.is_file():
            files.remove(folder)


def _remove_others(root: Path, subfolders: Collection[str], wanted: Collection[str]) -> list[str]:
    others = [path for path in files_below(root, subfolders) if path not in wanted]
    for path in others:
        files.remove(root / path)
    return others


# Following: a copy that is kept up to date

OnPaths = Callable[[Collection[str]], None]


class FolderFollower:
    """Makes a folder equal to a scope, and keeps it so. After an error it begins again, and writes only differences."""

    def __init__(
        self,
        file_connection: FileConnection,
        scope: str,
        root: Path,
        subfolders: Collection[str] = (".",),
        on_change: Callable[[Collection[str]], object] = lambda _: None,
    ) -> None:
        """`subfolders`: in them, files that the scope does not have are deleted. `on_change` is called with the paths
        that have changed, in order, on the event loop of `run`.
        """
        self._file_connection, self._scope, self._root, self._subfolders = file_connection, scope, root, subfolders
        self._on_change = on_change
        self._caught_up: Future[None] = Future()

    async def wait_caught_up(self) -> None:
        """Wait until the folder equals the scope as it was at some moment after the start of `run`."""
        await asyncio.shield(asyncio.wrap_future(self._caught_up))

    async def run(self) -> None:
        """Runs until cancelled. Raises OSError: the disk cannot be read or written."""
        loop = asyncio.get_running_loop()

        def on_paths(paths: Collection[str]) -> None:
            if paths:
                loop.call_soon_threadsafe(self._on_change, paths)

        await self._file_connection.do(self._run(on_paths))

    async def _run(self, on_paths: OnPaths) -> None:
        backoff = Backoff(0.1, TRY_SECONDS)
        while True:
            try:
                await self._follow(on_paths)
            except ObjectNotFoundError:
                log.debug("nats: the files of %s change while they are read: again", self._scope)
            except ValueError as error:
                log.warning("nats: the copy of %s is not what was changed (%s); made again", self._scope, error)
            except AWAY_ERRORS as error:
                log.debug("nats: the files of %s are out of reach: %s", self._scope, error)
            else:
                backoff.reset()
            await asyncio.sleep(backoff.pause())

    async def _follow(self, on_paths: OnPaths) -> None:
        """Follow the log. Returns once the server may have forgotten this reader."""
        streams, client = self._file_connection.streams, self._file_connection.client
        assert client is not None  # noqa: S101 (for the type checker: `streams` has seen it)
        subject, everything = (
            f"log.{self._scope}.{FILE_BRANCH}.>",
            api.ConsumerConfig(deliver_policy=api.DeliverPolicy.ALL),
        )
        contents: ScopeContents | None = ScopeContents()
        changed: list[str] = []
        async with aclosing(watch(client, LOG, subject, everything)) as messages:
            try:
                async for message in messages:
                    if message is None:
                        if contents is not None:
                            changed, contents = await contents.write_to(streams, self._root, self._subfolders), None
                        on_paths(changed)
                        changed = []
                        if not self._caught_up.done():
                            self._caught_up.set_result(None)
                    elif contents is not None:
                        contents.add(message)
                    elif (entry := parse_entry(message)) is not None:
                        change = await entry.with_data(streams)
                        if await asyncio.to_thread(_apply_change, self._root, change):
                            changed.append(change.path)
            finally:
                on_paths(changed)


def _apply_change(root: Path, change: FileChange) -> bool:
    """Apply a change to its file; True: the file changed. Blocking. Raises ValueError: it is another file."""
    file = root / change.path
    if change.kind == "remove":
        there = file.is_file()
        if there:
            files.remove(file)
        return there
    content = bytearray()
    if change.length:
        try:
            content += file.read_bytes()
        except FileNotFoundError:
            raise ValueError(f"{change.path}: it is not there") from None
    change.apply(content)
    return write_if_changed(root, change.path, bytes(content))


# Large contents that no entry names

SWEEP_SECONDS = 6 * HOUR


@dataclass(slots=True)
class OrphanedBlobs:
    """Deletes blobs that no entry of the log names, once they are a day old and had no entry at the previous check
    either.

    A writer leaves such a blob if it dies before it appends the entry, or after it has replaced the entry and before it
    deletes the blob. A blob that is written again meanwhile stays (`put_blob_if_large` writes an old one again before
    an entry names it).
    """

    streams: JetStreamContext
    _bucket: ObjectBucket = field(init=False)
    _suspects: dict[str, int] = field(default_factory=dict[str, int], init=False)  # by name, the number of the head

    def __post_init__(self) -> None:
        self._bucket = ObjectBucket(self.streams, BLOBS)

    async def sweep(self) -> int:
        """Return how many were deleted. Raises ServerAway, or as the client."""
        heads = await self._bucket.heads()  # before the entries, so that each blob's entry is read if it has one
        entries = read_stream(self.streams, LOG, "log.>", headers_only=True)
        named = {(entry.headers or {}).get(BLOB, "") async for entry in entries}
        orphans = {head.name: head for head in heads if head.name not in named and _is_old(head)}
        confirmed = [head for head in orphans.values() if self._suspects.get(head.name) == head.revision]
        deleted_names = [head.name for head in confirmed if await self._bucket.delete_if_unchanged(head)]
        await self._bucket.clear_orphans(heads, DAY)  # of writers that died halfway
        self._suspects = {name: head.revision for name, head in orphans.items() if name not in deleted_names}
        if deleted_names:
            log.info("nats: %s deleted that no file has any more", number_of(len(deleted_names), "large content"))
        return len(deleted_names)

    async def keep_sweeping(self) -> None:
        """Runs until cancelled, in one of all processes."""
        while True:
            try:
                await self.sweep()
            except (ServerAway, *AWAY_ERRORS) as error:
                log.info("nats: large contents are not swept now: %s", error)
            await asyncio.sleep(SWEEP_SECONDS)


def _is_old(head: ObjectInfo) -> bool:
    return head.written != "" and from_rfc3339(head.written) < now() - DAY
