"""The links from stored pairs to Discord: a file with a line for each pair.

A line is `{"qa_id", "guild_id", "channel_id", "message_id"}`, and `"parent_id"` for a thread; all strings, no names or
words. A lost line costs a link.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from model.messages import discord_address
from services.team.archive import REMOVED, Speaker
from services.team.captures import Capture


def pair_link_line(qa_id: str, capture: Capture) -> str | None:
    """Return the line that links a capture to the team's last message in it; None if that is not on Discord, or the
    server is unknown.
    """
    place = capture.place
    if place is None or place.guild_id is None or not capture.kind.is_on_discord:
        return None
    return PairLink(qa_id, place.guild_id, place.id, _last_answer(capture), place.parent_id).line


def _last_answer(capture: Capture) -> int:
    answers = [each for each in capture.messages if each.turn.speaker is Speaker.TEAM]
    kept = [each for each in answers if each.turn.text != REMOVED]
    return (kept or answers)[-1].message_id


class PairLink(NamedTuple):
    """The message in Discord that a pair is linked to. `parent_id`: the channel of a thread; of threads that were noted
    by earlier versions it is not known.
    """

    qa_id: str
    guild_id: int
    channel_id: int
    message_id: int
    parent_id: int | None = None

    @property
    def line(self) -> str:
        return json.dumps({name: str(value) for name, value in self._asdict().items() if value is not None}) + "\n"


@dataclass(frozen=True, slots=True)
class PairLinks:
    """Finds the links in the file `path`. Blocking. Nothing is kept in memory, since few are looked up."""

    path: Path

    def address(self, qa_id: str) -> str | None:
        """Return the address of a pair's message, if known."""
        link = self.find(qa_id)
        return None if link is None else discord_address(link.guild_id, link.channel_id, link.message_id)

    def line_of_revised(self, qa_id: str, earlier_id: str, capture: Capture) -> str | None:
        """Return the line to store for a new version of the pair `earlier_id`."""
        link = self.find(earlier_id)
        return None if link is None else link._replace(qa_id=qa_id, message_id=_last_answer(capture)).line

    def pairs_in(self, place_ids: Collection[int]) -> set[str]:
        """Return the ids of the pairs that are in one of these places, or in a thread of one."""
        wanted = [f'"{each}"'.encode() for each in place_ids]
        try:
            with self.path.open("rb") as file:
                # Few lines are parsed: most are about other places.
                links = [_parse(line) for line in file if any(each in line for each in wanted)]
        except FileNotFoundError:
            return set()
        return {each.qa_id for each in links if each and {each.channel_id, each.parent_id}.intersection(place_ids)}

    def find(self, qa_id: str) -> PairLink | None:
        """Return the link of a pair, from the last line about it; None if there is none. Takes a moment: a thousand
        pairs take 150 kB.
        """
        try:
            data = self.path.read_bytes()  # bytes, so that a line that is not UTF-8 costs only itself
        except OSError:
            return None
        wanted, end = qa_id.encode(), len(data)
        while (at := data.rfind(wanted, 0, end)) >= 0:
            end, stop = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
            found = _parse(data[end : stop if stop >= 0 else None])
            if found is not None and found.qa_id == qa_id:
                return found
        return None


def _parse(line: bytes) -> PairLink | None:
    """Parse a line; None if it was torn by a crash, or edited."""
    try:
        found = json.loads(line)
        parent_id = None if (parent := found.get("parent_id")) is None else int(parent)
        guild_id, channel_id, message_id = int(found["guild_id"]), int(found["channel_id"]), int(found["message_id"])
        return PairLink(str(found["qa_id"]), guild_id, channel_id, message_id, parent_id)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
