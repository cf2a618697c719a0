"""The protocol of a store whose collections other processes change as well, and of small shared flags."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from services.documents.store.protocol import DocumentStore


class SharedStore(DocumentStore, Protocol):
    """Who is given one does not close it: `close` is for whoever has opened it, and flushes."""

    async def follow(self, heard: Callable[[str, bool], None]) -> None:
        """Tell `heard` the name of each collection of a thread or a person, and whether it is there: first of all that
        there are, then with each change, by whichever process. Returns when it has been told of all.
        """
        ...

    async def flush(self) -> None:
        """What was written is kept where others find it."""
        ...


class SharedNotes(Protocol):
    """Small values by key. Keys are words with dots between them, of letters, digits, `-`, `_` and `=`."""

    async def follow(self, prefix: str, heard: Callable[[str, bytes | None], None]) -> None:
        """As `SharedStore.follow`, of the keys that begin with `prefix`, a word with a dot; without it. None: the value
        is gone. Raises StoreUnavailable.
        """
        ...

    async def put(self, key: str, value: bytes | None) -> None:
        """Keep a value; None: no longer. Raises OSError."""
        ...


@dataclass(frozen=True, slots=True)
class Together:
    """What is kept together with other processes, in place of the files of this one's data folder."""

    store: SharedStore
    notes: SharedNotes
