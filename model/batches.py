"""Batches, and the parts they are cut into."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from clock.cancellation import CancelToken
from model.messages import Author, AuthorType, Message, Place


class Key(NamedTuple):
    """One (channel or thread, author) at a time: orders windows and answers."""

    place_id: int
    author_id: int


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive messages of one author in one place, in order of id, closed by the quiet window."""

    messages: tuple[Message, ...]
    closed_at: float

    @property
    def key(self) -> Key:
        first = self.messages[0]
        return Key(first.channel_id, first.author.id)


class Destination(StrEnum):
    """Where routing sends a part. The values are the handler names in `adapter_routing_total`."""

    ANSWER = "answer"
    CAPTURE = "capture"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Part:
    """The piece of a batch that is routed on its own.

    Attributes:
        number: counts the parts in the order in which their windows closed.
        token: cancels the work on the part, wherever it is.
    """

    number: int
    messages: tuple[Message, ...]
    author_type: AuthorType
    place: Place
    closed_at: float
    token: CancelToken = field(default_factory=CancelToken, compare=False, repr=False)

    @property
    def author(self) -> Author:
        return self.messages[0].author

    @property
    def key(self) -> Key:
        return Key(self.place.id, self.author.id)

    @property
    def guild_id(self) -> int | None:
        """The server that it was written in, also where nothing is known of the channel."""
        return self.place.guild_id if self.place.guild_id is not None else self.messages[0].guild_id

    @property
    def message_ids(self) -> tuple[int, ...]:
        return tuple([message.id for message in self.messages])  # a list first: asked often, and twice as fast

    @property
    def last(self) -> Message:
        return self.messages[-1]

    @property
    def correlation_id(self) -> str:
        """Made from content, so that a replay prints the same one."""
        return f"{self.messages[0].id:x}"
