"""The fetchers of one run: pages, lists of pages, repositories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from services.knowledge.repositories import RepositoryWeb
from services.knowledge.web_answers import SiteWeb, Web


class ClosableWeb(Web, Protocol):
    """A `Web` that has to be closed at the end of a run."""

    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True)
class WebFetchers:
    """The fetchers of one run. They share one client, so that each host is asked at its own pace. Used from one loop."""

    pages: ClosableWeb
    sites: SiteWeb | None = None
    repositories: RepositoryWeb | None = None
