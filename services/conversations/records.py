"""State that survives a restart: the bot's replies, and for each place which messages have their outcome."""

from __future__ import annotations

import json
import logging
from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from clock import run_blocking
from model.batches import Key
from model.messages import Message, snowflake_at
from model.outcomes import Ignored, Outcome, Reason, Removed, Result
from services.conversations.post import Post, asker_of, packed, unpacked
from services.storage import IdTable, files, read_object, read_text

KEPT = 20_000  # posts kept in memory, newest last

log = logging.getLogger(__name__)


_POST = TypeAdapter(Post)


class Posts:
    """The newest replies of the bot, found by message, thread or asker. With a `path`, each new one is appended to that
    file.

    Most are never asked about again, so they are packed, and found by tables: 350 bytes each with a question of 110
    characters, where objects and dictionaries take 750.
    """

    def __init__(self, earlier: Iterable[Post] = (), path: Path | None = None) -> None:
        self._path = path
        self._posts: dict[int, bytes] = {}  # by message, packed; the newest last
        self._last_in = _ids()  # by thread: its last post
        self._last_for: dict[Key, int] = {}  # by thread and asker, unless it is the last of all in that thread
        self._opened: dict[int, IdTable[int]] = {}  # by channel, then by asker: the newest thread
        self._answered = _ids()  # by the last message of the part
        for post in earlier:
            self._add(post)

    async def add(self, post: Post) -> None:
        """Record a post. The reply is on Discord already: a file that cannot be written is logged, not raised."""
        self._add(post)
        if self._path is not None:
            try:
                await run_blocking(files.append, self._path, render_post(post), own_line=True)
            except OSError as error:
                log.error("a reply was not recorded, so its thread will not be found again: %s", error)  # noqa: TRY400 (a line for the operator)

    def about(self, message_id: int) -> Post | None:
        """Return the record of the reply whose last piece is this message."""
        return self._post(message_id)

    def in_thread(self, place_id: int) -> bool:
        """True if the bot has posted in this thread."""
        return place_id in self._last_in

    def answered(self, message_id: int) -> bool:
        """True if the part that ended with this message has been replied to."""
        return message_id in self._answered

    def newest_in(self, place_id: int) -> int:
        """The id of the newest recorded post there; 0 where there is none."""
        return self._last_in.get(place_id) or 0

    def opened_for(self, channel_id: int, asker_id: int) -> int | None:
        """The newest thread that the bot opened for this asker in this channel."""
        opened = self._opened.get(channel_id)
        return None if opened is None else opened.get(asker_id)

    def reusable_thread(self, channel_id: int, asker_id: int, since: float) -> int | None:
        """Return the newest thread opened for this asker in this channel, if the bot has posted there after `since`."""
        thread_id = self.opened_for(channel_id, asker_id)
        last = None if thread_id is None else self._post(self._last_in.get(thread_id))
        return None if last is None or last.at <= since else thread_id

    def latest_for(self, place_id: int, asker_id: int) -> Post | None:
        """The newest reply to this asker in this thread; in a channel, in the newest thread opened there for them."""
        thread_id = self.opened_for(place_id, asker_id)
        place_id = place_id if thread_id is None else thread_id
        last = self._post(self._last_in.get(place_id))
        if last is not None and last.asker_id == asker_id:
            return last
        return self._post(self._last_for.get(Key(place_id, asker_id)))

    def forget(self, asker_id: int) -> None:
        """Remove the records of replies to a person."""
        for message_id in [each for each, kept in self._posts.items() if asker_of(kept) == asker_id]:
            self._forget(message_id)

    def _post(self, message_id: int | None) -> Post | None:
        packed = None if message_id is None else self._posts.get(message_id)
        return None if packed is None else unpacked(packed)

    def _add(self, post: Post) -> None:
        last_id = self.newest_in(post.place_id)
        last = self._posts.get(last_id)
        self._posts[post.message_id] = packed(post)
        if last is not None and asker_of(last) != post.asker_id:
            self._last_for[Key(post.place_id, asker_of(last))] = last_id
            self._last_for.pop(Key(post.place_id, post.asker_id), None)
        self._last_in.put(post.place_id, post.message_id)
        self._answered.put(post.last_asked_id, post.message_id)
        if post.opened_thread:
            self._opened.setdefault(post.asked_in, _ids()).put(post.asker_id, post.place_id)
        if len(self._posts) > KEPT:
            self._forget(next(iter(self._posts)))

    def _forget(self, message_id: int) -> None:
        post = unpacked(self._posts.pop(message_id))
        self._answered.discard(post.last_asked_id)
        if self._last_in.get(post.place_id) == message_id:
            self._last_in.discard(post.place_id)
        theirs = Key(post.place_id, post.asker_id)
        if self._last_for.get(theirs) == message_id:
            del self._last_for[theirs]
        if self.opened_for(post.asked_in, post.asker_id) == post.place_id and post.place_id not in self._last_in:
            opened = self._opened[post.asked_in]
            opened.discard(post.asker_id)
            if not len(opened):
                del self._opened[post.asked_in]


