"""What lines of the links file have brought, one file for each; and when what they name is asked for again."""

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
class Rhythm:
    """How often something on the web is asked for: `fresh_seconds` after an answer, `again_seconds` after a failure.
    `by_hand`: somebody waits, so what failed is asked for now.
    """

    fresh_seconds: float = 0.0
    again_seconds: float = 0.0
    by_hand: bool = False

    def is_due(self, next_at: float, at: float, *, failed: bool) -> bool:
        """`next_at`: from `next`, at the time before; `failed`: how that ended."""
        return next_at <= at or (self.by_hand and failed)

    def next(self, *, failed: bool) -> float:
        """When to ask again, having just asked: seconds since 1970."""
        return now() + (self.again_seconds if failed else self.fresh_seconds)


class LineFiles(Generic[T]):
    """What is known of lines, as JSON. A line is told by all that decides what it brings: where that changes, nothing
    is known of it. Blocking.
    """

    def __init__(self, folder: Path, kind: type[T]) -> None:
        self._folder = folder
        self._json = TypeAdapter(kind)

    def read(self, line: Sequence[object]) -> T | None:
        """None: nothing is known, or the file cannot be read: it is asked for anew."""
        try:
            return self._json.validate_json(self._path(line).read_bytes())
        except (OSError, ValidationError):
            return None

    def write(self, line: Sequence[object], known: T) -> None:
        """Raises OSError."""
        files.replace(self._path(line), self._json.dump_json(known))

    def forget_others(self, lines: Iterable[Sequence[object]]) -> None:
        """Delete what is known of lines that are no more. Raises OSError."""
        names = {self._path(line).name for line in lines}
        if self._folder.is_dir():
            for path in self._folder.glob("*.json"):
                if path.name not in names:
                    path.unlink(missing_ok=True)

    def _path(self, line: Sequence[object]) -> Path:
        return self._folder / f"{hashlib.sha256(json.dumps(line).encode()).hexdigest()}.json"
