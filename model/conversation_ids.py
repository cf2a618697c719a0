"""The ids of captured conversations, such as `thread_17`: the one table of their kinds, and their form."""

from __future__ import annotations

import re
from enum import Enum


class ConversationKind(Enum):
    """A kind of conversation that the team's answers are captured from. A new kind is a member here, which decides
    all that captures, the archive, topics and the hand-over between processes do differently for it.
    `Context.captured` gives a capture its kind and messages.

    Attributes:
        prefix: what its ids begin with; a number follows, and this class alone knows the form.
        joins_by_messages: whether a capture continues the stored conversation that holds one of its messages. If not,
            it is read as a whole each time: what a later capture lacks has been deleted.
        needs_question: whether what the team says counts only if a community user has spoken, as an answer. If not, it
            counts by itself: it is captured, filed, named after its own words, and quoted.
        settles: whether it is filed once it has been quiet for `kb.settle_minutes`. If not, it is filed at once.
    """

    THREAD = "thread", False
    """The conversation that a thread was opened for, by the id of the thread."""
    REPLY = "reply", True
    """Any other, by the id of its first message; or of the first in the chain of replies that leads back to before the
    start of the program."""

    def __init__(self, word: str, joins_by_messages: bool, needs_question: bool = True, settles: bool = True) -> None:
        self.prefix = f"{word}_"
        self.joins_by_messages = joins_by_messages
        self.needs_question = needs_question
        self.settles = settles

    def make(self, number: int) -> str:
        return f"{self.prefix}{number}"


PATTERN = rf"(?:{'|'.join(kind.prefix for kind in ConversationKind)})[0-9]+"
"""The form of every id, for a whole text: in the archive, in files of captures that wait, and between processes."""
FORMS = " nor ".join(f"{kind.prefix}<id>" for kind in ConversationKind)
"""The forms of all ids, for people."""
_ID = re.compile(PATTERN)


def kind_of(conversation_id: str) -> ConversationKind:
    """Return the kind of an id. Raises ValueError: it is no id; the message names the forms that there are."""
    if not _ID.fullmatch(conversation_id):
        raise ValueError(f"conversation_id {conversation_id!r} is neither {FORMS}")
    return next(kind for kind in ConversationKind if conversation_id.startswith(kind.prefix))
