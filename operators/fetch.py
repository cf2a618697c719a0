"""Ask for web pages, and keep the text of those that have changed."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any, Literal

from clock import now, rfc3339
from operators.examine import settled_or_pending
from services.knowledge import (
    DuePage,
    FetchFailed,
    FetchTimedOut,
    How,
    Ledger,
    NotModified,
    Page,
    Record,
    Settled,
    SourcePaths,
    Trouble,
    UpdateEvent,
    UrlFacts,
    Web,
    WebError,
    hash_text,
    write_page,
)
from services.storage import in_thread


@dataclass(frozen=True, slots=True)
class Rechecks:
    """When a page is asked for again."""

    fresh_seconds: float
    """After an answer."""
    again_seconds: float
    """After a failure."""


Result = Literal["success", "not_modified", "timeout", "error"]


def fetch(
    web: Web,
    ledger: Ledger,
    places: SourcePaths,
    key: str,
    rechecks: Rechecks,
    count: Callable[[Result], object] | None,
) -> Callable[[DuePage], Coroutine[Any, Any, list[UpdateEvent]]]:
    """Fetch one page. Gives what became of it, and a trouble as well when it could not be had.

    A page that cannot be had keeps the text and description that it has; what is pending goes on. How often one host
    is asked is the web's own affair, which knows of every redirect.
    """

    async def fetched(due: DuePage) -> list[UpdateEvent]:
        facts = None if due.record is None or not due.conditional else due.record.url
        etag, last_modified = (None, None) if facts is None else (facts.etag, facts.last_modified)
        try:
            answer = await web.fetch(due.url, etag=etag, last_modified=last_modified)
            record = await _taken(due, answer)
        except (WebError, OSError) as error:
            return refused(due, error)
        if count is not None:
            count("success" if isinstance(answer, Page) else "not_modified")
        return [settled_or_pending(record, ledger, key)]

    async def _taken(due: DuePage, answer: Page | NotModified) -> Record:
        at = now()
        if isinstance(answer, Page):
            text = with_title(answer)
            if not text.strip():
                raise FetchFailed("there is no text in the page")
            content_hash = hash_text(text)
            if not (due.conditional and due.record is not None and due.record.content_hash == content_hash):
                await in_thread(write_page, places.web_cache_dir, due.url, text)
            facts = UrlFacts(
                due.url, rfc3339(at), answer.etag, answer.last_modified, "success", rfc3339(at + rechecks.fresh_seconds)
            )
            return as_page(due.record, content_hash, facts, rfc3339(at))
        if due.record is None or due.record.url is None or not due.conditional:
            raise FetchFailed("the server says that nothing has changed, without having been asked")
        before = due.record.url
        facts = replace(
            before,
            last_fetched_at=rfc3339(at),
            etag=answer.etag or before.etag,
            last_modified=answer.last_modified or before.last_modified,
            fetch_status="not_modified",
            next_check_at=rfc3339(at + rechecks.fresh_seconds),
        )
        return as_page(due.record, due.record.content_hash, facts, rfc3339(at))

    def refused(due: DuePage, error: Exception) -> list[UpdateEvent]:
        status: Result = "timeout" if isinstance(error, FetchTimedOut | TimeoutError) else "error"
        if count is not None:
            count(status)
        at = now()
        before = due.record
        facts = UrlFacts(due.url, None, None, None, status, rfc3339(at + rechecks.again_seconds))
        if before is not None and before.url is not None:
            facts = replace(before.url, fetch_status=status, next_check_at=facts.next_check_at)
        record = as_page(before, "" if before is None else before.content_hash, facts, rfc3339(at))
        readable = due.conditional or record.described
        return [
            Trouble(due.url, "fetch", str(error) or type(error).__name__),
            settled_or_pending(record, ledger, key) if readable else Settled(record, How.SAME),
        ]

    return fetched


def with_title(page: Page) -> str:
    """The text to keep: below its title, where it does not open with that itself."""
    title = " ".join(page.title.split())
    if not title or not page.text.strip() or title in page.text[: 2 * len(title) + 20]:
        return page.text
    return f"# {title}\n\n{page.text}"


def as_page(record: Record | None, content_hash: str, facts: UrlFacts, at: str) -> Record:
    """The record of a page that has this content now; one with new content waits for its description."""
    if record is None or record.url is None:
        return Record("url", content_hash, "", "", at, summary_pending=bool(content_hash), url=facts)
    pending = record.summary_pending or record.content_hash != content_hash
    return replace(record, content_hash=content_hash, url=facts, summary_pending=pending, gone_at=None)
