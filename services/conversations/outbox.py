"""Replies of several pieces while they are being posted. A file for each lets the next start finish what a crash cut
off.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from clock import run_blocking
from model.batches import Part
from model.messages import Author, AuthorType, Message, Place, PlaceKind, snowflake_time
from services.conversations.records import Post
from services.storage import files, read_text

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StartedReply:
    """A reply that is being posted.

    Attributes:
        post: how it is recorded once it is complete; its message and time are those of the last piece then.
        pieces: what is posted, one message each.
        asked_ids: the messages that it answers, the last one last.
    """

    post: Post
    pieces: tuple[str, ...]
    asked_ids: tuple[int, ...]
    guild_id: int | None

    @property
    def id(self) -> int:
        return self.post.last_asked_id

    @property
    def place_id(self) -> int:
        return self.post.place_id

    @property
    def reply_to(self) -> int | None:
        """The message that the first piece replies to; None in a thread of its own."""
        return None if self.post.opened_thread else self.post.last_asked_id

    @property
    def in_thread_on_question(self) -> bool:
        """True if the reply's thread is the one on the question, which has the question's id. Somebody else may have
        opened it.
        """
        return self.post.opened_thread and self.post.place_id == self.post.last_asked_id

    def nonce(self, number: int) -> str:
        """Return the nonce of a piece, by which Discord posts it only once if it is sent again after an error."""
        return f"{self.id:x}-{number}"

    def posted(self, message_id: int) -> Post:
        """Return the record of the reply, given the id of its last message."""
        return replace(self.post, message_id=message_id, at=snowflake_time(message_id))

    def part(self) -> Part:
        """Rebuild the part that is answered, after a restart. It has ids only, since no text or name is stored."""
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
    """The replies that have been started and are not complete. With a `folder`, each reply of at least `pieces` pieces
    is a file there until it is complete or withdrawn.

    Attributes:
        left: those of an earlier run, which are to be finished.
    """

    def __init__(self, folder: Path | None = None, pieces: int = 2) -> None:
        self._folder, self._pieces = folder, pieces
        self.left: Sequence[StartedReply] = () if folder is None else tuple(read_started(folder))
        self._unsettled = {reply.id for reply in self.left}
        self._settled = asyncio.Event()
        if not self._unsettled:
            self._settled.set()

    async def begin(self, reply: StartedReply) -> None:
        """Store a reply before its first piece is posted. If that fails it is logged, and the reply is posted all the
        same.
        """
        if self._folder is not None and len(reply.pieces) >= self._pieces:
            try:
                await run_blocking(files.replace, self._path(self._folder, reply), render_started(reply))
            except OSError as error:
                log.error("a crash would leave a reply half posted: %s", files.why(error))  # noqa: TRY400 (a line for the operator)

    async def end(self, reply: StartedReply) -> None:
        """Remove a reply that is complete and recorded, or of which nothing is left."""
        if self._folder is not None and len(reply.pieces) >= self._pieces:
            try:
                await run_blocking(files.remove, self._path(self._folder, reply))
            except OSError as error:
                log.error("a reply that is done will be looked at again: %s", files.why(error))  # noqa: TRY400 (as above)

    def settle(self, reply: StartedReply) -> None:
        """Mark one of `left` as finished, as far as this run can finish it."""
        self._unsettled.discard(reply.id)
        if not self._unsettled:
            self._settled.set()

    async def settled(self) -> None:
        """Wait until the replies of an earlier run are finished. Before that nobody can tell which questions were
        answered.
        """
        await self._settled.wait()

    @staticmethod
    def _path(folder: Path, reply: StartedReply) -> Path:
        return folder / f"{reply.id}.json"


def read_started(folder: Path) -> Iterator[StartedReply]:
    """The replies in a folder, oldest question first. Damaged ones are reported and left out. Blocking."""
    for path in sorted(folder.glob("*.json"), key=lambda path: (len(path.name), path.name)):
        try:
            yield _REPLY.validate_json(read_text(path))
        except ValidationError:
            log.warning("%s: damaged, left out; a reply may be incomplete", path)


def render_started(reply: StartedReply) -> bytes:
    return json.dumps(asdict(reply), ensure_ascii=False).encode() + b"\n"


def forget_started(folder: Path, asker_id: int) -> int:
    """Remove the replies started for a person, and damaged files. Returns how many. Blocking. Raises OSError."""
    others = {f"{reply.id}.json" for reply in read_started(folder) if reply.post.asker_id != asker_id}
    theirs = [path for path in folder.glob("*.json") if path.name not in others]
    for path in theirs:
        files.remove(path)
    return len(theirs)
