"""Files that are gone: how they are deleted, and which must not be read again (docs/documents.md)."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from clock import run_blocking
from services.documents.posted import Candidate
from services.documents.store import naming
from services.documents.store.protocol import Document, DocumentStore, Origin, State, documents_in
from services.documents.store.shared import SharedNotes
from services.storage import files, json_state

REMOVED = "was removed by whoever posted it, or by a moderator."
MOST_MESSAGES = 20_000
MOST_THREADS = 5_000  # of messages and of threads the oldest are forgotten first
GONE, CLOSED = "gone.", "closed."
"""Begin the keys of shared notes: `gone.<message>.<file>` and `closed.<thread>`."""

log = logging.getLogger(__name__)


class Tombstones:
    """Files that people had forgotten, and those deleted when their thread was closed.

    `{"files": {"<message>": ["<attachment>", …]}, "closed": {"<thread>": [<when its last file was posted>,
    <whether people were told>]}}`. A code block, which is no attachment, goes by its name, made of its message and
    number.

    Shared between processes, each is a note of its own (`share`).

    Every method that changes something raises OSError if that could not be written: it is then known to this process
    only.
    """

    def __init__(self, path: Path | None = None) -> None:
        """`path` None: nothing outlives the process."""
        self._path = path
        self._files: dict[int, list[str]] = {}
        self._closed: dict[int, tuple[float, bool]] = {}
        self._turn = asyncio.Lock()
        self._notes: SharedNotes | None = None
        self._told: Callable[[], object] = lambda: None
        if path is not None:
            self._read(path)

    async def share(self, notes: SharedNotes, heard: Callable[[], object]) -> None:
        """From now on they are kept in `notes`, and so are those of all other processes. `heard`: called with each that
        is new. Raises StoreUnavailable.
        """
        self._notes, self._told = notes, heard
        await notes.follow(GONE, self._heard_of_file)
        await notes.follow(CLOSED, self._heard_of_thread)

    def holds(self, candidate: Candidate) -> bool:
        """Whether a file must not be read: somebody had it forgotten, or its thread was closed after it came."""
        mark = _mark(candidate.attachment.id, candidate.message_id, candidate.filename)
        if mark in self._files.get(candidate.message_id, ()):
            return True
        closed = self._closed.get(candidate.case_id)
        return closed is not None and candidate.at <= closed[0]

    async def add(self, origins: Iterable[Origin]) -> None:
        """Somebody had the files forgotten that came from there."""
        changed: list[str] = []
        for origin in origins:
            if origin.message_id is not None and origin.attachment_id is not None:
                marks = self._files.setdefault(origin.message_id, [])
                mark = _mark(origin.attachment_id, origin.message_id, origin.filename)
                if mark not in marks:
                    marks.append(mark)
                changed.append(_file_key(origin.message_id, mark))
        await self._save(changed)

    async def forget_messages(self, message_ids: Iterable[int]) -> None:
        """These messages are gone themselves."""
        known = {message_id: marks for message_id in message_ids if (marks := self._files.pop(message_id, None))}
        if known:
            await self._save(_file_key(message_id, mark) for message_id, marks in known.items() for mark in marks)

    async def close(self, case_id: int, at: float) -> None:
        """The files of a thread were deleted as it was closed; the last was posted at `at`, by Discord's clock."""
        self._closed.pop(case_id, None)
        self._closed[case_id] = at, False
        await self._save([f"{CLOSED}{case_id}"])

    def is_unannounced(self, case_id: int) -> bool:
        """Whether a thread's files were deleted when it was closed, and its people have not been told."""
        return not self._closed.get(case_id, (0.0, True))[1]

    async def announced(self, case_id: int) -> None:
        """The people of a thread have been told."""
        if self.is_unannounced(case_id):
            self._closed[case_id] = self._closed[case_id][0], True
            await self._save([f"{CLOSED}{case_id}"])

    async def _save(self, changed: Iterable[str]) -> None:
        """`changed`: the keys, where they are shared."""
        dropped = [
            *(
                _file_key(message, mark)
                for message in _oldest(self._files, MOST_MESSAGES)
                for mark in self._files[message]
            ),
            *(f"{CLOSED}{case_id}" for case_id in _oldest(self._closed, MOST_THREADS)),
        ]
        for message in _oldest(self._files, MOST_MESSAGES):
            del self._files[message]
        for case_id in _oldest(self._closed, MOST_THREADS):
            del self._closed[case_id]
        if self._notes is not None:
            for key in (*changed, *dropped):
                await self._notes.put(key, self._noted(key))
            return
        if self._path is None:
            return
        async with self._turn:
            content = {
                "files": {str(message): marks for message, marks in self._files.items()},
                "closed": {str(case_id): closed for case_id, closed in self._closed.items()},
            }
            await run_blocking(files.replace, self._path, json.dumps(content, indent=0).encode() + b"\n")

    def _noted(self, key: str) -> bytes | None:
        """What is to be kept under a key; None: nothing any more."""
        if key.startswith(CLOSED):
            closed = self._closed.get(int(key.removeprefix(CLOSED)))
            return None if closed is None else json.dumps(closed).encode()
        message, mark = _file_of(key.removeprefix(GONE))
        return b"true" if mark in self._files.get(message, ()) else None

    def _heard_of_file(self, key: str, value: bytes | None) -> None:
        message, mark = _file_of(key)
        marks = [each for each in self._files.get(message, ()) if each != mark]
        if value is not None:
            marks.append(mark)
        if marks:
            self._files[message] = marks
            self._told()
        else:
            self._files.pop(message, None)

    def _heard_of_thread(self, key: str, value: bytes | None) -> None:
        self._closed.pop(int(key), None)
        if value is not None:
            at, told = json.loads(value)
            self._closed[int(key)] = float(at), bool(told)
            self._told()

    def _read(self, path: Path) -> None:
        kept = json_state.read_object(path)
        try:
            self._files = {int(message): [str(mark) for mark in marks] for message, marks in kept["files"].items()}
            self._closed = {int(case_id): (float(at), bool(told)) for case_id, (at, told) in kept["closed"].items()}
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
            if kept:
                log.error("%s is damaged: files that were removed may be read again", path)  # noqa: TRY400 (for the operator)


