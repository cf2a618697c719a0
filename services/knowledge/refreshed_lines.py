"""Base classes of the kinds whose sources come from lines of the links file. Each line is requested again on a
schedule, and its state is kept on disk.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from clock import now, rfc3339
from services.knowledge.cache import Record, hash_text
from services.knowledge.links_file import Links, listed_links, read_links
from services.knowledge.source_kinds import (
    CannotList,
    LeftOut,
    LineResult,
    LinksLine,
    Listing,
    SourceDetails,
    SourceSetup,
    Text,
    Trouble,
    leave_out,
    read_inside,
    require_web,
    stored_name,
)
from services.knowledge.web_interface import WebError, WebReader
from services.storage import files, in_thread

FAILURE_CHARS = 200
"""The most characters of a failure that are kept."""


@dataclass(slots=True, kw_only=True)
class LineState:
    """The stored state of a line; a subclass adds its sources. `RefreshedLines` sets these fields: the time of the next
    request, in seconds since 1970; if the last one failed, at least in part; and why, in one line.
    """

    next_check_at: float = 0.0
    failed: bool = False
    failure: str = ""


L = TypeVar("L", bound=LinksLine)
S = TypeVar("S", bound=LineState)
R = TypeVar("R", bound=Record)

NoteFailure = Callable[[Exception, str], None]
"""Records an error, and which address of the line it concerns; empty: all of it."""


class RefreshedLines(ABC, Generic[L, S, R]):
    """A kind of source (`SourceKind`) without its `fetch`: lists the sources of its lines.

    Attributes:
        plural, step, record: as in `SourceKind`.
        prefix: the prefix of the ids of its sources, which no other kind has.
        line: the class of its lines.
        state: the class of their state, which can be made without arguments.
        folder: the folder of the states, below the folder of fetched texts.
        refresh_step: what the log calls requesting lines, if not `step`.
        versions: the sources of the last listing, each with a string that changes with its text.
        flaws: by source, the version that cannot be used, and why.
    """

    plural: str
    step: str
    record: type[R]
    prefix: str | tuple[str, ...]
    line: type[L]
    state: type[S]
    folder: str
    refresh_step: str = ""

    def __init__(self, setup: SourceSetup) -> None:
        self.setup = setup
        self._json = TypeAdapter(self.state)
        self._slots = asyncio.Semaphore(setup.most_fetches)
        self.versions: dict[str, str] = {}
        self.flaws: dict[str, tuple[str, str]] = {}

    @abstractmethod
    def key(self, line: L, /) -> Sequence[object]:
        """Return all values on which the sources of a line depend: with another key it counts as a new line."""

    @abstractmethod
    async def ask(self, line: L, state: S, note_failure: NoteFailure, /) -> S:
        """Request a line, and return its new state. Raises WebError, OSError: the line cannot be fetched."""

    @abstractmethod
    def result(self, state: S, /) -> LineResult:
        """Return the result of a line; its `count` is None if the sources are not known yet."""

    @abstractmethod
    def sources_of(self, line: L, state: S, left_out: dict[str, str], /) -> Mapping[str, str]:
        """Return the sources of a line with their versions; add to `left_out` what is not a source, and why."""

    @abstractmethod
    def is_unchanged(self, record: R, version: str, at: float, /) -> bool:
        """Return True if a source need not be fetched. `at`: now, in seconds since 1970."""

    @abstractmethod
    def may_bring(self, line: L, record: R, /) -> bool:
        """Return True if a source may come from a line whose sources are not known yet."""

    def prepare(self, line: L, state: S, /) -> None:
        """Prepare for a line at the beginning of an update, also if the line is not due."""

    def owns(self, source_id: str) -> bool:
        return source_id.startswith(self.prefix)

    def details(self, _record: R) -> SourceDetails:
        return SourceDetails()

    def line_result(self, line: LinksLine) -> LineResult | None:
        if not isinstance(line, self.line):
            return None
        state = self.load_state(line)
        if state is None:
            return LineResult()
        return replace(self.result(state), failure=state.failure, sources=self.sources_of(line, state, {}).keys())

    def load_state(self, line: L) -> S | None:
        """Read the state of a line; None if it was never requested, or its file is damaged. Blocking."""
        try:
            return self._json.validate_json(self._state_file(line).read_bytes())
        except (OSError, ValidationError):
            return None

    def list_sources(self, records: Mapping[str, R], at: float) -> Listing:
        return self.list_lines(listed_links(self.setup.links_file, records), {}, records, at)

    def list_lines(self, links: Links, pages: Mapping[str, str], records: Mapping[str, R], at: float) -> Listing:
        """List `pages` (addresses with their versions), then the sources of the lines. Blocking."""
        listing, unknown = Listing(), list[L]()
        self.versions = dict(pages)
        for line in links.of(self.line):
            state = self.load_state(line)
            result = LineResult() if state is None else self.result(state)
            if result.count is None:
                unknown.append(line)
            if result.note:
                listing.left_out[f"a part of what {line.position} names"] = result.note
            if state is not None:
                for source_id, version in self.sources_of(line, state, listing.left_out).items():
                    self.versions.setdefault(source_id, version)
        for source_id, version in self.versions.items():
            record = records.get(source_id)
            flawed_version, flaw = self.flaws.get(source_id, (None, ""))
            if record is not None and self.is_unchanged(record, version, at):
                listing.unchanged.append(source_id)
            elif flawed_version == version:
                listing.left_out[source_id] = flaw
            else:
                listing.due.append(source_id)
        listing.may_exist = lambda source_id: any(self.may_bring(line, records[source_id]) for line in unknown)
        return listing

    @property
    def reader(self) -> WebReader:
        """The access to the web. Raises RuntimeError: sources are only read here."""
        return require_web(self.setup.web and self.setup.web.reader)

    def path(self, source_id: str) -> Path:
        """Return the file with the text of a source. Its name is a hash, as strangers choose the ids."""
        return self.setup.cache_dir / stored_name(source_id)

    def read(self, source_id: str) -> Text:
        return read_inside(self.setup.cache_dir, self.path(source_id), self.setup.max_bytes)

    def forget(self, source_id: str) -> None:
        self.path(source_id).unlink(missing_ok=True)

    async def refresh(self, at: float) -> list[Trouble]:
        """Request the lines that are due, and delete the state of lines that were removed. Returns the failures."""
        try:
            links = await in_thread(read_links, self.setup.links_file)
        except CannotList:
            return []  # the listing says so
        if links is None:
            return []
        lines = links.of(self.line)
        await in_thread(self._delete_other_states, lines)
        found = await asyncio.gather(*(self._refresh_line(line, at) for line in lines))
        return [trouble for some in found for trouble in some]

    async def _refresh_line(self, line: L, at: float) -> list[Trouble]:
        troubles: list[Trouble] = []
        failures: list[str] = []
        step = self.refresh_step or self.step

        def note_failure(error: Exception, part: str) -> None:
            where = f"{line.position}, {part}" if part else line.position
            reason = getattr(error, "strerror", None) or str(error)
            failures.append(f"{part}: {reason}" if part else reason)
            troubles.append(Trouble(line.url, step, f"{where}: {reason}; its {self.plural} stay as they are"))

        async with self._slots:
            state = await in_thread(self.load_state, line) or self.state()
            self.prepare(line, state)
            if not self.setup.schedule.is_due(state.next_check_at, at, failed=state.failed):
                return []
            try:
                state = await self.ask(line, state, note_failure)
            except (WebError, OSError) as error:
                note_failure(error, "")
            state.failed, state.failure = bool(troubles), "".join(failures[:1])[:FAILURE_CHARS]
            state.next_check_at = self.setup.schedule.next(failed=state.failed)
            try:
                await in_thread(files.replace, self._state_file(line), self._json.dump_json(state))
            except OSError as error:
                troubles.append(Trouble(str(error.filename), step, error.strerror or str(error)))
            return troubles

    def _delete_other_states(self, lines: Sequence[L]) -> None:
        """Delete the state of all lines but these. Raises OSError."""
        names = {self._state_file(line).name for line in lines}
        for path in (self.setup.cache_dir / self.folder).glob("*.json"):
            if path.name not in names:
                path.unlink(missing_ok=True)

    def _state_file(self, line: L) -> Path:
        name = hashlib.sha256(json.dumps(self.key(line)).encode()).hexdigest()
        return self.setup.cache_dir / self.folder / f"{name}.json"


class StoredTexts(RefreshedLines[L, S, R]):
    """Base class of kinds whose `ask` also writes the text of each source to its `path`."""

    @abstractmethod
    def facts(self, source_id: str, version: str, /) -> Mapping[str, Any]:
        """Return this kind's facts as a field of the record, under its name."""

    def is_unchanged(self, record: R, version: str, _at: float) -> bool:
        facts = self.facts(record.source_id, version)
        return record.gone_at is None and bool(record.content_hash) and replace(record, **facts) == record

    async def fetch(self, due: Mapping[str, R | None]) -> Sequence[R | LeftOut | Trouble]:
        at = rfc3339(now())
        return await in_thread(lambda: [each for name in due for each in self._examine(name, due[name], at)])

    def _examine(self, name: str, record: R | None, at: str) -> Sequence[R | LeftOut | Trouble]:
        version = self.versions[name]
        try:
            text = self.read(name)
        except OSError as error:
            return [Trouble(name, self.step, error.strerror or str(error))]
        if not text.flaw:
            facts = self.facts(name, version)
            known = self.record.new(at, **facts) if record is None else replace(record, **facts)
            return [known.with_content(hash_text(text.text))]
        self.flaws[name] = version, text.flaw
        return leave_out(name, text.flaw, record, at)
