"""The ids of captured conversations, such as `thread_17`: the one table of their kinds, and their form."""

from __future__ import annotations

import re
from enum import Enum


class ConversationKind(Enum):
    """A kind of conversation that the team's answers are captured from. A new kind is a member here, and is then known
    to the archive, to captures that wait, and to those on their way between processes.

    Attributes:
        joins_by_messages: whether a capture continues the stored conversation that holds one of its messages. If not,
            it is read as a whole each time: what a later capture lacks has been deleted.
    """

    joins_by_messages: bool

    THREAD = "thread", False
    """The conversation that a thread was opened for, by the id of the thread."""
    REPLY = "reply", True
    """A chain of replies, by the id of its first message."""

    def __init__(self, word: str, joins_by_messages: bool) -> None:
        self.prefix = f"{word}_"
        self.joins_by_messages = joins_by_messages

    def make(self, number: int) -> str:
        return f"{self.prefix}{number}"

    @property
    def form(self) -> str:
        """The form of its ids, for people."""
        return f"{self.prefix}<id>"


PATTERN = rf"(?:{'|'.join(kind.prefix for kind in ConversationKind)})[0-9]+"
"""The form of every id, for a whole text: in the archive, in files of captures that wait, and between processes."""
_ID = re.compile(PATTERN)


def parse(conversation_id: str) -> ConversationKind | None:
    """Give the kind of an id; None: it is none."""
    if not _ID.fullmatch(conversation_id):
        return None
    return next(kind for kind in ConversationKind if conversation_id.startswith(kind.prefix))


def joins_by_messages(conversation_id: str) -> bool:
    kind = parse(conversation_id)
    return kind is not None and kind.joins_by_messages
