"""As much of Chroma's client as the store calls, in memory: the same contract without a server.

Where a server of version 1.5.9 was seen to be strict or peculiar, so is this.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from services.documents.store.chroma import ChromaCollections
from services.documents.store.document_store import DocumentStore

Record = dict[str, Any]

_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]{1,510}[a-zA-Z0-9]")
_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "$in": lambda held, these: held in these,
    "$nin": lambda held, these: held not in these,
    "$lt": lambda held, other: held is not None and held < other,
}
MAX_RECORDS = 5461
"""In one request."""


class NotFoundError(Exception):
    """Called as the client's own is."""


@dataclass
class Shelf:
    """A collection, as whoever asked for it holds it: when it is deleted, that is noticed with the next request."""

    name: str
    asked: Callable[[], None]
    records: dict[str, Record] = field(default_factory=dict[str, Record])
    deleted: bool = False

    def upsert(self, *, ids: Sequence[str], metadatas: Sequence[Record], embeddings: Sequence[Sequence[float]]) -> None:
        self._reach()
        assert 0 < len(ids) <= MAX_RECORDS
        assert len(set(ids)) == len(ids)
        assert {len(vector) for vector in embeddings} == {1}
        for key, metadata, _ in zip(ids, metadatas, embeddings, strict=True):
            assert metadata
            assert all(isinstance(value, str | int | float | bool) for value in metadata.values())
            self.records[key] = self.records.get(key, {}) | metadata

    def get(
        self,
        *,
        ids: Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        include: Sequence[str],
    ) -> dict[str, Any]:
        self._reach()
        assert include == ["metadatas"]
        assert ids is None or ids
        # The order is the server's own, not that of the ids.
        found = [key for key in self.records if (ids is None or key in ids) and self._fits(key, where)]
        return {"ids": found, "metadatas": [dict(self.records[key]) for key in found]}

    def delete(self, *, where: Mapping[str, Any]) -> None:
        self._reach()
        for key in [key for key in self.records if self._fits(key, where)]:
            del self.records[key]

    def _reach(self) -> None:
        self.asked()
        if self.deleted:
            raise NotFoundError

    def _fits(self, key: str, where: Mapping[str, Any] | None) -> bool:
        if where is None:
            return True
        ((name, wanted),) = where.items()
        if name == "$and":
            assert len(wanted) > 1
            return all(self._fits(key, each) for each in wanted)
        held = self.records[key].get(name)
        if not isinstance(wanted, Mapping):
            return held == wanted
        ((comparison, other),) = cast("Mapping[str, Any]", wanted).items()
        assert other != []
        return _COMPARED[comparison](held, other)


@dataclass
class Chroma:
    shelves: dict[str, Shelf] = field(default_factory=dict[str, Shelf])
    down: bool = False
    requests_left: int | None = None
    """After that many it is down, as a server that is killed."""
    before_each: Callable[[], None] = lambda: None
    """For whatever another process does meanwhile."""

    def list_collections(self, *, limit: int) -> list[Shelf]:
        self._asked()
        return list(self.shelves.values())[:limit]

    def get_collection(self, name: str, *, embedding_function: None) -> Shelf:
        self._asked()
        if name not in self.shelves:
            raise NotFoundError
        return self.shelves[name]

    def get_or_create_collection(self, name: str, *, embedding_function: None) -> Shelf:
        self._asked()
        assert _NAME.fullmatch(name)
        return self.shelves.setdefault(name, Shelf(name, self._asked))

    def delete_collection(self, name: str) -> None:
        self._asked()
        if name not in self.shelves:
            raise NotFoundError
        self.shelves.pop(name).deleted = True

    def _asked(self) -> None:
        if self.requests_left is not None:
            self.down = self.down or self.requests_left == 0
            self.requests_left -= 1
        if self.down:
            raise ConnectionError("refused")
        self.before_each()


def new_store(folder: Path, server: Chroma | None = None) -> DocumentStore:
    client = server if server is not None else Chroma()
    return DocumentStore(ChromaCollections("http://chroma.example", folder, connect=lambda _address: client))
