"""A small knowledge base, as files in a data folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from services.knowledge.index_file import IndexEntry, render
from services.knowledge.library import Source
from tests.services.assistant.extractive.lanternfish import INDEX, SOURCES


def write_knowledge(data: Path, sources: Iterable[Source] = SOURCES, index: Iterable[IndexEntry] = INDEX) -> None:
    """The documentation of Lanternfish, unless told otherwise; its one web page and the team's topics are left out."""
    folder = data / "knowledge-base"
    kept: set[str] = set()
    for source in sources:
        name = source.id.removeprefix("kb:")
        if source.url is None and not source.id.startswith("team:"):
            path = folder / "sources" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source.text)
            kept.add(source.id)
    (folder / "index.txt").write_text(render(entry for entry in index if entry.id in kept))
