"""The protocol of a kind of source (`SourceKind`), the records of all sources in memory, and the events of an update
of the knowledge base.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
    """The schedule of requests to the web: again `fresh_seconds` after an answer, and `retry_seconds` after a failure.
    `is_manual`: a person waits for the update, so failed requests are repeated at once.
    """

    fresh_seconds: float = 0.0
    retry_seconds: float = 0.0
    is_manual: bool = False

    def is_due(self, next_at: float, at: float, *, failed: bool) -> bool:
        """Return True if a request is due. `next_at`: the last result of `next`; `failed`: the last request failed."""
        return next_at <= at or (self.is_manual and failed)

    def next(self, *, failed: bool) -> float:
        """Return the time of the next request, in seconds since 1970."""
        return now() + (self.retry_seconds if failed else self.fresh_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSetup:
    """The folders, limits and fetchers from which kinds of sources are made; each takes what it needs.

    Attributes:
        sources_dir: the folder of documents; if there are `source_folders`, only these folders in it.
        links_file: the list of pages and of lines that bring many sources.
        cache_dir: the folder of fetched texts.
        max_bytes: the size limit of the text of one source.
        path_filter: selects the files that are sources, also those of a repository.
        most_sources: the number of sources that one line of the links file may bring.
        most_fetches: the number of fetches at the same time.
        schedule: the schedule of requests to the web.
        web: None if sources are only read.
        on_result: called with the result of each download of a page.
    """

    sources_dir: Path
    links_file: Path
    cache_dir: Path
    max_bytes: int
    source_folders: Sequence[str] = ()
    path_filter: PathFilter = field(default_factory=PathFilter)
    most_sources: int = 2000
    most_fetches: int = 1
    schedule: RefreshSchedule = RefreshSchedule()
    web: WebFetchers | None = None
    on_result: Callable[[FetchStatus], object] | None = None


@dataclass(frozen=True, slots=True)
class Text:
    """The text of a source.

    Attributes:
        text: at most as long as the kind allows; `is_cut` if it is longer than that in the file.
        path: the file of the text, which is unchanged as long as it has this `signature`.
        flaw: why the text cannot have a description, such as "it is binary"; empty if it can.
        has_includes: the text includes other files, so it may change although the signature does not.
    """

    text: str
    path: Path
    signature: Signature
    is_cut: bool = False
    flaw: str = ""
    has_includes: bool = False


@dataclass(slots=True)
class Listing:
    """The sources of one kind that exist now, in the order in which they are to be processed.

    Attributes:
        unchanged: the sources whose text is that of their record.
        due: the sources to fetch, which are new or may have changed.
        left_out: the names of what is not a source, and why.
        troubles: the paths or addresses that could not be read, and why.
        may_exist: returns True if a source may exist although it is not listed; None: sources not listed are gone.
    """

    unchanged: list[str] = field(default_factory=list[str])
    due: list[str] = field(default_factory=list[str])
    left_out: dict[str, str] = field(default_factory=dict[str, str])
    troubles: dict[str, str] = field(default_factory=dict[str, str])
    may_exist: Callable[[str], bool] | None = None


class CannotList(Exception):
    """The sources of a kind cannot be listed now, so all its records stay as they are. `about`: the path or address
    that cannot be read; `setting`: its key, such as `kb.links_file_path`.
    """

    def __init__(self, about: str, message: str, setting: str) -> None:
        super().__init__(message)
        self.about, self.setting = about, setting


class LinksLine(Protocol):
    """A line of the links file that brings many sources. `position`: file and line; `text`: its name in messages."""

    @property
    def position(self) -> str: ...
    @property
    def url(self) -> str: ...
    @property
    def text(self) -> str: ...


@dataclass(frozen=True, slots=True)
class LineResult:
    """The result of a line of the links file. `count`: the number of sources, None if not known yet; `note`: what was
    left out, and why; `failed`: True if the last request failed; `failure`: why, if that is known; `sources`: their
    ids.
    """

    count: int | None = None
    note: str = ""
    failed: bool = False
    failure: str = ""
    sources: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class SourceDetails:
    """The details of a source for the dashboard. `trouble`: why the text may be out of date, or empty; the others are
    None if they are unknown. `read_at`: when its text was last fetched, or found to be unchanged.
    """

    size_bytes: int | None = None
    changed_at: float | None = None
    trouble: str = ""
    read_at: float | None = None


class SourceKind(Protocol[R]):
    """A kind of source, such as files or web pages: all that the rest of the program needs to know about it.

    The index names a source `kb:<id>`. One object serves a whole run; answering calls `read` on another object.
    Register a kind in `services.knowledge.kinds`. A subclass needs no method that has a body here, if it has nothing
    else to say there.

    Attributes:
        noun: the word for one source in reports, such as `file`; kinds with the same noun are counted together.
        plural: the word for several, such as `files`.
        step: the name of its fetching in the log and the metrics, which no other kind may have.
        record: the class of its records in the cache.
        batch: the number of sources for one call of `fetch`.
        concurrency: the number of calls of `fetch` at the same time.
    """

    noun: str
    plural: str
    step: str
    record: type[R]
    batch: int
    concurrency: int

    def owns(self, source_id: str) -> bool:
        """Return True if an id has the form of this kind. The last in `KINDS` wins; files, which match any id, are
        first.
        """
        ...

    @staticmethod
    def address(_source_id: str, /) -> str | None:
        """Return the web address of a source, from its id alone; None if the id does not tell, or is of another kind.
        Only files of repositories have addresses for single sections.
        """
        return None

    def details(self, _record: R, /) -> SourceDetails:
        """Return what the dashboard shows of a source. Blocking; without requests."""
        return SourceDetails()

    def line_result(self, _line: LinksLine, /) -> LineResult | None:
        """Return what `--check` shows of a line of the links file; None if it is of another kind. Blocking."""
        return None

    async def refresh(self, _at: float, /) -> Sequence[Trouble]:
        """Fetch what `list_sources` needs from outside, at the beginning of each update. A slow kind delays no other.
        Returns the failures, for which the earlier state stays. `_at`: now, in seconds since 1970.
        """
        return ()

    def list_sources(self, records: Mapping[str, R], at: float, /) -> Listing:
        """List the sources that exist now. `records`: those of all known sources, including gone ones; `at`: now, in
        seconds since 1970.

        Blocking; runs off the event loop, at the beginning of each update and never during `fetch`. Makes no requests:
        `refresh` has stored their results on disk.

        Raises:
            CannotList: the sources cannot be listed.
        """
        ...

    async def fetch(self, due: Mapping[str, R | None]) -> Sequence[R | LeftOut | Trouble]:
        """Fetch the text of these sources, so that `read` finds it. `due`: the record of each, None for new ones.

        Returns the new record of each (`Record.new`, `Record.with_content`), or why it has none: `LeftOut` if it is not
        a source, `Trouble` if it cannot be fetched. A record may come together with one of these. A source without a
        result is left to the next update. Blocking work goes through `in_thread`.
        """
        ...

    def read(self, source_id: str) -> Text:
        """Read the text of a source for answers, from disk and never from the network. Blocking. Raises OutsideFolder:
        the id leads out of the folder; OSError, ValueError: the text cannot be read or parsed.
        """
        ...

    def forget(self, source_id: str) -> None:
        """Delete what is stored of a source that has been gone for a day. Blocking; may raise OSError."""


AnyKind = SourceKind[Any]


def kind_of(kinds: Sequence[AnyKind], source_id: str) -> AnyKind | None:
    """Return the kind that owns this source id, or None."""
    return next((kind for kind in reversed(kinds) if kind.owns(source_id)), None)


def require_web(web: W | None) -> W:
    """Return the access to the web. Raises RuntimeError: sources are only read here."""
    if web is None:
        raise RuntimeError("these sources can only be read")
    return web


def describe_left_out(left_out: Mapping[str, int]) -> str:
    """Describe what was left out of a line, and why; empty if nothing was."""
    return ", ".join(f"{count} {reason}" for reason, count in left_out.items())


def stored_name(source_id: str) -> str:
    """Return the name of the file with a source's text."""
    return hashlib.sha256(source_id.encode("utf-8", "replace")).hexdigest()


