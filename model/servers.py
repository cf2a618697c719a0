"""Values that may differ between servers of Discord."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")


class Servers(Mapping[int | None, T_co]):
    """A value for every server: `servers[guild_id]` is the server's own value, or else the default, the value of None.

    Iterates over None and the ids of the servers that have a value of their own; other ids are not `in` it.
    """

    def __init__(self, values: Mapping[int | None, T_co]) -> None:
        """`values`: by server id; that of None is the default."""
        self._values = dict(values)
        self.default = self._values[None]

    def __getitem__(self, guild_id: int | None) -> T_co:
        return self._values.get(guild_id, self.default)

    def __contains__(self, guild_id: object) -> bool:
        return guild_id in self._values

    def __iter__(self) -> Iterator[int | None]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def owner_of(self, guild_id: int | None) -> int | None:
        """Return whose value a server has: its own id, or None for the default."""
        return guild_id if guild_id in self._values else None

    @property
    def own(self) -> Mapping[int, T_co]:
        """The values without the default, by server id."""
        return {guild_id: value for guild_id, value in self._values.items() if guild_id is not None}

    def map(self, make: Callable[[T_co], R]) -> Servers[R]:
        """Apply a function to each value."""
        return Servers({guild_id: make(value) for guild_id, value in self._values.items()})
