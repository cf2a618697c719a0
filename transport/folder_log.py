"""A folder kept in the log: its one writer appends each change before it is on the disk, other processes have copies.

`LogJournal` is the writer's side, below `services.storage.files`; `publish` uploads a folder that others write.
`restore` makes a copy, `FolderFollower` keeps one up to date, `read_in_all_scopes` reads one file in all scopes.

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

from clock import from_rfc3339, now
from clock.timeouts import Backoff
from services.storage import FileChange, files
from services.telemetry import number_of
from transport.connection import AWAY_ERRORS, FILE_PATIENCE_SECONDS, TRY_SECONDS, FileConnection, retry
from transport.errors import ServerAway
from transport.fenced_log import FencedLog, erase_entry, erase_subject
from transport.object_store import ObjectBucket, ObjectChanged, ObjectInfo
from transport.streams import BLOBS, DAY_SECONDS, LOG, TTL, read_stream, watch

T = TypeVar("T")


async def retry_file(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """`retry`, for as long as a file waits. Raises ServerAway, and ObjectNotFoundError at once."""
    return await retry(work, FILE_PATIENCE_SECONDS, per_try=None, unless=ObjectNotFoundError)


OWN_ENDINGS = (".sqlite", ".sqlite-wal", ".sqlite-shm", ".sqlite-journal")
"""Of files that each process makes for itself: databases, built from the others."""

log = logging.getLogger(__name__)


def files_below(root: Path, subfolders: Collection[str]) -> Iterator[str]:
    """The paths of files, relative to `root`, in order. Not those that lead out of it, nor databases. Blocking."""
    home = os.path.realpath(root)
    for name in sorted(subfolders):
        top = root / name
        found = [top] if top.is_file() else _walked(top)
        for path in found:
            if path.name.endswith(OWN_ENDINGS) or path.name.startswith(files.LEFTOVER_PREFIX) or not path.is_file():
                continue
            if not os.path.realpath(path).startswith(f"{home}{os.sep}"):
                log.warning("%s: left out, it leads out of %s", path, root)
                continue
            yield path.relative_to(root).as_posix()


def _walked(top: Path) -> Iterator[Path]:
    been: set[str] = set()
    for folder, folders, names in os.walk(top, followlinks=True):
        been.add(os.path.realpath(folder))
        # A link to a folder above it has no end.
        folders[:] = sorted(each for each in folders if os.path.realpath(Path(folder, each)) not in been)
        yield from (Path(folder, name) for name in sorted(names))


def is_in(path: str, subfolders: Collection[str]) -> bool:
    return any(each in (".", path) or path.startswith(f"{each}/") for each in subfolders)


# Entries of the log, and large contents

FILES = "file"
CHANGE, LENGTH, BLOB, DIGEST = "Change", "Length", "Blob", "Digest"
LARGE_BYTES = 512 * 1024
FRESH_SECONDS = 43_200
"""So long a content that is there is taken as it is: half as long as nobody's are kept."""
REMOVED_SECONDS = 86_400
"""How long it is told that a file is gone. Who has not looked for longer compares its folder with the whole log."""


_KINDS = ("replace", "append", "truncate", "remove")


class NotAPath(Exception):
    """It does not lead to a file of the folder."""


def path_token(path: str) -> str:
    """Of a path relative to the folder, with `/`. Raises NotAPath."""
    if not is_inside_folder(path):
        raise NotAPath(path)
    return base64.urlsafe_b64encode(path.encode("utf-8", "surrogateescape")).decode().rstrip("=")


def path_of(subject: str) -> str:
    """Raises NotAPath."""
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
    """Return whether a relative path stays in its folder, and is written the only way."""
    return path not in ("", ".") and "\0" not in path and str(PurePosixPath(path)) == path and _no_step_out(path)


def _no_step_out(path: str) -> bool:
    return not path.startswith("/") and ".." not in path.split("/")


