"""Describe sources for the index, each content once."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from clock import now, rfc3339
from clock.shared_calls import SharedCalls
from services.assistant import Describer, NotDescribed
from services.knowledge import AnyKind, How, Ledger, Pending, Record, Settled, hash_text, index_file
from services.storage import in_thread


def summarise(
    describer: Describer, ledger: Ledger, timeout_seconds: float
) -> Callable[[Pending], Coroutine[Any, Any, Settled]]:
    """Describe the text as it is now, which may be newer than what was fetched.

    Sources with equal content share one description, also while it is being written.

    Raises:
        NotDescribed: the text cannot be described any more, or the answer is no description.
        Outside, OSError: the text cannot be read any more.
        Exception: what the describer raises.
    """
    key = describer.key
    calls = SharedCalls()

    async def summarised(pending: Pending) -> Settled:
        record, text = await in_thread(_current, ledger.kind_of(pending.record), pending.record)
        how = How.REUSED
        description = ledger.description(record.content_hash, key)
        if description is None:
            how = How.DESCRIBED
            written = await calls.share(
                record.content_hash, lambda: describer.summarize_for_kb_index(record.source_id, text, timeout_seconds)
            )
            description = index_file.harmless(written)
        if not description:
            raise NotDescribed("the description is empty")
        at = rfc3339(now())
        done = replace(record, summary_text=description, summary_key=key, last_indexed_at=at, summary_pending=False)
        return Settled(done, how)

    return summarised


def _current(kind: AnyKind, record: Record) -> tuple[Record, str]:
    """The source's text, and its record with the hash of just that text. Blocking."""
    found = kind.read(record.source_id)
    if found.flaw or not found.text.strip():
        raise NotDescribed(found.flaw or "it is empty")
    # The hash of a text that was cut is known only from when it was fetched.
    return record if found.cut else replace(record, content_hash=hash_text(found.text)), found.text
