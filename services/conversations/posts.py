"""State that survives a restart: the replies of the bot, replies of several pieces while they are being posted, and
for each place which messages have their outcome.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated

from pydantic import Field, FiniteFloat, TypeAdapter, ValidationError

from clock import run_blocking
from model.conversations import ShownPair
from model.messages import Author, AuthorType, Key, Message, Part, Place, PlaceKind, snowflake_at, snowflake_time
from model.outcomes import Ignored, Outcome, Reason, Removed, Result
from services.storage import files, read_object, read_text, render_object

_Id = Annotated[int, Field(ge=0, lt=2**64)]


@dataclass(frozen=True, slots=True)
class Post:
    """The record of one reply; its id and time are those of the last piece."""

    at: FiniteFloat
    message_id: _Id
    place_id: _Id  # the thread with the reply
    asked_in: _Id  # the channel or thread of the question
    asker_id: _Id
    last_asked_id: _Id  # the last message of the answered part
    opened_thread: bool  # the reply is not where the question was asked, but in a thread of the asker
    question: str  # empty if the bot was killed before it recorded the post
    sources: tuple[str, ...]
    shown_pairs: tuple[ShownPair, ...] = ()  # what of the team it quotes or points to
    earlier_ids: tuple[_Id, ...] = ()  # of the pieces before the last one

    @property
    def piece_ids(self) -> tuple[int, ...]:
        return (*self.earlier_ids, self.message_id)


KEPT_POSTS = 20_000  # posts kept in memory, newest last

log = logging.getLogger(__name__)


_POST = TypeAdapter(Post)


class Posts:
    """The newest replies of the bot, by message, thread or asker. With a `path`, new ones are appended to that file."""

    def __init__(self, earlier: Iterable[Post] = (), path: Path | None = None) -> None:
        self._path = path
        self._posts: dict[int, Post] = {}  # by message; the newest last
        self._earlier: dict[int, int] = {}  # by piece before the last one: the message
        self._last_in: dict[int, int] = {}  # by thread: its last post
        self._last_for: dict[Key, int] = {}  # by thread and asker, unless it is in `_last_in`
        self._opened: dict[Key, int] = {}  # by channel and asker: the newest thread
        self._opened_for: dict[int, int] = {}  # by thread that the bot opened: its asker
        self._answered: dict[int, int] = {}  # by the last message of the part
        self._forgotten: dict[int, int] = {}  # by asker: the id of the request
        for post in earlier:
            self._add(post)

    async def add(self, post: Post) -> None:
        """Record a post, unless its asker was forgotten since the question. An error of the file is only logged."""
        if post.last_asked_id <= self._forgotten.get(post.asker_id, -1):
            return
        self._add(post)
        if self._path is not None:
            try:
                await run_blocking(files.append, self._path, render_post(post), own_line=True)
            except OSError as error:
                log.error("a reply was not recorded, so its thread will not be found again: %s", error)  # noqa: TRY400 (a line for the operator)

    def find(self, message_id: int) -> Post | None:
        """Return the record of the reply of which this message is a piece."""
        return self._posts.get(self._earlier.get(message_id, message_id))

    def has_posted_in(self, place_id: int) -> bool:
        return place_id in self._last_in

    def has_answered(self, message_id: int) -> bool:
        """Return True if the part that ended with this message has been replied to."""
        return self.answer_to(message_id) is not None

    def answer_to(self, message_id: int) -> int | None:
        """Return the id of the reply to the part that ended with this message; None: there is none."""
        return self._answered.get(message_id)

    def last_in_before(self, place_id: int, message_id: int) -> Post | None:
        """Return the reply in a thread to the last question that was asked before this message. Looks at all posts."""
        found = (each for each in self._posts.values() if each.place_id == place_id and each.last_asked_id < message_id)
        return max(found, key=lambda post: post.last_asked_id, default=None)

    def newest_in(self, place_id: int) -> int:
        """Return the id of the newest recorded post in a thread; 0 if there is none."""
        return self._last_in.get(place_id, 0)

    def thread_opened_for(self, channel_id: int, asker_id: int) -> int | None:
        """Return the newest thread that the bot opened for this asker in this channel."""
        return self._opened.get(Key(channel_id, asker_id))

    def opener_of(self, thread_id: int) -> int | None:
        """Return the asker for whom the bot opened this thread."""
        return self._opened_for.get(thread_id)

    def reusable_thread(self, channel_id: int, asker_id: int, since: float) -> int | None:
        """Return the newest thread opened for this asker in this channel, if the bot has posted there after `since`."""
        thread_id = self.thread_opened_for(channel_id, asker_id)
        last = None if thread_id is None else self._last_post_in(thread_id)
        return None if last is None or last.at <= since else thread_id

    def latest_for(self, place_id: int, asker_id: int) -> Post | None:
        """Return the newest reply to this asker in this thread; for a channel, in the newest thread opened for them."""
        thread_id = self.thread_opened_for(place_id, asker_id)
        place_id = place_id if thread_id is None else thread_id
        last = self._last_post_in(place_id)
        if last is not None and last.asker_id == asker_id:
            return last
        return self._posts.get(self._last_for.get(Key(place_id, asker_id), 0))

    def forget(self, asker_id: int, until: int) -> None:
        """Remove the records of replies to a person, also of later replies to messages with ids up to `until`."""
        self._forgotten[asker_id] = until
        for message_id in [each for each, post in self._posts.items() if post.asker_id == asker_id]:
            self._forget(message_id)

    def rename_sources(self, ids: Mapping[str, str]) -> None:
        """Replace the ids of sources. `ids`: new by old."""
        for message_id, post in self._posts.items():
            if not ids.keys().isdisjoint(post.sources):
                self._posts[message_id] = replace(post, sources=tuple(ids.get(each, each) for each in post.sources))

    def _last_post_in(self, place_id: int) -> Post | None:
        return self._posts.get(self.newest_in(place_id))

    def _add(self, post: Post) -> None:
        last = self._last_post_in(post.place_id)
        self._posts[post.message_id] = post
        self._earlier.update(dict.fromkeys(post.earlier_ids, post.message_id))
        if last is not None and last.asker_id != post.asker_id:
            self._last_for[Key(post.place_id, last.asker_id)] = last.message_id
            self._last_for.pop(Key(post.place_id, post.asker_id), None)
        self._last_in[post.place_id] = post.message_id
        self._answered[post.last_asked_id] = post.message_id
        if post.opened_thread:
            self._opened[Key(post.asked_in, post.asker_id)] = post.place_id
            self._opened_for[post.place_id] = post.asker_id
        if len(self._posts) > KEPT_POSTS:
            self._forget(next(iter(self._posts)))

    def _forget(self, message_id: int) -> None:
        post = self._posts.pop(message_id)
        for each in post.earlier_ids:
            self._earlier.pop(each, None)
        self._answered.pop(post.last_asked_id, None)
        if self._last_in.get(post.place_id) == message_id:
            del self._last_in[post.place_id]
        if post.opened_thread:
            self._opened_for.pop(post.place_id, None)
        theirs, asked = Key(post.place_id, post.asker_id), Key(post.asked_in, post.asker_id)
        if self._last_for.get(theirs) == message_id:
            del self._last_for[theirs]
        if self._opened.get(asked) == post.place_id and post.place_id not in self._last_in:
            del self._opened[asked]


def read_posts(path: Path) -> list[Post]:
    """Read a file of posts, one JSON object a line, oldest first. Damaged lines are reported and left out."""
    return parse_posts(read_text(path), path)


def parse_posts(text: str, path: Path) -> list[Post]:
    """Return what `read_posts` returns, from the content of the file."""
    posts: list[Post] = []
    # Not `splitlines`, which also splits at characters that a question may contain.
    for number, line in enumerate(text.split("\n"), 1):
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
class Watermark:
    """The state of the messages of one place: every one up to `up_to` has its outcome; above it, those of `done` have
    it, and those of `open` do not.
    """

    up_to: int
    done: set[int] = field(default_factory=set[int])
    open: set[int] = field(default_factory=set[int])


class Watermarks:
    """The watermark of each place: which messages have their outcome, so that a restart knows where to catch up.
    `earlier`: the watermarks of an earlier run, by place. `on_change`: called when there is something new to save.
    """

    def __init__(
        self, earlier: Mapping[int, Watermark] | None = None, on_change: Callable[[], None] | None = None
    ) -> None:
        self._marks = dict(earlier or {})
        self._on_change = on_change

    def note_guild(self, guild_id: int, at: float) -> None:
        """Note that the bot is in a server: from now on no message may be missed, also in places without any so far."""
        if -guild_id not in self._marks:
            self._marks[-guild_id] = Watermark(snowflake_at(at))
            self._changed()

    def note_arrival(self, place_id: int, message_id: int) -> None:
        mark = self._marks.get(place_id)
        if mark is None:
            mark = self._marks[place_id] = Watermark(message_id - 1)
        if message_id > mark.up_to and message_id not in mark.done:
            mark.open.add(message_id)

    def note_result(self, end: Result) -> None:
        """Note the outcome of messages. Those that a shutdown cancelled stay open: catch-up reads them again."""
        match end:
            case Outcome(part=part):
                if end.reason != Reason.SHUTDOWN:
                    self.note_done(part.place.id, part.message_ids)
            case Ignored(channel_id=channel_id, message_ids=message_ids):
                self.note_done(channel_id, message_ids)
            case Removed(channel_id=channel_id, message_id=message_id):
                self.note_done(channel_id, (message_id,))

    def has_outcome(self, channel_id: int, message_id: int) -> bool:
        mark = self._marks.get(channel_id)
        return mark is not None and (message_id <= mark.up_to or message_id in mark.done)

    def by_place(self) -> Mapping[int, int]:
        """Return `Watermark.up_to` by place; by `-guild_id` that of the places of a server without one of their own."""
        return {place_id: mark.up_to for place_id, mark in self._marks.items()}

    def marks(self) -> Mapping[int, Watermark]:
        return self._marks

    def forget_quiet(self, seconds: float, most: float = math.inf) -> None:
        """Drop the marks of places without a message in the last `seconds` before the newest message of all, and of the
        longest quiet ones beyond `most`.

        A later message in such a place is caught up with by the mark of the guild. The times are Discord's: a clock
        that is ahead drops nothing.
        """
        newest = max((mark.up_to for place_id, mark in self._marks.items() if place_id > 0), default=0)
        limit = newest - (round(seconds * 1000) << 22)
        quiet = [(max((mark.up_to, *mark.done)), id_) for id_, mark in self._marks.items() if id_ > 0 and not mark.open]
        for rank, (last, place_id) in enumerate(sorted(quiet)):
            if last < limit or rank < len(quiet) - most:
                del self._marks[place_id]

    def note_done(self, place_id: int, message_ids: Collection[int]) -> None:
        """Note that messages have their outcome."""
        mark = self._marks.get(place_id)
        if mark is None:
            return
        for message_id in mark.open.intersection(message_ids):
            mark.open.remove(message_id)
            mark.done.add(message_id)
        limit = min(mark.open) if mark.open else max(mark.done, default=mark.up_to) + 1
        through = {message_id for message_id in mark.done if message_id < limit}
        if through:
            mark.up_to = max(through)
            mark.done -= through
        self._changed()

    def _changed(self) -> None:
        if self._on_change is not None:
            self._on_change()


def read_watermarks(path: Path) -> dict[int, Watermark]:
    """Read a file of marks, `{"<place>": {"below": "<id>", "done": ["<id>", …]}}`; the key of a server is minus its id.
    `below` is `Watermark.up_to`: that message is done, too. Files of earlier versions have the same name for it.

    Damaged marks are reported and left out: a few messages are read twice then, and no answer is lost.
    """
    marks: dict[int, Watermark] = {}
    for place_id, mark in read_object(path).items():
        try:
            marks[int(place_id)] = Watermark(int(mark["below"]), {int(message_id) for message_id in mark["done"]})
        except (TypeError, ValueError, KeyError, OverflowError):  # the last one for 1e400, an infinity
            log.warning("%s: the mark of place %.40r is damaged and left out", path, place_id)
    return marks


def render_watermarks(marks: Mapping[int, Watermark]) -> bytes:
    text = {
        str(place_id): {"below": str(mark.up_to), "done": [str(message_id) for message_id in sorted(mark.done)]}
        for place_id, mark in sorted(marks.items())
    }
    return render_object(text)


@dataclass(frozen=True, slots=True)
class StartedReply:
    """A reply that is being posted.

    Attributes:
        post: its record once it is complete, but for the id and time of the last piece.
        pieces: the texts that are posted, one message each.
        asked_ids: the ids of the answered messages, in order.
        people: the ids of those whose words may stand in it: who wrote in the conversation, or posted a file that
            could be read for it.
    """

    post: Post
    pieces: tuple[str, ...]
    asked_ids: tuple[int, ...]
    guild_id: int | None
    people: tuple[int, ...] = ()

    @classmethod
    def to(
        cls,
        part: Part,
        place_id: int,
        *,
        question: str,
        sources: tuple[str, ...],
        people: Iterable[int],
        pieces: tuple[str, ...] = (),
        shown_pairs: tuple[ShownPair, ...] = (),
    ) -> StartedReply:
        """Make the reply to a part in a thread. `question`, `sources`, `shown_pairs`: for the record."""
        post = Post(
            at=0.0,
            message_id=0,
            place_id=place_id,
            asked_in=part.place.id,
            asker_id=part.author.id,
            last_asked_id=part.last.id,
            opened_thread=place_id != part.place.id,
            question=question,
            sources=sources,
            shown_pairs=shown_pairs,
        )
        return cls(post, pieces, part.message_ids, part.guild_id, tuple(sorted(people)))

    @property
    def id(self) -> int:
        return self.post.last_asked_id

    @property
    def place_id(self) -> int:
        return self.post.place_id

    @property
    def reply_to(self) -> int | None:
        """The message that the first piece replies to; None if it is in another place than the question."""
        return None if self.post.opened_thread else self.post.last_asked_id

    @property
    def in_thread_on_question(self) -> bool:
        """True if the reply's thread was opened on the last message of the question, and so has its id."""
        return self.post.opened_thread and self.post.place_id == self.post.last_asked_id

    def nonce(self, number: int) -> str:
        """Return the nonce of a piece: Discord posts a piece only once if it is sent again after an error."""
        return f"{self.id:x}-{number}"

    def as_post(self, piece_ids: Sequence[int]) -> Post:
        """Return the record of the reply, given the ids of its messages."""
        *earlier_ids, last_id = piece_ids
        return replace(self.post, message_id=last_id, earlier_ids=tuple(earlier_ids), at=snowflake_time(last_id))

    def part(self) -> Part:
        """Rebuild the answered part after a restart. It has ids only, since no text or name is stored."""
        post = self.post
        place = (
            Place(post.asked_in, PlaceKind.CHANNEL, guild_id=self.guild_id)
            if post.opened_thread
            else Place(post.place_id, PlaceKind.THREAD, guild_id=self.guild_id)
        )
        asker = Author(post.asker_id, "")
        asked = tuple(
            Message(message_id, place.id, asker, "", snowflake_time(message_id), self.guild_id)
            for message_id in self.asked_ids
        )
        return Part(0, asked, AuthorType.COMMUNITY_USER, place, snowflake_time(self.id))


