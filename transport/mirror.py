"""A folder that lives in the log: its one writer tells of each change first, everybody else has a copy.

`LogJournal` is the writer's side, below `services.storage.files`. `restore` makes a copy, `Follower` keeps one up to
date, and `publish` tells the log of a folder that others write, such as the operator's documents.
"""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nats.errors import Error
from nats.js import JetStreamContext, api
from nats.js.errors import ObjectNotFoundError

from clock.backoff import Backoff
from services.storage import Change, files
from services.storage.files import LEFTOVER_PREFIX
from transport import entries
from transport.connection import Beside
from transport.entries import Entry
from transport.fence import FencedLog, read_all
from transport.layout import LOG

log = logging.getLogger(__name__)

BLOB_TRIES = 8


@dataclass(slots=True)
class _Known:
    """What the log has of a file, without its content."""

    blobs: list[str] = field(default_factory=list[str])
    digest: str = ""
    """Of the whole content, where the last entry is one; else empty."""


class LogJournal:
    """Commits changes of a folder to the log of a scope. One at a time, from any thread but that of `beside`."""

    def __init__(self, beside: Beside, log: FencedLog) -> None:
        self._beside = beside
        self._writer = Writer(log)

    def commit(self, change: Change) -> None:
        """Raises as `FencedLog.append`: Fenced, OSError."""
        self._beside.start(self._writer.write(change)).result()


class Writer:
    """Writes changes of files to the log of a scope, on the loop of its connection."""

    def __init__(self, log: FencedLog) -> None:
        self._log = log
        self._known: dict[str, _Known] | None = None

    async def write(self, change: Change, digest: str = "") -> None:
        """Raises as `FencedLog.append`, and NotAPath."""
        token = entries.token(change.path)
        known = await self.known()
        blob = await _patient(entries.put_blob, self._log.streams, self._log.scope, change)
        headers = entries.headers_of(change, blob, digest)
        await self._log.append(f"{entries.FILES}.{token}", b"" if blob else change.data, headers)
        before = known.setdefault(change.path, _Known())
        before.digest = digest
        unused: list[str] = []
        if change.kind in ("replace", "remove"):
            unused, before.blobs = [each for each in before.blobs if each != blob], []
        if blob:
            before.blobs.append(blob)
        if change.kind == "remove":
            del known[change.path]
        for each in unused:
            await _patient(entries.drop_blob, self._log.streams, each)

    async def known(self) -> dict[str, _Known]:
        """What the log has, by path: read once."""
        if self._known is None:
            self._known = await _known(self._log.streams, self._log.scope)
        return self._known


async def _known(streams: JetStreamContext, scope: str) -> dict[str, _Known]:
    known: dict[str, _Known] = {}
    async for message in read_all(streams, f"log.{scope}.{entries.FILES}.>"):
        try:
            entry = entries.read(message)
        except (entries.NotAPath, ValueError) as error:
            log.warning("nats: %s: left out, it was not written by this program (%s)", message.subject, error)
            continue
        if entry.change.kind == "remove":
            known.pop(entry.change.path, None)
            continue
        if entry.change.kind == "replace":
            known.pop(entry.change.path, None)
        file = known.setdefault(entry.change.path, _Known())
        file.digest = (message.headers or {}).get(entries.DIGEST, "")
        if entry.blob:
            file.blobs.append(entry.blob)
    return known
