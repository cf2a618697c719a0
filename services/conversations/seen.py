"""Up to where each place's messages have their end: where catch-up begins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from model.messages import DISCORD_EPOCH_MS, Message
from model.outcomes import Ignored, Outcome, Reason, Removed, Result


@dataclass(slots=True)
class Mark:
    """What is known of one place."""

    below: int
    """Every message up to this id has its end."""
    done: set[int] = field(default_factory=set[int])
    """Ids above it that have theirs already."""
    open: set[int] = field(default_factory=set[int])
    """Ids above it that have not."""


class Seen:
    """Follows messages from arrival to end."""

    def __init__(
        self, earlier: Mapping[int, Mark] | None = None, on_change: Callable[[], object] | None = None
    ) -> None:
        """`on_change`: called whenever there is something new to save."""
        self._marks = dict(earlier or {})
        self._on_change = on_change

    def met(self, guild_id: int, at: float) -> None:
        """A guild is there. From when it is first met, none of its messages may be missed, also where none was yet."""
        if -guild_id not in self._marks:
            self._marks[-guild_id] = Mark(max(0, round(at * 1000) - DISCORD_EPOCH_MS) << 22)
            self._changed()

    def arrived(self, message: Message) -> None:
        mark = self._marks.get(message.channel_id)
        if mark is None:
            mark = self._marks[message.channel_id] = Mark(message.id - 1)
        if message.id > mark.below and message.id not in mark.done:
            mark.open.add(message.id)

    def settled(self, end: Result) -> None:
        """Messages have their end, except those that a shutdown cut off: catch-up takes them up."""
        match end:
            case Outcome(part=part):
                if end.reason != Reason.SHUTDOWN:
                    self._close(part.place.id, part.message_ids)
            case Ignored(channel_id=channel_id, message_ids=message_ids):
                self._close(channel_id, message_ids)
            case Removed(channel_id=channel_id, message_id=message_id):
                self._close(channel_id, (message_id,))

    def has_end(self, channel_id: int, message_id: int) -> bool:
        """Whether a message needs no second look."""
        mark = self._marks.get(channel_id)
        return mark is not None and (message_id <= mark.below or message_id in mark.done)

    def below(self) -> Mapping[int, int]:
        """By place, the id below which every message has its end; by minus the id of a guild, the same for those of its
        places that nothing was heard of.
        """
        return {place_id: mark.below for place_id, mark in self._marks.items()}

    def marks(self) -> Mapping[int, Mark]:
        return self._marks

    def _close(self, place_id: int, message_ids: tuple[int, ...]) -> None:
        mark = self._marks.get(place_id)
        if mark is None:
            return
        for message_id in message_ids:
            if message_id in mark.open:
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
