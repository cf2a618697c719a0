"""Decides which texts and names may be shown, and formats times, durations and sizes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from clock import DAY, HOUR, MINUTE, rfc3339
from model.messages import discord_address
from model.outcomes import is_library_source
from model.source_ids import is_topic
from model.words import without_invisible

HIDDEN_FILE = "a file of the thread"
KIB = 1024
_MENTION = re.compile(r"<@!?([0-9]{1,20})>")
_MINUTE_CHARS = 16
"""The length of a time stamp up to its minute."""


@dataclass(frozen=True, slots=True)
class DisplayRules:
    """Rules for showing people as pseudonyms, and texts only where the operator allows it.

    Attributes:
        texts: `dashboard.show_texts`.
        pseudonym: of a person, by their id.
        place: the name of a channel or thread, by its id; the id if its name is unknown.
    """

    texts: bool
    pseudonym: Callable[[int], str]
    place: Callable[[int], str]

    def person(self, user_id: int) -> str:
        return self.pseudonym(user_id)[:8]

    def text(self, written: str) -> str:
        """Return a text by a person, or one that may quote it; empty if texts are not shown."""
        return without_invisible(written) if self.texts else ""

    def question(self, written: str) -> str:
        """Return a question as `text` does, with pseudonyms where it mentions people."""
        return self.with_pseudonyms(self.text(written))

    def with_pseudonyms(self, written: str) -> str:
        """Return a text with pseudonyms where it mentions people."""
        return _MENTION.sub(lambda found: f"@{self.person(int(found[1]))}", written)

    def source(self, source_id: str) -> str:
        """Return the id of a source. The names of people's files are shown only if texts are."""
        return without_invisible(source_id) if is_library_source(source_id) or self.texts else HIDDEN_FILE

    def said_in(self, source_id: str, written: str) -> str:
        """Return a text or heading of a source. In topics both are by people, and headings are questions."""
        return self.text(written) if is_topic(source_id) else without_invisible(written)


def link_to(guild_id: int | None, place_id: int, message_id: int | None = None) -> str:
    """Return the address of a message, or of a channel or thread; empty if the server is unknown."""
    return "" if guild_id is None else discord_address(guild_id, place_id, message_id)


def minute(at: float) -> str:
    """Return a time as date, hour and minute, in UTC."""
    return rfc3339(at)[:_MINUTE_CHARS].replace("T", " ")


def duration(value: float | None) -> str:
    """Return a duration in a few characters; a dash for None."""
    if value is None:
        return "–"
    if value < 1:
        return f"{value * 1000:.0f} ms"
    for unit, length, below in (("s", 1.0, MINUTE), ("min", MINUTE, HOUR), ("h", HOUR, DAY)):
        if value < below:
            return f"{value / length:.1f} {unit}"
    return f"{value / DAY:.1f} d"


def whole_duration(value: float) -> str:
    """Return a duration in whole minutes, hours or days, such as `59 min`; empty if it is under a minute."""
    for unit, length in (("d", DAY), ("h", HOUR), ("min", MINUTE)):
        if value >= length:
            return f"{value // length:.0f} {unit}"
    return ""


def ago(then: float, now: float) -> str:
    """Format the time since `then`, in one unit."""
    past = whole_duration(now - then)
    return f"{past} ago" if past else "just now"


def size(count: int | None) -> str:
    if count is None:
        return "–"
    if count < KIB:
        return f"{count} B"
    return f"{count / KIB:.0f} KiB" if count < KIB * KIB else f"{count / KIB / KIB:.1f} MiB"
