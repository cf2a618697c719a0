"""Where captures of old messages end: in the raw archive, unless they are in it already."""

from __future__ import annotations

from collections.abc import Iterable

from clock import now
from model.outcomes import Outcome, OutcomeKind, Reason
from services.team import Capture, Pair
from sinks.archive import RawArchive


class Imported:
    """Stores what no single block contains, so that importing a file again, or resuming it, adds nothing twice.

    Attributes:
        conversations: the ids of those that something was stored of.
    """

    def __init__(self, archive: RawArchive, earlier: Iterable[Pair]) -> None:
        """`earlier`: the pairs of the whole archive."""
        self.conversations: set[str] = set()
        self._archive = archive
        self._blocks = 0
        self._holding: dict[int, set[int]] = {}  # the numbers of the blocks with each message
        for pair in earlier:
            self._add_block(pair.message_ids)

    async def keep(self, capture: Capture) -> Outcome:
        """As `RawArchive.keep`; `skipped("duplicate")` for what is in the archive."""
        joined = self._archive.captures.join(capture)
        message_ids = [said.message_id for said in joined.said]
        holding = [self._holding.get(message_id, set[int]()) for message_id in message_ids]
        if capture.part is not None and holding and set[int].intersection(*holding):
            return Outcome(capture.part, now(), OutcomeKind.SKIPPED, Reason.DUPLICATE)
        outcome = await self._archive.keep(capture)
        if outcome.result is OutcomeKind.CAPTURED:
            self._add_block(message_ids)
            self.conversations.add(joined.conversation_id or "")
        return outcome

    def _add_block(self, message_ids: Iterable[int]) -> None:
        self._blocks += 1
        for message_id in message_ids:
            self._holding.setdefault(message_id, set()).add(self._blocks)
