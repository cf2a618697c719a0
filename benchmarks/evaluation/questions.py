"""Questions about a documentation with what answers them, and a chat in which they are asked."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from clock import rfc3339
from model.messages import DISCORD_EPOCH_MS

GUILD, CHANNEL, BOT = "501", "502", "509"
_BEGIN = datetime(2026, 1, 5, 9, tzinfo=UTC)
_BETWEEN_QUESTIONS, _BETWEEN_MESSAGES = timedelta(seconds=90), timedelta(seconds=3)
_FIRST_ASKER = 10_000


@dataclass(frozen=True, slots=True)
class Question:
    """What somebody asks.

    Attributes:
        messages: as they are typed, one after another.
        files: each of them answers it, as paths below the folder of sources, the one that is meant first; empty: none
            does.
        words: an answer in the documentation's words holds one of these; white space and letter case do not count.
    """

    id: str
    messages: tuple[str, ...]
    files: tuple[str, ...]
    words: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\n".join(self.messages)


def read(path: Path) -> list[Question]:
    """One JSON object a line: `id`, `messages`, `files`, `contains_any`, and `silent` where no file answers."""
    rows = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
    return [
        Question(
            row["id"],
            tuple(row["messages"]),
            () if row["silent"] else tuple(row["files"]),
            tuple(row["contains_any"]),
        )
        for row in rows
    ]


def record(questions: Sequence[Question], path: Path, *, addressed: bool) -> dict[str, str]:
    """Write a recording in which they are asked one after another, each by somebody else; gives the question's id of
    each message. `addressed`: the first message of each mentions the bot.
    """
    bot = {"id": BOT, "username": "helper", "bot": True}
    channel = {"id": CHANNEL, "type": 0, "name": "help", "guild_id": GUILD}
    lines = [line(_BEGIN, "READY", {"user": bot})]
    lines.append(line(_BEGIN, "GUILD_CREATE", {"id": GUILD, "name": "Community", "channels": [channel]}))
    asked: dict[str, str] = {}
    for number, question in enumerate(questions):
        author = {"id": str(_FIRST_ASKER + number), "username": f"asker{number}"}
        for place, text in enumerate(question.messages):
            at = _BEGIN + (number + 1) * _BETWEEN_QUESTIONS + place * _BETWEEN_MESSAGES
            mentions = [bot] if addressed and not place else []
            said = message_of(at, author, f"<@{BOT}> {text}" if mentions else text)
            asked[said["id"]] = question.id
            said["mentions"] = mentions
            lines.append(line(at, "MESSAGE_CREATE", said))
    path.write_text("".join(lines), encoding="utf-8")
    return asked


def line(at: datetime, kind: str, payload: Mapping[str, object]) -> str:
    return json.dumps({"at": rfc3339(at.timestamp()), "t": kind, "d": payload}) + "\n"


def message_of(at: datetime, author: Mapping[str, str], text: str) -> dict[str, Any]:
    """Return a message in the channel, as Discord sends it."""
    return {
        "id": str((round(at.timestamp() * 1000) - DISCORD_EPOCH_MS) << 22),
        "type": 0,
        "guild_id": GUILD,
        "channel_id": CHANNEL,
        "author": author,
        "content": text,
    }