@dataclass(frozen=True, slots=True)
class Entry:
    """A change of a file as the log has it; `blob`: names the object that holds its data."""

    change: FileChange
    blob: str = ""

    async def whole(self, streams: JetStreamContext) -> FileChange:
        """The change with its data. Raises ObjectNotFoundError: the file has been replaced meanwhile."""
        if not self.blob:
            return self.change
        found = await (await streams.object_store(BLOBS)).get(self.blob)
        data = bytes(found.data or b"")
        return FileChange(self.change.kind, self.change.path, data, self.change.length)


def parse_entry(message: Msg) -> Entry | None:
    """None, and a warning: it was not written by this program."""
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


def headers_of(change: FileChange, blob: str, content_digest: str = "") -> Mapping[str, str]:
    headers = {CHANGE: change.kind}
    if change.length:
        headers[LENGTH] = str(change.length)
    if blob:
        headers[BLOB] = blob
    if content_digest:
        headers[DIGEST] = content_digest
    if change.kind == "remove":
        headers[TTL] = f"{REMOVED_SECONDS}s"
    return headers


def content_digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


async def put_blob_if_large(streams: JetStreamContext, scope: str, change: FileChange) -> str:
    """Store what is too large for an entry; gives its name, or nothing where it is not."""
    if len(change.data) <= LARGE_BYTES:
        return ""
    name = f"{scope}/{change.path}/{content_digest(change.data)}"
    bucket = ObjectBucket(streams, BLOBS)
    while True:
        there = await bucket.look(name)
        # An old one that nobody names is about to be swept (`OrphanedBlobs`): written again, it is not.
        if there.there and there.written and from_rfc3339(there.written) > now() - FRESH_SECONDS:
            return name
        with suppress(ObjectChanged):  # it was swept at this moment
            await bucket.put(there, change.data, {})
            return name


async def drop_blob(streams: JetStreamContext, name: str) -> None:
    """Its bytes are overwritten."""
    blobs = await streams.object_store(BLOBS)
    try:
        pieces = (await blobs.get_info(name)).nuid
        await erase_subject(streams, f"OBJ_{BLOBS}", f"$O.{BLOBS}.C.{pieces}")
        await blobs.delete(name)
    except (NotFoundError, ObjectNotFoundError):
        return


# Writing: the log of the one writer

MOST_ENTRIES = 100
"""Of one file; then it is told as a whole, so that whoever takes over has not to read each line that was ever added."""


@dataclass(slots=True)
class KnownFile:
    """What the log has of a file.

    Attributes:
        digest: of the content, where its last entry is all of it and says so.
        blobs: the objects that its entries name.
        numbers: of its entries.
        length: of the content, where it is known.
    """

    digest: str = ""
    blobs: list[str] = field(default_factory=list[str])
    numbers: list[int] = field(default_factory=list[int])
    length: int | None = None


@dataclass(slots=True)
class RecordedFiles:
    """The files that a scope has, by path; and what a writer that was killed has not erased: the numbers of entries
    that later ones have superseded, and the objects that only those name.
    """

    files: dict[str, KnownFile] = field(default_factory=dict[str, KnownFile])
    superseded: list[int] = field(default_factory=list[int])
    unused: set[str] = field(default_factory=set[str])


class SupersededEntries:
    """Erases entries one after another, beside the writing. A server that takes them out by `Nats-Rollup` would leave
    their bytes in its files, and somebody may have to be forgotten later.
    """

    def __init__(self, streams: JetStreamContext) -> None:
        self._streams = streams
        self._left: deque[int] = deque()
        self._erased = 0
        self._task: asyncio.Task[None] | None = None

    def add(self, numbers: Iterable[int]) -> None:
        """On the loop of the connection."""
        self._left.extend(numbers)
        if self._left and (self._task is None or self._task.done()):
            self._task = asyncio.get_running_loop().create_task(self._erase())

    async def wait(self) -> None:
        """Until none is left. Raises OSError: for a minute the server has erased nothing."""
        while self._left:
            erased = self._erased
            self.add(())
            assert self._task is not None  # noqa: S101 (for the type checker: something is left)
            await asyncio.wait([self._task], timeout=FILE_PATIENCE_SECONDS)
            if self._erased == erased:
                raise OSError(errno.EIO, "NATS does not erase what was replaced")

    async def _erase(self) -> None:
        def erase_next() -> Coroutine[Any, Any, None]:
            return erase_entry(self._streams, LOG, self._left[0])

        with suppress(ConnectionClosedError):  # whoever writes the scope next finds them
            while self._left:
                await retry(erase_next, math.inf, per_try=None, unless=ConnectionClosedError)
                self._left.popleft()
                self._erased += 1


