"""Bodies become text, by their content type."""

from __future__ import annotations

import re

from services.knowledge.pages import FetchFailed
from services.knowledge.web.charset import decode
from services.knowledge.web.text import PageText

HTML = frozenset({"text/html", "application/xhtml+xml"})

_AS_IT_IS = re.compile(r"text/(plain|(x-)?markdown)|application/(json|[a-z0-9.+-]+\+json)")
_PDF = "application/pdf"
_CHARSET = re.compile(r"""charset\s*=\s*["']?\s*([^\s;"',]+)""", re.IGNORECASE)
_TAG = re.compile(r"<(!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_SNIFFED = 1024
"""Characters in which an unnamed type is looked for."""


def media_type(content_type: str, body: bytes) -> str:
    """What `content_type` (a header, perhaps empty) calls `body`; where it says nothing, what it looks like."""
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
    except Exception as error:  # what others wrote into a page breaks parsers in more ways than those tell
        raise FetchFailed(f"no text can be read from it ({kind}, {type(error).__name__})") from error
    if not text.text.strip():
        raise FetchFailed("there is no text in it")
    return text


def _read(kind: str, body: bytes, declared: str | None, max_bytes: int) -> PageText:
    # Each reader is imported when it is wanted: together they take longer than the rest of the program.
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
