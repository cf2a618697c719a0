"""All that the knowledge base asks the web for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from services.knowledge.repositories import RepositoryWeb
from services.knowledge.web_answers import SiteWeb, Web


class OpenWeb(Web, Protocol):
    """Closed at the end of a run."""

    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Webs:
    """What a run asks the web for, all through one client, so that each host has its turns. Used from one loop."""

    pages: OpenWeb
    sites: SiteWeb | None = None
    repositories: RepositoryWeb | None = None
