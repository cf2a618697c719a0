"""People's own runbooks, and whether answers in public threads may use them."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from clock import FairTurns, WorkRunner, WorkStopped, now, rfc3339
from clock.cancellation import CancelToken
from services.conversations import PersonalWork
from services.documents.limits import FileLimits, FileRefused, display_name
from services.documents.reading import DocumentRedactors, prepare_document
from services.documents.store import protocol
from services.documents.store.document_store import DocumentStore
from services.documents.store.protocol import Collection, Document, Origin, SharedNotes
from services.storage import files, in_thread, json_state

log = logging.getLogger(__name__)

SHOWN = "shown."
"""The prefix of keys of shared notes: `shown.<user>`."""
MAX_WAITING = 3
"""The most runbooks of one person that wait or are being read."""
_MIB = 1024 * 1024


class NoSuchRunbook(Exception):
    """The person has no runbook of that title."""


class TooManyRunbooks(Exception):
    """The person has the maximum number of runbooks already."""

    def __init__(self, count: int, most: int) -> None:
        super().__init__(count, most)
        self.count, self.most = count, most


class TooManyWaiting(Exception):
    """Other runbooks of the person have to be read first."""


@dataclass(slots=True, kw_only=True)
class Runbooks:
    """The runbooks of all people, one collection a person. The owners, and those who show theirs, are also kept in
    memory.

    Attributes:
        run: runs the reading of documents in another process. `turns`: decides whose document is read next.
        embed_soon: called with a collection's name and a new document's id, to embed that document later.
    """

    store: DocumentStore
    shown_path: Path  # the file with the ids of people who show their runbooks in threads
    run: WorkRunner
    turns: FairTurns = field(default_factory=FairTurns)
    limits: FileLimits = field(default_factory=lambda: FileLimits(max_file_bytes=3 * _MIB))  # of each document
    max_runbooks: int = 200
    redactors: DocumentRedactors = field(default_factory=DocumentRedactors)
    forget_answers: Callable[[str], object] | None = None  # called with the name of each collection that has changed
    embed_soon: Callable[[str, str], object] | None = None
    _titles: dict[int, tuple[str, ...]] = field(default_factory=dict[int, tuple[str, ...]], init=False)
    _shown: set[int] = field(default_factory=set[int], init=False)
    _notes: SharedNotes | None = field(default=None, init=False)
    _waiting: Counter[int] = field(default_factory=Counter[int], init=False)
    _adding: PersonalWork = field(default_factory=PersonalWork, init=False)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    async def open(self, notes: SharedNotes | None = None) -> None:
        """Load the owners of runbooks, and the people who show theirs: these are in `notes`, which processes share, or
        in the file if that is None.

        Raises StoreUnavailable.
        """
        self._notes = notes
        if notes is None:
            try:
                self._shown = await in_thread(json_state.read_ids, self.shown_path)
            except json_state.DamagedIds as error:
                log.error("%s; until then nobody shows theirs in threads", error)  # noqa: TRY400 (for the operator)
        else:
            await notes.follow(SHOWN, self._heard_of_shown)
        for name in await self.store.list_collections(protocol.USER_PREFIX):
            described = await self.store.describe(name)
            if described is not None and described.collection.scope_id is not None:
                self._note(int(described.collection.scope_id), described.documents)

    async def reload(self, name: str) -> None:
        """Reload a collection that another process has changed. Raises StoreUnavailable."""
        async with self._turn:
            described = await self.store.describe(name)
            if (user_id := protocol.owner_of_runbooks(name)) is not None:
                self._note(user_id, () if described is None else described.documents)
        self._forget_answers(name)

    def has_any(self, user_id: int) -> bool:
        return user_id in self._titles

    def shown_in_threads(self, user_id: int) -> bool:
        return user_id in self._shown

    def titles(self, user_id: int) -> tuple[str, ...]:
        return self._titles.get(user_id, ())

    async def documents(self, user_id: int) -> tuple[Document, ...]:
        return await self.store.documents(protocol.user_collection(str(user_id)))

    @asynccontextmanager
    async def turn(self, user_id: int) -> AsyncGenerator[CancelToken]:
        """Wait until a document of this person may be fetched and added. Give the token for `add`.

        Raises:
            TooManyWaiting: others of theirs are waiting.
            Withdrawn: all of their runbooks are being removed, in the wait or in the block.
        """
        if self._waiting[user_id] >= MAX_WAITING:
            raise TooManyWaiting
        self._waiting[user_id] += 1
        try:
            with self._adding.handling({user_id}) as token:
                async with self.turns.turn(user_id):
                    yield token
        finally:
            self._waiting[user_id] -= 1
            if not self._waiting[user_id]:
                del self._waiting[user_id]

    async def add(
        self, user_id: int, filename: str, data: bytes, title: str, token: CancelToken | None = None
    ) -> Document:
        """Store a document; it replaces one of the same title. `token`: as `turn` gives it.

        Raises:
            FileRefused: it is too large, of a kind that is not accepted, not text, or takes too long to read; or the
                person's files and runbooks take all the disk space of one person.
            TooManyRunbooks: the person has the maximum number.
            StoreUnavailable: it could not be stored.
        """
        origin = Origin(filename, uploader_id=user_id, uploaded_at=rfc3339(now()), extra={"title": title})
        await self.store.check_room(origin)
        try:
            new = await self.run(prepare_document, origin, data, self.limits, title, self.redactors)
        except WorkStopped as stopped:
            log.warning("runbooks: a file cannot be read: %s", stopped)
            raise FileRefused("too_hard", name=display_name(filename)) from None
        collection = Collection(protocol.user_collection(str(user_id)), "user", str(user_id))
        if token is not None:
            token.commit()  # a write cannot be stopped: `forget`, which has its turn later, removes it
        async with self._turn:
            known = await self.documents(user_id)
            replaced = [doc for doc in known if title_of(doc) == title]
            if not replaced and len(known) >= self.max_runbooks:
                raise TooManyRunbooks(len(known), self.max_runbooks)
            same = [doc for doc in replaced if doc.sha256 == new.prepared.sha256 and doc.filename == filename]
            if same:
                return same[0]
            (stored,) = await self.store.add(collection, [new], drop=[doc.doc_id for doc in replaced])
            self._note(user_id, await self.documents(user_id))
        self._forget_answers(collection.name)
        if self.embed_soon is not None:
            self.embed_soon(collection.name, stored.doc_id)
        return stored

    async def remove(self, user_id: int, title: str) -> None:
        """Delete a person's runbook by its title. Raises NoSuchRunbook, StoreUnavailable."""
        name = protocol.user_collection(str(user_id))
        async with self._turn:
            known = await self.documents(user_id)
            meant = [doc for doc in known if title_of(doc).casefold() == title.strip().casefold()]
            if not meant:
                raise NoSuchRunbook
            for doc in meant:
                await self.store.delete_document(name, doc.doc_id)
            left = await self.documents(user_id)
            if not left:
                await self.store.delete_collection(name)
            self._note(user_id, left)
        self._forget_answers(name)

    async def forget(self, user_id: int) -> int:
        """Delete all runbooks of a person, also those that are being added, and their choice to show them. Returns the
        number of runbooks. Raises StoreUnavailable, OSError.
        """
        self._adding.withdraw(user_id)
        name = protocol.user_collection(str(user_id))
        async with self._turn:
            count = len(await self.documents(user_id))
            await self.store.delete_collection(name)
            self._note(user_id, ())
        self._forget_answers(name)
        if user_id in self._shown:
            await self.show_in_threads(user_id, shown=False)
        return count

    async def show_in_threads(self, user_id: int, *, shown: bool) -> None:
        """Set whether answers in public threads may use a person's runbooks. Raises OSError."""
        async with self._turn:
            (self._shown.add if shown else self._shown.discard)(user_id)
            if self._notes is not None:
                await self._notes.put(f"{SHOWN}{user_id}", b"true" if shown else None)
                return
            await in_thread(files.replace, self.shown_path, json_state.render_ids(self._shown))

    def _heard_of_shown(self, key: str, value: bytes | None) -> None:
        (self._shown.discard if value is None else self._shown.add)(int(key))

    def _note(self, user_id: int, documents: tuple[Document, ...]) -> None:
        self._titles.pop(user_id, None)
        if titles := tuple(title_of(doc) for doc in documents if doc.state.searchable):
            self._titles[user_id] = titles

    def _forget_answers(self, name: str) -> None:
        if self.forget_answers is not None:
            self.forget_answers(name)


def title_of(doc: Document) -> str:
    return doc.origin.extra.get("title") or doc.filename
