"""Protocols of the access to the web, with their results and errors; implemented in `services.knowledge.web`."""

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
    etag: str | None = None
    last_modified: str | None = None


FetchResult = NotModified | Page


class WebError(Exception):
    """A page was not fetched. The message says why in one line, without the URL."""


class FetchFailed(WebError):
    """The server gave no answer, or an error."""


class FetchTimedOut(WebError):
    """The answer did not come in time."""


FetchStatus = Literal["success", "not_modified", "timeout", "error"]


class Web(Protocol):
    """Fetches single pages. Must be closed at the end of a run."""

    async def fetch(self, url: str, *, etag: str | None, last_modified: str | None) -> FetchResult:
        """Fetch one page, conditionally on `etag` and `last_modified` if they are given.

        Time, size and the rate of requests to one host are bounded; the caller bounds the number of calls at a time.

        Raises:
            FetchFailed: the server gave no usable answer.
            FetchTimedOut: it gave none in time.
        """
        ...

    async def aclose(self) -> None: ...


class HasValidators(Protocol):
    """A dataclass made from an answer, with the validators that the server sent."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def etag(self) -> str | None: ...
    @property
    def last_modified(self) -> str | None: ...


V = TypeVar("V", bound=HasValidators)


def keep_known(known: V | None, answer: NotModified) -> V:
    """Return the earlier result, with the validators of the newest answer. Raises FetchFailed: `known` is None."""
    if known is None:
        raise FetchFailed("the server says that nothing has changed, although no earlier version was named")
    etag, last_modified = answer.etag or known.etag, answer.last_modified or known.last_modified
    return replace(known, etag=etag, last_modified=last_modified)


class WebReader(Protocol):
    """Reads anything else at an address (a list of pages, a feed, an API), bounded in time and size."""

    async def read(self, url: str, known: V | None, parse: Callable[[bytes, str], V], max_bytes: int) -> V:
        """Fetch `url` and return the result of `parse`, called with the body and the address after redirects. If the
        server says that nothing has changed, return `known`, the earlier result.

        `parse` runs in a process of its own: it is a function of a module, or a `partial` of one with plain values.

        Raises:
            WebError: the body cannot be fetched or parsed; also what `parse` raises.
        """
        ...

    async def robots(self, url: str) -> tuple[str, float]:
        """Fetch the robots.txt of the host of `url`, empty if the host has none, and the seconds that it demands
        between two requests, or 0. Raises WebError: it cannot be fetched.
        """
        ...

    def pause(self, url: str, seconds: float) -> None:
        """Send the host of `url` no more than one request in these `seconds`."""
        ...


@dataclass(frozen=True, slots=True)
class RepositoryFiles:
    """The selected files of one commit: the hash that git gives each, by path, and the requested contents by such a
    hash. `left_out`: the number of other files, by the reason.
    """

    commit: str
    blobs: dict[str, str] = field(default_factory=dict[str, str])
    texts: dict[str, bytes] = field(default_factory=dict[str, bytes])
    left_out: dict[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True)
class RepositorySelection:
    """Selects files of a repository: those below `folder` that the path filter allows, at most `most`."""

    folder: str
    path_filter: PathFilter
    most: int


class RepositoryWeb(Protocol):
    """Fetches git repositories, bounded in time and size. Packs are unpacked in processes of their own."""

    async def files(
        self,
        url: str,
        branch: str,
        selection: RepositorySelection,
        known_commit: str,
        choose_hashes: Callable[[Mapping[str, str]], set[str]],
    ) -> RepositoryFiles | None:
        """Fetch the files of the newest commit; None if that is still `known_commit` (its hash, or empty).

        `branch`: or tag; empty for the repository's default. `choose_hashes`: returns the hashes of the contents to
        fetch, given the hashes of all files by path.

        Raises:
            WebError: the files cannot be fetched.
        """
        ...


@dataclass(frozen=True, slots=True)
class WebFetchers:
    """The fetchers of one run. They share one client, which limits the requests to each host. Used from one loop."""

    pages: Web
    reader: WebReader | None = None
    repositories: RepositoryWeb | None = None
