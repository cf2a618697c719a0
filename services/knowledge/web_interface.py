"""Protocols for everything the knowledge base asks of the web, with their results and errors. `services.knowledge.web`
implements them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Protocol, TypeVar

from services.knowledge.file_selection import PathFilter


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


FetchStatus = Literal["success", "not_modified", "timeout", "error"]


class Web(Protocol):
    """Fetches single pages. Has to be closed at the end of a run."""

    async def fetch(self, url: str, *, etag: str | None, last_modified: str | None) -> Fetched:
        """Fetch one page, conditionally on `etag` and `last_modified` where they are given.

        Bounded in time and size, and in how often one host is asked; the caller limits how many run at once.

        Raises:
            FetchFailed: there is no usable answer.
            FetchTimedOut: there was none in time.
        """
        ...

    async def aclose(self) -> None: ...


class Validated(Protocol):
    """A dataclass made of an answer, with the validators that the server gave it."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def etag(self) -> str | None: ...
    @property
    def last_modified(self) -> str | None: ...


V = TypeVar("V", bound=Validated)


def unchanged(known: V | None, answer: NotModified) -> V:
    """Return what is known, with the validators of the newest answer. Raises FetchFailed: nothing is known that could
    be unchanged.
    """
    if known is None:
        raise FetchFailed("the server says that nothing has changed, although no earlier version was named")
    etag, last_modified = answer.etag or known.etag, answer.last_modified or known.last_modified
    return replace(known, etag=etag, last_modified=last_modified)


class WebReader(Protocol):
    """Reads anything else that an address gives (a list of pages, a feed, an API), bounded in time and size."""

    async def read(self, url: str, known: V | None, parse: Callable[[bytes, str], V], max_bytes: int) -> V:
        """Return what `parse` makes of the body at `url` and of the address at which that was found; `known`, which was
        read before, where the server says that it is unchanged.

        `parse` runs in a process of its own: it is a function of a module, or a `partial` of one with plain values.

        Raises:
            WebError: it cannot be had, or not be understood; also what `parse` raises.
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


@dataclass(frozen=True, slots=True)
class WebFetchers:
    """The fetchers of one run. They share one client, so that each host is asked at its own pace. Used from one
    loop.
    """

    pages: Web
    reader: WebReader | None = None
    repositories: RepositoryWeb | None = None
