"""Store an import in the archive, without what the archive holds already."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from clock import now
from model.outcomes import Outcome, OutcomeKind, Reason
from services.team import Capture, Pair
from sinks.archive import RawArchive


@dataclass(slots=True)
class ImportCounts:
    """Pairs of another archive that were stored, and those that were `known` already."""

    stored: int = 0
    known: int = 0


class ImportArchive:
    """Stores what no single block contains, so that importing a file again, or resuming it, adds nothing twice.

    Attributes:
        conversations: the ids of those that something was stored of.
    """

    def __init__(self, archive: RawArchive, earlier: Iterable[Pair]) -> None:
        """`earlier`: the pairs of the whole archive."""
        self.conversations: set[str] = set()
        self._archive = archive
        self._blocks = 0
        self._turn = asyncio.Lock()  # the next one may be held by the block of this one
        self._holding: dict[int, set[int]] = {}  # the numbers of the blocks with each message
        for pair in earlier:
            self._add_block(pair.message_ids)

    async def keep(self, capture: Capture) -> Outcome:
        """Like `RawArchive.keep`, but a capture whose messages are in the archive ends as `skipped("duplicate")`."""
        async with self._turn:
            return await self._keep(capture)

    async def _keep(self, capture: Capture) -> Outcome:
        joined = self._archive.captures.join(capture)
        message_ids = [said.message_id for said in joined.said]
        if capture.part is not None and self._held(message_ids):
            return Outcome(capture.part, now(), OutcomeKind.SKIPPED, Reason.DUPLICATE)
        outcome = await self._archive.keep(capture)
        if outcome.result is OutcomeKind.CAPTURED:
            self._add_block(message_ids)
            self.conversations.add(joined.conversation_id or "")
        return outcome

    def take_over(self, pairs: Iterable[Pair]) -> ImportCounts:
        """Store pairs of another archive, of which no single block holds all. Blocking. Raises OSError."""
        taken = ImportCounts()
        for pair in pairs:
            if self._held(pair.message_ids):
                taken.known += 1
                continue
            self._archive.take_over(pair, self._archive.clock())
            self._add_block(pair.message_ids)
            self.conversations.add(pair.conversation_id)
            taken.stored += 1
        return taken

    def _held(self, message_ids: Sequence[int]) -> bool:
        """Whether one block holds all of these messages."""
        holding = [self._holding.get(message_id, set[int]()) for message_id in message_ids]
        return bool(holding and set[int].intersection(*holding))

    def _add_block(self, message_ids: Iterable[int]) -> None:
        self._blocks += 1
        for message_id in message_ids:
            self._holding.setdefault(message_id, set()).add(self._blocks)
