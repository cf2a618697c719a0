"""Where captures of old messages end: in the raw archive, unless they stand in it already."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from clock import now
from model.outcomes import Outcome, OutcomeKind, Reason
from services.team import Capture
from sinks.archive import RawArchive


class Blocks:
    """Which messages stand together in one block."""

    def __init__(self, blocks: Iterable[Iterable[int]] = ()) -> None:
        """`blocks`: the message ids of each."""
        self._count = 0
        self._holding: dict[int, set[int]] = {}
        for message_ids in blocks:
            self.add(message_ids)

    def add(self, message_ids: Iterable[int]) -> None:
        self._count += 1
        for message_id in message_ids:
            self._holding.setdefault(message_id, set()).add(self._count)

    def hold(self, message_ids: Iterable[int]) -> bool:
        """Whether one block holds all of these."""
        first, *others = [self._holding.get(message_id, set[int]()) for message_id in message_ids] or [set[int]()]
        return bool(first.intersection(*others))


@dataclass(slots=True)
class Imported:
    """Stores what no block holds whole, so that importing a file again, or going on with it, adds nothing twice."""

    archive: RawArchive
    blocks: Blocks
    """Of the whole archive, at the start."""
    conversations: set[str] = field(default_factory=set[str])
    """The ids of those that something was stored of."""

    async def keep(self, capture: Capture) -> Outcome:
        """As `RawArchive.keep`; `skipped("duplicate")` for what stands in the archive.

        Raises:
            ArchiveUnwritable: it could not be written; the archive is as it was.
        """
        joined = self.archive.captures.join(capture)
        message_ids = [said.message_id for said in joined.said]
        if capture.part is not None and self.blocks.hold(message_ids):
            return Outcome(capture.part, now(), OutcomeKind.SKIPPED, Reason.DUPLICATE)
        outcome = await self.archive.keep(capture)
        if outcome.result is OutcomeKind.CAPTURED:
            self.blocks.add(message_ids)
            self.conversations.add(joined.conversation_id or "")
        return outcome
