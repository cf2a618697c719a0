"""Which sources there are, and which of them have something to do: discovery, and reconciliation with the ledger."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from clock import from_rfc3339, now, rfc3339
from services.knowledge import (
    AnyKind,
    CannotList,
    Discovered,
    Due,
    How,
    Ledger,
    LeftOut,
    Pending,
    Purged,
    Record,
    Settled,
    Trouble,
    UpdateEvent,
    kind_of,
)
from services.storage import in_thread

TAKEN = "another kind of source has names like this; rename it"
KEPT_SECONDS = 24 * 3600.0
"""How long a source that is gone is remembered, so that an empty mount costs no descriptions (SPEC 7)."""


def discover(ledger: Ledger, key: str) -> Callable[[object], Coroutine[Any, Any, list[UpdateEvent]]]:
    """Look at everything once. `key` names the prompt and model that descriptions are to come from.

    The first event is `Discovered`; troubles come next, then what is to be done, in a fixed order. Each kind of source
    is looked at by itself: where that fails, nothing of the kind changes, and the others go on.

    Raises:
        OSError: the cache file is there and cannot be read.
    """

    async def discovered(_trigger: object) -> list[UpdateEvent]:
        if not ledger.loaded:
            await ledger.load()
        # Nothing else touches the ledger until this has ended: one update at a time, and this is its first step.
        return await in_thread(_look, ledger, key, now())

    return discovered


def _look(ledger: Ledger, key: str, at: float) -> list[UpdateEvent]:
    counts: dict[str, int] = {}
    troubles: list[UpdateEvent] = []
    events: list[UpdateEvent] = []
    for kind in ledger.kinds:
        records = ledger.records_of(kind)
        counts[kind.noun] = 0
        try:
            listing = kind.list_sources(records, at)
        except CannotList as error:
            troubles.append(Trouble(error.about, "discover", str(error), fatal=True))
            continue
        counts[kind.noun] = len(listing.unchanged) + len(listing.due)
        troubles += [Trouble(where, "discover", message) for where, message in listing.troubles.items()]
        events += [LeftOut(name, reason) for name, reason in listing.left_out.items()]
        for source_id in listing.due:
            mine = kind_of(ledger.kinds, source_id) is kind
            events.append(Due(kind, source_id) if mine else LeftOut(source_id, TAKEN))
        for source_id in listing.unchanged:
            events += _unless_done(records[source_id], key)
        there = {*listing.unchanged, *listing.due}
        for source_id, record in records.items():
            if source_id not in there and not (listing.unsure is not None and listing.unsure(source_id)):
                events += gone(record, kind, at)
    return [Discovered(counts), *troubles, *events]


def _unless_done(record: Record, key: str) -> Iterator[UpdateEvent]:
    """What an unchanged source needs: nothing, a description, or to be in the index again."""
    if record.content_hash and (not record.described or record.summary_key != key):
        yield Pending(replace(record, summary_pending=True, gone_at=None))
    elif record.gone_at is not None:
        yield Settled(replace(record, gone_at=None), How.SAME)


def gone(record: Record, kind: AnyKind, at: float) -> Iterator[UpdateEvent]:
    """A source that is not there any more: remembered for a day, then forgotten. Blocking."""
    if record.gone_at is None:
        yield Settled(replace(record, gone_at=rfc3339(at)), How.GONE)
    elif at - from_rfc3339(record.gone_at) >= KEPT_SECONDS:
        with suppress(OSError):
            kind.forget(record.source_id)
        yield Purged(record.source_id)
