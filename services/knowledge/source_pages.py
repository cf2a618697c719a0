"""Web pages that a file lists, as sources: the list, when a page is due, their texts, and the seam to the web."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from pathlib import Path
from typing import Literal, Protocol
from urllib.parse import urlsplit

from clock import from_rfc3339, now, rfc3339
from services.knowledge.cache import Record, Time, hash_text
from services.knowledge.source_kinds import CannotList, LeftOut, Listing, Text, Trouble, read_inside
from services.storage import files, in_thread


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


FetchStatus = Literal["success", "not_modified", "timeout", "error"]
ANSWERED = frozenset({"success", "not_modified"})


@dataclass(frozen=True, slots=True)
class UrlFacts:
    """`last_fetched_at`: when the server last sent the page, or said that it is unchanged; None: never."""

    url: str
    last_fetched_at: Time | None
    etag: str | None
    last_modified: str | None
    fetch_status: FetchStatus
    next_check_at: Time


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlRecord(Record):
    url: UrlFacts
    source_type: Literal["url"] = "url"

    @property
    def source_id(self) -> str:
        return self.url.url


class WebPages:
    """The `SourceKind` of web pages, by their URLs.

    A page is asked for again `fresh_seconds` after an answer and `again_seconds` after a failure. A page that cannot
    be had keeps its text and description. How often one host is asked is up to `web`, which sees every redirect.
    """

    noun, step, record = "page", "fetch", UrlRecord
    batch = 1

    def __init__(
        self,
        links_file: Path,
        cache_dir: Path,
        *,
        max_bytes: int,
        web: Web | None = None,
        concurrency: int = 1,
        fresh_seconds: float = 0,
        again_seconds: float = 0,
        on_result: Callable[[FetchStatus], object] | None = None,
        by_hand: bool = False,
    ) -> None:
        """`web`: None where nothing is fetched; `on_result`: is given the result of each download; `by_hand`: somebody
        waits, so what could not be had is asked for now.
        """
        self._by_hand = by_hand
        self._links_file, self._cache_dir = links_file, cache_dir
        self._max_bytes = max_bytes
        self._web = web
        self.concurrency = concurrency
        self._fresh_seconds, self._again_seconds = fresh_seconds, again_seconds
        self._on_result = on_result

    def owns(self, source_id: str) -> bool:
        return source_id.startswith(("http://", "https://"))

    def list_sources(self, records: Mapping[str, UrlRecord], at: float) -> Listing:
        file = str(self._links_file)
        try:
            urls, left_out = parse_links(self._links_file.read_bytes(), self._links_file.name)
        except FileNotFoundError:
            if not records:
                return Listing()
            remedy = "web pages stay as they are; to have none, leave an empty file"
            raise CannotList(file, f"there is no such file any more; {remedy}", "kb.links_file_path") from None
        except OSError as error:
            message = f"{error.strerror}; web pages stay as they are"
            raise CannotList(file, message, "kb.links_file_path") from error
        try:
            kept = frozenset(os.listdir(self._cache_dir))  # noqa: PTH208 (only names are wanted)
        except OSError:
            kept = frozenset[str]()  # the pages are fetched again
        due = [url for url in urls if is_due(url, records.get(url), kept, at, by_hand=self._by_hand)]
        listed = frozenset(due)
        return Listing([url for url in urls if url not in listed], host_by_host(due), left_out)

    async def fetch(self, due: Mapping[str, UrlRecord | None]) -> Sequence[UrlRecord | LeftOut | Trouble]:
        return [each for url, record in due.items() for each in await self._fetch(url, record)]

    def read(self, source_id: str) -> Text:
        return read_inside(self._cache_dir, self._path(source_id), self._max_bytes)

    def forget(self, source_id: str) -> None:
        self._path(source_id).unlink(missing_ok=True)

    async def _fetch(self, url: str, record: UrlRecord | None) -> list[UrlRecord | LeftOut | Trouble]:
        if self._web is None:
            raise RuntimeError("these pages can only be read")
        # Without its text, "not modified" would be no answer.
        kept = record if record is not None and record.content_hash and self._path(url).exists() else None
        etag, last_modified = (None, None) if kept is None else (kept.url.etag, kept.url.last_modified)
        try:
            answer = await self._web.fetch(url, etag=etag, last_modified=last_modified)
            if isinstance(answer, Page):
                content_hash = await in_thread(self._keep, url, answer, "" if kept is None else kept.content_hash)
                changes = {"etag": answer.etag, "last_modified": answer.last_modified}
                return [self._renewed(url, record, content_hash, "success", changes)]
            if kept is None:
                raise FetchFailed("the server says that nothing has changed, although no earlier version was named")
            changes = {"etag": answer.etag or etag, "last_modified": answer.last_modified or last_modified}
            return [self._renewed(url, kept, kept.content_hash, "not_modified", changes)]
        except (WebError, OSError) as error:
            status = "timeout" if isinstance(error, FetchTimedOut | TimeoutError) else "error"
            # With neither text nor description it is as good as never fetched.
            content_hash = "" if record is None or (kept is None and not record.described) else record.content_hash
            trouble = Trouble(url, "fetch", str(error) or type(error).__name__)
            return [trouble, self._renewed(url, record, content_hash, status, {})]

    def _keep(self, url: str, page: Page, kept_hash: str) -> str:
        """Write the text of a page, unless the one with this hash is there. Gives its hash. Blocking."""
        text = with_title(page)
        if not text.strip():
            raise FetchFailed("there is no text in the page")
        content_hash = hash_text(text)
        if content_hash != kept_hash:
            files.replace(self._path(url), text.encode("utf-8", "replace"))
        return content_hash

    def _renewed(
        self, url: str, record: UrlRecord | None, content_hash: str, status: FetchStatus, changes: dict[str, str | None]
    ) -> UrlRecord:
        """The record after a download with this result."""
        if self._on_result is not None:
            self._on_result(status)
        at = now()
        answered = status in ANSWERED
        if record is None:
            record = UrlRecord.new(rfc3339(at), url=UrlFacts(url, None, None, None, status, rfc3339(at)))
        facts = replace(
            record.url,
            fetch_status=status,
            last_fetched_at=rfc3339(at) if answered else record.url.last_fetched_at,
            next_check_at=rfc3339(at + (self._fresh_seconds if answered else self._again_seconds)),
            **changes,
        )
        return replace(record, url=facts).holding(content_hash)

    def _path(self, url: str) -> Path:
        return self._cache_dir / page_name(url)


def page_name(url: str) -> str:
    """The name of the file that keeps a page's text."""
    return hashlib.sha256(url.encode("utf-8", "replace")).hexdigest()


