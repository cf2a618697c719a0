"""The notes that people see about their files: a reaction, and one line where a file cannot be read."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from dataclasses import dataclass

from model.messages import Author, Message, snowflake_time
from model.servers import Servers
from operators.evidence import IngestResult
from services.conversations import History, People, in_language, phrases
from services.discord import Poster, PostFailed, inert, split
from services.documents import IngestJob, Tombstones, refusal_text
from services.search import language_of

WORKING, DONE, FAILED = "⏳", "✅", "⚠️"
LARGE_BYTES = 1024 * 1024
"""Files from this size on take a while, which a reaction shows."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileNotes:
    """Shows under each file's message how far it is. Nothing waits for it, and its failures are only logged.

    Attributes:
        reply_languages: `question`: as people write in the thread; else the code of a fixed language.
    """

    poster: Poster
    history: History
    people: People
    gone: Tombstones
    reply_languages: Servers[str]

    async def begun(self, job: IngestJob) -> None:
        """The reading of a file begins: shown for large ones only."""
        file = job.candidate
        if file.attachment.size >= LARGE_BYTES:
            await _tried(self.poster.react(file.place_id, file.message_id, WORKING))

    async def ended(self, result: IngestResult) -> None:
        """A file can be searched, or cannot be read."""
        file = result.job.candidate
        if not result.is_new:
            return
        if file.attachment.size >= LARGE_BYTES:
            await _tried(self.poster.unreact(file.place_id, file.message_id, WORKING))
        await _tried(self.poster.react(file.place_id, file.message_id, FAILED if result.failure else DONE))
        # In a channel the answer itself says so: there is no thread to write to yet.
        if result.refusal is not None and file.place_id == file.case_id:
            told = refusal_text(result.refusal, self._language(file.place_id, file.uploader_id))
            (text, *_) = split(f"{FAILED} {inert(told)}")
            await self._send(file.place_id, text, f"{file.attachment.id:x}-f")

    async def reopened(self, case_id: int) -> None:
        """A thread is open again that was closed, with its files."""
        if not self.gone.is_unannounced(case_id):
            return
        try:
            await self.gone.announced(case_id)
        except OSError as error:
            log.warning("evidence: thread %d: may be told again: %s", case_id, error)
        await self._send(case_id, phrases(self._language(case_id)).post_again, f"{case_id:x}-r")

    def _language(self, place_id: int, author_id: int | None = None) -> str:
        """What is written there, by one person or by all."""
        people = [message for message in self.history.recent(place_id) if not message.author.is_bot]
        texts = [message.text for message in people if author_id in {None, message.author.id}]
        chosen = self.reply_languages[self.history.place(place_id).guild_id]
        return in_language(chosen, language_of("\n".join(texts)))

    async def _send(self, place_id: int, text: str, nonce: str) -> None:
        # No reply: after a crash, a reply to the message would be taken for its answer.
        try:
            message_id = await self.poster.send(place_id, text, nonce=nonce)
        except PostFailed as error:
            log.warning("evidence: not posted: %s", error)
            return
        bot = Author(self.people.bot_id or 0, "", is_bot=True)
        at = snowflake_time(message_id)
        self.history.note(Message(message_id, place_id, bot, text, at, self.history.place(place_id).guild_id))


async def _tried(reaction: Awaitable[object]) -> None:
    try:
        await reaction
    except PostFailed as error:
        log.info("evidence: reaction not changed: %s", error)
