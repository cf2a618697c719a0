"""Conversations: the history that the answering and learning steps see, independent of Discord; and the kinds of
captured conversations, with the form of their ids, such as `thread_17`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    """The bot and team members; rendered to the LLM as `You:`."""


@dataclass(frozen=True, slots=True)
class Image:
    """A downloaded image."""

    name: str
    media_type: str
    """Found from the bytes, never from the name."""
    data: bytes


@dataclass(frozen=True, slots=True)
class Turn:
    role: Role
    text: str
    """Trimmed, mentions as names, a placeholder for each attachment."""
    images: tuple[Image, ...] = ()
    unseen_images: int = 0
    """How many further images it has that could not be loaded, or have no room."""
    from_team: bool = False
    """Written by a team member: what it links to may be linked to."""
    asked_now: bool = False
    """Belongs to the part that is being answered."""
    by_asker: bool = False
    """Written by the person whose part is being answered."""
    maybe_to_others: bool = False
    """Written by a team member, perhaps to another user."""
    message_id: int = field(default=0, compare=False)
    """0: it is no message of Discord."""


@dataclass(frozen=True, slots=True)
class Conversation:
    turns: tuple[Turn, ...]

    @property
    def last_user_text(self) -> str:
        return next((turn.text for turn in reversed(self.turns) if turn.role is Role.USER), "")

    @property
    def asked_text(self) -> str:
        """The text of the part that is being answered, all its messages."""
        return "\n".join(turn.text for turn in self.turns if turn.asked_now)

    @property
    def of_asker_and_team(self) -> Conversation:
        """The conversation without what others, the bot, and the team to others have said."""
        kept = (t for t in self.turns if t.asked_now or t.by_asker or (t.from_team and not t.maybe_to_others))
        return Conversation(tuple(kept))

    @property
    def images(self) -> tuple[Image, ...]:
        return tuple(image for turn in self.turns for image in turn.images)


class ShownPair(NamedTuple):
    """A conversation that the team has taught the bot, and that a post of the bot quotes or points to. `guild_id`: the
    server whose library has it; None: the shared one.
    """

    guild_id: int | None
    pair_id: str


@dataclass(frozen=True, kw_only=True)
class ConversationKind:
    """A kind of conversation from which the team's answers are captured: a row of `KINDS`. Its traits decide what is
    done differently for it between its messages and the topic.

    Attributes:
        prefix: the beginning of its ids; a number follows, and this class alone knows the form.
        opening: the beginning by which a team member makes a message a conversation of this kind by itself; it is left
            out of the text. Empty: `ConversationTracker.kind_of` finds the kind by the place.
        joins_by_messages: True if a capture continues the stored conversation that has one of its messages. If not, the
            conversation is read as a whole each time: a message that a later capture lacks has been deleted.
        needs_question: True if a message of the team counts only as an answer to a community user. If not, it is
            captured, filed and quoted without a question, named after its own words, and cancels no answer.
        settles: True if its batch waits for its author, and its capture for `kb.settle_minutes`. If not, it is filed at
            once.
        is_on_discord: True if its messages can be seen on Discord, so that answers link to them.
    """

    prefix: str
    opening: str = ""
    joins_by_messages: bool = False
    needs_question: bool = True
    settles: bool = True
    is_on_discord: bool = True

    def make_id(self, number: int) -> str:
        return f"{self.prefix}{number}"

    def number_of(self, conversation_id: str) -> int:
        return int(conversation_id.removeprefix(self.prefix))


THREAD = ConversationKind(prefix="thread_")
"""The conversation for which a thread was opened, by the id of the thread."""
REPLY = ConversationKind(prefix="reply_", joins_by_messages=True)
"""Any other conversation, by the id of its first message; or of the first message in its chain of replies, if that
begins before the start of the program."""
TAUGHT = ConversationKind(prefix="taught_", settles=False, is_on_discord=False)
"""A question and its answer as the team wrote them in a form, by the message id of the question's first version. A
newer version has the same id and new messages."""
KINDS = (THREAD, REPLY, TAUGHT)

READING_SECONDS = 10.0
"""The seconds that somebody of the team needs to read a message before they write an answer."""
WRITING_CHARS_PER_SECOND, MAX_WRITING_SECONDS = 3.0, 600.0
"""How fast an answer is written, at most in so many seconds."""


def seconds_to_answer(text: str) -> float:
    """Return how long before an answer its author had read what there was, at the latest: what was written or edited
    later was not read for it. `text`: that of the answer.
    """
    return READING_SECONDS + min(len(text) / WRITING_CHARS_PER_SECOND, MAX_WRITING_SECONDS)


CONVERSATION_ID = rf"(?:{'|'.join(kind.prefix for kind in KINDS)})[0-9]+"
"""The pattern of all ids, for a full match: in the archive, in files of waiting captures, and between processes."""
ID_FORMS = " nor ".join(f"{kind.prefix}<id>" for kind in KINDS)
"""The forms of all ids, for people."""
_ID = re.compile(CONVERSATION_ID)


def kind_of(conversation_id: str) -> ConversationKind:
    """Return the kind of an id. Raises ValueError: it is no id; the message names the possible forms."""
    if not _ID.fullmatch(conversation_id):
        raise ValueError(f"conversation_id {conversation_id!r} is neither {ID_FORMS}")
    return next(kind for kind in KINDS if conversation_id.startswith(kind.prefix))
