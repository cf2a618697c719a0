"""The types of the document store: collections, documents, chunks, lines, filters, and notes that processes share."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Collection as SizedIterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from services.documents.prepared import Chunk, DocumentKind, Prepared

if TYPE_CHECKING:  # it imports numpy, which reading a file does without
    from services.search.embedding import Vectors

T = TypeVar("T")

Row = tuple[Any, ...]  # the types of the columns are in `schema.TABLES`

_SLICE = 250


@dataclass(frozen=True, slots=True)
class Rows:
    """A prepared document as rows, made before the database is locked."""

    chunks: SizedIterable[Row]
    chunk_tokens: SizedIterable[str]
    lines: SizedIterable[Row]
    line_tokens: SizedIterable[str]


class Slices(SizedIterable[T]):
    """A sequence of items that are kept pickled, and unpickled in small batches during iteration.

    A million items go from process to process as some thousand buffers, and are never all in memory.
    """

    def __init__(self, length: int, pickled: Sequence[bytes]) -> None:
        self._length = length
        self._pickled = pickled

    def __reduce__(self) -> tuple[Callable[..., Slices[T]], tuple[int, list[pickle.PickleBuffer]]]:
        return Slices, (self._length, [pickle.PickleBuffer(each) for each in self._pickled])

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        for each in self._pickled:
            yield from pickle.loads(each)  # noqa: S301 (made here)

    def __contains__(self, item: object) -> bool:
        return any(item == each for each in self)


def slice_pickled(items: Sequence[T]) -> Slices[T]:
    starts = range(0, len(items), _SLICE)
    return Slices(len(items), [pickle.dumps(items[at : at + _SLICE], pickle.HIGHEST_PROTOCOL) for at in starts])


CASE_PREFIX = "case_"
USER_PREFIX = "user_"

_SAFE = re.compile(r"[a-z0-9][a-z0-9_-]{0,99}")
_PERSONAL = re.compile(rf"{CASE_PREFIX}(?!0[0-9])[0-9]{{1,20}}|{USER_PREFIX}(?!0[0-9])[0-9]{{1,20}}_kb")
_DIGITS = re.compile(r"[0-9]{1,20}")


def case_collection(thread_id: str) -> str:
    return f"{CASE_PREFIX}{_snowflake(thread_id)}"


def user_collection(user_id: str) -> str:
    return f"{USER_PREFIX}{_snowflake(user_id)}_kb"


def owner_of_runbooks(name: str) -> int | None:
    """Return the id of the person whose runbooks a collection holds; None: it holds something else."""
    return int(name.removeprefix(USER_PREFIX).partition("_")[0]) if name.startswith(USER_PREFIX) else None


def is_personal(name: str) -> bool:
    """Return True if a collection of this name holds the files of a thread or the runbooks of a person."""
    return _PERSONAL.fullmatch(name) is not None


def is_name(name: str) -> bool:
    """Return True if a collection may have this name, which is safe as a file name."""
    return _SAFE.fullmatch(name) is not None


def check_name(name: str) -> str:
    """Return `name` if a collection may have it. Raises ValueError: it could lead out of its folder."""
    if not is_name(name):
        raise ValueError(f"{name!r} is no name of a collection")
    return name


def _snowflake(scope_id: str) -> str:
    if not _DIGITS.fullmatch(scope_id):
        raise ValueError(f"{scope_id!r} is no id")
    return scope_id


class State(StrEnum):
    PENDING = "pending"  # announced, and not searchable yet
    LEXICAL = "lexical"  # searchable by words; its vectors are missing
    READY = "ready"
    FAILED = "failed"

    @property
    def searchable(self) -> bool:
        return self in {State.LEXICAL, State.READY}


@dataclass(frozen=True, slots=True)
class Collection:
    name: str  # `case_<thread>`, `user_<user>_kb`
    kb_type: str
    scope_id: str | None = None
    guild_id: int | None = None


POSTED_BY = "posted_by"
"""Metadata of a removed file whose name is still listed: the id of its uploader."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a document: file name, uploader, message."""

    filename: str
    uploader_id: int | None = None
    message_id: int | None = None
    attachment_id: int | None = None
    uploaded_at: str = ""  # RFC 3339, UTC
    extra: Mapping[str, str] = field(default_factory=dict[str, str])
    """Metadata of the whole document, which its chunks inherit: `title`, `category`, `tags`."""

    @property
    def poster_id(self) -> int | None:
        """The id of the uploader, also of a file that was removed."""
        posted_by = self.extra.get(POSTED_BY, "")
        return int(posted_by) if self.uploader_id is None and posted_by.isdecimal() else self.uploader_id


@dataclass(frozen=True, slots=True)
class NewDocument:
    origin: Origin
    prepared: Prepared
    rows: Rows | None = None  # made by the process that read the document; `prepared` has no text and chunks then


@dataclass(frozen=True, slots=True)
class Document:
    """A document as the store knows it, without its text."""

    doc_id: str
    origin: Origin
    state: State
    kind: DocumentKind = DocumentKind.TEXT
    sha256: str = ""
    size: int = 0
    revision: int = 1  # a file that the same person posts again with other content is the next revision
    current: bool = True  # True for the newest searchable revision of one of its posters: only these are searched
    error: str = ""  # why it failed, in words for people
    embedder_id: str = ""  # the embedder of its vectors
    n_lines: int = 0
    n_chunks: int = 0
    redactions: Mapping[str, int] = field(default_factory=dict[str, int])
    flags: tuple[str, ...] = ()
    others: tuple[Origin, ...] = ()  # further messages with the same file

    @property
    def filename(self) -> str:
        return self.origin.filename

    @property
    def origins(self) -> tuple[Origin, ...]:
        return (self.origin, *self.others)

    @property
    def poster_ids(self) -> frozenset[int]:
        return frozenset(origin.poster_id for origin in self.origins if origin.poster_id is not None)

    def has_attachment(self, attachment_id: int | None) -> bool:
        return any(origin.attachment_id == attachment_id for origin in self.origins)

    def is_unfinished(self, embedder_id: str) -> bool:
        """Return True if it has to be read or embedded: it has no vectors, or those of another embedder."""
        if self.state in {State.PENDING, State.LEXICAL}:
            return True
        return self.state is State.READY and bool(embedder_id) and self.embedder_id not in {"", embedder_id}


