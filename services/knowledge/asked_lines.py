"""The state that each line of the links file has brought, one JSON file a line, and the schedule by which it is
refreshed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from clock import now
from services.storage import files

T = TypeVar("T")


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
