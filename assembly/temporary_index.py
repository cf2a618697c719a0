"""A temporary index for questions and replays before `--init-kb` has built one.

Only where no model is configured: descriptions then cost nothing. Nothing configured is written.
"""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from assembly.sources import SourceSetup, source_kinds
from services.assistant.extractive import describe
from services.knowledge import CannotList, IndexEntry, index_file
from services.storage import Outside, files
from settings import KnowledgeSettings, Settings


@contextmanager
def temporary_index(settings: Settings) -> Generator[Settings]:
    """`settings`; where they lead to no index, with the path of one that lasts as long as the block. Blocking."""
    kb = settings.kb
    if kb.index_path.exists() or kb.llm is not None or settings.ai_response.llm is not None:
        yield settings
        return
    entries = list(_entries(kb))
    if not entries:
        yield settings
        return
    with tempfile.TemporaryDirectory(prefix="millrace-index-") as folder:
        path = Path(folder) / kb.index_path.name
        files.replace(path, index_file.render(entries).encode())
        yield settings.model_copy(update={"kb": kb.model_copy(update={"index_path": path})})


def _entries(kb: KnowledgeSettings) -> Iterator[IndexEntry]:
    """Of all sources whose text is on disk."""
    for kind in source_kinds(SourceSetup(kb)):
        with suppress(CannotList):
            listing = kind.list_sources({}, 0)
            for source_id in sorted({*listing.unchanged, *listing.due}):
                with suppress(Outside, OSError):
                    found = kind.read(source_id)
                    if not found.flaw:
                        yield IndexEntry(f"kb:{source_id}", describe(source_id, found.text))
