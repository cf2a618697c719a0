"""As much of Chroma's client as the store calls, in memory: the same contract without a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from services.documents.store.chroma import ChromaStore


@dataclass
class Shelf:
    name: str
    metadata: Mapping[str, Any] | None
    records: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])

    def count(self) -> int:
        return len(self.records)

    def modify(self, *, metadata: Mapping[str, Any]) -> None:
        self.metadata = metadata

    def add(
        self,
        *,
        ids: Sequence[str],
        metadatas: Sequence[Mapping[str, Any]],
        embeddings: Sequence[Sequence[float]],
        documents: Sequence[str] | None = None,
    ) -> None:
        texts = documents if documents is not None else [None] * len(ids)
        for key, metadata, vector, text in zip(ids, metadatas, embeddings, texts, strict=True):
            self.records.setdefault(key, {"metadatas": metadata, "embeddings": vector, "documents": text})

    def get(
        self,
        *,
        where: Mapping[str, Any] | None = None,
        limit: int,
        offset: int = 0,
        include: Sequence[str] = (),
    ) -> dict[str, Any]:
        fitting = [key for key in self.records if self._fits(key, where)][offset : offset + limit]
        return {"ids": fitting, **{what: [self.records[key][what] for key in fitting] for what in include}}

    def delete(self, *, where: Mapping[str, Any]) -> None:
        for key in [key for key in self.records if self._fits(key, where)]:
            del self.records[key]

    def _fits(self, key: str, where: Mapping[str, Any] | None) -> bool:
        return all(self.records[key]["metadatas"][name] == value for name, value in (where or {}).items())


@dataclass
class Chroma:
    shelves: dict[str, Shelf] = field(default_factory=dict[str, Shelf])
    down: bool = False

    def list_collections(self, *, limit: int) -> list[Shelf]:
        if self.down:
            raise ConnectionError("refused")
        return list(self.shelves.values())[:limit]

    def get_collection(self, name: str, *, embedding_function: None) -> Shelf:
        return self.shelves[name]

    def get_or_create_collection(self, name: str, *, embedding_function: None, metadata: Mapping[str, Any]) -> Shelf:
        return self.shelves.setdefault(name, Shelf(name, metadata))

    def delete_collection(self, name: str) -> None:
        del self.shelves[name]


def new_store(folder: Path, server: Chroma | None = None) -> ChromaStore:
    client = server if server is not None else Chroma()
    return ChromaStore("http://chroma.example", folder, connect=lambda _address: client)
