"""A channel as Discord has it, and a fetcher that reads from it and counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from model.messages import Author, Message, Place, Reference
from services.discord.protocols import PAGE_SIZE, LookupFailed

EPOCH = 1_700_000_000.0
ANNA, BEN, TESS = Author(101, "anna"), Author(102, "ben"), Author(201, "tess")


def message(
    number: int,
    author: Author = ANNA,
    *,
    place_id: int = 1,
    to: int | None = None,
    at: float | None = None,
    is_system: bool = False,
) -> Message:
    """The `number`th message; ids are small here, times a second apart."""
    reply_to = None if to is None else Reference(to, place_id)
    written = EPOCH + number if at is None else at
    return Message(number, place_id, author, f"text {number}", written, 5, reply_to=reply_to, is_system=is_system)


@dataclass
class FullList:
    """Everything that was ever written, as the server knows it."""

    messages_there: dict[int, Message]
    places: dict[int, Place] = field(default_factory=dict[int, Place])
    roles: dict[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]])
    members: dict[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]])
    """Of private threads."""
    calls: list[str] = field(default_factory=list[str])
    broken: bool = False

    @classmethod
    def of(cls, messages: Iterable[Message]) -> FullList:
        return cls({each.id: each for each in messages})

    async def message(self, channel_id: int, message_id: int) -> Message | None:
        self._call(f"message {message_id}")
        return self._of(channel_id).get(message_id)

    async def messages(
        self, channel_id: int, *, before: int | None = None, after: int | None = None, around: int | None = None
    ) -> Sequence[Message]:
        self._call(f"messages before={before} after={after} around={around}")
        ids = sorted(self._of(channel_id))
        if around is not None:
            older = [i for i in ids if i < around][-(PAGE_SIZE // 2) :]
            newer = [i for i in ids if i > around][: PAGE_SIZE // 2 - (around in ids)]
            ids = [*older, *(i for i in ids if i == around), *newer]
        elif after is not None:
            ids = [i for i in ids if i > after][:PAGE_SIZE]
        else:
            ids = [i for i in ids if before is None or i < before][-PAGE_SIZE:]
        return [self.messages_there[i] for i in ids]

    async def role_ids(self, guild_id: int, user_id: int) -> tuple[int, ...]:
        self._call(f"member {user_id}")
        return self.roles.get(user_id, ())

    async def is_thread_member(self, thread_id: int, user_id: int) -> bool:
        self._call(f"member {user_id} of {thread_id}")
        return user_id in self.members.get(thread_id, ())

    async def place(self, place_id: int) -> Place | None:
        self._call(f"place {place_id}")
        return self.places.get(place_id)

    def _of(self, channel_id: int) -> dict[int, Message]:
        return {i: each for i, each in self.messages_there.items() if each.channel_id == channel_id}

    def _call(self, what: str) -> None:
        self.calls.append(what)
        if self.broken:
            raise LookupFailed(what)
