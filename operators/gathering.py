"""Gives a question its conversation."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

from model.conversations import Image
from model.messages import AuthorType, Message
from model.outcomes import Outcome
from services.assistant import Inquiry
from services.conversations import Context, History, InFlight, Posts
from services.llm import ImageSource, load_images


def gather(
    context: Context,
    history: History,
    posts: Posts,
    in_flight: InFlight,
    images: ImageSource | None,
    thread_reuse_seconds: float,
) -> Callable[[Inquiry], Coroutine[Any, Any, Inquiry | Outcome]]:
    """Give an inquiry its conversation: a thread's history, or the chain of replies; with `images`, their bytes.

    A question in a channel is answered in the thread that the bot opened for the same asker a moment ago, if there is
    one that no team member has joined.

    Raises:
        LookupFailed: Discord could not be asked.
        ImageFailed: an image of the conversation is not available.
    """

    async def gathered(inquiry: Inquiry) -> Inquiry:
        part = inquiry.part
        if part.place.is_thread:
            around = await context.thread(part.place)
            reply_place_id = part.place.id
        else:
            around, reply_place_id = await reusable_thread(inquiry)
            if reply_place_id is not None:
                in_flight.reply_in(part, reply_place_id)
        messages = {message.id: message for message in around}
        messages |= {message.id: message for message in await context.replies(part.messages)}
        # What the person wrote after this part belongs to the next part.
        asked = frozenset(part.message_ids)
        ordered = [
            message
            for i, message in sorted(messages.items())
            if i in asked or i < part.last.id or message.author.id != part.author.id
        ]
        pictures = {} if images is None else await loaded_images(images, await askers(ordered))
        conversation = await context.conversation(ordered, asked, pictures)
        return inquiry._replace(conversation=conversation, messages=tuple(ordered), reply_place_id=reply_place_id)

    async def reusable_thread(inquiry: Inquiry) -> tuple[Sequence[Message], int | None]:
        part = inquiry.part
        since = part.messages[0].at - thread_reuse_seconds
        thread_id = posts.reusable_thread(part.place.id, part.author.id, since)
        place = None if thread_id is None else await history.find_place(thread_id)
        if place is None or place.locked:
            return (), None
        messages = await context.thread(place)
        for message in messages:
            if message.channel_id == place.id and await context.author_type(message) is AuthorType.TEAM_MEMBER:
                return (), None
        return messages, place.id

    async def askers(messages: Iterable[Message]) -> list[Message]:
        return [m for m in messages if m.attachments and await context.author_type(m) is AuthorType.COMMUNITY_USER]

    async def loaded_images(source: ImageSource, messages: Iterable[Message]) -> dict[int, tuple[Image, ...]]:
        return {message.id: await load_images(source, message.attachments) for message in messages}

    return gathered
