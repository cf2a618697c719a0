"""Files that people post in threads: which count as evidence, how they are deleted, and which must not be read again.

Attachments count, and long code blocks if wanted (DOCUMENT_QA 1; SPEC 5, "Privacy"; DOCUMENT_QA 8.1).
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from clock import rfc3339, run_blocking
from model.messages import Attachment, Message, Place
from services.documents.limits import KINDS
from services.documents.store import naming
from services.documents.store.protocol import Collection, Document, DocumentStore, Origin, State, documents_in
from services.storage import files, json_state

REMOVED = "was removed by whoever posted it, or by a moderator."
MOST_MESSAGES = 20_000
MOST_THREADS = 5_000  # of messages and of threads the oldest are forgotten first
PLACE_ID = "place_id"  # metadata of a document: the place of its message

log = logging.getLogger(__name__)

_OPENS = re.compile(r"[ \t]*(?P<mark>`{3,}+|~{3,}+)(?P<info>[^`]*+)")
_WORD = re.compile(r"[a-z0-9]{1,12}")
_ENDINGS = {"python": ".py", "bash": ".sh", "shell": ".sh", "javascript": ".js", "rust": ".rs", "yml": ".yaml"}
_NOT_TEXT = ("image/", "audio/", "video/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A file that somebody has posted in a conversation."""

    case_id: int  # the thread that it belongs to
    guild_id: int | None
    place_id: int  # where its message is: in the thread, or in the channel that the thread belongs to
    message_id: int
    uploader_id: int
    attachment: Attachment
    at: float  # when it was posted
    text: str | None = None  # the content of a code block, which is no file on Discord

    @property
    def filename(self) -> str:
        return self.attachment.filename

    @property
    def key(self) -> tuple[int, str]:
        return self.attachment.id, self.filename

    @property
    def collection(self) -> Collection:
        case_id = str(self.case_id)
        return Collection(naming.case(case_id), "case", case_id, self.guild_id)

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
        """Whether a document was made of this file."""
        return doc.filename == self.filename and doc.came_as(self.attachment.id)


def candidates_in(message: Message, case_id: int, *, block_lines: int | None = None) -> Iterator[Candidate]:
    """The files in a message, for a thread. `block_lines`: from how many lines on a code block counts as one; None:
    none does. Pictures, sound and films are not searched, and are left to others.
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
    """The text of each long block, and the ending that a file of it would have."""
    for info, lines in _blocks(text.split("\n")):
        if len(lines) >= least:
            word = _WORD.match(info.strip().lower())
            ending = "" if word is None else _ENDINGS.get(word[0], f".{word[0]}")
            yield "".join(f"{line}\n" for line in lines), ending if ending in KINDS else ".txt"


def _blocks(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Of each block the words behind its opening mark, and its lines. One that is never closed is none."""
    shut = {line.strip(" \t"): number for number, line in enumerate(lines)}
    # The last line of each kind: the only one that has to be there for a mark to be closed.
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
    """Whether a thread's case is closed: locked, or tagged as solved. An archived one is not closed yet."""
    return place.locked or any(tag.strip().casefold() in solved_tags for tag in place.tags)


class Tombstones:
    """Files that people had forgotten, and those deleted when their thread was closed.

    `{"files": {"<message>": ["<attachment>", …]}, "closed": {"<thread>": [<when its last file was posted>,
    <whether people were told>]}}`. A code block, which is no attachment, goes by its name, made of its message and
    number.

    Every method that changes something raises OSError if that could not be written: it is then known to this process
    only.
    """

    def __init__(self, path: Path | None = None) -> None:
        """`path` None: nothing outlives the process."""
        self._path = path
        self._files: dict[int, list[str]] = {}
        self._closed: dict[int, tuple[float, bool]] = {}
        self._turn = asyncio.Lock()
        if path is not None:
            self._read(path)

    def holds(self, candidate: Candidate) -> bool:
        """Whether a file must not be read: somebody had it forgotten, or its thread was closed after it came."""
        mark = _mark(candidate.attachment.id, candidate.message_id, candidate.filename)
        if mark in self._files.get(candidate.message_id, ()):
            return True
        closed = self._closed.get(candidate.case_id)
        return closed is not None and candidate.at <= closed[0]

    async def add(self, origins: Iterable[Origin]) -> None:
        """Somebody had the files forgotten that came from there."""
        for origin in origins:
            if origin.message_id is not None and origin.attachment_id is not None:
                marks = self._files.setdefault(origin.message_id, [])
                mark = _mark(origin.attachment_id, origin.message_id, origin.filename)
                if mark not in marks:
                    marks.append(mark)
        await self._save()

    async def forget_messages(self, message_ids: Iterable[int]) -> None:
        """These messages are gone themselves."""
        known = [message_id for message_id in message_ids if self._files.pop(message_id, None)]
        if known:
            await self._save()

    async def close(self, case_id: int, at: float) -> None:
        """The files of a thread were deleted as it was closed; the last was posted at `at`, by Discord's clock."""
        self._closed.pop(case_id, None)
        self._closed[case_id] = at, False
        await self._save()

    def is_unannounced(self, case_id: int) -> bool:
        """Whether a thread's files were deleted when it was closed, and its people have not been told."""
        return not self._closed.get(case_id, (0.0, True))[1]

    async def announced(self, case_id: int) -> None:
        """The people of a thread have been told."""
        if self.is_unannounced(case_id):
            self._closed[case_id] = self._closed[case_id][0], True
            await self._save()

    async def _save(self) -> None:
        for held, most in ((self._files, MOST_MESSAGES), (self._closed, MOST_THREADS)):
            for oldest in list(held)[: max(0, len(held) - most)]:
                held.pop(oldest)
        if self._path is None:
            return
        async with self._turn:
            content = {
                "files": {str(message): marks for message, marks in self._files.items()},
                "closed": {str(case_id): closed for case_id, closed in self._closed.items()},
            }
            await run_blocking(files.replace, self._path, json.dumps(content, indent=0).encode() + b"\n")

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
