"""Bring the text of sources that are new or may have changed."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any

from services.knowledge import AnyKind, Due, How, Ledger, Pending, Record, Settled, UpdateEvent


def fetch(kind: AnyKind, ledger: Ledger, key: str) -> Callable[[Sequence[Due]], Coroutine[Any, Any, list[UpdateEvent]]]:
    """Fetch some sources of one kind together. Gives what became of each; `key` as in `discover`."""

    async def fetched(due: Sequence[Due]) -> list[UpdateEvent]:
        known = {each.source_id: ledger.records.get(each.source_id) for each in due}
        # An id may have been of another kind before.
        mine = {name: record if isinstance(record, kind.record) else None for name, record in known.items()}
        results = await kind.fetch(mine)
        return [next_of(each, ledger, key) if isinstance(each, Record) else each for each in results]

    return fetched


def next_of(record: Record, ledger: Ledger, key: str) -> Settled | Pending:
    """What is left to do for a source that was fetched: nothing, unless its content has no description yet."""
    if record.gone_at is not None:
        return Settled(record, How.GONE)
    if not record.content_hash or (record.described and record.summary_key == key):
        return Settled(record, How.SAME)
    known = ledger.description(record.content_hash, key)
    if known is None:
        return Pending(replace(record, summary_pending=True))
    return Settled(replace(record, summary_text=known, summary_key=key, summary_pending=False), How.REUSED)