def _ids() -> IdTable[int]:
    return IdTable(array("Q"))


def read_posts(path: Path) -> list[Post]:
    """One JSON object a line, oldest first. Damaged lines are reported and left out."""
    posts: list[Post] = []
    # Not `splitlines`, which also breaks at characters that a question may hold.
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if not line:
            continue
        try:
            posts.append(_POST.validate_json(line))
        except ValidationError:
            log.warning("%s, line %d: damaged, left out", path, number)
    return posts


def render_post(post: Post) -> bytes:
    return json.dumps(asdict(post), ensure_ascii=False).encode() + b"\n"


@dataclass(slots=True)
class Mark:
    """Which messages of one place have their outcome.

    Attributes:
        below: every message up to this id has its outcome.
        done: ids above it that have theirs already.
        open: ids above it that do not.
    """

    below: int
    done: set[int] = field(default_factory=set[int])
    open: set[int] = field(default_factory=set[int])


class Seen:
    """Records which messages have their outcome, so that a restart knows where to catch up. `earlier`: the marks of an
    earlier run, by place. `on_change` is called when there is something new to save.
    """

    def __init__(self, earlier: Mapping[int, Mark] | None = None, on_change: Callable[[], None] | None = None) -> None:
        self._marks = dict(earlier or {})
        self._on_change = on_change

    def met(self, guild_id: int, at: float) -> None:
        """Note that the bot is in a server: from now on none of its messages may be missed, not even in places without
        a message so far.
        """
        if -guild_id not in self._marks:
            self._marks[-guild_id] = Mark(snowflake_at(at))
            self._changed()

    def arrived(self, message: Message) -> None:
        mark = self._marks.get(message.channel_id)
        if mark is None:
            mark = self._marks[message.channel_id] = Mark(message.id - 1)
        if message.id > mark.below and message.id not in mark.done:
            mark.open.add(message.id)

    def settled(self, end: Result) -> None:
        """Note the outcome of messages. Those that a shutdown cancelled are left open: catch-up brings them again."""
        match end:
            case Outcome(part=part):
                if end.reason != Reason.SHUTDOWN:
                    self._close(part.place.id, part.message_ids)
            case Ignored(channel_id=channel_id, message_ids=message_ids):
                self._close(channel_id, message_ids)
            case Removed(channel_id=channel_id, message_id=message_id):
                self._close(channel_id, (message_id,))

    def has_end(self, channel_id: int, message_id: int) -> bool:
        """True if a message has its outcome."""
        mark = self._marks.get(channel_id)
        return mark is not None and (message_id <= mark.below or message_id in mark.done)

    def below(self) -> Mapping[int, int]:
        """Return, for each place, the id up to which every message has its outcome; under minus the id of a server, the
        same for its places without a mark.
        """
        return {place_id: mark.below for place_id, mark in self._marks.items()}

    def marks(self) -> Mapping[int, Mark]:
        return self._marks

    def forget_quiet(self, seconds: float) -> None:
        """Drop the marks of places where nothing was said in the last `seconds` before the newest message of all.

        A message there is new then, and is caught up with by the mark of the guild. This goes by Discord's time: a
        clock that is ahead drops nothing.
        """
        newest = max((mark.below for place_id, mark in self._marks.items() if place_id > 0), default=0)
        limit = newest - (round(seconds * 1000) << 22)
        for place_id, mark in list(self._marks.items()):
            if place_id > 0 and max((mark.below, *mark.done)) < limit and not mark.open:
                del self._marks[place_id]

    def _close(self, place_id: int, message_ids: tuple[int, ...]) -> None:
        mark = self._marks.get(place_id)
        if mark is None:
            return
        for message_id in mark.open.intersection(message_ids):
            mark.open.remove(message_id)
            mark.done.add(message_id)
        limit = min(mark.open) if mark.open else max(mark.done, default=mark.below) + 1
        through = {message_id for message_id in mark.done if message_id < limit}
        if through:
            mark.below = max(through)
            mark.done -= through
        self._changed()

    def _changed(self) -> None:
        if self._on_change is not None:
            self._on_change()


def read_marks(path: Path) -> dict[int, Mark]:
    """Read a file of marks, `{"<place>": {"below": "<id>", "done": ["<id>", …]}}`; the mark of a whole server is under
    minus its id.

    Damage is reported and left out: that costs a second look at a few messages, never an answer.
    """
    marks: dict[int, Mark] = {}
    for place_id, mark in read_object(path).items():
        try:
            marks[int(place_id)] = Mark(int(mark["below"]), {int(message_id) for message_id in mark["done"]})
        except (TypeError, ValueError, KeyError, OverflowError):  # the last one for 1e400, an infinity
            log.warning("%s: the mark of place %.40r is damaged and left out", path, place_id)
    return marks


def render_marks(marks: Mapping[int, Mark]) -> bytes:
    text = {
        str(place_id): {"below": str(mark.below), "done": [str(message_id) for message_id in sorted(mark.done)]}
        for place_id, mark in sorted(marks.items())
    }
    return json.dumps(text, indent=0).encode() + b"\n"