def _mark(attachment_id: int, message_id: int, filename: str) -> str:
    return str(attachment_id) if attachment_id != message_id else filename


def _file_key(message_id: int, mark: str) -> str:
    return f"{GONE}{message_id}.{base64.urlsafe_b64encode(mark.encode()).decode()}"


def _file_of(key: str) -> tuple[int, str]:
    """The message and the mark of a file; without `gone.`."""
    message_id, _, mark = key.partition(".")
    return int(message_id), base64.urlsafe_b64decode(mark).decode()


def _oldest(held: Mapping[int, object], most: int) -> list[int]:
    return list(held)[: max(0, len(held) - most)]


async def forget_evidence(
    store: DocumentStore,
    user_id: int,
    gone: Tombstones | None,
    forget_answers: Callable[[str], object] | None = None,
    *,
    only_unread: bool = False,
) -> int:
    """Delete every file that a person has posted in a thread, unless others have posted it there as well.

    `gone`: remembers that they must not be read again; None: they may be. `forget_answers`: called with the name of
    each collection that files were taken from. `only_unread`: only files that are being read. Gives how many of the
    person's files there were. Raises StoreUnavailable, OSError.
    """

    def posted(origin: Origin) -> bool:
        return origin.uploader_id == user_id

    count = 0
    for name in await store.list_collections(naming.CASE_PREFIX):
        theirs = [
            doc
            for doc in await documents_in(store, name)
            if any(map(posted, doc.origins)) and (doc.state is State.PENDING or not only_unread)
        ]
        if gone is not None and theirs:
            await gone.add(origin for doc in theirs for origin in doc.origins if posted(origin))
        for doc in theirs:
            count += await store.withdraw(name, doc.doc_id, posted)
        if theirs and forget_answers is not None:
            forget_answers(name)
        left = await store.describe(name)
        if left is not None and not left.documents:
            await store.delete_collection(name)
    return count


async def remove_file(store: DocumentStore, gone: Tombstones, name: str, doc: Document) -> None:
    """Delete one file of a thread, for all who posted it. Its name stays as long as the thread's other files do, and
    it is not read again as long as its messages are there. Raises StoreUnavailable, OSError.
    """
    await gone.add(doc.origins)
    described = await store.describe(name)
    if described is None or not await store.delete_document(name, doc.doc_id):
        return
    origin = doc.origin
    kept = Origin(origin.filename, message_id=origin.message_id, attachment_id=origin.attachment_id)
    marker = await store.expect(described.collection, kept)
    await store.fail(name, marker.doc_id, f"{origin.filename} {REMOVED}")
