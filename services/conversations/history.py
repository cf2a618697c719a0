"""Messages and places of Discord: remembered from the event stream (a timeline for each place), and fetched where
memory is not enough.
"""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections import OrderedDict, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from model.bounded import BoundedDict
from model.events import Deleted, Edited, Event, PlaceGone, PlaceSeen, Posted, Ready
from model.messages import Message, Place, PlaceKind, snowflake_at
from services.discord import PAGE_SIZE, Fetcher

ENDLESS = 1 << 64  # above every snowflake: an interval that reaches here includes whatever comes next


@dataclass(slots=True)
class Weight:
    """Counts the bytes of memory that messages take, roughly."""

    total: int = 0


MESSAGE_WEIGHT = 500
"""The weight of a message without text."""
OBJECT_WEIGHT = 120
"""The weight of a mention or an attachment, without its texts."""


def weight_of(message: Message) -> int:
    names = [name for _, name in message.mentions]
    addresses = [part for each in message.attachments for part in (each.filename, each.url)]
    objects = len(message.mentions) + len(message.attachments)
    return MESSAGE_WEIGHT + objects * OBJECT_WEIGHT + sum(map(sys.getsizeof, (message.text, *names, *addresses)))


class Timeline:
    """Messages in order of id, with the intervals of ids in which all of them are known. `weight`: counts them too.

    It uses two parallel lists: a dictionary from which the oldest is removed again and again takes four times as much.
    """

    __slots__ = ("_covered", "_ids", "_messages", "_weight")

    def __init__(self, *, complete: bool, weight: Weight | None = None) -> None:
        self._weight = weight or Weight()
        self._ids: list[int] = []
        self._messages: list[Message] = []
        self._covered: list[tuple[int, int]] = [(0, ENDLESS)] if complete else []

    def __len__(self) -> int:
        return len(self._ids)

    def get(self, message_id: int) -> Message | None:
        index = bisect_left(self._ids, message_id)
        return self._messages[index] if self._is_at(index, message_id) else None

    def add(self, message: Message) -> None:
        index = bisect_left(self._ids, message.id)
        self._weight.total += weight_of(message)
        if self._is_at(index, message.id):
            self._weight.total -= weight_of(self._messages[index])
            self._messages[index] = message
        else:
            self._ids.insert(index, message.id)
            self._messages.insert(index, message)

    def remove(self, message_id: int) -> None:
        index = bisect_left(self._ids, message_id)
        if self._is_at(index, message_id):
            self._weight.total -= weight_of(self._messages[index])
            del self._ids[index], self._messages[index]

    def _is_at(self, index: int, message_id: int) -> bool:
        return index < len(self._ids) and self._ids[index] == message_id

    def cover(self, low: int, high: int) -> None:
        """Note that every message from `low` to `high` is known."""
        others: list[tuple[int, int]] = []
        for interval in self._covered:
            if interval[1] + 1 < low or high + 1 < interval[0]:
                others.append(interval)
            else:
                low, high = min(low, interval[0]), max(high, interval[1])
        self._covered = sorted([*others, (low, high)])

    def pause(self) -> None:
        """Note that messages may be missed from now on: the last interval ends with the newest message."""
        last = self._ids[-1] if self._ids else 0
        self._covered = [(low, min(high, last)) for low, high in self._covered if low <= last]

    def covers(self, message_id: int) -> bool:
        return self._around(message_id) is not None

    def newest(self, limit: int) -> list[Message] | None:
        """Return the last `limit` messages, oldest first; None if some of them are not known."""
        if not self._covered or self._covered[-1][1] < ENDLESS:
            return None
        low = self._covered[-1][0]
        known = self._messages[max(bisect_left(self._ids, low), len(self._ids) - limit) :]
        return None if len(known) < limit and low > 0 else known

    def before(self, message_id: int) -> Iterator[Message | None]:
        """Iterate backwards from a message. Yields None, and ends, if the next message is not known."""
        index = bisect_left(self._ids, message_id)
        return self._walk(message_id, (self._messages[i] for i in range(index - 1, -1, -1)), to=0)

    def after(self, message_id: int) -> Iterator[Message | None]:
        """Iterate forwards from a message. Yields None, and ends, if the next message is not known."""
        index = bisect_right(self._ids, message_id)
        return self._walk(message_id, (self._messages[i] for i in range(index, len(self._ids))), to=ENDLESS)

    def _walk(self, start: int, messages: Iterable[Message], *, to: int) -> Iterator[Message | None]:
        low, high = self._around(start) or (start, start)
        for message in messages:
            if not low <= message.id <= high:
                break
            yield message
        if not low <= to <= high:
            yield None

    def _around(self, message_id: int) -> tuple[int, int] | None:
        return next((interval for interval in self._covered if interval[0] <= message_id <= interval[1]), None)

    def trim(self, keep: int) -> None:
        """Drop all but the newest `keep` messages."""
        surplus = len(self._ids) - keep
        if surplus <= 0:
            return
        self._weight.total -= sum(map(weight_of, self._messages[:surplus]))
        del self._ids[:surplus], self._messages[:surplus]
        oldest = self._ids[0] if self._ids else ENDLESS
        self._covered = [(max(low, oldest), high) for low, high in self._covered if high >= oldest]

    def discard(self) -> None:
        """Drop all messages. Pages that are still being fetched no longer count for the total weight."""
        self.trim(0)
        self._weight = Weight()


