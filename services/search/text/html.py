"""Reads saved web pages: their main text, as trafilatura finds it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Protocol, cast

import trafilatura

from services.search.text.article import Article
from services.search.text.markdown import read_web_text

_MAX_ELEMENTS = 50_000
"""Of a larger page the whole text is taken: trafilatura needs seconds here, and minutes for four times as many."""

logging.getLogger("trafilatura").setLevel(logging.CRITICAL)


class _Element(Protocol):
    """The methods of lxml's elements that are used here; lxml has no types."""

    def iter(self) -> Iterator[object]: ...
    def find(self, path: str) -> _Element | None: ...
    def get(self, name: str) -> str | None: ...
    def text_content(self) -> str: ...


def read_html(text: str) -> Article:
    """Read the main text of a page, its title and its canonical address. Never raises.

    If trafilatura finds no main text, all text of the body is taken.
    """
    # lxml refuses text that declares an encoding, and stops at a NUL.
    text = text.replace("\0", "\N{REPLACEMENT CHARACTER}").lstrip("\N{ZERO WIDTH NO-BREAK SPACE} \t\r\n")
    if text.startswith("<?xml"):
        text = text.partition("?>")[2].lstrip()
    tree = trafilatura.load_html(text if text.startswith("<") else f"<html><body>{text}</body></html>")
    if tree is None:
        return read_web_text(text)  # no page, whatever its name says
    page = cast("_Element", tree)
    title, permalink = _title(page), _permalink(page)
    main = None
    if sum(1 for _ in page.iter()) <= _MAX_ELEMENTS:
        main = trafilatura.extract(
            tree,
            output_format="markdown",
            include_comments=False,
            include_tables=True,
            include_links=True,
            include_formatting=True,
        )
    main = main or trafilatura.html2txt(tree) or text
    return read_web_text(main.strip(), title)._replace(permalink=permalink)


def _title(page: _Element) -> str:
    for path in (".//h1", ".//head/title", ".//title"):
        found = page.find(path)
        title = "" if found is None else " ".join(found.text_content().split()).rstrip("¶#").rstrip()
        if title:
            return title
    return ""


def _permalink(page: _Element) -> str:
    found = page.find(".//link[@rel='canonical']")
    return "" if found is None else (found.get("href") or "").strip()
