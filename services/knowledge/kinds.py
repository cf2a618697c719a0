"""The table of kinds of sources."""

from __future__ import annotations

from typing import Protocol

from services.knowledge.source_files import TextFiles
from services.knowledge.source_kinds import AnyKind, SourceSetup
from services.knowledge.source_pages import WebPages
from services.knowledge.source_repositories import Repositories


class KindClass(Protocol):
    """The class of a kind of source."""

    def __call__(self, setup: SourceSetup, /) -> AnyKind: ...

    @staticmethod
    def address(source_id: str, /) -> str | None: ...


KINDS: list[KindClass] = [TextFiles, Repositories, WebPages]
"""All kinds of sources, in the order of the index. A new kind is registered here."""


def web_address(name: str) -> str | None:
    """Return where people find a source on the web, by its id without `kb:`; None if the id does not say."""
    return next((found for kind in reversed(KINDS) if (found := kind.address(name)) is not None), None)
