"""The id below which every message of a place has its outcome: where catch-up begins."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from model.messages import DISCORD_EPOCH_MS, Message
from model.outcomes import Ignored, Outcome, Reason, Removed, Result
from services.storage import read_object

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Mark:
    """What is known of one place.

    Attributes:
        below: every message up to this id has its outcome.
        done: ids above it that have theirs already.
        open: ids above it that do not.
    """

    below: int
    done: set[int] = field(default_factory=set[int])
    open: set[int] = field(default_factory=set[int])


class Seen:
    """Follows messages from arrival to outcome, on top of `earlier` marks by place. `on_change`: there is something new
    to save.
    """

    def __init__(self, earlier: Mapping[int, Mark] | None = None, on_change: Callable[[], None] | None = None) -> None:
        self._marks = dict(earlier or {})
        self._on_change = on_change

    def met(self, guild_id: int, at: float) -> None:
        """A guild is there. From now on none of its messages may be missed, also in places without a message so far."""
        if -guild_id not in self._marks:
            self._marks[-guild_id] = Mark(max(0, round(at * 1000) - DISCORD_EPOCH_MS) << 22)
            self._changed()

    def arrived(self, message: Message) -> None:
        mark = self._marks.setdefault(message.channel_id, Mark(message.id - 1))
        if message.id > mark.below and message.id not in mark.done:
            mark.open.add(message.id)

    def settled(self, end: Result) -> None:
        """Messages have their outcome, except those that a shutdown cancelled: catch-up brings them again."""
        match end:
            case Outcome(part=part):
                if end.reason != Reason.SHUTDOWN:
                    self._close(part.place.id, part.message_ids)
            case Ignored(channel_id=channel_id, message_ids=message_ids):
                self._close(channel_id, message_ids)
            case Removed(channel_id=channel_id, message_id=message_id):
                self._close(channel_id, (message_id,))

    def has_end(self, channel_id: int, message_id: int) -> bool:
        """Whether a message has its outcome."""
        mark = self._marks.get(channel_id)
        return mark is not None and (message_id <= mark.below or message_id in mark.done)

    def below(self) -> Mapping[int, int]:
        """By place, the id below which every message has its outcome; by minus the id of a guild, the same for places
        of it without a mark.
        """
        return {place_id: mark.below for place_id, mark in self._marks.items()}

    def marks(self) -> Mapping[int, Mark]:
        return self._marks

    def _close(self, place_id: int, message_ids: tuple[int, ...]) -> None:
        mark = self._marks.get(place_id)
        if mark is None:
            return
        for message_id in mark.open.intersection(message_ids):
            mark.open.remove(message_id)
            mark.done.add(message_id)
        limit = min(mark.open) if mark.open else max(mark.done, default=mark.below) + 1
        through = {message_id for message_id in mark.done if message_id < limit}
        if through:
            mark.below = max(through)
            mark.done -= through
        self._changed()

    def _changed(self) -> None:
        if self._on_change is not None:
            self._on_change()


def read_marks(path: Path) -> dict[int, Mark]:
    """`{"<place>": {"below": "<id>", "done": ["<id>", …]}}`, ids as strings; for a guild as a whole, minus its id.

    Damage is reported and left out: that costs a second look at a few messages, never an answer.
    """
    marks: dict[int, Mark] = {}
    for place_id, mark in read_object(path).items():
        try:
            marks[int(place_id)] = Mark(int(mark["below"]), {int(message_id) for message_id in mark["done"]})
        except (TypeError, ValueError, KeyError):
            log.warning("%s: the mark of place %.40r is damaged and left out", path, place_id)
    return marks


def render_marks(marks: Mapping[int, Mark]) -> bytes:
    text = {
        str(place_id): {"below": str(mark.below), "done": [str(message_id) for message_id in sorted(mark.done)]}
        for place_id, mark in sorted(marks.items())
    }
    return json.dumps(text, indent=0).encode() + b"\n"
