"""The protocol of a kind of source (`SourceKind`), the records of all sources in memory, and the events of an update
of the knowledge base.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

from clock import now
from services.knowledge import cache
from services.knowledge.cache import Record
from services.knowledge.file_selection import PathFilter
from services.knowledge.web_interface import FetchStatus, WebFetchers
from services.storage import Signature, confined, in_thread
from services.telemetry import number_of

R = TypeVar("R", bound=Record)
W = TypeVar("W")


@dataclass(frozen=True, slots=True)
class RefreshSchedule:
    """The schedule by which something on the web is asked for again: `fresh_seconds` after an answer, `again_seconds`
    after a failure. `by_hand`: a person waits, so whatever failed last time is asked for at once.
    """

    fresh_seconds: float = 0.0
    again_seconds: float = 0.0
    by_hand: bool = False

    def is_due(self, next_at: float, at: float, *, failed: bool) -> bool:
        """Return whether to ask now. `next_at`: the time that `next` gave last time; `failed`: whether that request
        failed.
        """
        return next_at <= at or (self.by_hand and failed)

    def next(self, *, failed: bool) -> float:
        """When to ask again, having just asked: seconds since 1970."""
        return now() + (self.again_seconds if failed else self.fresh_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSetup:
    """The folders, limits and fetchers from which kinds of sources are made; each takes what it needs.

    Attributes:
        sources_dir: the folder of documents.
        links_file: the list of pages and of lines that bring many sources.
        cache_dir: where texts that were fetched are kept.
        max_bytes: of the text of one source.
        choice: which files are sources, also of a repository.
        most: how many sources one line of the links file brings at most.
        at_once: how many things are fetched at the same time.
        schedule: by which something is asked for again.
        web: None where sources are only read.
        on_result: gets the result of the download of each page.
    """

    sources_dir: Path
    links_file: Path
    cache_dir: Path
    max_bytes: int
    choice: PathFilter = field(default_factory=PathFilter)
    most: int = 2000
    at_once: int = 1
    schedule: RefreshSchedule = RefreshSchedule()
    web: WebFetchers | None = None
    on_result: Callable[[FetchStatus], object] | None = None


@dataclass(frozen=True, slots=True)
class Text:
    """The text of a source.

    Attributes:
        text: at most as long as the kind allows; `cut` says whether something was left out.
        path: the file it was read from. As long as that has this `signature`, it need not be read again.
        flaw: why there can be no description of it, such as "it is binary"; empty when there can.
        has_parts: other files are part of it, so that its own signature does not vouch for it.
    """

    text: str
    path: Path
    signature: Signature
    cut: bool = False
    flaw: str = ""
    has_parts: bool = False


@dataclass(slots=True)
class Listing:
    """The sources of one kind that exist now, in the order in which they are to be processed.

    Attributes:
        unchanged: their text is known to be the one that the record tells of.
        due: they are new, or may have changed: to be fetched.
        left_out: what is not a source, and why.
        troubles: places where something could not be looked at, and why.
        unsure: whether a source may be there although it is not listed; None: what is not listed is gone.
    """

    unchanged: list[str] = field(default_factory=list[str])
    due: list[str] = field(default_factory=list[str])
    left_out: dict[str, str] = field(default_factory=dict[str, str])
    troubles: dict[str, str] = field(default_factory=dict[str, str])
    unsure: Callable[[str], bool] | None = None


class CannotList(Exception):
    """The sources of a kind cannot be listed now, so all its records stay as they are.

    Attributes:
        about: the path (or address) that is the trouble.
        setting: the key that names it, such as `kb.links_file_path`.
    """

    def __init__(self, about: str, message: str, setting: str) -> None:
        super().__init__(message)
        self.about, self.setting = about, setting


class LinksLine(Protocol):
    """A line of the links file that brings many sources at once. `place`: file and line; `text`: how people are told
    which it is.
    """

    @property
    def place(self) -> str: ...
    @property
    def url(self) -> str: ...
    @property
    def text(self) -> str: ...


@dataclass(frozen=True, slots=True)
class LineResult:
    """What a line of the links file has brought. `count`: of sources, None where it is not known yet; `note`: what was
    left out, and why; `failed`: whether the last attempt did.
    """

    count: int | None = None
    note: str = ""
    failed: bool = False


@dataclass(frozen=True, slots=True)
class SourceDetails:
    """What people are shown of a source. `size_bytes`, `changed_at`: None where unknown; `trouble`: why its text may
    be an earlier one, empty where it is not.
    """

    size_bytes: int | None = None
    changed_at: float | None = None
    trouble: str = ""


class SourceKind(Protocol[R]):
    """A kind of source, such as files or web pages: everything that the rest of the program needs to know about it.

    The index names a source `kb:<id>`. One object serves a whole run; the answering side calls `read` on another
    object. A kind is registered in `services.knowledge.kinds`.

    Attributes:
        noun: what people call one source of it, such as `file`; kinds with the same are counted together.
        plural: what they call several, such as `files`.
        step: what the log and the metrics call its fetching; no two kinds may have the same.
        record: what the cache keeps of one source.
        batch: how many sources are handed to one call of `fetch`.
        concurrency: how many calls of `fetch` run at the same time.
    """

    noun: str
    plural: str
    step: str
    record: type[R]
    batch: int
    concurrency: int

    def owns(self, source_id: str) -> bool:
        """Return whether an id has the form of this kind. If several kinds match, the last in `KINDS` wins. Files match
        any id, so they come first.
        """
        ...

    @staticmethod
    def address(source_id: str, /) -> str | None:
        """Return where people find a source on the web, by its id alone; None if the id does not tell, or is of another
        kind. Only files of repositories have addresses for single sections.
        """
        ...

    def details(self, record: R, /) -> SourceDetails:
        """Return what the dashboard shows of a source. Blocking; asks nothing outside."""
        ...

    def line_result(self, line: LinksLine, /) -> LineResult | None:
        """Return what `--check` shows of a line of the links file; None: it brings nothing of this kind. Blocking."""
        ...

    async def survey(self, at: float, /) -> Sequence[Trouble]:
        """Fetch what `list_sources` needs from outside, at the beginning of each update; a slow one delays no other
        kind. Returns what could not be fetched; for that, the earlier state stays. `at`: now, in seconds since 1970.
        """
        ...

    def list_sources(self, records: Mapping[str, R], at: float, /) -> Listing:
        """List the sources that exist now. `records`: of each known source, gone ones too; `at`: now, in seconds since
        1970.

        Blocking; runs off the event loop, at the beginning of each update and never during `fetch`. Asks nothing
        outside: what `survey` has brought is on disk.

        Raises:
            CannotList: that cannot be known.
        """
        ...

    async def fetch(self, due: Mapping[str, R | None]) -> Sequence[R | LeftOut | Trouble]:
        """Fetch the text of these sources to where `read` finds it. `due`: the record of each, None for new ones.

        Gives for each its record as it is to be from now on (`Record.new`, `Record.holding`), or why there is none:
        `LeftOut` if it is not a source, `Trouble` if it could not be had. A record may be returned together with one of
        these. A source for which nothing is returned is left to the next update. Blocking work goes through
        `in_thread`.
        """
        ...

    def read(self, source_id: str) -> Text:
        """The text of a source as answers get it, from disk and never from the network. Blocking.

        Raises:
            OutsideFolder: the id leads out of the folder.
            OSError, ValueError: it cannot be read, or not understood.
        """
        ...

    def forget(self, source_id: str) -> None:
        """Delete what is stored of a source that has been gone for a day. Blocking; may raise OSError."""
        ...


AnyKind = SourceKind[Any]


def kind_of(kinds: Sequence[AnyKind], source_id: str) -> AnyKind | None:
    """Return the kind that owns this source id, or None."""
    return next((kind for kind in reversed(kinds) if kind.owns(source_id)), None)


def needed(web: W | None) -> W:
    """Return the access to the web. Raises RuntimeError: there is none, as sources are only read."""
    if web is None:
        raise RuntimeError("these sources can only be read")
    return web


def note_of(left_out: Mapping[str, int]) -> str:
    """Say how many of what a line names were left out, and why; empty where none was."""
    return ", ".join(f"{count} {reason}" for reason, count in left_out.items())


def stored_name(source_id: str) -> str:
    """The name of the file that keeps a source's text."""
    return hashlib.sha256(source_id.encode("utf-8", "replace")).hexdigest()


