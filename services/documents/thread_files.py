"""Files posted in threads: from the message to the searchable document, and tombstones of removed files."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clock import rfc3339, run_blocking
from clock.cancellation import CancelToken
from model.messages import Attachment, Message, Place
from services.documents.limits import KINDS
from services.documents.store import protocol
from services.documents.store.document_store import DocumentStore
from services.documents.store.protocol import Collection, Document, Origin, SharedNotes, State
from services.storage import files, json_state

# Files in messages

PLACE_ID = "place_id"  # metadata of a document: the place of its message


_OPENS = re.compile(r"[ \t]*(?P<mark>`{3,}+|~{3,}+)(?P<info>[^`]*+)")
_WORD = re.compile(r"[a-z0-9]{1,12}")
_ENDINGS = {"python": ".py", "bash": ".sh", "shell": ".sh", "javascript": ".js", "rust": ".rs", "yml": ".yaml"}
_NOT_TEXT = ("image/", "audio/", "video/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A file that somebody posted in a conversation, not read yet."""

    case_id: int  # the thread that it belongs to
    guild_id: int | None
    place_id: int  # the place of its message: the thread, or the channel that the thread belongs to
    message_id: int
    uploader_id: int
    attachment: Attachment
    at: float  # when it was posted
    text: str | None = None  # the content of a code block, which is no file on Discord
    is_guest: bool = False  # the thread is known to be somebody else's than the uploader's

    @property
    def filename(self) -> str:
        return self.attachment.filename

    @property
    def key(self) -> tuple[int, str]:
        return self.attachment.id, self.filename

    @property
    def collection(self) -> Collection:
        case_id = str(self.case_id)
        return Collection(protocol.case_collection(case_id), "case", case_id, self.guild_id)

    @property
    def origin(self) -> Origin:
        return Origin(
            self.filename,
            uploader_id=self.uploader_id,
            message_id=self.message_id,
            attachment_id=self.attachment.id,
            uploaded_at=rfc3339(self.at),
            extra={PLACE_ID: str(self.place_id)},
        )

    def is_in(self, doc: Document) -> bool:
        """Return True if the document was made from this file."""
        return doc.filename == self.filename and doc.has_attachment(self.attachment.id)


def candidates_in(
    message: Message, case_id: int, *, opener_id: int | None = None, block_lines: int | None = None
) -> Iterator[Candidate]:
    """Yield the files in a message, for a thread, without pictures, sound and films.

    `opener_id`: the person whose thread it is, if that is known. `block_lines`: a code block of so many lines counts as
    a file; None: no code block does.
    """

    def candidate(file: Attachment, text: str | None = None) -> Candidate:
        return Candidate(
            case_id=case_id,
            guild_id=message.guild_id,
            place_id=message.channel_id,
            message_id=message.id,
            uploader_id=message.author.id,
            attachment=file,
            at=message.at,
            text=text,
            is_guest=opener_id not in {None, message.author.id},
        )

    if message.is_system or message.author.is_bot:
        return
    for file in message.attachments:
        if not file.is_image and not (file.content_type or "").startswith(_NOT_TEXT):
            yield candidate(file)
    if block_lines is None:
        return
    for number, (text, ending) in enumerate(_long_blocks(message.text, block_lines), 1):
        name = f"message-{message.id}-block-{number}{ending}"
        yield candidate(Attachment(message.id, name, len(text.encode()), ""), text)


def _long_blocks(text: str, least: int) -> Iterator[tuple[str, str]]:
    """Yield the text of each long code block, and the file ending that fits its language."""
    for info, lines in _blocks(text.split("\n")):
        if len(lines) >= least:
            word = _WORD.match(info.strip().lower())
            ending = "" if word is None else _ENDINGS.get(word[0], f".{word[0]}")
            yield "".join(f"{line}\n" for line in lines), ending if ending in KINDS else ".txt"


