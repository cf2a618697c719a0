"""What the readers of configuration formats find in a file: its keys, and its values with their lines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

LONGEST_VALUE = 500

Path = tuple[str, ...]
"""`("services", "db", "ports", "[0]")`: an index in brackets is that of a list."""


class Key(NamedTuple):
    path: Path
    line: int


class Leaf(NamedTuple):
    path: Path
    value: str
    line_start: int
    line_end: int


@dataclass(slots=True)
class Outline:
    """Keys and values in the order of the file. Lines count from 1."""

    keys: list[Key] = field(default_factory=list[Key])
    leaves: list[Leaf] = field(default_factory=list[Leaf])
    comments: tuple[str, ...] = ("#",)
    """What begins a line that belongs to the key below it."""


class Unreadable(Exception):
    """The file is not of this format."""


def one_line_value(value: str) -> str:
    """A value of several lines in one, and not endlessly long."""
    return " ".join(value.split())[:LONGEST_VALUE] if "\n" in value else value.strip()[:LONGEST_VALUE]


def words(path: Path) -> str:
    """Names as one would say them, `services db ports`; the place in a list of plain values says nothing."""
    names = path[:-1] if path and path[-1].startswith("[") else path
    return " ".join(name.strip("[]") if name.startswith("[") else name for name in names)


def dotted(path: Path) -> str:
    """As in `services.db.ports[0]`."""
    text = ""
    for name in path:
        text += name if name.startswith("[") or not text else f".{name}"
    return text