def read_inside(folder: Path, path: Path, max_bytes: int) -> Text:
    """Read the text of a file in `folder`, cut at `max_bytes`. Raises as `SourceKind.read`."""
    text, signature, cut = confined.read(folder, path, max_bytes)
    return Text(text, path, signature, cut)


@dataclass(frozen=True, slots=True)
class Discovered:
    """The first event about a kind in an update: the number of its sources, by noun."""

    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Due:
    """A source to fetch, because it is new or may have changed."""

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
    """A source is up to date: this update is done with it."""

    record: Record
    result: UpdateResult


@dataclass(frozen=True, slots=True)
class Pending:
    """A source that was fetched, and whose description is missing or out of date."""

    record: Record


@dataclass(frozen=True, slots=True)
class Purged:
    """A source has been gone for so long that its record is deleted."""

    source_id: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that is not a source, and the reason."""

    name: str
    reason: str


def leave_out(name: str, reason: str, record: R | None, at: str) -> list[R | LeftOut]:
    """Return the results for what turned out to be no source: a known one is gone since `at`."""
    if record is None or record.gone_at is not None:
        return [LeftOut(name, reason)]
    return [LeftOut(name, reason), replace(record, gone_at=at)]


@dataclass(frozen=True, slots=True)
class Trouble:
    """A failure. `step`: the name of the failed work in the log; `fatal`: it affects all sources of a kind."""

    about: str
    step: str
    message: str
    fatal: bool = False


UpdateEvent = Discovered | Due | UpToDate | Pending | Purged | LeftOut | Trouble


_ALWAYS_REPORTED = frozenset({"file", "page"})
"""The nouns that a report names even if their count is 0. Most operators have no sources of other kinds."""


@dataclass(slots=True)
class UpdateReport:
    """Adds up the events of one update.

    Attributes:
        counts: the number of sources by noun, in the order of the report. Each ends as described, recognised, failed or
            unchanged.
        failed: the sources that could not be fetched or described; their earlier text and description stay in use.
        other_failures: the number of failures that concern no single source, such as one of a list of pages.
        reasons: how often something was left out, by the reason.
        descriptions: the number of entries in the index afterwards.
        plurals: the plural of each noun.
    """

    counts: dict[str, int] = field(default_factory=dict[str, int])
    results: Counter[UpdateResult] = field(default_factory=Counter[UpdateResult])
    failed: set[str] = field(default_factory=set[str])
    other_failures: int = 0
    reasons: Counter[str] = field(default_factory=Counter[str])
    troubles: list[Trouble] = field(default_factory=list[Trouble])
    descriptions: int = 0
    plurals: Mapping[str, str] = field(default_factory=dict[str, str])
    _due: dict[str, str] = field(default_factory=dict[str, str])  # the noun of each source to fetch, by its id
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
                self.results[result] += 1
                if result in {UpdateResult.DESCRIBED, UpdateResult.REUSED}:
                    self.failed.discard(record.source_id)
            case LeftOut(name=name, reason=reason):
                self.reasons[reason] += 1
                if name in self._due:  # it was counted as a source
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
        done = self.results[UpdateResult.DESCRIBED] + self.results[UpdateResult.REUSED] + len(self.failed)
        return sum(self.counts.values()) - done

    @property
    def text(self) -> str:
        """One line for people. The first four numbers after the colon add up to those before it."""
        results = self.results
        counts = [
            number_of(count, noun, self.plurals.get(noun, ""))
            for noun, count in self.counts.items()
            if count or noun in _ALWAYS_REPORTED
        ]
        more = f", {number_of(self.other_failures, 'other failure')}" if self.other_failures else ""
        return (
            f"{', '.join(counts) or 'no sources'}: "
            f"{results[UpdateResult.DESCRIBED]} described, {results[UpdateResult.REUSED]} recognised, "
            f"{self.unchanged} unchanged, {len(self.failed)} failed; "
            f"{results[UpdateResult.GONE]} gone, {self.left_out} left out{more}; "
            f"the index has {number_of(self.descriptions, 'entry', 'entries')}"
        )


class SourceRecords:
    """The records of all sources, and the kinds, in the order of the index. `path`: the cache file, which `load` reads
    and `sinks.knowledge` writes. `version`: the number of changes so far. Only the running update makes changes.
    """

    def __init__(self, path: Path, kinds: Sequence[AnyKind]) -> None:
        self.path = path
        self.kinds = tuple(kinds)
        self.version = 0
        self.loaded = False
        self._records: dict[str, Record] = {}
        self._descriptions: dict[tuple[str, str], tuple[str, str]] | None = None
        """The source and its description, by content hash and summary key; None until the first lookup."""

    @property
    def by_id(self) -> Mapping[str, Record]:
        return MappingProxyType(self._records)

    def records_of(self, kind: SourceKind[R]) -> dict[str, R]:
        return {source_id: record for source_id, record in self._records.items() if isinstance(record, kind.record)}

    def kind_of(self, record: Record) -> AnyKind:
        return next(kind for kind in self.kinds if isinstance(record, kind.record))

    async def load(self) -> None:
        """Start from the cache file, if there is one. Raises OSError: else every description would be made anew."""
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
            self._remove_description(before)
        self._records[source_id] = record
        self._add_description(record)
        self.version += 1

    def drop(self, source_id: str) -> None:
        self._remove_description(self._records.pop(source_id))
        self.version += 1

    def find_description(self, content_hash: str, key: str) -> str | None:
        """Return the description of another source with the same content, from the same prompt and model, or None."""
        if self._descriptions is None:
            self._descriptions = {}
            for record in self._records.values():
                self._add_description(record)
        found = self._descriptions.get((content_hash, key))
        return None if found is None else found[1]

    def _add_description(self, record: Record) -> None:
        if self._descriptions is not None and record.is_described:
            known = (record.content_hash, record.summary_key)
            self._descriptions.setdefault(known, (record.source_id, record.summary_text))

    def _remove_description(self, record: Record) -> None:
        if self._descriptions is None:
            return
        known = (record.content_hash, record.summary_key)
        owner = self._descriptions.get(known)
        if owner is not None and owner[0] == record.source_id:
            del self._descriptions[known]
