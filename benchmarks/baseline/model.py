"""What the baseline's streams carry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

Role = Literal["user", "team", "bot"]


@dataclass(frozen=True, slots=True)
class Message:
    id: int
    at: float
    channel: int
    author: int
    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class Batch:
    messages: tuple[Message, ...]

    @property
    def role(self) -> Role:
        return self.messages[0].role

    @property
    def text(self) -> str:
        return "\n".join(message.text for message in self.messages)


@dataclass(frozen=True, slots=True)
class Turn:
    batch: Batch
    query: str = ""
    source_id: str = ""
    source: str = ""
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Lesson:
    batch: Batch
    question: str
    answer: str


class Link(NamedTuple):
    url: str


def read(path: Path, team: frozenset[int]) -> Iterator[Message]:
    """The messages of a recording; its other dispatches mean nothing here."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            dispatch: dict[str, Any] = json.loads(line)
            if dispatch["t"] == "MESSAGE_CREATE":
                yield message(dispatch, team)


def message(dispatch: dict[str, Any], team: frozenset[int]) -> Message:
    payload = dispatch["d"]
    author = int(payload["author"]["id"])
    role: Role = "bot" if payload["author"].get("bot") else "team" if author in team else "user"
    at = datetime.fromisoformat(dispatch["at"]).timestamp()
    return Message(int(payload["id"]), at, int(payload["channel_id"]), author, role, payload["content"])
