"""The seam to the web: what is asked of it, and what comes back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class NotModified:
    """304: what was fetched before is still current. A validator that is None stays as it was."""

    etag: str | None
    last_modified: str | None


@dataclass(frozen=True, slots=True)
class Page:
    """200: the main text of a page, or of a document of another type; `title` is empty when it names none."""

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
