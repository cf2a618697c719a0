"""Protocols for everything the knowledge base asks of the web (pages, lists of pages, git repositories), with their
results and errors. `services.knowledge.web` implements them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from services.knowledge.file_selection import PathFilter
from services.knowledge.links_file import SiteLine


@dataclass(frozen=True, slots=True)
class NotModified:
    """HTTP 304: the stored page is still current. A validator that is None stays as it was."""

    etag: str | None
    last_modified: str | None


@dataclass(frozen=True, slots=True)
class Page:
    """HTTP 200: the main text of a page or document; `title` is empty if it has none."""

    text: str
    title: str
    etag: str | None
    last_modified: str | None


@dataclass(frozen=True, slots=True)
class PageText:
    """The text and title extracted from a body; `title` is empty if there is none."""

    text: str
    title: str


Fetched = NotModified | Page


class WebError(Exception):
    """A page was not fetched: the message says why in one line, without the URL."""


class FetchFailed(WebError):
    """There is no answer, or it is an error."""


class FetchTimedOut(WebError):
    """The answer did not come in time."""


class Web(Protocol):
    async def fetch(self, url: str, *, etag: str | None, last_modified: str | None) -> Fetched:
        """Fetch one page, conditionally on `etag` and `last_modified` where they are given.

        Bounded in time and size, and in how often one host is asked; the caller limits how many run at once.

        Raises:
            FetchFailed: there is no usable answer.
            FetchTimedOut: there was none in time.
        """
        ...


@dataclass(frozen=True, slots=True)
class PageList:
    """One document of a site: the pages that it lists, or the further lists.

    Attributes:
        pages: addresses, each once, in order, with when it says that they were last changed (empty: it does not).
        lists: addresses of further lists, likewise.
        left_out: why others are none of them, and how many.
    """

    pages: dict[str, str] = field(default_factory=dict[str, str])
    lists: dict[str, str] = field(default_factory=dict[str, str])
    left_out: dict[str, int] = field(default_factory=dict[str, int])
    etag: str | None = None
    last_modified: str | None = None


class SiteWeb(Protocol):
    """The web, as far as lists of pages are asked for, bounded in time and size. Nothing is parsed here."""

    async def page_list(self, line: SiteLine, url: str, known: PageList | None, robots: str, most: int) -> PageList:
        """The list at `url`: `known` itself where the server says that it is unchanged. No more than `most` pages or
        lists, and only those that `line` and `robots` let in.

        Raises:
            WebError: it cannot be had, or not be understood.
        """
        ...

    async def robots(self, url: str) -> tuple[str, float]:
        """The robots.txt of the host of `url`, empty where there is none; and the seconds between two requests that it
        asks for, 0 where it does not. Raises WebError: that cannot be known.
        """
        ...

    def pause(self, url: str, seconds: float) -> None:
        """Ask the host of `url` no more often than once in so many seconds."""
        ...


@dataclass(frozen=True, slots=True)
class RepositoryFiles:
    """The files of one commit that were selected, with the contents that were asked for.

    Attributes:
        blobs: by path, the hash that git gives the content.
        texts: by such a hash, the content, as far as it was wanted.
        left_out: how many others there are, by why.
    """

    commit: str
    blobs: dict[str, str] = field(default_factory=dict[str, str])
    texts: dict[str, bytes] = field(default_factory=dict[str, bytes])
    left_out: dict[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True)
class RepositorySelection:
    """Selects files of a repository: those below `folder` that the path filter lets in, `most` of them."""

    folder: str
    choice: PathFilter
    most: int


class RepositoryWeb(Protocol):
    """Fetches git repositories over http and https, bounded in time and size. Packs are unpacked in processes of their
    own.
    """

    async def files(
        self,
        url: str,
        branch: str,
        taken: RepositorySelection,
        known: str,
        wanted: Callable[[Mapping[str, str]], set[str]],
    ) -> RepositoryFiles | None:
        """The files at the newest commit; None: that is still `known` (its hash, or empty).

        `branch`: or tag; empty for the repository's own choice. `wanted`: given all files with the hashes of their
        contents, which hashes' contents to bring.

        Raises:
            WebError: they cannot be had.
        """
        ...


class ClosableWeb(Web, Protocol):
    """A `Web` that has to be closed at the end of a run."""

    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True)
class WebFetchers:
    """The fetchers of one run. They share one client, so that each host is asked at its own pace. Used from one
    loop.
    """

    pages: ClosableWeb
    sites: SiteWeb | None = None
    repositories: RepositoryWeb | None = None
