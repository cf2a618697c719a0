"""The live stream: Discord's gateway as dispatches, and the messages that were missed while the bot was away."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn, Protocol, TypeVar, cast

import discord
from reactivex import Observable, abc

from clock import now
from dataflow import from_coroutine
from model.messages import Author, snowflake_at, snowflake_time
from services.discord import (
    PAGE_SIZE,
    Dispatch,
    GatewayHealth,
    GatewayRefused,
    LookupFailed,
    OddPayload,
    read_frame,
    read_message,
)
from services.discord.live import (
    PERMISSION_EVENTS,
    Client,
    RestFetcher,
    exposure_warnings,
    keep_session,
    pause,
    permission_warning,
    readable_channels,
)
from services.telemetry import number_of

T = TypeVar("T")

log = logging.getLogger(__name__)

LONGEST_SECONDS = 120.0
"""The limit for reading the places, and for looking up the authors, as other dispatches wait meanwhile."""


@dataclass(frozen=True, slots=True)
class CatchUpPlace:
    """A channel, thread or forum post to read, or a forum, which only has posts. `newest_id`: the last message in it,
    if Discord names one.
    """

    id: int
    parent_id: int | None = None
    newest_id: int | None = None
    is_forum: bool = False


class MessagePages(Protocol):
    async def payloads(self, channel_id: int, *, after: int | None = None) -> Sequence[Mapping[str, Any]]:
        """Return the messages that follow `after`, oldest first. Raises `LookupFailed`."""
        ...


def ids_to_read_after(
    watermarks: Mapping[int, int], places: Iterable[CatchUpPlace], *, since: float, guild_mark: int | None = None
) -> dict[int, int]:
    """Return, for each place that may have new messages, the id after which to read.

    `watermarks` gives for each place the id up to which every message has its outcome. `since` (seconds since 1970)
    says how far to go back at most. A thread without a mark that is younger than its channel's mark is read from its
    start. A forum has no mark, so its posts are compared with the smallest mark of all. Any other place without a mark
    is read from `guild_mark` on; without that, it is left to the live stream ("a first start begins now").
    """
    floor = snowflake_at(since)
    places = list(places)
    forums = {place.id for place in places if place.is_forum}
    smallest = min((up_to for place_id, up_to in watermarks.items() if place_id > 0), default=None)
    result: dict[int, int] = {}
    for place in places:
        if place.is_forum:
            continue
        mark = watermarks.get(place.id)
        if mark is None and place.parent_id is not None:
            known = watermarks.get(place.parent_id, smallest if place.parent_id in forums else None)
            # The first message of a post has the post's own id.
            mark = place.id - 1 if known is not None and place.id > known else None
        if mark is None:
            mark = guild_mark
        if mark is None:
            continue
        after = max(mark, floor - 1)
        if place.newest_id is None or place.newest_id > after:
            result[place.id] = after
    return result


LookUp = Callable[[Author, int], Awaitable[object]]
"""Looks up an author in a guild, before their first message comes. Raises `LookupFailed`."""


class FetchResult(NamedTuple):
    """The missed messages, and the places (`failed`) that could not be read now, but may be later."""

    missed: list[Dispatch]
    failed: AbstractSet[int]


async def catch_up(
    after: Mapping[int, int],
    *,
    guild_id: int,
    history: MessagePages,
    look_up: LookUp | None = None,
    seconds: float = LONGEST_SECONDS,
) -> FetchResult:
    """Fetch the messages after `after` (per place, see `ids_to_read_after`), in order of id.

    Each is a `MESSAGE_CREATE` whose `at` is when it was written, so that windows are judged by the messages' own times.
    REST sends no `guild_id`, which is added, and no `member`: roles are unknown, so the authors are looked up first.
    Never raises. A place that Discord does not let the bot read has no messages. Any other place has failed as a whole
    if reading it, or looking up one of its authors, fails or takes longer than `seconds`.
    """
    reads = {place_id: _read(place_id, start, history) for place_id, start in after.items()}
    pages, failed = await _await_all(reads, "place", seconds)
    written_by = {
        _message_id(payload): (place_id, _author(payload)) for place_id, page in pages.items() for payload in page
    }
    if look_up is not None:
        authors = {author.id: author for _, author in written_by.values() if author is not None}
        lookups = {author.id: look_up(author, guild_id) for author in authors.values()}
        # Messages of authors that can never be looked up stay: routing asks again, and ends them.
        _, failed_ids = await _await_all(lookups, "author", seconds)
        failed |= {place_id for place_id, author in written_by.values() if author and author.id in failed_ids}
    found = (payload for place_id, page in pages.items() if place_id not in failed for payload in page)
    # Not later than now, as this machine's clock may be behind Discord's.
    missed = [
        Dispatch(min(snowflake_time(_message_id(each)), now()), "MESSAGE_CREATE", {**each, "guild_id": str(guild_id)})
        for each in sorted(found, key=_message_id)
    ]
    return FetchResult(missed, failed)


async def _await_all(work: Mapping[int, Awaitable[T]], what: str, seconds: float) -> tuple[dict[int, T], set[int]]:
    """Await all. Returns the results by id, and the ids that failed but may succeed later."""
    tasks = {asyncio.ensure_future(each): id_ for id_, each in work.items()}
    if not tasks:
        return {}, set()
    try:
        done, late = await asyncio.wait(tasks, timeout=seconds)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    if late:
        log.warning("catch-up: %s could not be read within %.0f s", number_of(len(late), what), seconds)
    results, failed = dict[int, T](), {tasks[task] for task in late}
    for task in done:
        error = task.exception()
        if error is None:
            results[tasks[task]] = task.result()
        elif isinstance(error, LookupFailed) and error.is_passing:
            log.warning("catch-up: %s %d is tried again: %s", what, tasks[task], error)
            failed.add(tasks[task])
        else:
            log.warning("catch-up: %s %d is left out: %s", what, tasks[task], error)
    return results, failed


async def _read(place_id: int, after: int, history: MessagePages) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    while True:
        page = await history.payloads(place_id, after=after)
        found.extend(page)
        if len(page) < PAGE_SIZE:
            return found
        after = _message_id(page[-1])


def _author(payload: Mapping[str, Any]) -> Author | None:
    """Return the author of a message, or None for a payload that the decoder will report."""
    try:
        return read_message(payload).author
    except OddPayload:
        return None


def _message_id(payload: Mapping[str, Any]) -> int:
    return int(payload["id"])


SNOWFLAKE = re.compile(r"[0-9]{1,20}")


@dataclass(slots=True)
class _CatchUp:
    """One guild's catch-up.

    Attributes:
        complete: places in which nothing is missing any more.
        pending: places in which something may be missing; None (not known yet): all but `complete`; empty: none.
        held: the dispatches that wait for the end of the catch-up.
    """

    guild_id: int
    complete: set[int] = field(default_factory=set[int])
    pending: AbstractSet[int] | None = None
    held: list[Dispatch] = field(default_factory=list[Dispatch])
    task: asyncio.Task[None] | None = None

    def delays(self, place_id: int) -> bool:
        return place_id not in self.complete if self.pending is None else place_id in self.pending


@dataclass(frozen=True, slots=True)
class _Progress:
    """The messages that a catch-up has fetched, and its state. `pending` is empty: it has ended."""

    catch_up: _CatchUp
    missed: Sequence[Dispatch]
    complete: AbstractSet[int]
    pending: AbstractSet[int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayRules:
    """The limits of reading from a connection.

    Attributes:
        catch_up_minutes: how far back missed messages are fetched; 0: none are.
        allowlist: channels that are read; empty: all but those in `denylist`.
        team_channels: as in `Settings`; those that everybody can view are warned of.
        most_waiting: reading from the connection pauses while so many dispatches are in the queue; None: never.
    """

    catch_up_minutes: float
    allowlist: Collection[int] = ()
    denylist: Collection[int] = ()
    team_channels: Collection[tuple[str, int]] = ()
    most_waiting: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayHooks:
    """The functions that a connection calls.

    Attributes:
        on_guild: called with the id of each guild that arrives, and when.
        look_up: called with each author of a missed message, and the guild.
        access_changed: called when the bot may have got new permissions.
        before_identify: as in `keep_session`.
    """

    on_guild: Callable[[int, float], None] | None = None
    look_up: LookUp | None = None
    access_changed: Callable[[], None] | None = None
    before_identify: Callable[[int], Awaitable[None]] | None = None


class Gateway:
    """One live connection.

    `watermarks` gives for each place the id up to which every message has its outcome. It is called once per READY, so
    that no live message can move a mark past missed ones. `refusal`: why the `observable` has ended by itself.
    """

    def __init__(
        self,
        client: Client,
        token: str,
        *,
        fetcher: RestFetcher,
        watermarks: Callable[[], Mapping[int, int]],
        rules: GatewayRules,
        hooks: GatewayHooks,
        health: GatewayHealth | None = None,
        pause: Callable[[int], float] = pause,
    ) -> None:
        self._client = client
        self._token = token
        self._fetcher = fetcher
        self._watermarks = watermarks
        self._rules, self._hooks = rules, hooks
        self._pause = pause
        self._taken = asyncio.Event()
        self._queue: asyncio.Queue[Dispatch | _Progress | None] = asyncio.Queue()
        self._stopped = False
        self._catching_up: dict[int, _CatchUp] = {}  # by guild
        self._warned: dict[int, Collection[str | None]] = {}
        self.health = health or GatewayHealth(now())
        self.refusal: GatewayRefused | None = None

    def stop(self) -> None:
        """Receive no more. Dispatches that have been received are still emitted; then the stream completes.

        A catch-up is cut off, and dispatches that wait for it are not emitted: their outcomes would move the watermarks
        past missed messages. The next start fetches both.
        """
        self._stopped = True
        self._queue.put_nowait(None)

    async def dispatches(self) -> AsyncGenerator[Dispatch, None]:
        """Every dispatch; `at` is when it was received, or for a message that catch-up fetched, when it was written. To
        be iterated once.

        After READY, the missed messages of a guild follow its arrival. Later dispatches of the places with missed
        messages wait for these, so that a deletion cannot overtake its message; in other places nothing waits. A place
        that cannot be read is tried again until it can. Dispatches of one place are in the order received. After
        RESUMED Discord itself replays. Raises GatewayRefused: Discord refuses the bot for good.
        """
        keeping = keep_session(
            self._client,
            self._token,
            self.health,
            self._receive,
            pause=self._pause,
            before_identify=self._hooks.before_identify,
            wait_for_room=None if self._rules.most_waiting is None else self._wait_for_room,
        )
        session = asyncio.create_task(keeping)
        session.add_done_callback(lambda _: self._queue.put_nowait(None))
        watermarks: Mapping[int, int] = {}
        released: deque[Dispatch] = deque()
        try:
            while (item := released.popleft() if released else await self._queue.get()) is not None:
                self._taken.set()
                if isinstance(item, _Progress):
                    for missed in item.missed:
                        yield missed
                    released.extendleft(reversed(self._release(item)))
                    continue
                if item.t == "READY":
                    watermarks = dict(self._watermarks())
                if (catching_up := self._catch_up_before(item)) is not None:
                    catching_up.held.append(item)
                    continue
                yield item
                if item.t == "GUILD_CREATE":
                    if self._stopped:
                        return  # later dispatches would move the watermarks past missed messages
                    self._on_guild(item, watermarks)
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

    def _release(self, progress: _Progress) -> Sequence[Dispatch]:
        """Note the progress, and return the dispatches that need not wait any more."""
        catching_up = progress.catch_up
        catching_up.complete |= progress.complete
        catching_up.pending = progress.pending
        if catching_up.pending is not None and not catching_up.pending:
            del self._catching_up[catching_up.guild_id]
        held, catching_up.held = catching_up.held, []
        ready: list[Dispatch] = []
        for each in held:
            (ready if self._catch_up_before(each) is None else catching_up.held).append(each)
        return ready

    def _catch_up_before(self, dispatch: Dispatch) -> _CatchUp | None:
        """Return the catch-up that a dispatch has to wait for, if any."""
        of_guild = dispatch.t in {"GUILD_CREATE", "GUILD_DELETE"}
        guild_id = _id(dispatch.d.get("id" if of_guild else "guild_id"))
        catching_up = None if guild_id is None else self._catching_up.get(guild_id)
        if catching_up is None or of_guild:
            return catching_up
        of_place = dispatch.t.startswith(("CHANNEL_", "THREAD_"))
        place_id = _id(dispatch.d.get("channel_id", dispatch.d.get("id") if of_place else None))
        return catching_up if place_id is not None and catching_up.delays(place_id) else None

    async def _wait_for_room(self) -> None:
        while self._queue.qsize() >= (self._rules.most_waiting or 1):
            self._taken.clear()
            await self._taken.wait()

    def _receive(self, frame: str) -> None:
        at = now()
        self.health.note_frame(at)
        dispatch = read_frame(frame, at)
        if dispatch is None or self._stopped:
            return
        if dispatch.t in {"READY", "RESUMED"}:
            self.health.note_connected(at)
        if dispatch.t in PERMISSION_EVENTS and self._hooks.access_changed is not None:
            self._hooks.access_changed()
        self._queue.put_nowait(dispatch)

    def _on_guild(self, dispatch: Dispatch, watermarks: Mapping[int, int]) -> None:
        """Report missing permissions in a guild, and begin to fetch missed messages."""
        guild_id = int(cast("str", dispatch.d["id"]))
        if self._hooks.on_guild is not None:
            self._hooks.on_guild(guild_id, dispatch.at)
        # discord.py has parsed the same frame before this task could run.
        guild = self._client.get_guild(guild_id)
        if guild is None or guild.me is None:  # pyright: ignore[reportUnnecessaryComparison] (None in an outage)
            return
        warnings = [permission_warning(guild, self._rules.allowlist, self._rules.denylist)]
        warnings += exposure_warnings(guild, self._rules.team_channels)
        for warning in warnings:
            if warning is not None and warning not in self._warned.get(guild.id, ()):
                log.warning("%s", warning)
        self._warned[guild.id] = warnings
        if watermarks and self._rules.catch_up_minutes:
            new = self._catching_up[guild_id] = _CatchUp(guild_id)
            channels = list(catch_up_places(readable_channels(guild, self._rules.allowlist, self._rules.denylist), ()))
            new.complete = {place.id for place in channels} - self._ids_to_read_after(
                guild_id, watermarks, channels
            ).keys()
            new.task = asyncio.create_task(self._catch_up(new, guild, watermarks), name=f"catch-up in {guild_id}")

    def _ids_to_read_after(
        self, guild_id: int, watermarks: Mapping[int, int], places: Iterable[CatchUpPlace]
    ) -> dict[int, int]:
        since = self._client.discord_time() - self._rules.catch_up_minutes * 60
        return ids_to_read_after(watermarks, places, since=since, guild_mark=watermarks.get(-guild_id))

    async def _catch_up(self, catching_up: _CatchUp, guild: discord.Guild, watermarks: Mapping[int, int]) -> None:
        """Fetch the missed messages of a guild into the queue, until each readable place was read. An error that is not
        Discord's is logged and ends the catch-up.
        """
        attempts = 0
        try:
            while not await self._catch_up_once(catching_up, guild, watermarks):
                attempts += 1
                await asyncio.sleep(self._pause(attempts))
        except Exception:
            log.exception("catch-up: failed for this server")
            self._queue.put_nowait(_Progress(catching_up, (), frozenset(), frozenset()))

    async def _catch_up_once(self, catching_up: _CatchUp, guild: discord.Guild, watermarks: Mapping[int, int]) -> bool:
        """Read the places in which something may be missing. Returns False if some can only be read later."""
        channels = readable_channels(guild, self._rules.allowlist, self._rules.denylist)
        threads, all_listed = await self._threads(guild)
        places = list(catch_up_places(channels, threads))
        starts = self._ids_to_read_after(guild.id, watermarks, places)
        after = {id_: start for id_, start in starts.items() if catching_up.delays(id_)}

        def report(missed: Sequence[Dispatch], pending: AbstractSet[int]) -> None:
            complete = {place.id for place in places} - pending
            # If threads could not be listed, all incomplete places have to wait.
            self._queue.put_nowait(_Progress(catching_up, missed, complete, pending if all_listed else None))

        if after:
            report((), after.keys())
        found = await catch_up(after, guild_id=guild.id, history=self._fetcher, look_up=self._hooks.look_up)
        if found.missed:
            log.info("catch-up: %s in server %d", number_of(len(found.missed), "message"), guild.id)
        report(found.missed, found.failed)
        return all_listed and not found.failed

    async def _threads(self, guild: discord.Guild) -> tuple[Sequence[Mapping[str, Any]], bool]:
        """Return the threads that are not archived; with False if they could not be listed now."""
        try:
            return await self._fetcher.active_threads(guild.id), True
        except LookupFailed as error:
            what = "tried again" if error.is_passing else "left out"
            log.warning("catch-up: the threads of server %d are %s: %s", guild.id, what, error)
            return [], not error.is_passing


def _id(value: object) -> int | None:
    """Return an id as Discord sends it, or None if the value is no id."""
    return int(value) if isinstance(value, str) and SNOWFLAKE.fullmatch(value) else None


def catch_up_places(channels: Iterable[Any], threads: Iterable[Mapping[str, Any]]) -> Iterable[CatchUpPlace]:
    """Yield the readable `channels` (discord.py's objects), and the `threads` (payloads) that are in them."""
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
    """Return the dispatches as an Observable for one subscriber: subscribing connects, `Gateway.stop` completes it,
    disposing cuts off.

    A refusal completes it as well, and is in `Gateway.refusal`: after an error the supervisors of the graph would
    restart their branches, and each restart would try the same token again.
    """

    async def feed(observer: abc.ObserverBase[Dispatch]) -> None:
        stream = gateway.dispatches()
        try:
            async for dispatch in stream:
                observer.on_next(dispatch)
        except GatewayRefused as refused:
            gateway.refusal = refused
            gateway.health.refuse(str(refused))
            observer.on_completed()
        except Exception as error:
            # A subscriber that raises has disposed of the stream and does not get the error.
            log.exception("the live stream has ended")
            observer.on_error(error)
        else:
            observer.on_completed()
        finally:
            await stream.aclose()

    return from_coroutine(feed)
