"""Answers are posted: in a thread on Discord, or in a rehearsal."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from clock import now
from model.messages import Author, Message, Place, PlaceKind, snowflake_time
from model.outcomes import Outcome
from services.assistant import Inquiry, links_block, replied
from services.conversations import History, People, Post, Posts
from services.discord import Poster, PostFailed, split, thread_name
from services.llm import Budget

VOTES = ("👍", "👎")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Replies:
    """Posts answers, in pieces that Discord takes, and records them.

    Attributes:
        feedback: offer 👍 and 👎 under the last piece.
    """

    poster: Poster
    posts: Posts
    history: History
    people: People
    budget: Budget
    feedback: bool = False

    async def post(self, inquiry: Inquiry) -> Outcome:
        """Post the answer in its thread, opened on the part's last message where there is none yet.

        Raises:
            PostFailed: Discord refused; if it refused the thread, nothing was posted.
            CalledOff: the answer was no longer needed when the thread was open.
        """
        text = inquiry.draft + links_block(inquiry.links)
        place_id = await self._place(inquiry)
        if inquiry.token.error is not None:
            raise inquiry.token.error
        # Not cancelled from here on: half an answer helps nobody.
        inquiry.token.detach()
        last_id = 0
        for number, piece in enumerate(split(text)):
            last_id = await self._send(inquiry, place_id, piece, number)
        await self.posts.add(self._record(inquiry, place_id, last_id))
        self.budget.answered(now())
        if self.feedback:
            await self._offer_votes(place_id, last_id)
        return replied(inquiry, place_id, text)

    async def _place(self, inquiry: Inquiry) -> int:
        if inquiry.reply_place_id is not None:
            return inquiry.reply_place_id
        part = inquiry.part
        name = thread_name(inquiry.conversation.asked_text)
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
            self.history.meet(opened)
        return thread_id

    async def _send(self, inquiry: Inquiry, place_id: int, piece: str, number: int) -> int:
        last = inquiry.part.last
        message_id = await self.poster.send(
            place_id,
            piece,
            # The same part and piece, sent again after an error, is posted once.
            nonce=f"{last.id:x}-{number}",
            reply_to=last.id if number == 0 and place_id == last.channel_id else None,
        )
        bot = Author(self.people.bot_id or 0, "", is_bot=True)
        self.history.note(Message(message_id, place_id, bot, piece, snowflake_time(message_id), last.guild_id))
        return message_id

    def _record(self, inquiry: Inquiry, place_id: int, message_id: int) -> Post:
        part = inquiry.part
        return Post(
            at=snowflake_time(message_id),
            message_id=message_id,
            place_id=place_id,
            asked_in=part.place.id,
            asker_id=part.author.id,
            last_asked_id=part.last.id,
            opened_thread=place_id != part.place.id,
            question=inquiry.conversation.asked_text,
            sources=inquiry.shown_sources,
        )

    async def _offer_votes(self, place_id: int, message_id: int) -> None:
        try:
            for emoji in VOTES:
                await self.poster.react(place_id, message_id, emoji)
        except PostFailed as error:
            log.warning("no votes offered: %s", error)
