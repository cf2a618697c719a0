"""The notes that people see about their files: a reaction, and one line where a file cannot be read."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field

from clock import now
from model.messages import Author, Message, snowflake_time
from model.servers import Servers
from operators.evidence import MessageFiles
from services.conversations import History, People, in_language, phrases
from services.discord import Poster, PostFailed, escape_markup, split
from services.documents import Candidate, FileRefused, IngestJob, Tombstones, refusal_text
from services.search import language_of

WORKING, DONE, FAILED = "⏳", "✅", "⚠️"
LARGE_BYTES = 1024 * 1024
"""Files from this size on take a while: a reaction shows that they are being read."""
NOTE_SECONDS = 60.0
"""The shortest time between two notes about refused files in a thread: anybody may post any number of files."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileNotes:
    """Shows under each file's message whether it can be searched. Nothing waits for that; failures are only logged.
    `reply_languages`: `question`: as people write in the thread; else the code of a fixed language.
    """

    poster: Poster
    history: History
    people: People
    tombstones: Tombstones
    reply_languages: Servers[str]
    _noted: dict[int, float] = field(default_factory=dict[int, float], init=False)  # by thread: when it had a note

    async def on_begin(self, job: IngestJob) -> None:
        """React to the beginning of reading a file, for large files only."""
        file = job.candidate
        if file.attachment.size >= LARGE_BYTES:
            await _react(self.poster.react(file.place_id, file.message_id, WORKING))

    async def on_end(self, files: MessageFiles) -> None:
        """React to the end of reading a file. A note says why files cannot be read, for all of one message at once."""
        *before, result = files.results
        file = result.job.candidate
        if result.is_new:
            if file.attachment.size >= LARGE_BYTES:
                await _react(self.poster.unreact(file.place_id, file.message_id, WORKING))
            if not any(each.is_new and bool(each.failure) == bool(result.failure) for each in before):
                mark = FAILED if result.failure else DONE
                await _react(self.poster.react(file.place_id, file.message_id, mark))
        # In a channel the answer itself says so: there is no thread to write to yet.
        if files.is_complete and file.place_id == file.case_id:
            refusals = [each.refusal for each in files.results if each.is_new and each.refusal is not None]
            await self._post_refusals(file, refusals)

    async def _post_refusals(self, file: Candidate, refusals: Sequence[FileRefused]) -> None:
        """Post one note, if a minute has passed in this thread since the last one. `file`: the last of its message."""
        at = now()
        if not refusals or 0 <= at - self._noted.get(file.case_id, -math.inf) < NOTE_SECONDS:
            return
        for case_id in [each for each, noted_at in self._noted.items() if at - noted_at >= NOTE_SECONDS]:
            del self._noted[case_id]
        self._noted[file.case_id] = at
        language = self._language(file.place_id, file.uploader_id)
        lines = "\n".join(escape_markup(refusal_text(each, language)) for each in refusals)
        (text, *_) = split(f"{FAILED} {lines}")
        await self._send(file.place_id, text, f"{file.attachment.id:x}-f")

    async def on_reopen(self, case_id: int) -> None:
        """Post that files have to be posted again, once, if a closed thread is open again."""
        if not self.tombstones.is_unannounced(case_id):
            return
        try:
            await self.tombstones.note_announced(case_id)
        except OSError as error:
            log.warning("evidence: thread %d: may be told again: %s", case_id, error)
        await self._send(case_id, phrases(self._language(case_id)).post_again, f"{case_id:x}-r")

    def _language(self, place_id: int, author_id: int | None = None) -> str:
        """Return the language of the place's recent messages, by one person or by all."""
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


async def _react(reaction: Awaitable[object]) -> None:
    try:
        await reaction
    except PostFailed as error:
        log.info("evidence: reaction not changed: %s", error)