M = TypeVar("M", Message, Edited)

KEPT_PLACES = 1_000
KEPT_ARCHIVED = KEPT_PLACES  # threads; Discord reports a dropped one again when a message unarchives it
KEPT_MESSAGES = 1_000  # live, of each place. A replay keeps everything: it cannot fetch.
KEPT_WEIGHT = 100_000_000  # live, of all places together: some 150,000 messages of a line or two
KEPT_GONE = 10_000  # ids of deleted messages, and as many of edited ones: an event that comes late must not undo that
KEPT_REPLACED = 10_000  # texts that an edit has replaced
KEPT_EARLY = 1_000  # edits whose messages did not come. Most of these are old and will not come again.


def is_private(place: Place, allowed: Collection[int]) -> bool:
    """Return True if a place is not public and not `allowed`. An invite-only thread has to be listed itself."""
    return not place.public and place.id not in allowed and (place.invited_only or place.channel_id not in allowed)


class History:
    """Messages and places as far as they are known now.

    With a `fetcher` (live) it asks Discord for messages that the stream lacks, each message and each part of a channel
    once. Without one (replay) it knows the stream only. In places where the bot posts anew in a replay, its recorded
    posts are left out, as they would be repetitions. Each coroutine may raise `LookupFailed`.

    Attributes:
        names: the names of the bot by id, for its mentions.
        newest_id: the highest id of a message from the stream.
    """

    def __init__(self, fetcher: Fetcher | None) -> None:
        self._fetcher = fetcher
        self._places: dict[int, Place] = {}
        self._archived: dict[int, None] = {}  # archived threads among the places, the newest last
        self.names: dict[int, str] = {}
        self._timelines: OrderedDict[int, Timeline] = OrderedDict()  # the longest unused first
        self._weight = Weight()
        self._dropped_until = 0  # up to this id, messages of a place without a timeline may have been dropped
        self._gone = BoundedDict[int, int | None](KEPT_GONE)  # by message, the place where it was deleted, if known
        self._gone_places = BoundedDict[int, None](KEPT_GONE)
        self._edited = BoundedDict[int, None](KEPT_GONE)
        self._renamed = BoundedDict[int, float](KEPT_GONE)  # when a forum post got another name; Discord does not say
        self._early = BoundedDict[int, Edited](KEPT_EARLY)  # edits that came before their message, by message id
        self.newest_id = 0
        self._replaced = deque[tuple[int, Message]](maxlen=KEPT_REPLACED)  # with an id of the time of the edit
        self._live_from = 0
        self._posted_in: dict[int, int] = {}  # the bot's user id, by place where it has posted in this run

    def observe(self, event: Event) -> None:
        """Note an event. To be called before anything asks about it."""
        match event:
            case Posted(message=message, quoted=quoted):
                self.newest_id = max(self.newest_id, message.id)
                self._add_posted(message)
                if quoted and quoted.id not in self._gone and self.in_memory(quoted.channel_id, quoted.id) is None:
                    self._timeline(quoted.channel_id).add(quoted)
            case Edited():
                self._edit(event)
            case Deleted(channel_id=channel_id, message_ids=message_ids):
                for message_id in message_ids:
                    self._timeline(channel_id).remove(message_id)
                    self._gone[message_id] = channel_id
            case PlaceSeen(at=at, place=place):
                self._note_title(at, place)
                self.add_place(place)
            case PlaceGone(place_id=place_id):
                self._gone_places[place_id] = None
                self._forget_place(place_id)
                self._drop_timeline(place_id)
            case Ready(at=at, bot_id=bot_id, bot_name=bot_name):
                self.names[bot_id] = bot_name
                self._begin(at)
            case _:
                pass

    def note(self, message: Message) -> None:
        """Add a message that the bot itself has just posted."""
        if self._fetcher is None:
            self._posted_in[message.channel_id] = message.author.id
        self._add(message)

    def add_place(self, place: Place) -> None:
        """Add a channel or thread, such as one that the bot has just opened."""
        self._places[place.id] = place
        self._archived.pop(place.id, None)
        if place.archived and self._fetcher is not None:
            self._archived[place.id] = None
            if len(self._archived) > KEPT_ARCHIVED:
                self._forget_place(next(iter(self._archived)))

    def title_of(self, message: Message) -> str:
        """Return the name of a forum post, for its first message; empty for any other message."""
        if message.title or message.id != message.channel_id:
            return message.title
        place = self._places.get(message.channel_id)
        return place.name if place is not None and place.kind is PlaceKind.FORUM_POST else ""

    def _note_title(self, at: float, place: Place) -> None:
        """Keep the first message of a forum post as it was, if the post is called otherwise now."""
        before = self._places.get(place.id)
        if before is None or before.name == place.name or before.kind is not PlaceKind.FORUM_POST:
            return
        timeline = self._timeline(place.id)
        message = timeline.get(place.id)
        if message is not None:
            self._replaced.append((max(self.newest_id, snowflake_at(at)), replace(message, title=before.name)))
            self._edited[message.id] = None
            self._renamed[message.id] = at
            timeline.add(replace(message, edited_at=at))

    def _forget_place(self, place_id: int) -> None:
        self._places.pop(place_id, None)
        self._archived.pop(place_id, None)

    def place(self, place_id: int) -> Place:
        """Return a channel or thread. An unknown one counts as a channel, which is not public if Discord lists the
        places that the bot can view.
        """
        found = self._places.get(place_id)
        if found is None:
            return Place(place_id, PlaceKind.CHANNEL, public=not self.is_unlisted(place_id))
        channel = None if found.parent_id is None or found.invited_only else self._places.get(found.parent_id)
        # Of archived threads Discord does not say that their channel was hidden.
        if channel is not None and (found.public > channel.public or found.viewable > channel.viewable):
            return replace(found, public=found.public and channel.public, viewable=found.viewable and channel.viewable)
        return found

    def is_unlisted(self, place_id: int) -> bool:
        """Return True if Discord has not listed a place, as it should have: it may be private, or in any channel."""
        return self._fetcher is not None and place_id not in self._places

    def guild_of(self, message: Message) -> int | None:
        """Return the id of a message's server, also for messages that do not name it; None if unknown."""
        return self.place(message.channel_id).guild_id if message.guild_id is None else message.guild_id

    def name_of(self, place_id: int) -> str:
        """Return a place's name, or its id if the name is not known."""
        return self.place(place_id).name or str(place_id)

    def knows(self, place_id: int) -> bool:
        return place_id in self._places

    async def find_place(self, place_id: int) -> Place | None:
        """Return a channel or thread, fetched from Discord if it is unknown; None if it does not exist."""
        known = self._places.get(place_id)
        if known is None and self._fetcher is not None:
            known = await self._fetcher.place(place_id)
            if known is not None:
                self.add_place(known)
        return known

    def is_from_before(self, message_id: int) -> bool:
        """Return True if a message was written before the session began."""
        return message_id < self._live_from

    def in_memory(self, channel_id: int, message_id: int) -> Message | None:
        """Return a message if it is in memory."""
        return self._timeline(channel_id).get(message_id)

    def latest(self, message: Message) -> Message:
        """Return the message with its latest edit, which may have arrived before it."""
        return (self.in_memory(message.channel_id, message.id) or message) if message.id in self._edited else message

    def version_at(self, message: Message, message_id: int) -> Message | None:
        """Return the message as it was when another one was written, without files that were removed since; None: it
        was edited later, and the text from before is not known.
        """
        replaced = (old for newest, old in self._replaced if old.id == message.id and newest >= message_id)
        if (old := next(replaced, None) if message.id in self._edited else None) is None:
            late = message.edited_at is not None and snowflake_at(message.edited_at) >= message_id
            return None if late else message
        old_ids = _file_ids(old)
        return replace(old, attachments=tuple(file for file in message.attachments if file.id in old_ids))

    def is_gone(self, message_id: int) -> bool:
        return message_id in self._gone

    def is_place_gone(self, place_id: int) -> bool:
        """Return True if a channel or thread, or the channel of a thread, is known to be deleted."""
        return place_id in self._gone_places or self.place(place_id).channel_id in self._gone_places

    def threads_of(self, channel_id: int) -> Sequence[int]:
        """Return the ids of the threads of a channel that are known, also of one that is gone."""
        return [place.id for place in self._places.values() if place.parent_id == channel_id]

    def recent(self, channel_id: int) -> Sequence[Message]:
        """Return the messages of a place that are in memory, oldest first."""
        return self._timeline(channel_id).newest(KEPT_MESSAGES) or ()

    async def message(self, channel_id: int, message_id: int) -> Message | None:
        """Return one message, fetched together with its neighbours; None: it no longer exists."""
        timeline = self._timeline(channel_id)
        found = timeline.get(message_id)
        if found is not None or self._fetcher is None or message_id in self._gone or timeline.covers(message_id):
            return found
        await self._fetch_around(self._fetcher, channel_id, message_id)
        found = timeline.get(message_id)
        if found is None:
            self._gone[message_id] = None
        return found

    async def message_now(self, channel_id: int, message_id: int) -> Message | None:
        """Return one message as it is on Discord now; None: it no longer exists. A replay knows it from the stream."""
        if self._fetcher is None:
            return self.in_memory(channel_id, message_id)
        return await self._fetcher.message(channel_id, message_id)

    async def starter(self, thread: Place) -> Message | None:
        """Return the message that a thread was opened on, which is in the parent channel. A forum post has none."""
        if thread.kind is not PlaceKind.THREAD or thread.parent_id is None:
            return None
        found = self._timeline(thread.parent_id).get(thread.id)
        if found is None and self._fetcher is not None and thread.id not in self._gone:
            found = await self._fetcher.message(thread.parent_id, thread.id)
            if found is None:
                self._gone[thread.id] = None
            else:
                self._timeline(thread.parent_id).add(found)
        return found

    async def newest(self, place_id: int, limit: int) -> Sequence[Message]:
        """Return the newest messages of a place, oldest first."""
        timeline = self._timeline(place_id)
        known = timeline.newest(limit)
        if known is not None or self._fetcher is None:
            return known or ()
        before: int | None = None
        for _ in range(0, limit, PAGE_SIZE):
            page = await self._fetcher.messages(place_id, before=before)
            self._add_page(timeline, page)
            full = len(page) == PAGE_SIZE
            timeline.cover(page[0].id if full else 0, ENDLESS if before is None else before)
            if not full:
                break
            before = page[0].id
        return timeline.newest(limit) or ()

    async def since(self, place_id: int, message_id: int) -> Sequence[Message] | None:
        """Return the messages of a place from one on, oldest first; None: they are more than a page."""
        most = ENDLESS if self._fetcher is None else PAGE_SIZE
        found = await self.newest(place_id, most)
        is_whole = len(found) < most or found[0].id <= message_id
        return [each for each in found if each.id >= message_id] if is_whole else None

    def written_before(self, message: Message, seconds: float) -> Iterator[Message]:
        """Yield the messages in memory that were written in the same place within so many seconds before a message, the
        newest first, up to one that is not known.
        """
        for earlier in self._timeline(message.channel_id).before(message.id):
            if earlier is None or message.at - earlier.at > seconds:
                return
            if not earlier.is_system:
                yield earlier

    def deleted_between(self, place_id: int, low: int, high: int) -> Sequence[int]:
        """Return the ids from `low` up to `high` of messages that were deleted in a place in this session."""
        return [each for each, place in self._gone.items() if place == place_id and low <= each < high]

    async def adjacent_messages(self, message: Message, seconds: float) -> Sequence[Message]:
        """Return `message` between its author's adjacent ones, no further apart than `seconds`."""
        timeline = self._timeline(message.channel_id)
        before, more_before = _adjacent(timeline.before(message.id), message, seconds)
        after, more_after = _adjacent(timeline.after(message.id), message, seconds)
        if (more_before or more_after) and self._fetcher is not None:
            await self._fetch_around(self._fetcher, message.channel_id, message.id)
            before, _ = _adjacent(timeline.before(message.id), message, seconds)
            after, _ = _adjacent(timeline.after(message.id), message, seconds)
        return [*reversed(before), message, *after]

    async def _fetch_around(self, fetcher: Fetcher, channel_id: int, message_id: int) -> None:
        timeline = self._timeline(channel_id)
        page = await fetcher.messages(channel_id, around=message_id)
        self._add_page(timeline, page)
        # Half of the page lies on each side; a side with fewer has been read to its end.
        older = sum(1 for message in page if message.id < message_id)
        newer = sum(1 for message in page if message.id > message_id)
        low = page[0].id if older >= PAGE_SIZE // 2 - 1 else 0
        high = page[-1].id if newer >= PAGE_SIZE // 2 - 1 else ENDLESS
        timeline.cover(min(low, message_id), max(high, message_id))

    def _add_page(self, timeline: Timeline, page: Sequence[Message]) -> None:
        """Add fetched messages, except those that were deleted meanwhile."""
        for message in page:
            if message.id not in self._gone:
                renamed_at = self._renamed.get(message.id, 0.0)
                timeline.add(replace(message, edited_at=max(message.edited_at or 0.0, renamed_at) or None))

    def _timeline(self, place_id: int) -> Timeline:
        timeline = self._timelines.get(place_id)
        if timeline is None:
            timeline = self._timelines[place_id] = Timeline(complete=self._fetcher is None, weight=self._weight)
            if self._fetcher is not None:
                timeline.cover(max(self._live_from, self._dropped_until + 1), ENDLESS)
                self._drop_unused()
        elif self._fetcher is not None:
            self._timelines.move_to_end(place_id)
        return timeline

    def _drop_unused(self) -> None:
        """Drop the messages of the places that were not used for longest, while there are too many."""
        while len(self._timelines) > KEPT_PLACES or (self._weight.total > KEPT_WEIGHT and len(self._timelines) > 1):
            self._drop_timeline(next(iter(self._timelines)))
            self._dropped_until = self.newest_id

    def _drop_timeline(self, place_id: int) -> None:
        timeline = self._timelines.pop(place_id, None)
        if timeline is not None:
            timeline.discard()

    def _begin(self, at: float) -> None:
        """Begin a session: messages between the last one and this one may be missing."""
        self._live_from = snowflake_at(at)
        self._early.clear()  # missed messages are fetched with their edits
        if self._fetcher is not None:
            for timeline in self._timelines.values():
                timeline.pause()
                timeline.cover(self._live_from, ENDLESS)

    def _add_posted(self, message: Message) -> None:
        edit = self._early.pop(message.id, None)
        if edit is not None:
            self._edited[message.id] = None
            message = apply_edit(message, edit)
        # A message that is delivered again lacks later edits.
        outdated = message.id in self._edited and self.in_memory(message.channel_id, message.id) is not None
        posts_anew = self._fetcher is None and self._posted_in.get(message.channel_id) == message.author.id
        if message.id not in self._gone and not outdated and not posts_anew:
            self._add(message)

    def _add(self, message: Message) -> None:
        timeline = self._timeline(message.channel_id)
        timeline.add(message)
        if self._fetcher is not None:
            timeline.trim(KEPT_MESSAGES)
            self._drop_unused()

    def _edit(self, edit: Edited) -> None:
        timeline = self._timeline(edit.channel_id)
        message = timeline.get(edit.message_id)
        if message is not None:
            changed = apply_edit(message, edit)
            # Discord also reports an edit when it adds a preview.
            if changed.text != message.text or _file_ids(changed) != _file_ids(message):
                as_it_was = replace(message, title=self.title_of(message))
                self._replaced.append((max(self.newest_id, snowflake_at(edit.at)), as_it_was))
                changed = replace(changed, edited_at=edit.at)
            timeline.add(changed)
            self._edited[edit.message_id] = None
        elif edit.message_id not in self._gone:
            earlier = self._early.get(edit.message_id)
            self._early[edit.message_id] = edit if earlier is None else apply_edit(earlier, edit)


def apply_edit(message: M, edit: Edited) -> M:
    """Apply an edit to a message, or to an earlier edit of it."""
    return replace(
        message,
        text=message.text if edit.text is None else edit.text,
        attachments=message.attachments if edit.attachments is None else edit.attachments,
    )


def _file_ids(message: Message) -> frozenset[int]:
    return frozenset(file.id for file in message.attachments)


def _adjacent(walk: Iterator[Message | None], start: Message, seconds: float) -> tuple[list[Message], bool]:
    """Return the author's own messages along a walk; and True if the walk came to unknown messages."""
    found: list[Message] = []
    last = start
    for message in walk:
        if message is None:
            return found, True
        if message.author.id != start.author.id or abs(message.at - last.at) > seconds:
            break
        if not message.is_system:
            found.append(message)
        last = message
    return found, False
