"""The steps of an update of the knowledge base: list the sources, fetch their texts, describe them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from clock import DAY, SharedCalls, from_rfc3339, now, rfc3339
from services.assistant import Describer, NotDescribed, SaysNothing
from services.knowledge import (
    AnyKind,
    CannotList,
    Discovered,
    Due,
    LeftOut,
    Pending,
    Purged,
    Record,
    SourceRecords,
    Trouble,
    UpdateEvent,
    UpdateResult,
    UpToDate,
    hash_text,
    index_file,
    kind_of,
)
from services.storage import in_thread

NAME_TAKEN = "another kind of source has names like this; rename it"
GONE_SECONDS = DAY
"""For so long the record of a source that is gone is kept, so that an empty mount costs no descriptions."""


def begin(source_records: SourceRecords) -> Callable[[object], Coroutine[Any, Any, Sequence[AnyKind]]]:
    """Load the cache of records, unless it is loaded, and return all kinds of sources. Raises OSError: the cache file
    is there and cannot be read.
    """

    async def begun(_trigger: object) -> Sequence[AnyKind]:
        if not source_records.loaded:
            await source_records.load()
        return source_records.kinds

    return begun


def discover(source_records: SourceRecords, key: str) -> Callable[[AnyKind], Coroutine[Any, Any, list[UpdateEvent]]]:
    """List the sources of one kind and say which are due. `key` identifies the prompt and model of descriptions.

    The first event is `Discovered`; troubles come next, then what is to be done, in a fixed order. Kinds are listed
    independently: if one fails, its sources do not change; a slow one delays no other.
    """

    async def discovered(kind: AnyKind) -> list[UpdateEvent]:
        troubles = await kind.refresh(now())
        # Nothing else changes the records of this kind meanwhile: this is their first step in an update.
        records = source_records.records_of(kind)
        first, *rest = await in_thread(_look, kind, source_records.kinds, records, key, now())
        return [first, *troubles, *rest]

    return discovered


def _look(
    kind: AnyKind, kinds: Sequence[AnyKind], records: Mapping[str, Record], key: str, at: float
) -> list[UpdateEvent]:
    try:
        listing = kind.list_sources(records, at)
    except CannotList as error:
        return [Discovered({kind.noun: 0}), Trouble(error.about, "discover", str(error), fatal=True)]
    events: list[UpdateEvent] = [Discovered({kind.noun: len(listing.unchanged) + len(listing.due)})]
    events += [Trouble(where, "discover", message) for where, message in listing.troubles.items()]
    events += [LeftOut(name, reason) for name, reason in listing.left_out.items()]
    for source_id in listing.due:
        mine = kind_of(kinds, source_id) is kind
        events.append(Due(kind, source_id) if mine else LeftOut(source_id, NAME_TAKEN))
    for source_id in listing.unchanged:
        events += _for_unchanged(records[source_id], key)
    there = {*listing.unchanged, *listing.due}
    for source_id, record in records.items():
        if source_id not in there and not (listing.may_exist is not None and listing.may_exist(source_id)):
            events += events_of_missing(record, kind, at)
    return events


def _for_unchanged(record: Record, key: str) -> Iterator[UpdateEvent]:
    """Yield the event for an unchanged source that needs a description, or returns to the index; else none."""
    if record.content_hash and (not record.is_described or record.summary_key != key):
        yield Pending(replace(record, summary_pending=True, gone_at=None))
    elif record.gone_at is not None:
        yield UpToDate(replace(record, gone_at=None), UpdateResult.SAME)


def events_of_missing(record: Record, kind: AnyKind, at: float) -> Iterator[UpdateEvent]:
    """Yield the event for a source that does not exist any more: it is kept for a day, then deleted. Blocking."""
    if record.gone_at is None:
        yield UpToDate(replace(record, gone_at=rfc3339(at)), UpdateResult.GONE)
    elif at - from_rfc3339(record.gone_at) >= GONE_SECONDS:
        with suppress(OSError):
            kind.forget(record.source_id)
        yield Purged(record.source_id)


def fetch(
    kind: AnyKind, source_records: SourceRecords, key: str
) -> Callable[[Sequence[Due]], Coroutine[Any, Any, list[UpdateEvent]]]:
    """Fetch some sources of one kind together, and return an event for each; `key` as in `discover`."""

    async def fetched(due: Sequence[Due]) -> list[UpdateEvent]:
        known = {each.source_id: source_records.by_id.get(each.source_id) for each in due}
        # An id may have been of another kind before.
        mine = {name: record if isinstance(record, kind.record) else None for name, record in known.items()}
        results = await kind.fetch(mine)
        return [event_of(each, source_records, key) if isinstance(each, Record) else each for each in results]

    return fetched


def event_of(record: Record, source_records: SourceRecords, key: str) -> UpToDate | Pending:
    """Return the event for a fetched source: `UpToDate` if nothing changed or it is described, else `Pending`."""
    if record.gone_at is not None:
        return UpToDate(record, UpdateResult.GONE)
    if not record.content_hash or (record.is_described and record.summary_key == key):
        return UpToDate(record, UpdateResult.SAME)
    known = source_records.find_description(record.content_hash, key)
    if known is None:
        return Pending(replace(record, summary_pending=True))
    return UpToDate(replace(record, summary_text=known, summary_key=key, summary_pending=False), UpdateResult.REUSED)


def summarise(
    describer: Describer, source_records: SourceRecords, timeout_seconds: float
) -> Callable[[Pending], Coroutine[Any, Any, UpToDate]]:
    """Describe the current text, which may be newer than the fetched one.

    Sources with equal content share one description, also while it is being written. A text that says nothing has none.

    Raises:
        NotDescribed: the text cannot be described any more, or the answer is no description.
        Outside, OSError: the text cannot be read any more.
        Exception: what the describer raises.
    """
    key = describer.key
    calls = SharedCalls()

    async def summarised(pending: Pending) -> UpToDate:
        record, text = await in_thread(_current, source_records.kind_of(pending.record), pending.record)
        how = UpdateResult.REUSED
        description = source_records.find_description(record.content_hash, key)
        if description is None:
            how = UpdateResult.DESCRIBED
            try:
                written = await calls.share(
                    record.content_hash,
                    lambda: describer.summarize_for_kb_index(record.source_id, text, timeout_seconds),
                )
            except SaysNothing:
                # It is not in the index. Each update checks it again, which costs no call.
                return UpToDate(
                    replace(record, summary_text="", summary_key=key, summary_pending=True), UpdateResult.SAME
                )
            description = index_file.make_harmless(written)
        if not description:
            raise NotDescribed("the description is empty")
        at = rfc3339(now())
        done = replace(record, summary_text=description, summary_key=key, last_indexed_at=at, summary_pending=False)
        return UpToDate(done, how)

    return summarised


def _current(kind: AnyKind, record: Record) -> tuple[Record, str]:
    """Return the source's record with the hash of its text, and the text. Blocking."""
    found = kind.read(record.source_id)
    if found.flaw or not found.text.strip():
        raise NotDescribed(found.flaw or "it is empty")
    # The hash of a text that was cut is known only from when it was fetched.
    return record if found.is_cut else replace(record, content_hash=hash_text(found.text)), found.text