def _blocks(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the info string and the lines of each code block. A block that is never closed is skipped."""
    shut = {line.strip(" \t"): number for number, line in enumerate(lines)}
    # The last line of each kind: a mark above it can be closed.
    at = 0
    while at < len(lines):
        opened, at = _OPENS.fullmatch(lines[at]), at + 1
        if opened is None or shut.get(opened["mark"], -1) < at:
            continue
        begun = at
        while lines[at].strip(" \t") != opened["mark"]:
            at += 1
        yield opened["info"], lines[begun:at]
        at += 1


def is_closed(place: Place, solved_tags: frozenset[str]) -> bool:
    """Return True if a thread is closed: locked, or tagged as solved. An archived thread is still open."""
    return place.locked or any(tag.strip().casefold() in solved_tags for tag in place.tags)


# Files that must not be read again

REMOVED = "was removed by whoever posted it, or by a moderator."
MAX_FILES = 20_000
MAX_THREADS = 5_000  # beyond either limit, the oldest are forgotten
GONE, CLOSED = "gone.", "closed."
"""The prefixes of keys of shared notes: `gone.<message>.<file>` and `closed.<thread>`."""

log = logging.getLogger(__name__)


class Tombstones:
    """Remembers files that people deleted, and closed threads whose files were deleted: in a file, or shared between
    processes (`share`).

    Every method that changes something raises OSError if the change could not be written; it stays in memory.
    """

    def __init__(self, path: Path | None = None) -> None:
        """`path` None: keep all in memory only."""
        self._path = path
        self._flags = {} if path is None else read_tombstones(path)  # the oldest first
        self._turn = asyncio.Lock()
        self._notes: SharedNotes | None = None

    async def share(self, notes: SharedNotes, heard: Callable[[], object]) -> None:
        """Share entries with all other processes through `notes` from now on. `heard`: called after each new entry.
        Raises StoreUnavailable.
        """

        def note(key: str, value: bytes | None) -> None:
            if value is not None and key.startswith(CLOSED):
                _closing(value)  # raises if the entry is damaged, which is left out then
            self._note(key, value)
            if value is not None:
                heard()

        self._notes = notes
        for prefix in (GONE, CLOSED):
            await notes.follow(prefix, lambda key, value, prefix=prefix: note(f"{prefix}{key}", value))

    def forbids(self, candidate: Candidate) -> bool:
        """Return True if a file must not be read: it was deleted, or posted before its thread was closed."""
        if _file_key(candidate.message_id, candidate.attachment.id, candidate.filename) in self._flags:
            return True
        closed = self._closed(candidate.case_id)
        return closed is not None and candidate.at <= closed[0]

    async def add(self, origins: Iterable[Origin]) -> None:
        """Remember that the files of these origins were deleted."""
        keys = [
            _file_key(origin.message_id, origin.attachment_id, origin.filename)
            for origin in origins
            if origin.message_id is not None and origin.attachment_id is not None
        ]
        await self._save(dict.fromkeys(keys, b"true"))

    async def forget_messages(self, message_ids: Iterable[int]) -> None:
        """Drop the entries of messages that were deleted on Discord."""
        gone = set(map(str, message_ids))
        if known := [key for key in self._flags if key.startswith(GONE) and key.split(".")[1] in gone]:
            await self._save(dict.fromkeys(known))

    async def close(self, case_id: int, at: float) -> None:
        """Remember that a thread's files were deleted as it closed. `at`: the time of the last, by Discord's clock."""
        self._note(f"{CLOSED}{case_id}", None)  # it is the newest now
        await self._save({f"{CLOSED}{case_id}": json.dumps((at, False)).encode()})

    def is_unannounced(self, case_id: int) -> bool:
        """Return True if a thread was closed with its files deleted, and that has not been announced in it."""
        closed = self._closed(case_id)
        return closed is not None and not closed[1]

    async def note_announced(self, case_id: int) -> None:
        """Remember that the closing of a thread was announced in it."""
        closed = self._closed(case_id)
        if closed is not None and not closed[1]:
            await self._save({f"{CLOSED}{case_id}": json.dumps((closed[0], True)).encode()})

    def _closed(self, case_id: int) -> tuple[float, bool] | None:
        """Return the time of the last file of a closed thread, and True if the closing was announced."""
        value = self._flags.get(f"{CLOSED}{case_id}")
        return None if value is None else _closing(value)

    def _note(self, key: str, value: bytes | None) -> None:
        if value is None:
            self._flags.pop(key, None)
        else:
            self._flags[key] = value

    async def _save(self, changed: Mapping[str, bytes | None]) -> None:
        for key, value in changed.items():
            self._note(key, value)
        dropped = [*self._oldest(GONE, MAX_FILES), *self._oldest(CLOSED, MAX_THREADS)]
        for key in dropped:
            del self._flags[key]
        if self._notes is not None:
            for key in (*changed, *dropped):
                await self._notes.put(key, self._flags.get(key))
        elif self._path is not None:
            async with self._turn:
                await run_blocking(files.replace, self._path, render_tombstones(self._flags))

    def _oldest(self, prefix: str, most: int) -> list[str]:
        """Return the keys beyond the newest ones."""
        held = [key for key in self._flags if key.startswith(prefix)]
        return held[: max(0, len(held) - most)]


def _closing(value: bytes) -> tuple[float, bool]:
    at, told = json.loads(value)
    return float(at), bool(told)


def _file_key(message_id: int, attachment_id: int, filename: str) -> str:
    """Return the key of a file. A code block has no attachment id: its name is used instead."""
    return _key_of(message_id, str(attachment_id) if attachment_id != message_id else filename)


def _key_of(message_id: int, mark: str) -> str:
    return f"{GONE}{message_id}.{base64.urlsafe_b64encode(mark.encode()).decode()}"


def read_tombstones(path: Path) -> dict[str, bytes]:
    """Read a file of `Tombstones` as shared notes, by key; empty, with an error in the log, if it is damaged.

    The file holds `{"files": {"<message>": ["<attachment>", …]}, "closed": {"<thread>": [<time of its last file>,
    <whether people were told>]}}`.
    """
    kept = json_state.read_object(path)
    try:
        return {
            _key_of(int(message), str(mark)): b"true" for message, marks in kept["files"].items() for mark in marks
        } | {
            f"{CLOSED}{int(case_id)}": json.dumps((float(at), bool(told))).encode()
            for case_id, (at, told) in kept["closed"].items()
        }
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
        if kept:
            log.error("%s is damaged: files that were removed may be read again", path)  # noqa: TRY400 (for the operator)
        return {}


def render_tombstones(notes: Mapping[str, bytes]) -> bytes:
    """Write tombstones as `read_tombstones` reads them; other notes are left out."""
    content: dict[str, dict[str, Any]] = {"files": {}, "closed": {}}
    for key, value in notes.items():
        if key.startswith(GONE):
            message_id, _, mark = key.removeprefix(GONE).partition(".")
            content["files"].setdefault(message_id, []).append(base64.urlsafe_b64decode(mark).decode())
        elif key.startswith(CLOSED):
            content["closed"][key.removeprefix(CLOSED)] = json.loads(value)
    return json.dumps(content, indent=0).encode() + b"\n"


async def forget_evidence(
    store: DocumentStore,
    user_id: int,
    tombstones: Tombstones | None,
    forget_answers: Callable[[str], object] | None = None,
    *,
    only_unread: bool = False,
) -> int:
    """Delete every file that a person has posted in threads, unless others have posted it there as well.

    `tombstones`: gets an entry for each file; None: they may be read again. `forget_answers`: called with the name of
    each changed collection. `only_unread`: delete only files that are still being read. Returns the number of the
    person's files. Raises StoreUnavailable, OSError.
    """

    def posted(origin: Origin) -> bool:
        return origin.poster_id == user_id

    count = 0
    for name in await store.list_collections(protocol.CASE_PREFIX):
        theirs = [
            doc
            for doc in await store.documents(name)
            if any(map(posted, doc.origins)) and (doc.state is State.PENDING or not only_unread)
        ]
        if tombstones is not None and theirs:
            await tombstones.add(origin for doc in theirs for origin in doc.origins if posted(origin))
        for doc in theirs:
            count += await store.withdraw(name, doc.doc_id, posted)
        if theirs and forget_answers is not None:
            forget_answers(name)
        left = await store.describe(name)
        if left is not None and not left.documents:
            await store.delete_collection(name)
    return count


async def remove_file(
    store: DocumentStore, tombstones: Tombstones, name: str, doc: Document, by: int | None = None
) -> None:
    """Delete one file of a thread, for all who posted it; `by`: only as far as this person posted it. The file's name
    stays listed as long as the thread has other files, and it is not read again as long as its messages exist. Raises
    StoreUnavailable, OSError.
    """
    await tombstones.add(origin for origin in doc.origins if by in {None, origin.uploader_id})
    described = await store.describe(name)
    if described is None:
        return
    if by is not None:  # anybody can post a copy of another's file
        await store.withdraw(name, doc.doc_id, lambda origin: origin.uploader_id == by)
        if any(each.doc_id == doc.doc_id for each in await store.documents(name)):
            return
    elif not await store.delete_document(name, doc.doc_id):
        return
    origin = doc.origin
    posted_by = {protocol.POSTED_BY: str(origin.uploader_id)}  # a removed file is recognised by having no uploader
    kept = Origin(origin.filename, message_id=origin.message_id, attachment_id=origin.attachment_id, extra=posted_by)
    marker = await store.expect(described.collection, kept)
    await store.fail(name, marker.doc_id, f"{origin.filename} {REMOVED}")


# Files on their way

REMEMBERED = 5_000  # threads whose files are remembered; the oldest are looked up in the store again


class CaseClosed(Exception):
    """Reason of a cancelled read: the file's thread was closed, or the file was deleted."""


@dataclass(frozen=True, slots=True)
class IngestJob:
    """A file that is being read into its thread's collection, with its cancel token."""

    candidate: Candidate
    token: CancelToken

    @property
    def case_id(self) -> int:
        return self.candidate.case_id


@dataclass(slots=True)
class _Case:
    """State of one thread. `seen`: its files, with the ids of their messages. `open`: files that are neither searchable
    nor failed yet. `changed`: set when a file is finished; created only if somebody waits.
    """

    seen: dict[tuple[int, str], int] = field(default_factory=dict[tuple[int, str], int])
    open: dict[tuple[int, str], IngestJob] = field(default_factory=dict[tuple[int, str], IngestJob])
    changed: asyncio.Event | None = None


class ThreadFiles:
    """Tracks each file from its message until it is searchable, and the threads that have files.

    Attributes:
        tombstones: the notes of files that must not be read again.
    """

    def __init__(self, with_files: Iterable[int] = (), tombstones: Tombstones | None = None) -> None:
        """`with_files`: ids of the threads that have collections at the start."""
        self.tombstones = Tombstones() if tombstones is None else tombstones
        self._cases: OrderedDict[int, _Case] = OrderedDict()
        self._with_files = set(with_files)

    async def share(self, notes: SharedNotes) -> None:
        """Share removed files with other processes; stop reading what any of them removes. Raises StoreUnavailable."""
        await self.tombstones.share(notes, lambda: self.cancel_reads(self.tombstones.forbids))

    def __iter__(self) -> Iterator[int]:
        """Iterate over the ids of the threads that have files."""
        return iter(sorted(self._with_files))

    def has_files(self, case_id: int) -> bool:
        return case_id in self._with_files

    def note_collection(self, case_id: int) -> None:
        """Note that a thread has a collection."""
        self._with_files.add(case_id)

    def forget(self, case_id: int) -> None:
        """Note that another process has deleted a thread's collection. Files that are read here make a new one."""
        case = self._cases.get(case_id)
        if case is None or not case.open:
            self._with_files.discard(case_id)

    def begin(self, candidate: Candidate) -> IngestJob | None:
        """Start reading a file. None: the file is known already, or was removed."""
        if self.tombstones.forbids(candidate):
            return None
        case = self._cases.setdefault(candidate.case_id, _Case())
        self._cases.move_to_end(candidate.case_id)
        if candidate.key in case.seen:
            return None
        job = IngestJob(candidate, CancelToken())
        case.seen[candidate.key] = candidate.message_id
        case.open[candidate.key] = job
        self._with_files.add(candidate.case_id)
        while len(self._cases) > REMEMBERED:
            oldest = next((case_id for case_id, each in self._cases.items() if not each.open), None)
            if oldest is None:
                break
            del self._cases[oldest]
        return job

    def finish(self, job: IngestJob) -> None:
        """Note that a file has become searchable, or never will."""
        case = self._cases.get(job.case_id)
        if case is not None and case.open.get(job.candidate.key) is job:
            del case.open[job.candidate.key]
            if case.changed is not None:
                case.changed.set()
                case.changed = None
            self._forget_closed(job.case_id, case)

    def unread(self, case_id: int) -> list[Candidate]:
        """Return the files of a thread that are not searchable yet."""
        case = self._cases.get(case_id)
        return [] if case is None else [job.candidate for job in case.open.values()]

    async def wait(self, case_id: int, seconds: float) -> None:
        """Wait until all files of a thread are searchable, at most `seconds`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while (case := self._cases.get(case_id)) is not None and case.open:
                    case.changed = case.changed or asyncio.Event()
                    await case.changed.wait()

    def close(self, case_id: int) -> None:
        """Cancel reading the files of a thread. Files that come later count as new."""
        case = self._cases.get(case_id)
        if case is not None:
            case.seen.clear()
            for job in case.open.values():
                job.token.cancel(CaseClosed("the thread was closed"))
            self._forget_closed(case_id, case)
        self._with_files.discard(case_id)

    def _forget_closed(self, case_id: int, case: _Case) -> None:
        """Drop a closed thread from memory once none of its files is being read."""
        if not case.seen and not case.open:
            del self._cases[case_id]

    def cases_of_messages(self, message_ids: Iterable[int]) -> set[int]:
        """Return the remembered threads that have files of these messages."""
        gone = frozenset(message_ids)
        return {case_id for case_id, case in self._cases.items() if not gone.isdisjoint(case.seen.values())}

    def cancel_reads(self, gone: Callable[[Candidate], bool]) -> set[int]:
        """Cancel reading the files for which `gone` is true. Returns the ids of their threads."""
        meant = [job for case in self._cases.values() for job in case.open.values() if gone(job.candidate)]
        for job in meant:
            job.token.cancel(CaseClosed("the file was taken back"))
        return {job.case_id for job in meant}