_REPLY = TypeAdapter(StartedReply)


class Outbox:
    """The replies that are started and not complete. With a `folder`, each reply of at least `least_pieces` pieces is
    a file there until it is complete or withdrawn. `unfinished`: those of an earlier run.
    """

    def __init__(self, folder: Path | None = None, least_pieces: int = 2) -> None:
        self._folder, self._least_pieces = folder, least_pieces
        self.unfinished: Sequence[StartedReply] = () if folder is None else tuple(read_started(folder))
        self._unfinished_ids = {reply.id for reply in self.unfinished}
        self._all_finished = asyncio.Event()
        if not self._unfinished_ids:
            self._all_finished.set()

    async def begin(self, reply: StartedReply) -> None:
        """Store a reply before its first piece is posted. An error is logged, and the reply is posted anyway."""
        if self._folder is not None and len(reply.pieces) >= self._least_pieces:
            try:
                await run_blocking(files.replace, self._path(self._folder, reply), render_started(reply))
            except OSError as error:
                log.error(  # noqa: TRY400 (a line for the operator)
                    "a reply is posted without being stored first; after a crash it would stay half posted: %s",
                    files.describe_error(error),
                )

    async def end(self, reply: StartedReply) -> None:
        """Remove a reply that is complete and recorded, or withdrawn."""
        if self._folder is not None and len(reply.pieces) >= self._least_pieces:
            try:
                await run_blocking(files.remove, self._path(self._folder, reply))
            except OSError as error:
                log.error("a reply that is done will be looked at again: %s", files.describe_error(error))  # noqa: TRY400 (as above)

    def mark_finished(self, reply: StartedReply) -> None:
        """Mark one of the `unfinished` replies as finished, also if this run has failed to post the rest of it."""
        self._unfinished_ids.discard(reply.id)
        if not self._unfinished_ids:
            self._all_finished.set()

    async def wait_until_finished(self) -> None:
        """Wait until all `unfinished` replies are finished: before that it is unknown which questions were answered."""
        await self._all_finished.wait()

    @staticmethod
    def _path(folder: Path, reply: StartedReply) -> Path:
        return folder / f"{reply.id}.json"


def read_started(folder: Path) -> Iterator[StartedReply]:
    """Yield the replies in a folder, oldest question first. Damaged ones are reported and left out. Blocking."""
    for path in sorted(folder.glob("*.json"), key=lambda path: (len(path.name), path.name)):
        try:
            yield _REPLY.validate_json(read_text(path))
        except ValidationError:
            log.warning("%s: damaged, left out; a reply may be incomplete", path)


def render_started(reply: StartedReply) -> bytes:
    return json.dumps(asdict(reply), ensure_ascii=False).encode() + b"\n"


def replies_with(folder: Path, user_id: int) -> list[Path]:
    """Return the files of replies to others in which a person's words may stand. Blocking. Raises OSError."""
    return [folder / f"{reply.id}.json" for reply in read_started(folder) if user_id in reply.people]


def forget_started(folder: Path, asker_id: int) -> int:
    """Remove the replies started for a person, and damaged files. Returns how many. Blocking. Raises OSError."""
    others = {f"{reply.id}.json" for reply in read_started(folder) if reply.post.asker_id != asker_id}
    theirs = [path for path in folder.glob("*.json") if path.name not in others]
    for path in theirs:
        files.remove(path)
    return len(theirs)
