"""Delete large contents (objects of the bucket `blobs`) that no entry of the log names, left by a process that died
while writing.
"""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field

from nats.js import JetStreamContext

from clock import from_rfc3339, now
from services.telemetry import number_of
from transport.connection import AWAY
from transport.errors import ServerAway
from transport.fence import read_all
from transport.layout import BLOBS, DAY_SECONDS
from transport.mirror.entries import BLOB
from transport.objects import ObjectBucket, ObjectInfo

LOOK_SECONDS = 6 * 3600.0

log = logging.getLogger(__name__)


@dataclass(slots=True)
class OrphanedBlobs:
    """Deletes them, once they are a day old and were nobody's at the look before as well.

    A head that is written again meanwhile is another: it stays (`entries.put_blob` does so before it names an old one).
    """

    streams: JetStreamContext
    _bucket: ObjectBucket = field(init=False)
    _suspects: dict[str, int] = field(default_factory=dict[str, int], init=False)  # by name, the number of the head

    def __post_init__(self) -> None:
        self._bucket = ObjectBucket(self.streams, BLOBS)

    async def sweep(self) -> int:
        """Gives how many were deleted. Raises ServerAway, or as the client."""
        heads = await self._bucket.heads()  # first: what comes after it is not looked at
        named = {
            (entry.headers or {}).get(BLOB, "") async for entry in read_all(self.streams, "log.>", headers_only=True)
        }
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
            except (ServerAway, *AWAY) as error:
                log.info("nats: large contents are not swept now: %s", error)
            await asyncio.sleep(LOOK_SECONDS)


def _is_old(head: ObjectInfo) -> bool:
    return head.written != "" and from_rfc3339(head.written) < now() - DAY_SECONDS
