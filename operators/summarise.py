"""Describe sources for the index, each content once."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from clock import now, rfc3339
from clock.shared_calls import SharedCalls
from services.assistant import Describer, NotDescribed
from services.knowledge import (
    FileFacts,
    How,
    Ledger,
    NotText,
    Pending,
    Record,
    Settled,
    SourcePaths,
    hash_text,
    index_file,
    read_page,
    read_text,
)
from services.storage import in_thread


def summarise(
    describer: Describer, ledger: Ledger, places: SourcePaths, timeout_seconds: float
) -> Callable[[Pending], Coroutine[Any, Any, Settled]]:
    """Describe the text as it is now, which may be newer than what discovery saw.

    Sources with equal content share one description, also while it is being written.

    Raises:
        NotDescribed: what came back is no description.
        NotText, OSError: the text cannot be read any more.
        Exception: whatever the describer raises.
    """
    key = describer.key
    calls = SharedCalls()

    async def summarised(pending: Pending) -> Settled:
        record, text = await in_thread(_current, pending.record, places)
        source_id = record.source_id
        how = How.REUSED
        description = ledger.description(record.content_hash, key)
        if description is None:
            how = How.DESCRIBED
            written = await calls.share(
                record.content_hash, lambda: describer.summarize_for_kb_index(source_id, text, timeout_seconds)
            )
            description = index_file.harmless(written)
        if not description:
            raise NotDescribed("the description is empty")
        done = replace(
            record,
            summary_text=description,
            summary_key=key,
            last_indexed_at=rfc3339(now()),
            summary_pending=False,
        )
        return Settled(done, how)

    return summarised


def _current(record: Record, places: SourcePaths) -> tuple[Record, str]:
    """The source's text, and its record with the hash of just that text."""
    if record.file is not None:
        name = record.file.rel_path
        try:
            found = read_text(places.sources_dir, name, places.max_source_bytes)
        except NotText as error:
            raise NotDescribed(str(error)) from None
        file = FileFacts(name, found.size_bytes, found.mtime_ns)
        return replace(record, file=file, content_hash=hash_text(found.text)), found.text
    text = read_page(places.web_cache_dir, record.source_id)
    return replace(record, content_hash=hash_text(text)), text
