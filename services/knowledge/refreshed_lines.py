"""Base classes of the kinds whose sources come from lines of the links file: each line is requested again on a
schedule, and what it has brought is kept on disk.
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
    needed,
    read_inside,
    stored_name,
)
from services.knowledge.web_interface import WebError, WebReader
from services.storage import files, in_thread


@dataclass(slots=True, kw_only=True)
class LineState:
    """The stored state of a line; a subclass adds what the line has brought. `RefreshedLines` sets these two.

    Attributes:
        next_check_at: in seconds since 1970.
        failed: whether something could not be had the last time.
    """

    next_check_at: float = 0.0
    failed: bool = False


L = TypeVar("L", bound=LinksLine)
S = TypeVar("S", bound=LineState)
R = TypeVar("R", bound=Record)

NoteFailure = Callable[[Exception, str], None]
"""Records an error and the part of the line that it concerns; an empty part means the whole line."""


class RefreshedLines(ABC, Generic[L, S, R]):
    """A kind of source (`SourceKind`) without its `fetch`: lists what its lines have brought.

    Attributes:
        plural, step, record: as in `SourceKind`.
        prefix: how the ids of its sources begin, and of no other kind.
        line: the class of its lines.
        state: the class of their state, which can be made without arguments.
        folder: where the states are, below the folder of fetched texts.
        survey_step: what the log calls the asking for lines, if not `step`.
        signs: the sources of the last listing. A sign tells one version of the text from another.
        flaws: by id a sign, and why that version is not a source.
    """

    plural: str
    step: str
    record: type[R]
    prefix: str | tuple[str, ...]
    line: type[L]
    state: type[S]
    folder: str
    survey_step: str = ""

    def __init__(self, setup: SourceSetup) -> None:
        self.setup = setup
        self._json = TypeAdapter(self.state)
        self._turns = asyncio.Semaphore(setup.at_once)
        self.signs: dict[str, str] = {}
        self.flaws: dict[str, tuple[str, str]] = {}

    @abstractmethod
    def key(self, line: L, /) -> Sequence[object]:
        """Return all that decides what a line brings: with another key it counts as a new line."""

    @abstractmethod
    async def ask(self, line: L, known: S, note_failure: NoteFailure, /) -> S:
        """Ask for a line, and return what is known of it then. Raises WebError, OSError: nothing could be had."""

    @abstractmethod
    def result(self, known: S, /) -> LineResult:
        """Return what a line has brought; a `count` of None: its sources are not known yet."""

    @abstractmethod
    def brought(self, line: L, known: S, left_out: dict[str, str], /) -> Mapping[str, str]:
        """Return the sources that a line has brought, with their signs; add to `left_out` what is not a source."""

    @abstractmethod
    def is_unchanged(self, record: R, sign: str, at: float, /) -> bool:
        """Return whether a source need not be fetched. `at`: now, in seconds since 1970."""

    @abstractmethod
    def may_bring(self, line: L, record: R, /) -> bool:
        """Return whether a source may be of a line whose sources are not known yet."""

    def prepare(self, line: L, known: S, /) -> None:
        """Do what has to be done at the beginning of an update also for lines that are not due."""

    def owns(self, source_id: str) -> bool:
        return source_id.startswith(self.prefix)

    def details(self, _record: R) -> SourceDetails:
        return SourceDetails()

    def line_result(self, line: LinksLine) -> LineResult | None:
        if not isinstance(line, self.line):
            return None
        known = self.known(line)
        return LineResult() if known is None else self.result(known)

    def known(self, line: L) -> S | None:
        """Return the state of a line, from disk; None if it was never asked for, or its file is damaged. Blocking."""
        try:
            return self._json.validate_json(self._file(line).read_bytes())
        except (OSError, ValidationError):
            return None

    def list_sources(self, records: Mapping[str, R], at: float) -> Listing:
        return self.listing(listed_links(self.setup.links_file, records), {}, records, at)

    def listing(self, links: Links, single: Mapping[str, str], records: Mapping[str, R], at: float) -> Listing:
        """List what the lines have brought, after the `single` sources. Wrong lines are told by `WebPages` alone.
        Blocking.
        """
        listing, unknown = Listing(), list[L]()
        self.signs = dict(single)
        for line in links.of(self.line):
            known = self.known(line)
            result = LineResult() if known is None else self.result(known)
            if result.count is None:
                unknown.append(line)
            if result.note:
                listing.left_out[f"a part of what {line.place} names"] = result.note
            if known is not None:
                for source_id, sign in self.brought(line, known, listing.left_out).items():
                    self.signs.setdefault(source_id, sign)
        for source_id, sign in self.signs.items():
            record = records.get(source_id)
            flawed, flaw = self.flaws.get(source_id, (None, ""))
            if record is not None and self.is_unchanged(record, sign, at):
                listing.unchanged.append(source_id)
            elif flawed == sign:
                listing.left_out[source_id] = flaw
            else:
                listing.due.append(source_id)
        listing.unsure = lambda source_id: any(self.may_bring(line, records[source_id]) for line in unknown)
        return listing

    @property
    def reader(self) -> WebReader:
        """Access to the web. Raises RuntimeError: there is none, as sources are only read."""
        return needed(self.setup.web and self.setup.web.reader)

    def path(self, source_id: str) -> Path:
        """The file that keeps the text of a source. Names that strangers have chosen never become file names here."""
        return self.setup.cache_dir / stored_name(source_id)

    def read(self, source_id: str) -> Text:
        return read_inside(self.setup.cache_dir, self.path(source_id), self.setup.max_bytes)

    def forget(self, source_id: str) -> None:
        self.path(source_id).unlink(missing_ok=True)

    async def survey(self, at: float) -> list[Trouble]:
        """Ask for the lines that are due, and delete the state of lines that were removed. Returns what went wrong."""
        try:
            links = await in_thread(read_links, self.setup.links_file)
        except CannotList:
            return []  # the listing says so
        if links is None:
            return []
        lines = links.of(self.line)
        await in_thread(self._forget_others, lines)
        found = await asyncio.gather(*(self._refresh(line, at) for line in lines))
        return [trouble for some in found for trouble in some]

    async def _refresh(self, line: L, at: float) -> list[Trouble]:
        troubles: list[Trouble] = []
        step = self.survey_step or self.step

        def note_failure(error: Exception, part: str) -> None:
            where = f"{line.place}, {part}" if part else line.place
            reason = getattr(error, "strerror", None) or str(error)
            troubles.append(Trouble(line.url, step, f"{where}: {reason}; its {self.plural} stay as they are"))

        async with self._turns:
            state = await in_thread(self.known, line) or self.state()
            self.prepare(line, state)
            if not self.setup.schedule.is_due(state.next_check_at, at, failed=state.failed):
                return []
            try:
                state = await self.ask(line, state, note_failure)
            except (WebError, OSError) as error:
                note_failure(error, "")
            state.failed = bool(troubles)
            state.next_check_at = self.setup.schedule.next(failed=state.failed)
            try:
                await in_thread(files.replace, self._file(line), self._json.dump_json(state))
            except OSError as error:
                troubles.append(Trouble(str(error.filename), step, error.strerror or str(error)))
            return troubles

    def _forget_others(self, lines: Sequence[L]) -> None:
        """Delete the state of all lines but these. Raises OSError."""
        names = {self._file(line).name for line in lines}
        for path in (self.setup.cache_dir / self.folder).glob("*.json"):
            if path.name not in names:
                path.unlink(missing_ok=True)

    def _file(self, line: L) -> Path:
        name = hashlib.sha256(json.dumps(self.key(line)).encode()).hexdigest()
        return self.setup.cache_dir / self.folder / f"{name}.json"


class StoredTexts(RefreshedLines[L, S, R]):
    """Base class of the kinds whose `ask` also writes the texts of the sources, each to its `path`."""

    @abstractmethod
    def facts(self, source_id: str, sign: str, /) -> Mapping[str, Any]:
        """Return the field of the record that is the kind's own, by its name."""

    def is_unchanged(self, record: R, sign: str, _at: float) -> bool:
        facts = self.facts(record.source_id, sign)
        return record.gone_at is None and bool(record.content_hash) and replace(record, **facts) == record

    async def fetch(self, due: Mapping[str, R | None]) -> Sequence[R | LeftOut | Trouble]:
        at = rfc3339(now())
        return await in_thread(lambda: [each for name in due for each in self._examine(name, due[name], at)])

    def _examine(self, name: str, record: R | None, at: str) -> list[R | LeftOut | Trouble]:
        sign = self.signs[name]
        try:
            text = self.read(name)
        except OSError as error:
            return [Trouble(name, self.step, error.strerror or str(error))]
        if not text.flaw:
            facts = self.facts(name, sign)
            known = self.record.new(at, **facts) if record is None else replace(record, **facts)
            return [known.holding(hash_text(text.text))]
        self.flaws[name] = sign, text.flaw
        if record is None or record.gone_at is not None:
            return [LeftOut(name, text.flaw)]
        return [LeftOut(name, text.flaw), replace(record, gone_at=at)]
