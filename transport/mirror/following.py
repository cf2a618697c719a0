"""Keep a folder equal to a scope of the log."""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from concurrent.futures import Future
from pathlib import Path

from nats.js import JetStreamContext, api
from nats.js.errors import ObjectNotFoundError

from clock.backoff import Backoff
from services.storage import FileChange, files
from transport.connection import AWAY, FileConnection
from transport.fence import READ_SECONDS, TRY_SECONDS
from transport.layout import LOG
from transport.mirror import entries
from transport.mirror.copying import ScopeContents, make

LOOK_SECONDS = 0.25
"""How often it is seen whether the connection was lost: a restarted server does not know who reads from it."""
LOOKS = 20
"""After so many without a change the server is asked whether it knows."""

Tell = Callable[[Collection[str]], None]

log = logging.getLogger(__name__)


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
            except AWAY as error:
                log.debug("nats: the files of %s are out of reach: %s", self._scope, error)
            else:
                backoff.reset()
            await asyncio.sleep(backoff.pause())

    async def _follow(self, tell: Tell) -> None:
        """Returns once the server may have forgotten it."""
        streams, client = self._file_connection.streams, self._file_connection.client
        assert client is not None  # noqa: S101 (for the type checker: `streams` has seen it)
        connects = client.stats["reconnects"]
        reading = await streams.subscribe(
            f"log.{self._scope}.{entries.FILES}.>", stream=LOG, ordered_consumer=True, config=_everything()
        )
        looks, changed = 0, list[str]()
        try:
            await self._fill(streams, reading, tell)
            while client.stats["reconnects"] == connects:
                try:
                    message = await reading.next_msg(timeout=LOOK_SECONDS)
                except TimeoutError:
                    # What seemed to follow was a beat of the server, which no one is given.
                    tell(changed)
                    changed = []
                    looks += 1
                    if looks == LOOKS:
                        await reading.consumer_info()
                        looks = 0
                    continue
                entry = entries.read(message)
                if entry is not None:
                    change = await entry.whole(streams)
                    if await asyncio.to_thread(_apply, self._root, change):
                        changed.append(change.path)
                if not reading.pending_msgs:
                    tell(changed)
                    changed = []
        finally:
            tell(changed)
            await reading.unsubscribe()

    async def _fill(
        self,
        streams: JetStreamContext,
        reading: JetStreamContext.PushSubscription,
        tell: Tell,
    ) -> None:
        info = await reading.consumer_info()
        left = (info.num_pending or 0) + (info.delivered.consumer_seq if info.delivered else 0)
        contents = ScopeContents()
        while left:
            message = await reading.next_msg(timeout=READ_SECONDS)
            left = message.metadata.num_pending
            contents.add(message)
        tell(await contents.settle(streams, self._root, self._subfolders))
        if not self._caught_up.done():
            self._caught_up.set_result(None)


def _everything() -> api.ConsumerConfig:
    return api.ConsumerConfig(deliver_policy=api.DeliverPolicy.ALL)


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
    return make(root, change.path, bytes(content))
