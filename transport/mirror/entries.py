"""Changes of files as entries of the log: their subjects and headers, and contents that are too large for one.

`log.<scope>.file.<token>` is a file; its entries since it was last replaced give its content. A large content is an
object of the bucket `blobs`, named by scope, path and digest: each belongs to one file, and goes with it.
"""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import base64
import binascii
import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError, ObjectNotFoundError

from clock import from_rfc3339, now
from services.storage import FileChange
from transport.erasing import erase
from transport.layout import BLOBS
from transport.protocol import ROLLUP, TTL

FILES = "file"
CHANGE, LENGTH, BLOB, DIGEST = "Change", "Length", "Blob", "Digest"
LARGE_BYTES = 512 * 1024
FRESH_SECONDS = 43_200
"""So long a content that is there is taken as it is: half as long as nobody's are kept."""
REMOVED_SECONDS = 86_400
"""How long it is told that a file is gone. Who has not looked for longer compares its folder with the whole log."""

log = logging.getLogger(__name__)

_KINDS = ("replace", "append", "truncate", "remove")


class NotAPath(Exception):
    """It does not lead to a file of the folder."""


def token(path: str) -> str:
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
    """Whether a relative path stays in its folder, and is written the only way."""
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


def read(message: Msg) -> Entry | None:
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


def headers_of(change: FileChange, blob: str, digest: str = "", *, erasing: bool = False) -> Mapping[str, str]:
    """`erasing`: what was there before is taken out by who writes this."""
    headers = {CHANGE: change.kind}
    if change.length:
        headers[LENGTH] = str(change.length)
    if blob:
        headers[BLOB] = blob
    if digest:
        headers[DIGEST] = digest
    if change.kind in ("replace", "remove") and not erasing:
        headers[ROLLUP] = "sub"  # what was there before is really gone
    if change.kind == "remove":
        headers[TTL] = f"{REMOVED_SECONDS}s"
    return headers


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


async def put_blob_if_large(streams: JetStreamContext, scope: str, change: FileChange) -> str:
    """Store what is too large for an entry; gives its name, or nothing where it is not."""
    if len(change.data) <= LARGE_BYTES:
        return ""
    name = f"{scope}/{change.path}/{digest(change.data)}"
    blobs = await streams.object_store(BLOBS)
    try:
        there = await blobs.get_info(name)
        # An old one that nobody names is about to be swept (`transport.mirror.orphans`): written again, it is not.
        fresh = there.mtime is not None and from_rfc3339(there.mtime) > now() - FRESH_SECONDS
    except (NotFoundError, ObjectNotFoundError):
        fresh = False
    if not fresh:
        await blobs.put(name, change.data)
    return name


async def drop_blob(streams: JetStreamContext, name: str, *, erasing: bool = False) -> None:
    """`erasing`: its bytes are overwritten."""
    blobs = await streams.object_store(BLOBS)
    try:
        if erasing:
            pieces = (await blobs.get_info(name)).nuid
            await erase(streams, f"OBJ_{BLOBS}", f"$O.{BLOBS}.C.{pieces}")
        await blobs.delete(name)
    except (NotFoundError, ObjectNotFoundError):
        return
