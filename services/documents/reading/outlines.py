"""What the readers of configuration formats find in a file: its keys, and its values with their lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from services.redaction import Path, leads_to_secret

LONGEST_VALUE = 500
LONGEST_NAME = 100
MOST_KEPT = 100_000
DEEPEST = 64
"""What is nested deeper was not written by hand; paths that grow with each level would fill the memory."""
_NAMES = frozenset({"name", "key", "id", "job_name"})


class ConfigKey(NamedTuple):
    path: Path
    line: int


class Leaf(NamedTuple):
    path: Path
    value: str
    line_start: int
    line_end: int
    start: int = 0
    """Where in the text the value stands, without quotes; not told when it does not end behind that."""
    end: int = 0
    called: str = ""
    """What the element is called in which this value stands: `<name>x</name><value>…</value>`."""


@dataclass
class Outline:
    """Keys and values in the order of the file. Lines count from 1."""

    keys: list[ConfigKey] = field(default_factory=list[ConfigKey])
    leaves: list[Leaf] = field(default_factory=list[Leaf])
    comments: tuple[str, ...] = ("#",)
    """What begins a line that belongs to the key below it."""

    n_values: int = 0
    """How many there are in the file: of very many, not all are kept."""

    def add_key(self, path: Path, line: int) -> None:
        """Of several keys in one line, the first is the one that sections can begin at."""
        if not self.keys or line > self.keys[-1].line:
            self.keys.append(ConfigKey(path, line))

    def add(self, leaf: Leaf) -> None:
        self.n_values += 1
        if self.n_values <= MOST_KEPT or leads_to_secret((leaf.called,) if leaf.called else leaf.path, leaf.value):
            self.leaves.append(leaf)

    @cached_property
    def secret_objects(self) -> frozenset[Path]:
        """The paths of Kubernetes manifests of the kind Secret."""
        return frozenset(
            leaf.path[:-1] for leaf in self.leaves if leaf.path[-1:] == ("kind",) and leaf.value == "Secret"
        )

    @cached_property
    def names(self) -> dict[Path, str]:
        """What parts of a list, or elements, are called: `- name: DB_PASSWORD`, `<add key="DbPassword" value=…>`."""
        names: dict[Path, str] = {}
        for leaf in self.leaves:
            if leaf.path and leaf.path[-1] in _NAMES:
                names.setdefault(leaf.path[:-1], leaf.value)
        return names


class Unreadable(Exception):
    """The file is not of this format."""


def one_line_value(value: str) -> str:
    """A value of several lines in one, and not endlessly long."""
    return " ".join(value.split())[:LONGEST_VALUE] if "\n" in value else value.strip()[:LONGEST_VALUE]


def one_name(key: str) -> str:
    """A key in one line, and not endlessly long: it stands before each value below it."""
    return " ".join(key.split())[:LONGEST_NAME] if len(key) > LONGEST_NAME or "\n" in key else key


def words(path: Path, names: Mapping[Path, str]) -> str:
    """Names as one would say them, `services db ports`.

    A part of a list goes by its name, if it has one; the place of a plain value, or of a whole document, says nothing.
    """
    said: list[str] = []
    for at, name in enumerate(path):
        if not name.startswith("["):
            said.append(name)
        elif called := names.get(path[: at + 1]):
            said.append(called)
        elif 0 < at < len(path) - 1:
            said.append(name.strip("[]"))
    return " ".join(said)


def dotted(path: Path) -> str:
    """As in `services.db.ports[0]`."""
    text = ""
    for name in path:
        text += name if name.startswith("[") or not text else f".{name}"
    return text
