"""The protocol for fetching web pages, with its results and errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

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
