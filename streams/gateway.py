"""The live stream: Discord's gateway as dispatches, and what was missed before it."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, cast

import discord
from reactivex import Observable, abc
from reactivex.disposable import Disposable

from clock import now
from services.discord import Dispatch, GatewayRefused, Health, LookupFailed, read_frame
from services.discord.live import (
    CHANGES,
    Client,
    RestFetcher,
    keep_session,
    pause,
    permission_warning,
    readable_channels,
)
from services.telemetry import number_of
from streams.catch_up import CatchUpPlace, Introduce, catch_up, starts

SNOWFLAKE = re.compile(r"[0-9]{1,20}")

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _CatchUp:
    """One guild's catch-up.

    Attributes:
        complete: places in which nothing was missed.
        missed: the result.
        held: the dispatches that wait for it.
    """

    guild_id: int
    complete: set[int] = field(default_factory=set[int])
    missed: Sequence[Dispatch] = ()
    held: list[Dispatch] = field(default_factory=list[Dispatch])
    task: asyncio.Task[None] | None = None


class Gateway:
    """One live connection.

    `marks` gives, per place, the id below which every message has its outcome; it is called once per READY, so that
    nothing live can move a mark past what was missed. `met` gets the id of each guild that arrives, and when;
    `introduce`: see `streams.catch_up`. `access_changed` is called when the bot may be allowed what it was not before.
    `before_identify`: see `keep_session`. `most_waiting`: with so many dispatches that nobody has taken, no more are
    read from the connection; None: whoever takes them is fast.

    Attributes:
        refusal: why the `observable` has ended by itself.
    """

    def __init__(
        self,
        client: Client,
        token: str,
        *,
        fetcher: RestFetcher,
        marks: Callable[[], Mapping[int, int]],
        met: Callable[[int, float], None] | None = None,
        introduce: Introduce | None = None,
        access_changed: Callable[[], None] | None = None,
        catch_up_minutes: float,
        allowlist: Collection[int] = (),
        denylist: Collection[int] = (),
        health: Health | None = None,
        pause: Callable[[int], float] = pause,
        before_identify: Callable[[int], Awaitable[None]] | None = None,
        most_waiting: int | None = None,
    ) -> None:
        self._client = client
        self._token = token
        self._fetcher = fetcher
        self._marks = marks
        self._met = met
        self._introduce = introduce
        self._access_changed = access_changed
        self._catch_up_minutes = catch_up_minutes
        self._lists = (frozenset(allowlist), frozenset(denylist))
        self._pause = pause
        self._before_identify = before_identify
        self._most_waiting = most_waiting
        self._taken = asyncio.Event()
        self._queue: asyncio.Queue[Dispatch | _CatchUp | None] = asyncio.Queue()
        self._stopped = False
        self._catching_up: dict[int, _CatchUp] = {}  # by guild
        self._warned: dict[int, str | None] = {}
        self.health = health or Health(now())
        self.refusal: GatewayRefused | None = None

    def stop(self) -> None:
        """Receive no more. What has been received is still emitted; then the stream completes.

        A catch-up is cut off, and what waits for it is not emitted: its outcome would move the marks past what was
        missed. The next start fetches both.
        """
        self._stopped = True
        self._queue.put_nowait(None)

    async def dispatches(self) -> AsyncGenerator[Dispatch, None]:
        """Every dispatch; `at` is when it was received, or for a message that catch-up fetched, when it was written. To
        be iterated once.

        After READY, what was missed in a guild follows its arrival. Later dispatches of the places where something was
        missed wait for that, so that a deletion cannot overtake its message; in other places nobody waits. Dispatches
        of one place are in the order received. After RESUMED Discord itself replays.

        Raises:
            GatewayRefused: Discord refuses the bot for good.
        """
        keeping = keep_session(
            self._client,
            self._token,
            self.health,
            self._receive,
            pause=self._pause,
            before_identify=self._before_identify,
            room=None if self._most_waiting is None else self._room,
        )
        session = asyncio.create_task(keeping)
        session.add_done_callback(lambda _: self._queue.put_nowait(None))
        marks: Mapping[int, int] = {}
        released: deque[Dispatch] = deque()
        try:
            while (item := released.popleft() if released else await self._queue.get()) is not None:
                self._taken.set()
                if isinstance(item, _CatchUp):
                    del self._catching_up[item.guild_id]
                    for missed in item.missed:
                        yield missed
                    released.extendleft(reversed(item.held))
                    continue
                if item.t == "READY":
                    marks = dict(self._marks())
                if (awaited := self._awaited(item)) is not None:
                    awaited.held.append(item)
                    continue
                yield item
                if item.t == "GUILD_CREATE":
                    if self._stopped:
                        return  # what follows would move the marks past what was missed
                    self._arrived(item, marks)
            if session.done():
                session.result()
        finally:
            await self._hang_up(session)

    async def _hang_up(self, session: asyncio.Task[NoReturn]) -> None:
        work = [session, *(each.task for each in self._catching_up.values() if each.task is not None)]
        for task in work:
            task.cancel()
        try:
            await asyncio.gather(*work, return_exceptions=True)
        finally:  # also when a subscriber raises and so cancels this during the clean-up
            await self._client.hang_up()

    def _awaited(self, dispatch: Dispatch) -> _CatchUp | None:
        """The catch-up that a dispatch has to wait for."""
        arrives = dispatch.t in {"GUILD_CREATE", "GUILD_DELETE"}
        guild_id = _id(dispatch.d.get("id" if arrives else "guild_id"))
        catching_up = None if guild_id is None else self._catching_up.get(guild_id)
        if catching_up is None or arrives:
            return catching_up
        of_place = dispatch.t.startswith(("CHANNEL_", "THREAD_"))
        place_id = _id(dispatch.d.get("channel_id", dispatch.d.get("id") if of_place else None))
        return None if place_id is None or place_id in catching_up.complete else catching_up

    async def _room(self) -> None:
        while self._queue.qsize() >= (self._most_waiting or 1):
            self._taken.clear()
            await self._taken.wait()

    def _receive(self, frame: str) -> None:
        at = now()
        self.health.heard(at)
        dispatch = read_frame(frame, at)
        if dispatch is None or self._stopped:
            return
        if dispatch.t in {"READY", "RESUMED"}:
            self.health.up(at)
        if dispatch.t in CHANGES and self._access_changed is not None:
            self._access_changed()
        self._queue.put_nowait(dispatch)

    def _arrived(self, dispatch: Dispatch, marks: Mapping[int, int]) -> None:
        """Report what the bot lacks in a guild, and begin to fetch what it missed there."""
        guild_id = int(cast("str", dispatch.d["id"]))
        if self._met is not None:
            self._met(guild_id, dispatch.at)
        # discord.py has parsed the same frame before this task could run.
        guild = self._client.get_guild(guild_id)
        if guild is None or guild.me is None:  # pyright: ignore[reportUnnecessaryComparison] (None in an outage)
            return
        warning = permission_warning(guild, *self._lists)
        if warning is not None and warning != self._warned.get(guild.id):
            log.warning("%s", warning)
        self._warned[guild.id] = warning
        if marks and self._catch_up_minutes:
            begun = self._catching_up[guild_id] = _CatchUp(guild_id)
            channels = list(spots(readable_channels(guild, *self._lists), ()))
            begun.complete = {spot.id for spot in channels} - self._starts(guild_id, marks, channels).keys()
            begun.task = asyncio.create_task(self._catch_up(begun, guild, marks), name=f"catch-up in {guild_id}")

    def _starts(self, guild_id: int, marks: Mapping[int, int], of: Iterable[CatchUpPlace]) -> dict[int, int]:
        return starts(marks, of, since=now() - self._catch_up_minutes * 60, otherwise=marks.get(-guild_id))

    async def _catch_up(self, begun: _CatchUp, guild: discord.Guild, marks: Mapping[int, int]) -> None:
        """Fetch what was missed in a guild, and put it into the queue. A failure is logged and gives nothing."""
        try:
            places = await self._spots(guild)
            after = self._starts(guild.id, marks, places)
            begun.complete |= {spot.id for spot in places} - after.keys()
            begun.missed = await catch_up(after, guild_id=guild.id, history=self._fetcher, introduce=self._introduce)
            if begun.missed:
                log.info("catch-up: %s in server %d", number_of(len(begun.missed), "message"), guild.id)
        except Exception:
            log.exception("catch-up: failed for this server")
        self._queue.put_nowait(begun)

    async def _spots(self, guild: discord.Guild) -> list[CatchUpPlace]:
        channels = readable_channels(guild, *self._lists)
        threads: Sequence[Mapping[str, Any]] = []
        try:
            threads = await self._fetcher.active_threads(guild.id)
        except LookupFailed as error:
            log.warning("catch-up: the threads of server %d are left out: %s", guild.id, error)
        return list(spots(channels, threads))


def _id(value: object) -> int | None:
    """An id as Discord sends it; None for what is none."""
    return int(value) if isinstance(value, str) and SNOWFLAKE.fullmatch(value) else None


def spots(channels: Iterable[Any], threads: Iterable[Mapping[str, Any]]) -> Iterable[CatchUpPlace]:
    """Readable channels (discord.py's objects), and those of the `threads` (payloads) that are in them."""
    readable: set[int] = set()
    for channel in channels:
        readable.add(channel.id)
        yield CatchUpPlace(
            channel.id, None, channel.last_message_id, is_forum=isinstance(channel, discord.ForumChannel)
        )
    for thread in threads:
        parent_id = int(thread["parent_id"])
        if parent_id in readable:
            newest = thread.get("last_message_id")
            yield CatchUpPlace(int(thread["id"]), parent_id, None if newest is None else int(newest))


def observable(gateway: Gateway) -> Observable[Dispatch]:
    """The dispatches as an Observable: subscribing connects, `Gateway.stop` completes, disposing cuts off.

    A refusal completes it as well, and is in `Gateway.refusal`: after an error the supervisors of the graph would
    restart their branches, and each restart would try the same token again. One subscriber.
    """

    def subscribe(
        observer: abc.ObserverBase[Dispatch], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        _ = scheduler  # the loop is the only scheduler
        task = asyncio.get_running_loop().create_task(_feed(gateway, observer))
        return Disposable(lambda: None if task.done() else cast("None", task.cancel()))

    return Observable(subscribe)


async def _feed(gateway: Gateway, observer: abc.ObserverBase[Dispatch]) -> None:
    stream = gateway.dispatches()
    try:
        async for dispatch in stream:
            observer.on_next(dispatch)
    except GatewayRefused as refused:
        gateway.refusal = refused
        observer.on_completed()
    except Exception as error:
        # A subscriber that raises has disposed of the stream and does not get the error.
        log.exception("the live stream has ended")
        observer.on_error(error)
    else:
        observer.on_completed()
    finally:
        await stream.aclose()
