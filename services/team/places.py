"""Where in Discord the pairs of the archive come from, so that an answer can link to the message that it quotes.

One JSON object a line: `{"qa_id", "guild_id", "channel_id", "message_id"}`, all texts. Only ids: no names, no words. A
line that is lost costs a link.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from services.storage import Signature, confined
from services.team.archive import Speaker
from services.team.captures import Capture


def place_line(qa_id: str, capture: Capture) -> str | None:
    """The line for a stored capture, which leads to the team's last message in it; None where the server is unknown."""
    part = capture.part
    if part is None or part.place.guild_id is None:
        return None
    answers = [said.message_id for said in capture.said if said.turn.speaker is Speaker.TEAM]
    ids = {"guild_id": part.place.guild_id, "channel_id": part.place.id, "message_id": answers[-1]}
    return json.dumps({"qa_id": qa_id, **{name: str(value) for name, value in ids.items()}}) + "\n"


@dataclass(slots=True)
class PairPlaces:
    """The addresses of pairs, read again when the file has changed."""

    path: Path
    _seen: Signature | None = field(default=confined.NEVER, init=False)
    _addresses: dict[str, str] = field(default_factory=dict[str, str], init=False)

    def address(self, qa_id: str) -> str | None:
        """Blocking only after a change, and then for a moment."""
        seen = confined.look(self.path)
        if seen != self._seen:
            self._addresses = dict(_read(self.path))
            self._seen = seen
        return self._addresses.get(qa_id)


def _read(path: Path) -> Iterator[tuple[str, str]]:
    try:
        lines = path.read_bytes().split(b"\n")  # bytes, so that a line that is not UTF-8 costs only itself
    except OSError:
        return
    for line in lines:
        try:
            found = json.loads(line)
            ids = [int(found[name]) for name in ("guild_id", "channel_id", "message_id")]
            yield str(found["qa_id"]), "https://discord.com/channels/" + "/".join(map(str, ids))
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            continue  # torn by a crash, or edited
