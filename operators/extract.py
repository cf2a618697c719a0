"""What a team member's part and the messages around it teach."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from clock import now
from model.messages import AuthorType, Message
from model.outcomes import Outcome, OutcomeKind, Reason
from services.assistant import CaptureJob
from services.conversations import Context
from services.team import REPLY, Capture, PairTurn, Picture, Said, Speaker, pictures_of

SPEAKERS = {AuthorType.COMMUNITY_USER: Speaker.USER, AuthorType.TEAM_MEMBER: Speaker.TEAM}
"""Bots are left out."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """A job, what is to be stored of it, and the images in that, in order."""

    job: CaptureJob
    capture: Capture
    pictures: tuple[Picture, ...] = ()


def extract(context: Context) -> Callable[[CaptureJob], Coroutine[Any, Any, Extracted | Outcome]]:
    """Give a job its conversation: the thread's history, or the chain of replies, including the part itself.

    Each message is a turn of its own. A job in which only one side speaks ends here, unless it continues an earlier
    capture. Raises LookupFailed: Discord could not be asked.
    """

    async def extracted(job: CaptureJob) -> Extracted | Outcome:
        part = job.part
        around = await context.thread(part.place) if part.place.is_thread else await context.replies(part.messages)
        # The part as it was when its window closed: later edits have no effect.
        messages = {message.id: message for message in (*around, *part.messages)}
        said: list[Said] = []
        for message_id in sorted(messages):
            message = messages[message_id]
            speaker = SPEAKERS.get(await context.author_type(message))
            text = context.text_of(message)
            if speaker is not None and text:
                said.append(Said(message.id, message.author.id, PairTurn(speaker, text)))
        capture = Capture(part, conversation_of(job, messages), tuple(said), job.continues)
        if capture.continues is None and not capture.teaches:
            return Outcome(part, now(), OutcomeKind.SKIPPED, Reason.NOTHING_TO_LEARN)
        pictures = tuple(picture for each in said for picture in pictures_of(messages[each.message_id]))
        return Extracted(job, capture, pictures)

    return extracted


def conversation_of(job: CaptureJob, messages: Mapping[int, Message]) -> str | None:
    """`thread_<id>`, or `reply_<id>` of the first message of the chain of replies."""
    place = job.part.place
    if place.is_thread:
        return f"thread_{place.id}"
    if job.target is None:
        return None
    root = job.target
    while root.reply_to is not None and root.reply_to.message_id in messages:
        earlier = messages[root.reply_to.message_id]
        if earlier.id >= root.id:  # an answer cannot be older than its question; this also rules out endless loops
            break
        root = earlier
    return f"{REPLY}{root.id}"
