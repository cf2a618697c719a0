"""The text of a PDF; needs the extra `pdf`."""

from __future__ import annotations

import io
import logging

from pypdf import PdfReader

from services.knowledge.web.contents import PageText
from services.knowledge.web_interface import FetchFailed

# It reports every irregularity, and most files have many.
logging.getLogger("pypdf").setLevel(logging.CRITICAL)


def read_pdf(data: bytes, max_chars: int) -> PageText:
    """The text of all pages, a blank line between two; blocking.

    Raises:
        FetchFailed: it asks for a password, or unpacks to more than `max_chars`.
        Exception: it is damaged; pypdf has no common class for that.
    """
    reader = PdfReader(io.BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        raise FetchFailed("it is a PDF that asks for a password")
    pages: list[str] = []
    size = 0
    for page in reader.pages:
        text = page.extract_text().strip()
        size += len(text)
        if size > max_chars:
            raise FetchFailed(f"its text is longer than {max_chars} characters (kb.max_source_bytes)")
        if text:
            pages.append(text)
    title = (reader.metadata.title if reader.metadata else None) or ""
    return PageText("\n\n".join(pages), " ".join(title.split()))
