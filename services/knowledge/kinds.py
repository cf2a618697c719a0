"""The table of kinds of sources."""

from __future__ import annotations

from services.knowledge.source_files import TextFiles
from services.knowledge.source_kinds import AnyKind
from services.knowledge.source_pages import WebPages
from services.knowledge.source_repositories import Repositories

KINDS: list[type[AnyKind]] = [TextFiles, Repositories, WebPages]
"""In the order of the index. A new kind is registered here."""


def web_address(name: str) -> str | None:
    """Return where people find a source on the web, by its id without `kb:`; None where that does not say."""
    return next((found for kind in reversed(KINDS) if (found := kind.address(name)) is not None), None)
