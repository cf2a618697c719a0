"""The writer's side: append each change of a file to the log before it is on the disk."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from nats.js import JetStreamContext

from services.storage import FileChange
from transport.connection import FileConnection
from transport.erasing import erase
from transport.fence import FencedLog, read_all
from transport.layout import LOG
from transport.mirror import entries
from transport.mirror.patience import patiently

MOST_ENTRIES = 100
"""Of one file; then it is told as a whole, so that whoever takes over has not to read each line that was ever added."""


@dataclass(slots=True)
class KnownFile:
    """What the log has of a file.

    Attributes:
        digest: of the content, where its last entry is all of it and says so.
        blobs: the objects that its entries name.
        count: of its entries.
    """

    digest: str = ""
    count: int = 0
    blobs: list[str] = field(default_factory=list[str])


class Writer:
    """Tells the log of changes of files, on the loop of its connection."""

    def __init__(self, scope: FencedLog) -> None:
        self._log = scope
        self._recorded: dict[str, KnownFile] | None = None
        self.erasing = False
        """Whether what is replaced is overwritten in the server's files."""

    async def write(self, change: FileChange, digest: str = "") -> None:
        """`digest`: of the content of a file that is replaced.

        Raises:
            NotAPath: it leads out of the folder.
            Fenced, OSError: as `FencedLog.append`.
        """
        streams = self._log.streams
        token = entries.token(change.path)
        known = await self.recorded_files()
        file = known.setdefault(change.path, KnownFile())
        if change.kind == "append" and file.count >= MOST_ENTRIES:
            change = await patiently(lambda: _as_a_whole(streams, self._log.scope, change))
        blob = await patiently(lambda: entries.put_blob_if_large(streams, self._log.scope, change))
        whole = change.kind in ("replace", "remove")
        erasing = self.erasing and whole
        branch = f"{entries.FILES}.{token}"
        sent = entries.headers_of(change, blob, digest, erasing=erasing)
        number = await self._log.append(branch, b"" if blob else change.data, sent)
        if erasing:
            await patiently(lambda: erase(streams, LOG, f"log.{self._log.scope}.{branch}", number))
        unused: list[str] = []
        if whole:
            unused, file.blobs, file.count = [each for each in file.blobs if each != blob], [], 0
        file.digest = digest
        file.count += 1
        if blob:
            file.blobs.append(blob)
        if change.kind == "remove":
            del known[change.path]
        for each in unused:  # only now: until the entry was in, they were the content
            await patiently(lambda each=each: entries.drop_blob(streams, each, erasing=erasing))

    async def recorded_files(self) -> dict[str, KnownFile]:
        """What the log has, by path. Read once: nobody else writes it."""
        if self._recorded is None:
            self._recorded = await patiently(lambda: recorded_files(self._log.streams, self._log.scope))
        return self._recorded


class LogJournal:
    """Commits the changes of a folder to the log of its scope. From any thread but that of `file_connection`."""

    def __init__(self, file_connection: FileConnection, scope: FencedLog) -> None:
        self._file_connection = file_connection
        self._writer = Writer(scope)

    @contextmanager
    def erasing(self) -> Generator[None]:
        """What is replaced in the block leaves no bytes behind."""
        self._writer.erasing = True
        try:
            yield
        finally:
            self._writer.erasing = False

    def commit(self, change: FileChange) -> None:
        """Raises as `Writer.write`."""
        self._file_connection.start(self._writer.write(change)).result()


async def _as_a_whole(streams: JetStreamContext, scope: str, change: FileChange) -> FileChange:
    """The same, as a file that is replaced: read from the log, which may be ahead of the disk."""
    content = bytearray()
    async for message in read_all(streams, f"log.{scope}.{entries.FILES}.{entries.token(change.path)}"):
        entry = entries.read(message)
        if entry is not None:
            (await entry.whole(streams)).apply(content)
    change.apply(content)
    return FileChange("replace", change.path, bytes(content))


async def recorded_files(streams: JetStreamContext, scope: str) -> dict[str, KnownFile]:
    """The files that a scope has, by path."""
    found: dict[str, KnownFile] = {}
    async for message in read_all(streams, f"log.{scope}.{entries.FILES}.>", headers_only=True):
        entry = entries.read(message)
        if entry is None:
            continue
        if entry.change.kind in ("replace", "remove"):
            found.pop(entry.change.path, None)
        if entry.change.kind != "remove":
            file = found.setdefault(entry.change.path, KnownFile())
            file.count += 1
            file.digest = (message.headers or {}).get(entries.DIGEST, "")
            file.blobs += filter(None, [entry.blob])
    return found
