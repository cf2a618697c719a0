"""What the answering side reads: an index of sources, and their texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class IndexEntry:
    id: str
    """With its namespace: `kb:guides/setup.md`, `kb:https://…`, `team:tokens.txt`."""
    description: str


@dataclass(frozen=True, slots=True)
class Source:
    id: str
    text: str

    @property
    def url(self) -> str | None:
        """The address of a web source; None for others."""
        bare = self.id.removeprefix("kb:")
        return bare if bare.startswith(("http://", "https://")) else None


class SourceUnavailable(Exception):
    """A source cannot be loaded: the message names it and says why."""


class Library(Protocol):
    async def index(self) -> Sequence[IndexEntry]:
        """The combined index: team entries first, then the knowledge base's."""
        ...

    async def load(self, source_id: str) -> Source:
        """The whole text of one source, from disk or the web cache, never from the network.

        Raises:
            SourceUnavailable: the id is in no index, or its text cannot be read.
        """
        ...