def is_due(url: str, record: UrlRecord | None, kept: frozenset[str], at: float, *, by_hand: bool = False) -> bool:
    """Whether a page is to be asked for: it is new, its time has come, or its text was lost. `kept`: names of files.
    `by_hand`: its time has come when it could not be had.
    """
    if by_hand and record is not None and record.url.fetch_status not in ANSWERED:
        return True
    if record is None or from_rfc3339(record.url.next_check_at) <= at:
        return True
    lost = bool(record.content_hash) and page_name(url) not in kept
    return lost and record.url.fetch_status in ANSWERED


def with_title(page: Page) -> str:
    """The text to keep: below its title, unless it begins with that itself."""
    title = " ".join(page.title.split())
    if not title or not page.text.strip() or title in page.text[: 2 * len(title) + 20]:
        return page.text
    return f"# {title}\n\n{page.text}"


def host_by_host(urls: Iterable[str]) -> list[str]:
    """One page of each host, then the second of each: waiting for a slow host's turn then delays fewer others."""
    hosts: dict[str, list[str]] = {}
    for url in urls:
        hosts.setdefault(urlsplit(url).netloc.lower(), []).append(url)
    return [url for url in chain.from_iterable(zip_longest(*hosts.values())) if url is not None]


def parse_links(data: bytes, file: str = "links") -> tuple[list[str], dict[str, str]]:
    """The URLs of a list, in order and each once; and by line number, why something is no web page.

    Lines are trimmed; empty ones and `#` comments do not count. Only `http` and `https`, without credentials.
    """
    urls: dict[str, None] = {}
    left_out: dict[str, str] = {}
    for number, raw in enumerate(data.decode("utf-8-sig", "replace").splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        reason = _unfit(line)
        if reason:
            left_out[f"{file}, line {number}"] = reason
        else:
            urls[line] = None
    return list(urls), left_out


def _unfit(line: str) -> str:
    try:
        parts = urlsplit(line)
        host = parts.hostname
        _ = parts.port
    except ValueError:
        return "it is no URL"
    if not line.startswith(("http://", "https://")) or not host:
        return "it is no http or https URL"
    if parts.username is not None:
        # It would show in the index, in prompts and under answers.
        return "it holds a user name or password"
    if not line.isprintable() or any(letter.isspace() for letter in line):
        return "it holds blanks or invisible characters"
    return ""
