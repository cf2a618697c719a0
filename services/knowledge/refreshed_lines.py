"""Lines of the links file that are asked for again by a schedule, and what each has brought, on disk."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from pydantic import TypeAdapter, ValidationError

from services.knowledge.links_file import read_links
from services.knowledge.source_kinds import CannotList, LineResult, LinksLine, SourceSetup, Trouble
from services.knowledge.web_interface import WebError
from services.storage import files, in_thread


class LineState(Protocol):
    """A dataclass with the stored state of a line. `next_check_at`: in seconds since 1970; `failed`: whether something
    could not be had the last time.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def next_check_at(self) -> float: ...
    @property
    def failed(self) -> bool: ...


T = TypeVar("T")
L = TypeVar("L", bound=LinksLine)
S = TypeVar("S", bound=LineState)

Failed = Callable[[Exception, str], None]
"""Notes what could not be had of a line, and which part of it that is; empty: the line itself."""


class RefreshedLines(Generic[L, S]):
    """The lines of one kind in the links file."""

    def __init__(
        self,
        setup: SourceSetup,
        line: type[L],
        state: type[S],
        *,
        folder: str,
        step: str,
        brings: str,
        key: Callable[[L], Sequence[object]],
        ask: Callable[[L, S, Failed], Awaitable[S]],
        seen: Callable[[L, S], object] | None = None,
    ) -> None:
        """`line` and `state`: the classes of such a line and of its state, which can be made without arguments;
        `folder`: where the states are, below the cache; `step`: of the kind of sources, which troubles name; `brings`:
        what people call its sources, such as `pages`; `key`: all that decides what a line brings.

        `ask`: asks for a line, given what is known of it, and returns what is known then. Raises WebError, OSError:
        nothing could be had. `seen`: gets each line with what is known of it, before anything is asked for.
        """
        self._links_file, self._schedule = setup.links_file, setup.schedule
        self._line, self._new, self._step, self._brings = line, state, step, brings
        self._key, self._ask, self._seen = key, ask, seen
        self._states = LineStates(setup.cache_dir / folder, state)
        self._turns = asyncio.Semaphore(setup.at_once)

    async def survey(self, at: float) -> list[Trouble]:
        """Ask for the lines that are due, and delete the state of lines that were removed. Returns what went wrong;
        for `SourceKind.survey`.
        """
        try:
            links = await in_thread(read_links, self._links_file)
        except CannotList:
            return []  # the listing says so
        if links is None:
            return []
        lines = links.of(self._line)
        await in_thread(self._states.forget_others, map(self._key, lines))
        found = await asyncio.gather(*(self._refresh(line, at) for line in lines))
        return [trouble for some in found for trouble in some]

    def state(self, line: L) -> S | None:
        """Return what a line has brought, from disk; None if it was never asked for. Blocking."""
        return self._states.read(self._key(line))

    def result(self, line: LinksLine, of_state: Callable[[S], LineResult]) -> LineResult | None:
        """Return what `--check` shows of a line, for `SourceKind.line_result`. `of_state`: the same of a state."""
        if not isinstance(line, self._line):
            return None
        state = self.state(line)
        return LineResult() if state is None else of_state(state)

    async def _refresh(self, line: L, at: float) -> list[Trouble]:
        troubles: list[Trouble] = []

        def failed(error: Exception, part: str) -> None:
            where = f"{line.place}, {part}" if part else line.place
            reason = getattr(error, "strerror", None) or str(error)
            troubles.append(Trouble(line.url, self._step, f"{where}: {reason}; its {self._brings} stay as they are"))

        async with self._turns:
            state = await in_thread(self.state, line) or self._new()
            if self._seen is not None:
                self._seen(line, state)
            if not self._schedule.is_due(state.next_check_at, at, failed=state.failed):
                return []
            try:
                state = await self._ask(line, state, failed)
            except (WebError, OSError) as error:
                failed(error, "")
            again = self._schedule.next(failed=bool(troubles))
            state = replace(state, failed=bool(troubles), next_check_at=again)
            try:
                await in_thread(self._states.write, self._key(line), state)
            except OSError as error:
                troubles.append(Trouble(str(error.filename), self._step, error.strerror or str(error)))
            return troubles


class LineStates(Generic[T]):
    """Stores the state of each line of the links file as JSON. A line is identified by everything that decides what it
    brings; when that changes, it counts as a new line. Blocking.
    """

    def __init__(self, folder: Path, kind: type[T]) -> None:
        self._folder = folder
        self._json = TypeAdapter(kind)

    def read(self, line: Sequence[object]) -> T | None:
        """Return the state of a line, or None where there is none or its file cannot be read: the line is then asked
        for again.
        """
        try:
            return self._json.validate_json(self._path(line).read_bytes())
        except (OSError, ValidationError):
            return None

    def write(self, line: Sequence[object], known: T) -> None:
        """Raises OSError."""
        files.replace(self._path(line), self._json.dump_json(known))

    def forget_others(self, lines: Iterable[Sequence[object]]) -> None:
        """Delete the state of all lines but these. Raises OSError."""
        names = {self._path(line).name for line in lines}
        if self._folder.is_dir():
            for path in self._folder.glob("*.json"):
                if path.name not in names:
                    path.unlink(missing_ok=True)

    def _path(self, line: Sequence[object]) -> Path:
        return self._folder / f"{hashlib.sha256(json.dumps(line).encode()).hexdigest()}.json"
