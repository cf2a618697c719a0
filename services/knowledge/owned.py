"""The library that one server is answered from: its own sources joined with the shared ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from services.knowledge.index_file import IndexEntry
from services.knowledge.library import Library, Source, SourceUnavailable
from services.knowledge.source_ids import owned, owner_of, unowned


class OwnLibrary:
    """A library whose sources all belong to one server: adds the server to their ids."""

    def __init__(self, library: Library, owner: int) -> None:
        self._library = library
        self._owner = owner
        self._seen: Sequence[IndexEntry] = ()
        self._entries: tuple[IndexEntry, ...] = ()

    async def index(self) -> Sequence[IndexEntry]:
        """The same tuple again for as long as nothing has changed."""
        seen = await self._library.index()
        if seen is not self._seen:
            self._entries = tuple(replace(entry, id=owned(entry.id, self._owner)) for entry in seen)
            self._seen = seen
        return self._entries

    async def load(self, source_id: str) -> Source:
        if owner_of(source_id) != self._owner:
            raise SourceUnavailable(f"{source_id!r} is not of server {self._owner}")
        return replace(await self._library.load(unowned(source_id)), id=source_id)


class JoinedLibrary:
    """The library that one server is answered from: its own sources and the shared ones, and no others.

    This is the one place that decides what a server sees. Its readers are handed this and nothing else, so that what is
    in neither of the two cannot be named, searched, loaded or cited.
    """

    def __init__(self, own: OwnLibrary, shared: Library) -> None:
        self._own = own
        self._shared = shared
        self._seen: tuple[Sequence[IndexEntry], Sequence[IndexEntry]] = (), ()
        self._entries: tuple[IndexEntry, ...] = ()

    async def index(self) -> Sequence[IndexEntry]:
        """Team entries first, its own before the shared ones. The same tuple again while nothing has changed."""
        own, shared = await self._own.index(), await self._shared.index()
        if own is not self._seen[0] or shared is not self._seen[1]:
            # A shared folder may be called like the mark of a server; what is in it is nobody's.
            both = [*own, *(entry for entry in shared if owner_of(entry.id) is None)]
            self._entries = tuple(sorted(both, key=lambda entry: not entry.id.startswith("team:")))
            self._seen = own, shared
        return self._entries

    async def load(self, source_id: str) -> Source:
        return await (self._shared if owner_of(source_id) is None else self._own).load(source_id)