class Writer:
    """Tells the log of changes of files, on the loop of its connection."""

    def __init__(self, scope: FencedLog) -> None:
        self._log = scope
        self._recorded: dict[str, KnownFile] | None = None
        self._reading = asyncio.Lock()
        self._superseded = SupersededEntries(scope.streams)

    async def write(self, change: FileChange, digest: str = "") -> None:
        """`digest`: of the content of a file that is replaced.

        Raises:
            NotAPath: it leads out of the folder.
            Fenced, OSError: as `FencedLog.append`.
        """
        streams = self._log.streams
        token = path_token(change.path)
        known = await self.recorded_files()
        file = known.setdefault(change.path, KnownFile())
        if _wants_all(change, file):
            change = await retry_file(lambda: _as_a_whole(streams, self._log.scope, change))
        blob = await retry_file(lambda: put_blob_if_large(streams, self._log.scope, change))
        number = await self._log.append(
            f"{FILES}.{token}", b"" if blob else change.data, headers_of(change, blob, digest)
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
        for each in unused:  # only now: until the entry was in, they were the content
            await retry_file(lambda each=each: drop_blob(streams, each))
        # After the objects that they name: where this process is killed, its successor finds both.
        self._superseded.add(superseded)

    async def recorded_files(self) -> dict[str, KnownFile]:
        """What the log has, by path. Read once: nobody else writes it."""
        async with self._reading:
            if self._recorded is None:
                streams = self._log.streams
                recorded = await retry_file(lambda: _recorded(streams, self._log.scope))
                for each in recorded.unused:
                    await retry_file(lambda each=each: drop_blob(streams, each))
                self._superseded.add(recorded.superseded)
                self._recorded = recorded.files
            return self._recorded

    async def erased(self) -> None:
        """Wait until nothing that was replaced or removed has left bytes behind. Raises OSError."""
        await self.recorded_files()
        await self._superseded.wait()


def _wants_all(change: FileChange, file: KnownFile) -> bool:
    """True if a change is told as the whole file: there are many entries, or what it cuts off would stay in one."""
    if change.kind == "append":
        cuts = file.length is not None and change.length < file.length
        return cuts or len(file.numbers) >= MOST_ENTRIES
    return change.kind == "truncate"


class LogJournal:
    """Commits the changes of a folder to the log of its scope. From any thread but that of `file_connection`."""

    def __init__(self, file_connection: FileConnection, scope: FencedLog) -> None:
        self._file_connection = file_connection
        self._writer = Writer(scope)

    @contextmanager
    def erasing(self) -> Generator[None]:
        """What was replaced or removed in the block, or before it, has left no bytes behind when it ends. Raises
        OSError: the server does not answer.
        """
        yield
        self._file_connection.start(self._writer.erased()).result()

    def commit(self, change: FileChange) -> None:
        """Raises as `Writer.write`."""
        self._file_connection.start(self._writer.write(change)).result()


async def _as_a_whole(streams: JetStreamContext, scope: str, change: FileChange) -> FileChange:
    """The same, as a file that is replaced: read from the log, which may be ahead of the disk."""
    contents = ScopeContents()  # which bears that some entries before a replacement are erased already
    async for message in read_stream(streams, LOG, f"log.{scope}.{FILES}.{path_token(change.path)}"):
        contents.add(message)
    content = bytearray(await contents.content(streams, change.path))
    change.apply(content)
    return FileChange("replace", change.path, bytes(content))


async def recorded_files(streams: JetStreamContext, scope: str) -> dict[str, KnownFile]:
    """The files that a scope has, by path."""
    return (await _recorded(streams, scope)).files


async def _recorded(streams: JetStreamContext, scope: str) -> RecordedFiles:
    found = RecordedFiles()
    async for message in read_stream(streams, LOG, f"log.{scope}.{FILES}.>", headers_only=True):
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
class Published:
    """How many files were written to the log or removed from it; 0 if the log was up to date."""

    published: int = 0
    removed: int = 0


class FolderPublisher:
    """Brings the log to what folders hold, again and again: what did not change since is not read again."""

    def __init__(
        self,
        scope: FencedLog,
        root: Path,
        subfolders: Collection[str],
        last: Collection[str] = (),
        elsewhere: Mapping[str, Path] = MappingProxyType({}),
    ) -> None:
        """`subfolders`: folders or files below `root`; `last`: files that name others, and come after them;
        `elsewhere`: where on the disk some of the subfolders are, instead of below `root`.
        """
        self._writer = Writer(scope)
        self._root, self._subfolders, self._last, self._elsewhere = root, subfolders, last, elsewhere
        self._stamps: dict[str, tuple[int, int]] = {}

    async def publish(self, on_file: Callable[[str], object] = lambda _: None) -> Published:
        """On the loop of the connection; nothing else may write the scope.

        Raises:
            Fenced, OSError: as `FencedLog.append`; or a file cannot be read.
        """
        known = await self._writer.recorded_files()
        found, done = await self.found(), Published()
        for path in sorted(found, key=lambda path: (path in self._last, path)):
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

    async def found(self) -> dict[str, Path]:
        """The files on the disk, by their paths in the log."""
        return await asyncio.to_thread(self._found)

    def _found(self) -> dict[str, Path]:
        found = {
            path: self._root / path
            for path in files_below(self._root, self._subfolders)
            if not is_in(path, self._elsewhere)
        }
        for prefix, place in self._elsewhere.items():
            if place.is_file():
                found[prefix] = place
            elif place.is_dir():
                found |= {f"{prefix}/{path}": place / path for path in files_below(place, (".",))}
        return found


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size


# Restoring: copies of a scope

RESTORE_TRIES = 8


class ScopeContents:
    """The files of a scope as the log has them: collected entry by entry, then written to a folder where it differs."""

    def __init__(self) -> None:
        self._files: dict[str, list[Entry]] = {}

    def add(self, message: Msg) -> None:
        entry = parse_entry(message)
        if entry is None:
            return
        before = self._files.pop(entry.change.path, [])  # the order is that of the last changes
        if entry.change.kind in ("replace", "remove"):
            before = []
        if entry.change.kind != "remove":
            before.append(entry)
            self._files[entry.change.path] = before

    def paths(self) -> Sequence[str]:
        return tuple(self._files)

    async def content(self, streams: JetStreamContext, path: str) -> bytes:
        """Nothing where there is no such file. Raises ObjectNotFoundError: the file has been replaced meanwhile."""
        content = bytearray()
        for entry in self._files.get(path, ()):
            (await entry.whole(streams)).apply(content)
        return bytes(content)

    async def settle(self, streams: JetStreamContext, root: Path, subfolders: Collection[str]) -> list[str]:
        """Make a folder so. Files of `subfolders` that the log does not have are deleted ("." is all of the folder);
        gives the paths of those that were not so.

        Raises:
            ObjectNotFoundError: a file has been replaced meanwhile.
            OSError: the disk.
        """
        changed: list[str] = []
        for path in self._files:
            content = await self.content(streams, path)
            if await asyncio.to_thread(write_if_changed, root, path, content):
                changed.append(path)
        changed += await asyncio.to_thread(_clear_others, root, subfolders, self._files.keys())
        return changed


async def restore(scope: FencedLog, root: Path, subfolders: Collection[str] = ()) -> list[str]:
    """Make a folder what the log says, as `ScopeContents.settle`; on the loop of the connection.

    Raises:
        OSError: the disk, or NATS does not answer.
    """
    for _ in range(RESTORE_TRIES):
        contents = await retry_file(lambda: _contents(scope))
        try:
            return await retry_file(lambda contents=contents: contents.settle(scope.streams, root, subfolders))
        except ObjectNotFoundError:  # somebody writes it meanwhile
            continue
    raise OSError(errno.EIO, f"the files of {scope.scope} in NATS change faster than they can be read", str(root))


async def _contents(scope: FencedLog) -> ScopeContents:
    contents = ScopeContents()
    async for message in scope.entries(branch=f"{FILES}.>"):
        contents.add(message)
    return contents


async def read_in_all_scopes(streams: JetStreamContext, path: str) -> Mapping[str, bytes]:
    """The content of one path in every scope that has it, by scope.

    Raises:
        OSError: it is replaced faster than it can be read.
        nats.errors.Error, TimeoutError, APIError: NATS does not answer.
    """
    for _ in range(RESTORE_TRIES):
        found: dict[str, ScopeContents] = {}
        async for message in read_stream(streams, LOG, f"log.*.{FILES}.{path_token(path)}"):
            found.setdefault(message.subject.split(".")[1], ScopeContents()).add(message)
        try:
            there = {scope: contents for scope, contents in found.items() if path in contents.paths()}
            return {scope: await contents.content(streams, path) for scope, contents in there.items()}
        except ObjectNotFoundError:  # somebody writes it meanwhile
            continue
    raise OSError(errno.EIO, "it changes faster than it can be read", path)


def write_if_changed(root: Path, path: str, content: bytes) -> bool:
    """Give a file this content, atomically; tells whether it had another. Blocking. Raises OSError."""
    file = root / path
    try:
        if file.read_bytes() == content:
            return False
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        _clear_way(root, file)
    files.replace_derived(file, content, flush=False)
    return True


def _clear_way(root: Path, file: Path) -> None:
    """What was a folder is a file now, or the other way round."""
    if file.is_dir():
        files.remove_folder(file)
    for folder in file.parents:
        if folder == root:
            break
        if folder.is_file():
            files.remove(folder)


def _clear_others(root: Path, subfolders: Collection[str], wanted: Collection[str]) -> list[str]:
    others = [path for path in files_below(root, subfolders) if path not in wanted]
    for path in others:
        files.remove(root / path)
    return others


# Following: a copy that is kept up to date

Tell = Callable[[Collection[str]], None]


class FolderFollower:
    """Makes a folder what a scope says, and each change after that. Whatever it loses, it begins again, and writes only
    what differs.
    """

    def __init__(
        self,
        file_connection: FileConnection,
        scope: str,
        root: Path,
        subfolders: Collection[str] = (".",),
        on_change: Callable[[Collection[str]], object] = lambda _: None,
    ) -> None:
        """`subfolders`: of them, what the scope does not have is deleted. `on_change` is told of the paths that have
        changed, in order, on the event loop of `run`.
        """
        self._file_connection, self._scope, self._root, self._subfolders = file_connection, scope, root, subfolders
        self._on_change = on_change
        self._caught_up: Future[None] = Future()

    async def caught_up(self) -> None:
        """Wait until the folder is what the scope was at some moment after the begin of `run`."""
        await asyncio.shield(asyncio.wrap_future(self._caught_up))

    async def run(self) -> None:
        """Until it is cancelled. Raises OSError: the disk."""
        loop = asyncio.get_running_loop()

        def tell(paths: Collection[str]) -> None:
            if paths:
                loop.call_soon_threadsafe(self._on_change, paths)

        await self._file_connection.do(self._run(tell))

    async def _run(self, tell: Tell) -> None:
        backoff = Backoff(0.1, TRY_SECONDS)
        while True:
            try:
                await self._follow(tell)
            except ObjectNotFoundError:
                log.debug("nats: the files of %s change while they are read: again", self._scope)
            except ValueError as error:
                log.warning("nats: the copy of %s is not what was changed (%s); made again", self._scope, error)
            except AWAY_ERRORS as error:
                log.debug("nats: the files of %s are out of reach: %s", self._scope, error)
            else:
                backoff.reset()
            await asyncio.sleep(backoff.pause())

    async def _follow(self, tell: Tell) -> None:
        """Returns once the server may have forgotten it."""
        streams, client = self._file_connection.streams, self._file_connection.client
        assert client is not None  # noqa: S101 (for the type checker: `streams` has seen it)
        subject, everything = f"log.{self._scope}.{FILES}.>", api.ConsumerConfig(deliver_policy=api.DeliverPolicy.ALL)
        contents: ScopeContents | None = ScopeContents()
        changed: list[str] = []
        async with aclosing(watch(client, LOG, subject, everything)) as messages:
            try:
                async for message in messages:
                    if message is None:
                        if contents is not None:
                            changed, contents = await contents.settle(streams, self._root, self._subfolders), None
                        tell(changed)
                        changed = []
                        if not self._caught_up.done():
                            self._caught_up.set_result(None)
                    elif contents is not None:
                        contents.add(message)
                    elif (entry := parse_entry(message)) is not None:
                        change = await entry.whole(streams)
                        if await asyncio.to_thread(_apply, self._root, change):
                            changed.append(change.path)
            finally:
                tell(changed)


def _apply(root: Path, change: FileChange) -> bool:
    """Tells whether the file is another now. Blocking. Raises ValueError: it is not the file that was changed."""
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

SWEEP_SECONDS = 6 * 3600.0


@dataclass(slots=True)
class OrphanedBlobs:
    """Deletes large contents that no entry of the log names, once they are a day old and had no entry at the check
    before as well.

    Such a content is left where its writer died before it appended the entry, or after the entry was replaced and
    before it deleted the content. A head that is written again meanwhile is another one and stays (`put_blob_if_large`
    writes it again before an entry names an old content).
    """

    streams: JetStreamContext
    _bucket: ObjectBucket = field(init=False)
    _suspects: dict[str, int] = field(default_factory=dict[str, int], init=False)  # by name, the number of the head

    def __post_init__(self) -> None:
        self._bucket = ObjectBucket(self.streams, BLOBS)

    async def sweep(self) -> int:
        """Gives how many were deleted. Raises ServerAway, or as the client."""
        heads = await self._bucket.heads()  # first: what comes after it is not looked at
        entries = read_stream(self.streams, LOG, "log.>", headers_only=True)
        named = {(entry.headers or {}).get(BLOB, "") async for entry in entries}
        alone = {head.name: head for head in heads if head.name not in named and _is_old(head)}
        again = [head for head in alone.values() if self._suspects.get(head.name) == head.revision]
        gone = [head.name for head in again if await self._bucket.delete_if_unchanged(head)]
        await self._bucket.clear_orphans(heads, DAY_SECONDS)  # of writers that died halfway
        self._suspects = {name: head.revision for name, head in alone.items() if name not in gone}
        if gone:
            log.info("nats: %s deleted that no file has any more", number_of(len(gone), "large content"))
        return len(gone)

    async def keep_sweeping(self) -> None:
        """Until it is cancelled. For one process."""
        while True:
            try:
                await self.sweep()
            except (ServerAway, *AWAY_ERRORS) as error:
                log.info("nats: large contents are not swept now: %s", error)
            await asyncio.sleep(SWEEP_SECONDS)


def _is_old(head: ObjectInfo) -> bool:
    return head.written != "" and from_rfc3339(head.written) < now() - DAY_SECONDS