def read_inside(folder: Path, path: Path, max_bytes: int) -> Text:
    """The text of a file in `folder`, cut at `max_bytes`; for `SourceKind.read`, and raising the same."""
    text, signature, cut = confined.read(folder, path, max_bytes)
    return Text(text, path, signature, cut)


@dataclass(frozen=True, slots=True)
class Discovered:
    """The first event about a kind in an update: the number of its sources, by noun."""

    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Due:
    """A source that is new or may have changed: it is to be fetched."""

    kind: AnyKind
    source_id: str


class UpdateResult(StrEnum):
    """The result of the work on a source.

    `REUSED`: its content had a description already, under another name. `SAME`: only facts such as times are new.
    """

    DESCRIBED = "described"
    REUSED = "reused"
    SAME = "same"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class UpToDate:
    """A source is up to date: nothing is left to do for it in this update."""

    record: Record
    result: UpdateResult


@dataclass(frozen=True, slots=True)
class Pending:
    """A source whose text is known and whose description is missing or out of date."""

    record: Record


@dataclass(frozen=True, slots=True)
class Purged:
    """A source has been gone for so long that nothing is kept of it any more."""

    source_id: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that is not a source, and the reason."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Trouble:
    """A failure. `step`: what was being done, as the log calls it; `fatal`: it affects all sources of a kind."""

    about: str
    step: str
    message: str
    fatal: bool = False


