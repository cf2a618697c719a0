"""Files become documents in another process; nobody can tell by the result."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from clock import Processes, WorkStopped
from services.documents import refusal_text
from services.documents.limits import FileLimits, FileRefused
from services.documents.reading import DocumentRedactors, prepare_document
from services.documents.store.protocol import NewDocument, Origin
from services.storage import in_thread

LOG = "".join(
    f"2026-02-16T00:00:{n % 60:02d} INFO web: request {n} took 3 ms, key hunter2hunter2\n" for n in range(900)
)
REDACTORS = DocumentRedactors(["hunter2hunter2"])
LIMITS = FileLimits(max_file_bytes=100_000)


@pytest.fixture
async def processes() -> AsyncGenerator[Processes]:
    opened = Processes(seconds=60)
    yield opened
    await opened.close()


def seen(new: NewDocument) -> list[object]:
    assert new.rows is not None
    rows = new.rows
    return [new.origin, new.prepared, *map(list, (rows.chunks, rows.chunk_tokens, rows.lines, rows.line_tokens))]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("app.log", LOG),
        ("a.json", '{"a": {"password": "x7f9Kq2LmP"}}'),
        ("a.xml", "<a><b>c</b></a>"),
        ("a.md", "# A\n\nB"),
    ],
)
async def test_a_document_is_the_same_whoever_reads_it(processes: Processes, name: str, text: str) -> None:
    origin = Origin(name, uploader_id=7, extra={"title": "The title"})
    read = [
        await run(prepare_document, origin, text.encode(), LIMITS, "The title", REDACTORS)
        for run in (processes.run, in_thread)
    ]
    here, there = map(seen, read)
    assert here == there
    assert "hunter2hunter2" not in repr(here)
    assert read[0].rows is not None
    assert len(read[0].rows.lines) == len(list(read[0].rows.lines)) == text.removesuffix("\n").count("\n") + 1


async def test_a_refusal_speaks_every_language_afterwards(processes: Processes) -> None:
    with pytest.raises(FileRefused) as caught:
        await processes.run(prepare_document, Origin("a.log"), b"x" * 100_001, LIMITS, None, REDACTORS)
    assert "is the most" in refusal_text(caught.value)
    assert refusal_text(caught.value, "de") != refusal_text(caught.value)


async def test_pitfall_64_a_file_that_is_hostile_is_given_up() -> None:
    """The limit is what protects, whatever the file does; so here it is the limit that is absurd."""
    opened = Processes(seconds=60, memory_bytes=1_000_000)
    try:
        with pytest.raises(WorkStopped, match="memory"):
            await opened.run(prepare_document, Origin("a.log"), (LOG * 50).encode(), FileLimits(), None, REDACTORS)
    finally:
        await opened.close()
