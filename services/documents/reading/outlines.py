"""The outline of a configuration file that every reader returns: its keys, and its values with their lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from services.redaction import Path, leads_to_secret

LONGEST_VALUE = 500
LONGEST_NAME = 100
MOST_KEPT = 100_000
DEEPEST = 64  # what is nested deeper was not written by hand; paths that grow with each level would fill the memory
_NAMES = frozenset({"name", "key", "id", "job_name"})


class ConfigKey(NamedTuple):
    path: Path
    line: int


class Leaf(NamedTuple):
    """A value.

    Attributes:
        start: Where in the text it begins, without quotes; `end`: where it ends; unknown unless that is behind `start`.
    """

    path: Path
    value: str
    line_start: int
    line_end: int
    start: int = 0
    end: int = 0
    called: str = ""  # the name of the element that it is in: `<name>x</name><value>…</value>`


@dataclass
class Outline:
    """Keys and values in the order of the file. Lines count from 1.

    Attributes:
        comments: What begins a line that belongs to the key below it.
    """

    keys: list[ConfigKey] = field(default_factory=list[ConfigKey])
    leaves: list[Leaf] = field(default_factory=list[Leaf])
    comments: tuple[str, ...] = ("#",)
    n_values: int = 0  # how many values the file has: of very many, not all are kept

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
    """`value` in one line, cut at 500 characters."""
    return " ".join(value.split())[:LONGEST_VALUE] if "\n" in value else value.strip()[:LONGEST_VALUE]


def one_name(key: str) -> str:
    """`key` in one line, cut at 100 characters: it is repeated for each value below it."""
    return " ".join(key.split())[:LONGEST_NAME] if len(key) > LONGEST_NAME or "\n" in key else key


def words(path: Path, names: Mapping[Path, str]) -> str:
    """`services db ports`. An item of a list goes by its name, if it has one; the index of a plain value is omitted."""
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
    """`services.db.ports[0]`."""
    text = ""
    for name in path:
        text += name if name.startswith("[") or not text else f".{name}"
    return text
