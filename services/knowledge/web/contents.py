"""Bodies become text, by their content type, off the event loop."""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import clock
from services.knowledge.pages import FetchFailed
from services.knowledge.web.charset import decode

HTML = frozenset({"text/html", "application/xhtml+xml"})
THREADS = 2

_AS_IT_IS = re.compile(r"text/(plain|(x-)?markdown)|application/(json|[a-z0-9.+-]+\+json)")
_PDF = "application/pdf"
_CHARSET = re.compile(r"""charset\s*=\s*["']?\s*([^\s;"',]+)""", re.IGNORECASE)
_TAG = re.compile(r"<(!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_SNIFFED = 1024
"""Characters in which an unnamed type is looked for."""


@dataclass(frozen=True, slots=True)
class PageText:
    """What was read out of a body; `title` is empty when it names none."""

    text: str
    title: str


class Extraction:
    """Reads bodies in threads of its own, so that a page which takes for ever delays no work with files.

    Pitfall 38: parsing a page takes up to seconds, in which the gateway's heartbeat would be late.
    """

    def __init__(self, *, max_bytes: int, timeout_seconds: float) -> None:
        self._max_bytes = max_bytes
        self._timeout = timeout_seconds
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="web-text")

    async def text(self, body: bytes, content_type: str) -> PageText:
        """As `read`; takes no virtual time.

        Raises:
            FetchFailed: as there, or it took too long. The thread is not free again before it has finished.
        """
        return await clock.real_time(partial(self._text, body, content_type))

    def close(self) -> None:
        """Drop what has not begun."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _text(self, body: bytes, content_type: str) -> PageText:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._timeout):
                return await loop.run_in_executor(self._threads, read, body, content_type, self._max_bytes)
        except TimeoutError:
            raise FetchFailed(f"reading its text takes longer than {self._timeout:g} s") from None


def media_type(content_type: str, body: bytes) -> str:
    """The type that `content_type` (a header, perhaps empty) names; without one, what `body` looks like."""
    named = content_type.partition(";")[0].strip().lower()
    if named:
        return named
    if body.startswith(b"%PDF-"):
        return _PDF
    return "text/html" if _TAG.search(body[:_SNIFFED].decode("ascii", "replace")) else "text/plain"


def read(body: bytes, content_type: str, max_bytes: int) -> PageText:
    """The text and title of `body`; blocking, for seconds where it is long.

    Raises:
        FetchFailed: its type is not one that is read, or there is no text in it.
    """
    kind = media_type(content_type, body)
    found = _CHARSET.search(content_type)
    declared = None if found is None else found[1]
    try:
        text = _read(kind, body, declared, max_bytes)
    except FetchFailed:
        raise
    except Exception as error:  # pages break parsers in more ways than those document
        raise FetchFailed(f"no text can be read from it ({kind}, {type(error).__name__})") from error
    if not text.text.strip():
        raise FetchFailed("there is no text in it")
    return text


def _read(kind: str, body: bytes, declared: str | None, max_bytes: int) -> PageText:
    # Each reader is imported when it is needed: together they take longer than the rest of the program.
    if kind in HTML:
        from services.knowledge.web.html import read_html  # noqa: PLC0415 (as said)

        return read_html(decode(body, declared, html=True))
    if _AS_IT_IS.fullmatch(kind):
        text = decode(body, declared)
        if "\0" in text:
            raise FetchFailed(f"it calls itself {kind}, and is not text")
        return PageText(text, "")
    if kind == _PDF:
        try:
            from services.knowledge.web.pdf import read_pdf  # noqa: PLC0415 (of an extra)
        except ImportError:
            raise FetchFailed("it is a PDF, and those are read with the extra `pdf` only: make extra-pdf") from None
        return read_pdf(body, max_bytes)
    raise FetchFailed(f"documents of its type are not read ({kind[:80]!r})")