UpdateEvent = Discovered | Due | UpToDate | Pending | Purged | LeftOut | Trouble


_ALWAYS_TOLD = frozenset({"file", "page"})
"""Nouns that a report names also where there are none. Of others most people have none."""


@dataclass(slots=True)
class UpdateReport:
    """Adds up the events of one update.

    Attributes:
        counts: sources by noun, in the order in which they are told. Each ends as described, recognised, failed, or
            else unchanged.
        failed: sources that could not be had or described. What is kept of them stays in use.
        other_failures: of what is no source itself, such as a list of pages.
        reasons: why something is no source, and how often.
        descriptions: how many entries the index has afterwards.
        plurals: by noun, where it is more than an s.
    """

    counts: dict[str, int] = field(default_factory=dict[str, int])
    settled: Counter[UpdateResult] = field(default_factory=Counter[UpdateResult])
    failed: set[str] = field(default_factory=set[str])
    other_failures: int = 0
    reasons: Counter[str] = field(default_factory=Counter[str])
    troubles: list[Trouble] = field(default_factory=list[Trouble])
    descriptions: int = 0
    plurals: Mapping[str, str] = field(default_factory=dict[str, str])
    _due: dict[str, str] = field(default_factory=dict[str, str])  # by its name, the noun of each source to be fetched
    _to_describe: set[str] = field(default_factory=set[str])

    @classmethod
    def of(cls, kinds: Iterable[AnyKind]) -> UpdateReport:
        """Begin the report of an update of these kinds."""
        names = {kind.noun: kind.plural for kind in kinds}
        return cls(dict.fromkeys(names, 0), plurals=names)

    def add(self, event: UpdateEvent) -> None:
        match event:
            case Discovered(counts=counts):
                self.counts |= {noun: self.counts.get(noun, 0) + count for noun, count in counts.items()}
            case Due(kind=kind, source_id=name):
                self._due[name] = kind.noun
            case Pending(record=record):
                self._to_describe.add(record.source_id)
            case UpToDate(record=record, result=result):
                self.settled[result] += 1
                if result in {UpdateResult.DESCRIBED, UpdateResult.REUSED}:
                    self.failed.discard(record.source_id)
            case LeftOut(name=name, reason=reason):
                self.reasons[reason] += 1
                if name in self._due:  # it was read, and is no source
                    self.counts[self._due.pop(name)] -= 1
            case Trouble(about=name):
                self.troubles.append(event)
                if name in self._due or name in self._to_describe:
                    self.failed.add(name)
                else:
                    self.other_failures += 1
            case _:
                pass

    @property
    def left_out(self) -> int:
        return self.reasons.total()

    @property
    def unchanged(self) -> int:
        done = self.settled[UpdateResult.DESCRIBED] + self.settled[UpdateResult.REUSED] + len(self.failed)
        return sum(self.counts.values()) - done

    @property
    def text(self) -> str:
        """One line for people. What follows the colon adds up to what is before it."""
        settled = self.settled
        more = f", {number_of(self.other_failures, 'other failure')}" if self.other_failures else ""
        return (
            f"{', '.join(self._counted()) or 'no sources'}: "
            f"{settled[UpdateResult.DESCRIBED]} described, {settled[UpdateResult.REUSED]} recognised, "
            f"{self.unchanged} unchanged, {len(self.failed)} failed; "
            f"{settled[UpdateResult.GONE]} gone, {self.left_out} left out{more}; "
            f"the index has {number_of(self.descriptions, 'entry', 'entries')}"
        )

    def _counted(self) -> Iterator[str]:
        for noun, count in self.counts.items():
            if count or noun in _ALWAYS_TOLD:
                yield number_of(count, noun, self.plurals.get(noun, ""))


