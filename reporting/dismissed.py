"""The questions without an answer that an operator has dismissed. The file holds ids of messages, and no texts."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from services.storage import files, read_object

MOST_DISMISSED = 20_000
"""The most questions that are kept; the newest are."""


def parse_dismissed(content: bytes) -> frozenset[int]:
    """Return the ids in the content of a file; an empty set if it is damaged."""
    try:
        return _ids_in(cast("Mapping[str, Any]", json.loads(content)))
    except (AttributeError, ValueError):
        return frozenset()


def _ids_in(fields: Mapping[str, Any]) -> frozenset[int]:
    try:
        return frozenset(map(int, fields.get("questions", ())))
    except (TypeError, ValueError):
        return frozenset()


@dataclass(frozen=True, slots=True)
class DismissedQuestions:
    """Keeps the questions in `path`, by the ids of their first messages. All methods block and raise OSError."""

    path: Path

    def read(self) -> frozenset[int]:
        """Return the ids; an empty set if there is no file, or it is damaged."""
        return _ids_in(read_object(self.path))

    def dismiss(self, asked_ids: Collection[int]) -> None:
        self._write(self.read().union(asked_ids))

    def restore(self, asked_ids: Collection[int]) -> None:
        self._write(self.read().difference(asked_ids))

    def _write(self, asked_ids: frozenset[int]) -> None:
        kept = sorted(asked_ids)[-MOST_DISMISSED:]  # ids of Discord grow with time
        # Strings, as no JSON number is safe with so many digits.
        files.replace(self.path, json.dumps({"questions": list(map(str, kept))}).encode() + b"\n")
