"""The main text of a web page, as Markdown with its headings, lists, tables and code."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Protocol, cast

import trafilatura

from services.knowledge.web_interface import PageText

MAX_ELEMENTS = 50_000
"""Above this a page's whole text is taken: trafilatura needs seconds here, and minutes for four times as many."""

# "discarding data: None": what is wrong with a page is reported by the caller.
logging.getLogger("trafilatura").setLevel(logging.CRITICAL)


class _Element(Protocol):
    """What is used of lxml, which has no types."""

    def iter(self) -> Iterator[object]: ...
    def find(self, path: str) -> _Element | None: ...
    def text_content(self) -> str: ...


def read_html(html: str) -> PageText:
    """The text and title of a page; blocking, seconds for a large one.

    Where trafilatura finds no main text, it is all text of the body; that may be empty.
    """
    html = _without_declaration(html)
    # Text that begins with no tag, or is a single element, is accepted only inside a page.
    tree = trafilatura.load_html(html) if html.startswith("<") else None
    if tree is None:
        tree = trafilatura.load_html(f"<html><body>{html}</body></html>")
    if tree is None:
        return PageText("", "")
    root = cast("_Element", tree)
    main = None
    if sum(1 for _ in root.iter()) <= MAX_ELEMENTS:
        main = trafilatura.extract(tree, output_format="markdown", include_comments=False)
    return PageText((main or trafilatura.html2txt(tree)).strip(), _title(root))


def _without_declaration(html: str) -> str:
    """Without what lxml refuses (text that says how it is encoded) or stops at (a NUL)."""
    html = html.replace("\0", "\N{REPLACEMENT CHARACTER}").lstrip()
    if html.startswith("<?xml"):
        return html.partition("?>")[2]
    return html


def _title(tree: _Element) -> str:
    for path in (".//head/title", ".//title", ".//h1"):
        found = tree.find(path)
        title = "" if found is None else " ".join(found.text_content().split())
        if title:
            return title
    return ""
