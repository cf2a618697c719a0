"""Posts answers: in a thread on Discord, or in a rehearsal."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from clock import loop_time, now
from clock.timeouts import Backoff
from model.messages import Author, Message, Part, Place, PlaceKind, snowflake_time
from model.outcomes import Outcome, OutcomeKind, Reason, recordable_sources
from model.servers import Servers
from services.assistant import Inquiry, line_that_asks, links_block, reply_outcome
from services.conversations import History, Outbox, People, Posts, StartedReply, WorkCancelled
from services.discord import (
    PAGE_SIZE,
    Fetcher,
    LookupFailed,
    Poster,
    PostFailed,
    TakenBack,
    Undelivered,
    split,
    thread_name,
)
from services.llm import Limiter
from services.telemetry import QUESTION_CHARS

VOTES = ("👍", "👎")

FIRST_PAUSE_SECONDS = 2.0
LONGEST_PAUSE_SECONDS = 60.0
PATIENCE_SECONDS = 600.0
"""How long a piece is retried that Discord cannot take now. After a restart it is tried anew."""
SEARCHED_PAGES = 10  # so many pages after a question are searched for the pieces of its answer

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Replies:
    """Posts answers, in pieces that Discord takes, and records them. In the end all pieces of an answer are posted,
    each once, or none.

    Attributes:
        outbox: keeps started replies over a crash.
        fetcher: finds the pieces that are posted; None: nothing is ever posted for real.
        offers_votes: 👍 and 👎 are offered under the last piece.
    """

    poster: Poster
    posts: Posts
    history: History
    people: People
    budgets: Servers[Limiter]
    outbox: Outbox = field(default_factory=Outbox)
    fetcher: Fetcher | None = None
    offers_votes: bool = False

    async def post(self, inquiry: Inquiry) -> Outcome:
        """Post the answer in its thread, which is opened on the part's last message if it does not exist yet.

        Raises:
            PostFailed: Discord refused, and nothing is posted.
            Undelivered: Discord could not be reached for too long.
            WorkCancelled: the answer was no longer needed when the thread was open.
        """
        text = inquiry.draft + links_block(inquiry.links)
        place_id = await self._open_place(inquiry)
        if inquiry.token.error is not None:
            raise inquiry.token.error
        if inquiry.toolset is not None and not inquiry.toolset.may_be_shown:
            raise WorkCancelled(Reason.DELETED)
        # Not cancelled from here on: half an answer helps nobody.
        inquiry.token.commit()
        reply = self._reply_to(inquiry, place_id, text)
        await self.outbox.begin(reply)
        await self._complete(reply, [])
        return reply_outcome(inquiry, place_id, text)

    async def finish(self, reply: StartedReply) -> Outcome | None:
        """Post the pieces of a reply that an earlier run has not posted. Returns None if it had posted nothing: then
        the question is answered anew. Raises as `post`.
        """
        try:
            posted_ids = await self._posted_ids(reply)
            if not posted_ids:
                await self.outbox.end(reply)
                return None
            log.info("a reply in %d is finished, of which %d pieces are posted", reply.place_id, len(posted_ids))
            await self._complete(reply, posted_ids)
        finally:
            self.outbox.mark_finished(reply)
        return Outcome(
            reply.part(),
            now(),
            OutcomeKind.REPLIED,
            reply_text="\n".join(reply.pieces),
            sources=reply.post.sources,
            reply_place_id=reply.place_id,
        )

    async def post_approved(self, reply: StartedReply, thread_name: str) -> Sequence[int]:
        """Post a reply that a person has approved, or the pieces of it that an earlier try has not posted.
        `thread_name`: of the thread that is opened for it; empty: there is one. Returns the ids of the pieces.

        Raises LookupFailed: it is unknown what is posted; and as `post`.
        """
        is_recorded = self.posts.has_answered(reply.id)
        if thread_name and not is_recorded:
            await self._open_thread(reply.part(), thread_name)
        posted_ids = await self._posted_ids(reply)
        if not is_recorded:
            # Not in the outbox: what a start finds after a crash is the draft.
            await self._complete(reply, posted_ids)
        return posted_ids

    async def _open_place(self, inquiry: Inquiry) -> int:
        if inquiry.reply_place_id is not None:
            return inquiry.reply_place_id
        asked = inquiry.conversation.asked_text
        if any(self.history.latest(each).text != each.text for each in inquiry.part.messages):
            asked = ""  # edited meanwhile: what was taken out of it must not name the thread
        return await self._open_thread(inquiry.part, thread_name(line_that_asks(asked)))

    async def _open_thread(self, part: Part, name: str) -> int:
        thread_id = await self.poster.open_thread(part.place.id, part.last.id, name)
        if not self.history.knows(thread_id):
            opened = Place(
                thread_id,
                PlaceKind.THREAD,
                name,
                part.place.guild_id,
                parent_id=part.place.id,
                owner_id=self.people.bot_id,
                public=part.place.public,
            )
            self.history.add_place(opened)
        return thread_id

    def _reply_to(self, inquiry: Inquiry, place_id: int, text: str) -> StartedReply:
        return StartedReply.to(
            inquiry.part,
            place_id,
            question=inquiry.conversation.asked_text[:QUESTION_CHARS],
            sources=recordable_sources(inquiry.shown_sources),
            people=inquiry.people,
            pieces=tuple(split(text)),
            shown_pairs=inquiry.shown_pairs,
        )

    async def _complete(self, reply: StartedReply, posted_ids: list[int]) -> None:
        """Post the pieces that follow `posted_ids`, and record the reply."""
        try:
            await self._send_rest(reply, posted_ids)
        except Undelivered:
            raise
        except PostFailed as failure:
            await self._take_back(reply, posted_ids, failure)
            raise
        last_id = posted_ids[-1]
        await self.posts.add(reply.as_post(posted_ids))
        await self.outbox.end(reply)
        self.budgets[reply.guild_id].answered(now())
        if self.offers_votes:
            await self._offer_votes(reply.place_id, last_id)

    async def _send_rest(self, reply: StartedReply, posted_ids: list[int]) -> None:
        """Post piece after piece, adding each to `posted_ids`. A piece that Discord cannot take now is tried again.

        Raises:
            PostFailed: Discord refuses a piece.
            Undelivered: it could not be reached for too long.
        """
        backoff, until = Backoff(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS), loop_time() + PATIENCE_SECONDS
        while len(posted_ids) < len(reply.pieces):
            try:
                posted_ids.append(await self._send(reply, len(posted_ids)))
            except PostFailed as failure:
                if not failure.is_passing:
                    raise
                await self._wait(reply, posted_ids, failure, backoff, until)

    async def _wait(
        self, reply: StartedReply, posted_ids: list[int], failure: PostFailed, backoff: Backoff, until: float
    ) -> None:
        """Pause after a failure until it is known what is posted: perhaps what failed. Raises Undelivered."""
        while True:
            done = f"{len(posted_ids)} of {len(reply.pieces)} pieces are posted"
            pause = max(backoff.pause(), failure.retry_after)
            if loop_time() + pause > until:
                raise Undelivered(f"{failure}; {done}") from failure
            log.warning("%s; %s, the rest follows", failure, done)
            await asyncio.sleep(pause)
            with contextlib.suppress(LookupFailed):
                posted_ids += (await self._posted_ids(reply))[len(posted_ids) :]
                return

    async def _send(self, reply: StartedReply, number: int) -> int:
        place_id, piece = reply.place_id, reply.pieces[number]
        reply_to = reply.reply_to if number == 0 else None
        message_id = await self.poster.send(place_id, piece, nonce=reply.nonce(number), reply_to=reply_to)
        bot = Author(self.people.bot_id or 0, "", is_bot=True)
        self.history.note(Message(message_id, place_id, bot, piece, snowflake_time(message_id), reply.guild_id))
        return message_id

    async def _posted_ids(self, reply: StartedReply) -> list[int]:
        """Return the ids of the posted pieces, which are the first ones. Raises LookupFailed."""
        posted_ids: list[int] = []
        after = reply.id
        for _ in range(SEARCHED_PAGES):
            if self.fetcher is None:
                break
            page = await self.fetcher.messages(reply.place_id, after=after)
            for message in page:
                if self._is_piece(message, reply, len(posted_ids)):
                    posted_ids.append(message.id)
            if len(page) < PAGE_SIZE:
                break
            after = page[-1].id
        return posted_ids

    def _is_piece(self, message: Message, reply: StartedReply, number: int) -> bool:
        """Return True if a posted message is this piece of a reply. Discord may have changed its white space."""
        if number >= len(reply.pieces) or not self.people.is_bot_itself(message.author):
            return False
        # Another reply in the same place may read the same, and replies to another message. A piece replies to nothing
        # if the question was gone when it was posted.
        replied_to = None if message.reply_to is None else message.reply_to.message_id
        is_of_reply = replied_to is None or (number == 0 and replied_to == reply.reply_to)
        return is_of_reply and message.text.split() == reply.pieces[number].split()

    async def _take_back(self, reply: StartedReply, posted_ids: list[int], failure: PostFailed) -> None:
        """Delete the posted pieces of a reply that Discord does not take whole, and its empty thread if possible.

        Raises:
            TakenBack: what had been posted is deleted.
            Undelivered: that could not be deleted.
        """
        refused = f"piece {len(posted_ids) + 1} of {len(reply.pieces)}: {failure}"
        try:
            for message_id in reversed(posted_ids):
                await self.poster.delete(reply.place_id, message_id)
        except PostFailed as error:
            raise Undelivered(f"{refused}; what was posted could not be taken back: {error}") from failure
        await self.outbox.end(reply)
        if self.fetcher is not None and reply.in_thread_on_question:
            await self._drop_empty(self.fetcher, reply.place_id)
        if posted_ids:
            raise TakenBack(f"{refused}; what was posted is taken back") from failure

    async def _drop_empty(self, fetcher: Fetcher, thread_id: int) -> None:
        """Delete a thread of the bot's own in which nobody has written. If that fails, it stays."""
        try:
            thread = await fetcher.place(thread_id)
            if thread is None or thread.owner_id is None or thread.owner_id != self.people.bot_id:
                return
            if all(message.is_system for message in await fetcher.messages(thread_id)):
                await self.poster.delete_thread(thread_id)
        except (LookupFailed, PostFailed) as failure:
            log.info("the thread %d of an answer that was taken back stays: %s", thread_id, failure)

    async def _offer_votes(self, place_id: int, message_id: int) -> None:
        try:
            for emoji in VOTES:
                await self.poster.react(place_id, message_id, emoji)
        except PostFailed as error:
            log.warning("no votes offered: %s", error)
