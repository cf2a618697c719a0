"""The place in Discord of each archived pair, so that an answer can link to the message that it quotes.

One JSON object a line: `{"qa_id", "guild_id", "channel_id", "message_id"}`, all texts. Only ids: no names, no words. A
line that is lost costs a link.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from model.messages import discord_address
from services.team.archive import Speaker
from services.team.captures import Capture


def place_line(qa_id: str, capture: Capture) -> str | None:
    """Return the line to store for a capture, which leads to the team's last message in it; None if the server is
    unknown.
    """
    part = capture.part
    if part is None or part.place.guild_id is None:
        return None
    answers = [said.message_id for said in capture.said if said.turn.speaker is Speaker.TEAM]
    ids = {"guild_id": part.place.guild_id, "channel_id": part.place.id, "message_id": answers[-1]}
    return json.dumps({"qa_id": qa_id, **{name: str(value) for name, value in ids.items()}}) + "\n"


@dataclass(frozen=True, slots=True)
class PairPlaces:
    """Finds the Discord address of a pair in the file. Nothing is kept in memory, since few are asked for."""

    path: Path

    def address(self, qa_id: str) -> str | None:
        """Return the address of a pair's message; None if there is none. Blocking, for a moment: a thousand pairs take
        150 kB. Of several lines about a pair the last counts.
        """
        try:
            data = self.path.read_bytes()  # bytes, so that a line that is not UTF-8 costs only itself
        except OSError:
            return None
        named, end = qa_id.encode(), len(data)
        while (at := data.rfind(named, 0, end)) >= 0:
            end, stop = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
            found = _address(data[end : stop if stop >= 0 else None], qa_id)
            if found is not None:
                return found
        return None


def _address(line: bytes, qa_id: str) -> str | None:
    try:
        found = json.loads(line)
        if found["qa_id"] != qa_id:
            return None
        return discord_address(int(found["guild_id"]), int(found["channel_id"]), int(found["message_id"]))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None  # torn by a crash, or edited