class SourceRecords:
    """The records of all sources. Has one writer: the update that is running.

    Attributes:
        path: the cache file. `load` reads it, `sinks.knowledge` writes it.
        kinds: the kinds of sources, in the order of the index.
        version: changes with every change, so that a writer can tell whether there is anything new.
    """

    def __init__(self, path: Path, kinds: Sequence[AnyKind]) -> None:
        self.path = path
        self.kinds = tuple(kinds)
        self.version = 0
        self.loaded = False
        self._records: dict[str, Record] = {}
        self._descriptions: dict[tuple[str, str], tuple[str, str]] | None = None
        """Content and summary key → whose description that is, and the description. None: not asked for yet."""

    @property
    def records(self) -> Mapping[str, Record]:
        return MappingProxyType(self._records)

    def records_of(self, kind: SourceKind[R]) -> dict[str, R]:
        return {source_id: record for source_id, record in self._records.items() if isinstance(record, kind.record)}

    def kind_of(self, record: Record) -> AnyKind:
        return next(kind for kind in self.kinds if isinstance(record, kind.record))

    async def load(self) -> None:
        """Start from the cache file; a missing one is an empty cache.

        Raises:
            OSError: the file is there and cannot be read. Taking it for empty would cost every description.
        """
        try:
            data = await in_thread(self.path.read_bytes)
        except FileNotFoundError:
            data = None
        if data is not None:
            types = [kind.record for kind in self.kinds]
            self._records.update(await in_thread(cache.parse, data, types, str(self.path)))
        self.loaded = True

    def put(self, record: Record) -> None:
        source_id = record.source_id
        before = self._records.get(source_id)
        if before == record:
            return
        if before is not None:
            self._unlearn(before)
        self._records[source_id] = record
        self._learn(record)
        self.version += 1

    def drop(self, source_id: str) -> None:
        self._unlearn(self._records.pop(source_id))
        self.version += 1

    def description(self, content_hash: str, key: str) -> str | None:
        """Return the description that another source with the same content already has from this prompt and model, or
        None.
        """
        if self._descriptions is None:
            self._descriptions = {}
            for record in self._records.values():
                self._learn(record)
        found = self._descriptions.get((content_hash, key))
        return None if found is None else found[1]

    def _learn(self, record: Record) -> None:
        if self._descriptions is not None and record.described:
            known = (record.content_hash, record.summary_key)
            self._descriptions.setdefault(known, (record.source_id, record.summary_text))

    def _unlearn(self, record: Record) -> None:
        if self._descriptions is None:
            return
        known = (record.content_hash, record.summary_key)
        owner = self._descriptions.get(known)
        if owner is not None and owner[0] == record.source_id:
            del self._descriptions[known]
