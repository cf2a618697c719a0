"""Web pages as the knowledge base wants them: their text, or word that nothing has changed.

WebError
├── FetchFailed      refused, not found, too large, not allowed, no text in it: the message says which
└── FetchTimedOut    no whole answer within `kb.web_fetch_timeout_seconds`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class NotModified:
    """304: what was fetched before still holds."""

    etag: str | None
    """As the answer gave it; None where it gave none, and the old one goes on counting."""
    last_modified: str | None


@dataclass(frozen=True, slots=True)
class Page:
    """200: the main text of a page, or of a document of another type."""

    text: str
    title: str
    """Empty when the page names none."""
    etag: str | None
    last_modified: str | None


Fetched = NotModified | Page


class WebError(Exception):
    """A page was not fetched: the message names the URL's trouble in one line, without the URL itself."""


class FetchFailed(WebError):
    """The answer, or the lack of one, is an error."""


class FetchTimedOut(WebError):
    """The answer did not come in time."""


class Web(Protocol):
    async def fetch(self, url: str, *, etag: str | None, last_modified: str | None) -> Fetched:
        """Fetch one page, conditionally on `etag` and `last_modified` where they are given.

        The caller limits how many are under way at once. Bounded in time and size, and in how often one host is asked.

        Raises:
            FetchFailed: there is no usable answer.
            FetchTimedOut: there was none in time.
        """
        ...
