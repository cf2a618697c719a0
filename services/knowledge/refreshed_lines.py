"""Lines of the links file that are requested again on a schedule, and what each has brought, on disk."""

from __future__ import annotations

import asyncio
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from pydantic import TypeAdapter, ValidationError

from services.knowledge.links_file import Links, read_links
from services.knowledge.source_kinds import (
    CannotList,
    LineResult,
    LinksLine,
    SourceSetup,
    Text,
    Trouble,
    needed,
    read_inside,
    stored_name,
)
from services.knowledge.web_interface import WebError, WebReader
from services.storage import files, in_thread


class LineState(Protocol):
    """The stored state of a line. `next_check_at`: in seconds since 1970; `failed`: whether something could not be had
    the last time.
    """

    next_check_at: float
    failed: bool


L = TypeVar("L", bound=LinksLine)
S = TypeVar("S", bound=LineState)

NoteFailure = Callable[[Exception, str], None]
"""Records an error and the part of the line that it concerns; an empty part means the whole line."""


class RefreshedLines(ABC, Generic[L, S]):
    """Base class of the kinds whose sources come from lines of the links file. Each line is requested again on a
    schedule; its state, and the texts of the sources, are kept on disk.

    Attributes:
        plural: what people call several of the sources.
        line: the class of its lines.
        state: the class of their state, which can be made without arguments.
        folder: where the states are, below the folder of fetched texts.
        phase: that of the troubles of this kind, such as `list` or `copy`.
    """

    plural: str
    line: type[L]
    state: type[S]
    folder: str
    phase: str

    def __init__(self, setup: SourceSetup) -> None:
        self.setup = setup
        self._json = TypeAdapter(self.state)
        self._turns = asyncio.Semaphore(setup.at_once)

    @abstractmethod
    def key(self, line: L, /) -> Sequence[object]:
        """Return all that decides what a line brings: with another key it counts as a new line."""

    @abstractmethod
    async def ask(self, line: L, known: S, note_failure: NoteFailure, /) -> S:
        """Ask for a line, and return what is known of it then. Raises WebError, OSError: nothing could be had."""

    @abstractmethod
    def result(self, known: S, /) -> LineResult:
        """Return what a line has brought."""

    def prepare(self, line: L, known: S, /) -> None:
        """Do what has to be done at the beginning of an update also for lines that are not due."""

    def line_result(self, line: LinksLine) -> LineResult | None:
        """For `SourceKind.line_result`."""
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

    def listed(self, links: Links, left_out: dict[str, str]) -> Iterator[tuple[L, S | None]]:
        """Give each line with its state, and add the notes of what was left out, for `SourceKind.list_sources`.
        Blocking.
        """
        for line in links.of(self.line):
            known = self.known(line)
            yield line, known
            if known is not None and (note := self.result(known).note):
                left_out[f"a part of what {line.place} names"] = note

    @property
    def reader(self) -> WebReader:
        """Access to the web. Raises RuntimeError: there is none, as sources are only read."""
        return needed(self.setup.web and self.setup.web.reader)

    def path(self, source_id: str) -> Path:
        """The file that keeps the text of a source. Names that strangers have chosen never become file names here."""
        return self.setup.cache_dir / stored_name(source_id)

    def read(self, source_id: str) -> Text:
        """For `SourceKind.read`."""
        return read_inside(self.setup.cache_dir, self.path(source_id), self.setup.max_bytes)

    def forget(self, source_id: str) -> None:
        """For `SourceKind.forget`."""
        self.path(source_id).unlink(missing_ok=True)

    async def survey(self, at: float) -> list[Trouble]:
        """Ask for the lines that are due, and delete the state of lines that were removed. Returns what went wrong;
        for `SourceKind.survey`.
        """
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

        def note_failure(error: Exception, part: str) -> None:
            where = f"{line.place}, {part}" if part else line.place
            reason = getattr(error, "strerror", None) or str(error)
            troubles.append(Trouble(line.url, self.phase, f"{where}: {reason}; its {self.plural} stay as they are"))

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
                troubles.append(Trouble(str(error.filename), self.phase, error.strerror or str(error)))
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