def newest_revisions(documents: Iterable[Document]) -> dict[tuple[str, int | None], str]:
    """Return the id of the newest searchable document by name and poster. `documents`: in order of arrival."""
    return {
        (doc.filename, origin.uploader_id): doc.doc_id
        for doc in documents
        if doc.state.searchable
        for origin in doc.origins
    }


@dataclass(frozen=True, slots=True)
class CollectionSummary:
    """A collection with its documents."""

    collection: Collection
    version: int  # grows by one with each write, also after the collection is deleted and created again
    documents: tuple[Document, ...] = ()
    n_bytes: int = 0  # on disk


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of keyword and vector search."""

    prose: float = 0.7
    window: float = 0.5
    pattern: float = 0.7
    leaf: float = 0.7
    identifier: float = 0.3
    identifier_bonus: float = 2.0
    bm25_k1: float = 1.2
    bm25_b: float = 0.75


class SearchMode(StrEnum):
    """The way passages are searched. Identifiers are searched literally in both modes."""

    HYBRID = "hybrid"
    VECTOR = "vector"  # by meaning alone; by words as long as there are no vectors


@dataclass(frozen=True, slots=True)
class ChunkSearch:
    text: str
    vector: Vectors | None = None  # of one row; None: by words only
    embedder_id: str = ""  # vectors of another embedder are never compared with it
    identifiers: tuple[str, ...] = ()  # texts that are searched literally, ignoring letter case
    depth: int = 15  # the candidates that keyword and vector search give each
    doc_ids: frozenset[str] | None = None  # the documents to search; None: the current ones
    weights: Weights = field(default_factory=Weights)
    mode: SearchMode = SearchMode.HYBRID


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredChunk(Chunk):
    """A chunk as the store holds it, without `embedded`. `extra` also holds the metadata of its document."""

    doc_id: str

    @property
    def chunk_id(self) -> str:
        return f"{self.doc_id}:{self.index}"


@dataclass(frozen=True, slots=True)
class ChunkHit:
    chunk: StoredChunk
    score: float | None  # the cosine with the question, comparable between searches; None: there is no vector
    rank_score: float  # for order only
    verbatim: float = 0.0  # the share of the identifiers that it contains literally
    coverage: float = 0.0  # the share of the question's words that it contains; rare words weigh more


@dataclass(frozen=True, slots=True)
class StoredLine:
    doc_id: str
    line_no: int
    text: str
    ts: str | None = None
    ts_utc: str | None = None
    severity: str | None = None
    component: str | None = None
    local: str | None = None  # the time as its writer has it, `YYYY-MM-DDTHH:MM:SS.ffffff`


@dataclass(frozen=True, slots=True)
class LineWhere:
    """A filter for lines: all conditions that are set must hold."""

    doc_ids: tuple[str, ...]
    first: int | None = None
    last: int | None = None  # line numbers; both `first` and `last` are included
    clocks: tuple[str, str] | None = None  # times of day, from (included) and to (excluded), as `HH:MM:SS.ffffff`
    days: tuple[str, str] | None = None  # `YYYY-MM-DD`, both included; or `MM-DD`, of any year
    instants: tuple[str, str] | None = None
    """From (included) and to (excluded), as `YYYY-MM-DDTHH:MM:SS`; or `MM-DDTHH:MM:SS`, of any year."""
    zone: int | None = None
    """Minutes east of UTC: days and times of day are compared in this zone, with lines whose time has one. None: as
    the lines write them.
    """
    zoneless: bool = False  # only lines whose time has no zone
    severities: tuple[str, ...] = ()
    components: tuple[str, ...] = ()  # any of them: a whole name or its last part, ignoring letter case
    holding: tuple[str, ...] = ()  # all of these texts, literally, ignoring letter case
    holding_any: tuple[tuple[str, ...], ...] = ()  # all texts of one of these groups at least, likewise
    lacking: tuple[str, ...] = ()  # none of these, likewise
    words: tuple[str, ...] = ()  # all of these, as words in any form
    words_any: tuple[str, ...] = ()  # one of these at least, likewise
    words_none: tuple[str, ...] = ()  # none of these, likewise


@dataclass(frozen=True, slots=True)
class MatchingLines:
    """Some of the lines that fit a filter, and the number of all."""

    total: int
    lines: tuple[StoredLine, ...]  # in the order of the request
    per_document: Mapping[str, int] = field(default_factory=dict[str, int])


class StoreUnavailable(Exception):
    """The store cannot be read or written now; the message is one readable line."""


class SharedNotes(Protocol):
    """Small values by key, shared between processes. Keys are words joined by dots, of letters, digits, `-`, `_` and
    `=`.
    """

    async def follow(self, prefix: str, heard: Callable[[str, bytes | None], None]) -> None:
        """Follow the values whose keys begin with `prefix` (a word with a dot), as `SharedCollections.follow` does.
        `prefix` is cut off; None: the value was deleted. Raises StoreUnavailable.
        """
        ...

    async def put(self, key: str, value: bytes | None) -> None:
        """Store a value; None deletes it. Raises OSError."""
        ...
