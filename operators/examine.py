"""Whether a file whose size or time is new has new content, too."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import replace
from typing import Any

from clock import now, rfc3339
from operators.discover import gone
from services.knowledge import (
    FileFacts,
    How,
    Ledger,
    LeftOut,
    NotText,
    Pending,
    Record,
    Settled,
    SourcePaths,
    Suspect,
    Trouble,
    Unfit,
    UpdateEvent,
    hash_text,
    read_text,
)
from services.storage import in_thread

AT_ONCE = 32
"""Files that are read in one go: a thread for each would cost more than reading it."""

Examined = tuple[str, FileFacts] | NotText | OSError
"""The content's hash and what the file looks like now, or why there is none."""


def examine(
    ledger: Ledger, places: SourcePaths, key: str
) -> Callable[[Sequence[Suspect]], Coroutine[Any, Any, list[UpdateEvent]]]:
    """Read suspects together; each gives one event, and one more if it was a source before and is none now."""

    async def examined(suspects: Sequence[Suspect]) -> list[UpdateEvent]:
        results = await in_thread(_read_all, places, suspects)
        at = now()
        return [
            event
            for suspect, result in zip(suspects, results, strict=True)
            for event in _verdict(suspect, result, ledger, key, at)
        ]

    return examined


def _read_all(places: SourcePaths, suspects: Sequence[Suspect]) -> list[Examined]:
    return [_read(places, suspect) for suspect in suspects]


def _read(places: SourcePaths, suspect: Suspect) -> Examined:
    try:
        found = read_text(places.sources_dir, suspect.name, places.max_source_bytes)
    except (NotText, OSError) as error:
        return error
    return hash_text(found.text), FileFacts(suspect.name, found.size_bytes, found.mtime_ns)


def _verdict(suspect: Suspect, result: Examined, ledger: Ledger, key: str, at: float) -> Iterator[UpdateEvent]:
    record = ledger.records.get(suspect.name)
    if isinstance(result, NotText):
        ledger.unfit[suspect.name] = Unfit(suspect.size_bytes, suspect.mtime_ns, str(result))
        yield LeftOut(suspect.name, str(result), suspect)
        if record is not None:
            yield from gone(record, at)
    elif isinstance(result, FileNotFoundError):
        yield LeftOut(suspect.name, "it is gone", suspect)  # the next update will see to it
    elif isinstance(result, OSError):
        yield Trouble(suspect.name, "read", result.strerror or str(result))
    else:
        content_hash, file = result
        yield settled_or_pending(as_file(record, content_hash, file, rfc3339(at)), ledger, key)


def as_file(record: Record | None, content_hash: str, file: FileFacts, at: str) -> Record:
    """The record of a file that has this content now; one with new content waits for its description."""
    if record is None or record.file is None:
        return Record("file", content_hash, "", "", at, summary_pending=True, file=file)
    pending = record.summary_pending or record.content_hash != content_hash
    return replace(record, content_hash=content_hash, file=file, summary_pending=pending, gone_at=None)


def settled_or_pending(record: Record, ledger: Ledger, key: str) -> Settled | Pending:
    """What is left to do for a source with known content: nothing, when it or another has its description already."""
    if record.described and record.summary_key == key:
        return Settled(record, How.SAME)
    known = ledger.description(record.content_hash, key)
    if known is None:
        return Pending(replace(record, summary_pending=True))
    return Settled(replace(record, summary_text=known, summary_key=key, summary_pending=False), How.REUSED)
