"""The configuration while it is put together: plain values, and where each of them was written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast


@dataclass(slots=True)
class Draft:
    file: str
    """The configuration file, as the operator named it."""
    values: dict[Any, Any] = field(default_factory=dict[Any, Any])
    origins: dict[tuple[str, ...], str] = field(default_factory=dict[tuple[str, ...], str])
    """File and line, or environment variable, by path."""

    def where(self, path: Sequence[object]) -> str:
        """Where the value at `path`, or else the nearest thing around it, was written."""
        words = tuple(map(str, path))
        while words and words not in self.origins:
            words = words[:-1]
        return self.origins.get(words, self.file)

    def put(self, path: Sequence[str], value: object, origin: str) -> None:
        """Set the value at `path` and make the mappings on the way there where they are missing or null.

        What stands in the way and is no mapping stays, for the models to refuse.
        """
        words = tuple(path)
        at = self.values
        for depth, word in enumerate(words[:-1], start=1):
            name = _name_in(at, word)
            below: object = at.get(name)
            if below is None:
                self.origins[words[:depth]] = origin
            elif not isinstance(below, dict):
                return
            # A copy: YAML lets two keys share one mapping.
            at[name] = dict(cast("dict[Any, Any]", below)) if below else {}
            at = at[name]
        at[_name_in(at, words[-1])] = value
        for old in [known for known in self.origins if known[: len(words)] == words]:
            del self.origins[old]
        self.origins[words] = origin


def _name_in(mapping: dict[Any, Any], word: str) -> Any:
    """The key of `mapping` that reads like `word`: YAML makes numbers of ids."""
    return next((key for key in mapping if str(key) == word), word)
