"""The one writer's side: each change of a file is an entry first."""

from __future__ import annotations

from dataclasses import dataclass, field

from nats.js import JetStreamContext

from services.storage import Change
from transport.connection import Beside
from transport.fence import FencedLog, read_all
from transport.mirror import entries
from transport.mirror.patience import patiently


@dataclass(slots=True)
class Recorded:
    """What the log has of a file.

    Attributes:
        digest: of the content, where its last entry is all of it and says so.
        blobs: the objects that its entries name.
    """

    digest: str = ""
    blobs: list[str] = field(default_factory=list[str])


class Writer:
    """Tells the log of changes of files, on the loop of its connection."""

    def __init__(self, scope: FencedLog) -> None:
        self._log = scope
        self._recorded: dict[str, Recorded] | None = None

    async def write(self, change: Change, digest: str = "") -> None:
        """`digest`: of the content of a file that is replaced.

        Raises:
            NotAPath: it leads out of the folder.
            Fenced, OSError: as `FencedLog.append`.
        """
        streams = self._log.streams
        token = entries.token(change.path)
        known = await self.recorded()
        blob = await patiently(lambda: entries.put_blob(streams, self._log.scope, change))
        sent = entries.headers_of(change, blob, digest)
        await self._log.append(f"{entries.FILES}.{token}", b"" if blob else change.data, sent)
        file = known.setdefault(change.path, Recorded())
        unused: list[str] = []
        if change.kind in ("replace", "remove"):
            unused, file.blobs = [each for each in file.blobs if each != blob], []
        file.digest = digest
        if blob:
            file.blobs.append(blob)
        if change.kind == "remove":
            del known[change.path]
        for each in unused:  # only now: until the entry was in, they were the content
            await patiently(lambda each=each: entries.drop_blob(streams, each))

    async def recorded(self) -> dict[str, Recorded]:
        """What the log has, by path. Read once: nobody else writes it."""
        if self._recorded is None:
            self._recorded = await patiently(lambda: recorded(self._log.streams, self._log.scope))
        return self._recorded


class LogJournal:
    """Commits the changes of a folder to the log of its scope. From any thread but that of `beside`."""

    def __init__(self, beside: Beside, scope: FencedLog) -> None:
        self._beside = beside
        self._writer = Writer(scope)

    def commit(self, change: Change) -> None:
        """Raises as `Writer.write`."""
        self._beside.start(self._writer.write(change)).result()


async def recorded(streams: JetStreamContext, scope: str) -> dict[str, Recorded]:
    """The files that a scope has, by path."""
    found: dict[str, Recorded] = {}
    async for message in read_all(streams, f"log.{scope}.{entries.FILES}.>", headers_only=True):
        entry = entries.read(message)
        if entry is None:
            continue
        if entry.change.kind in ("replace", "remove"):
            found.pop(entry.change.path, None)
        if entry.change.kind != "remove":
            file = found.setdefault(entry.change.path, Recorded())
            file.digest = (message.headers or {}).get(entries.DIGEST, "")
            file.blobs += filter(None, [entry.blob])
    return found
