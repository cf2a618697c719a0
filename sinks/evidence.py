"""What people see of their files: a reaction, and one line where a file cannot be read."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from model.messages import Author, Message, snowflake_time
from operators.chunk import IngestResult
from services.conversations import History, People
from services.discord import Poster, PostFailed
from services.discord.text import inert, split
from services.documents import IngestJob, Tombstones

WORKING, DONE, FAILED = "⏳", "✅", "⚠️"
POST_AGAIN = "The files of this thread were deleted when it was closed. Post them again if they are still needed."
LARGE_BYTES = 1024 * 1024
"""Files from this size on take a while, and are said to."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FileNotes:
    """Tells under each file's message how it stands. Nothing waits for it, and its failures are lines in the log."""

    poster: Poster
    history: History
    people: People
    gone: Tombstones

    async def begun(self, filing: IngestJob) -> None:
        """A file is being read; those that take a moment only go without a word."""
        candidate = filing.candidate
        if candidate.attachment.size >= LARGE_BYTES:
            await self._react(candidate.place_id, candidate.message_id, WORKING)

    async def ended(self, filed: IngestResult) -> None:
        """A file can be searched, or cannot be read."""
        candidate = filed.filing.candidate
        if not filed.is_new:
            return
        if candidate.attachment.size >= LARGE_BYTES:
            await self._unreact(candidate.place_id, candidate.message_id, WORKING)
        await self._react(candidate.place_id, candidate.message_id, FAILED if filed.failure else DONE)
        # In a channel, the answer itself tells: there is no thread to write to yet.
        if filed.failure and candidate.place_id == candidate.case_id:
            await self._say(filed)

    async def reopened(self, case_id: int) -> None:
        """A thread is open again that was closed, with its files."""
        if not self.gone.is_untold(case_id):
            return
        try:
            await self.gone.told(case_id)
        except OSError as error:
            log.warning("evidence: thread %d: may be told again: %s", case_id, error)
        await self._send(case_id, POST_AGAIN, f"{case_id:x}-r")

    async def _say(self, filed: IngestResult) -> None:
        candidate = filed.filing.candidate
        (text, *_) = split(f"{FAILED} {inert(filed.failure)}")
        await self._send(candidate.place_id, text, f"{candidate.attachment.id:x}-f")

    async def _send(self, place_id: int, text: str, nonce: str) -> None:
        # No reply: after a crash, a reply to the message would be taken for its answer.
        try:
            message_id = await self.poster.send(place_id, text, nonce=nonce)
        except PostFailed as error:
            log.warning("evidence: not told: %s", error)
            return
        bot = Author(self.people.bot_id or 0, "", is_bot=True)
        at = snowflake_time(message_id)
        self.history.note(Message(message_id, place_id, bot, text, at, self.history.place(place_id).guild_id))

    async def _react(self, place_id: int, message_id: int, emoji: str) -> None:
        try:
            await self.poster.react(place_id, message_id, emoji)
        except PostFailed as error:
            log.info("evidence: no reaction: %s", error)

    async def _unreact(self, place_id: int, message_id: int, emoji: str) -> None:
        try:
            await self.poster.unreact(place_id, message_id, emoji)
        except PostFailed as error:
            log.info("evidence: reaction not taken back: %s", error)
