"""The live stream: Discord's gateway as dispatches, and what was missed before it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from typing import Any, cast

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
from streams.catch_up import Introduce, Spot, catch_up, starts

log = logging.getLogger(__name__)


class Gateway:
    """One live connection.

    `marks` gives, per place, the id below which every message has its outcome; it is called once per READY, so that
    nothing live can move a mark past what was missed. `met` gets the id of each guild that arrives, and when;
    `introduce`: see `streams.catch_up`. `access_changed` is called when the bot may be allowed what it was not before.

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
        self._queue: asyncio.Queue[Dispatch | None] = asyncio.Queue()
        self._stopped = False
        self._arriving: asyncio.Task[list[Dispatch]] | None = None
        self._warned: dict[int, str | None] = {}
        self.health = health or Health(now())
        self.refusal: GatewayRefused | None = None

    def stop(self) -> None:
        """Receive no more. What has been received is still emitted; then the stream completes.

        During a catch-up it completes at once, without what has been received since: its outcome would move the marks
        past what was missed. The next start fetches both.
        """
        self._stopped = True
        self._queue.put_nowait(None)
        if self._arriving is not None:
            self._arriving.cancel()

    async def dispatches(self) -> AsyncGenerator[Dispatch, None]:
        """Every dispatch in the order received; `at` is when, or for a message that catch-up fetched, when it was
        written. To be iterated once.

        After READY, what was missed in a guild follows its arrival. Later dispatches wait for that, so that a deletion
        cannot overtake its message. After RESUMED Discord itself replays.

        Raises:
            GatewayRefused: the token or an intent is refused.
        """
        keeping = keep_session(self._client, self._token, self.health, self._receive, pause=self._pause)
        session = asyncio.create_task(keeping)
        session.add_done_callback(lambda _: self._queue.put_nowait(None))
        marks: Mapping[int, int] = {}
        try:
            while (dispatch := await self._queue.get()) is not None:
                if dispatch.t == "READY":
                    marks = dict(self._marks())
                yield dispatch
                if dispatch.t == "GUILD_CREATE":
                    if (missed := await self._unless_stopped(self._arrived(dispatch, marks))) is None:
                        return
                    for each in missed:
                        yield each
            if session.done():
                session.result()
        finally:
            session.cancel()
            try:
                await asyncio.gather(session, return_exceptions=True)
            finally:  # also when a subscriber raises and so cancels this during the clean-up
                await self._client.hang_up()

    async def _unless_stopped(self, work: Coroutine[Any, Any, list[Dispatch]]) -> list[Dispatch] | None:
        """The result of `work`, or None when the stream was stopped first. A failure is logged and gives nothing."""
        self._arriving = asyncio.create_task(work)
        if self._stopped:
            self._arriving.cancel()
        try:
            await asyncio.wait({self._arriving})
            return None if self._arriving.cancelled() else self._arriving.result()
        except Exception:
            log.exception("catch-up: failed for this server")
            return []
        finally:
            self._arriving.cancel()
            self._arriving = None

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

    async def _arrived(self, dispatch: Dispatch, marks: Mapping[int, int]) -> list[Dispatch]:
        """Report what the bot lacks in a guild, and fetch what it missed there."""
        guild_id = int(cast("str", dispatch.d["id"]))
        if self._met is not None:
            self._met(guild_id, dispatch.at)
        # discord.py has parsed the same frame before this task could run.
        guild = self._client.get_guild(guild_id)
        if guild is None or guild.me is None:  # pyright: ignore[reportUnnecessaryComparison] (None in an outage)
            return []
        warning = permission_warning(guild, *self._lists)
        if warning is not None and warning != self._warned.get(guild.id):
            log.warning("%s", warning)
        self._warned[guild.id] = warning
        if not marks or not self._catch_up_minutes:
            return []
        after = starts(
            marks, await self._spots(guild), since=now() - self._catch_up_minutes * 60, otherwise=marks.get(-guild.id)
        )
        missed = await catch_up(after, guild_id=guild.id, history=self._fetcher, introduce=self._introduce)
        if missed:
            log.info("catch-up: %s in server %d", number_of(len(missed), "message"), guild.id)
        return missed

    async def _spots(self, guild: discord.Guild) -> list[Spot]:
        channels = readable_channels(guild, *self._lists)
        threads: Sequence[Mapping[str, Any]] = []
        try:
            threads = await self._fetcher.active_threads(guild.id)
        except LookupFailed as error:
            log.warning("catch-up: the threads of server %d are left out: %s", guild.id, error)
        return list(spots(channels, threads))


def spots(channels: Iterable[Any], threads: Iterable[Mapping[str, Any]]) -> Iterable[Spot]:
    """Readable channels (discord.py's objects), and those of the `threads` (payloads) that are in them."""
    readable: set[int] = set()
    for channel in channels:
        readable.add(channel.id)
        yield Spot(channel.id, None, channel.last_message_id, is_forum=isinstance(channel, discord.ForumChannel))
    for thread in threads:
        parent_id = int(thread["parent_id"])
        if parent_id in readable:
            newest = thread.get("last_message_id")
            yield Spot(int(thread["id"]), parent_id, None if newest is None else int(newest))


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
