"""An index for whoever asks or replays before `--init-kb` has built one: made on the spot, and thrown away.

Only where no model is configured: descriptions then cost nothing. Nothing configured is written.
"""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from services.assistant.extractive import describe
from services.knowledge import IndexEntry, NotText, index_file, list_files, read_links, read_page, read_text
from services.storage import files
from settings import KnowledgeSettings, Settings


@contextmanager
def with_an_index(settings: Settings) -> Generator[Settings]:
    """`settings`, or, for as long as the block runs, such as lead to an index where they lead to none. Blocking."""
    kb = settings.kb
    if kb.index_path.exists() or kb.llm is not None or settings.ai_response.llm is not None:
        yield settings
        return
    with tempfile.TemporaryDirectory(prefix="millrace-index-") as folder:
        path = Path(folder) / kb.index_path.name
        entries = [*_files(kb), *_pages(kb)]
        if not entries:
            yield settings
            return
        files.replace(path, index_file.render(entries).encode())
        yield settings.model_copy(update={"kb": kb.model_copy(update={"index_path": path})})


def _files(kb: KnowledgeSettings) -> Iterator[IndexEntry]:
    for name in sorted(list_files(kb.sources_dir, kb.max_source_bytes).files):
        with suppress(NotText, OSError):
            yield _described(name, read_text(kb.sources_dir, name, kb.max_source_bytes).text)


def _pages(kb: KnowledgeSettings) -> Iterator[IndexEntry]:
    """Those that were fetched at some time."""
    with suppress(OSError):
        links = read_links(kb.links_file_path)
        for url in sorted(links.urls if links is not None else ()):
            with suppress(FileNotFoundError):
                yield _described(url, read_page(kb.web_fetch_cache_dir, url))


def _described(source_id: str, text: str) -> IndexEntry:
    return IndexEntry(f"kb:{source_id}", describe(source_id, text))
