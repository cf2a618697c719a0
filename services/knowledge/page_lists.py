"""Reads sitemaps, llms.txt and robots.txt. Anybody may have written them, so `read_list` and `crawl_pause` run in
processes of their own (`clock.Processes`), which alone import the parsers.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from services.knowledge.file_selection import (
    BEYOND_LIMIT,
    CREDENTIALS,
    LEFTOVER,
    LICENCE,
    NOT_CHOSEN,
    PEOPLE,
    PathFilter,
)
from services.knowledge.links_file import LONGEST_URL, SiteLine, page_address, site_host
from services.knowledge.web_interface import FetchFailed

MAX_BYTES = 50 * 1024 * 1024
"""The size of a sitemap, compressed or not (sitemaps.org)."""
LONGEST_PAUSE = 30.0
"""The seconds between two requests that a robots.txt may demand. With more, a large site would take weeks."""
AGENT = "Millrace"
"""The name by which a robots.txt knows this program."""

_GZIP = b"\x1f\x8b"
_ZLIB_OR_GZIP = 32 + zlib.MAX_WBITS
_MAX_TIME_CHARS = 40


@dataclass(frozen=True, slots=True)
class PageList:
    """The content of a document that lists pages, such as a sitemap: pages or further lists, each with the time of its
    last change as the document has it, or empty. `left_out`: the number of other addresses, by the reason.
    """

    pages: dict[str, str] = field(default_factory=dict[str, str])
    lists: dict[str, str] = field(default_factory=dict[str, str])
    left_out: dict[str, int] = field(default_factory=dict[str, int])
    etag: str | None = None
    last_modified: str | None = None


_OTHER_ENDINGS = (".pdf", ".php", ".pl")
_NAMES_OF_PAGES = frozenset({None, PEOPLE, LICENCE, CREDENTIALS, LEFTOVER})
"""Reasons for which no page is refused: it is published, and its name often has no ending."""


def crawl_pause(robots: str) -> float:
    """Return the seconds that a robots.txt demands between two requests of this program, at most `LONGEST_PAUSE`."""
    from protego import Protego  # noqa: PLC0415 (needed in these processes only)

    asked = Protego.parse(robots).crawl_delay(AGENT) or 0.0
    return min(max(0.0, float(asked)), LONGEST_PAUSE)


def read_list(body: bytes, list_url: str, line: SiteLine, robots: str, most: int) -> PageList:
    """Return the pages and further lists in a document from the address `list_url`, at most `most` of each. Blocking.

    Their host must be that of `line`, or of `list_url`, to which the document may have moved. The globs of the line and
    `robots` (a robots.txt) must allow them, and their names must be those of documents.

    Raises:
        FetchFailed: the document is of another kind, or too large.
    """
    from protego import Protego  # noqa: PLC0415 (as above)

    found = _read_llms(body) if line.kind == "llms" else _read_sitemap(body)
    rules = Protego.parse(robots)
    hosts = {line.host, site_host(list_url)}
    choices = PathFilter(line.include, line.exclude), PathFilter()
    listed = PageList()
    for kind, raw, lastmod in found:
        url, into = page_address(list_url, raw), listed.lists if kind == "list" else listed.pages
        if url in into or (line.kind == "llms" and url == list_url):
            continue
        if not url:
            reason = "no addresses of web pages"
        elif site_host(url) not in hosts:
            reason = "on other hosts"
        elif kind == "page" and (refusal := _refusal(url, choices)) is not None:
            reason = refusal
        elif kind == "page" and not rules.can_fetch(url, AGENT):
            reason = "kept out by robots.txt"
        elif len(into) >= most:
            reason = BEYOND_LIMIT
        else:
            into[url] = lastmod[:_MAX_TIME_CHARS]
            continue
        listed.left_out[reason] = listed.left_out.get(reason, 0) + 1
    return listed


def _refusal(url: str, choices: tuple[PathFilter, PathFilter]) -> str | None:
    """Return why the page of an address is left out; None: it is not. `choices`: the filter of the line's globs, and
    the one of names that documents may have. A page has to pass both (pitfall 58).
    """
    path = urlsplit(url).path.lstrip("/")
    by_globs, by_name = choices
    if by_globs.refusal(path) == NOT_CHOSEN:
        return "left out by the line's globs"
    # PDFs are read as pages, with an extra; and a page may be called `license` or `secrets`, or be made by a program.
    refused = by_name.refusal(path) not in _NAMES_OF_PAGES and not path.lower().endswith(_OTHER_ENDINGS)
    return "no documents, by their names" if refused else None


_Found = tuple[Literal["page", "list"], str, str]


def _read_llms(body: bytes) -> Iterator[_Found]:
    from markdown_it import MarkdownIt  # noqa: PLC0415 (as above)

    from services.knowledge.web.contents import decode  # noqa: PLC0415 (as above)

    if len(body) > MAX_BYTES:
        raise FetchFailed(_TOO_LARGE)
    text = decode(body, None)
    if "\0" in text or re.match(r"\s*<(!doctype|html)\b", text, re.IGNORECASE):
        raise FetchFailed("it is no llms.txt, which is a text in Markdown")
    found = False
    for block in MarkdownIt().parse(text):
        for token in block.children or ():
            if token.type == "link_open":
                found = True
                yield "page", str(token.attrs.get("href", "")), ""
    if not found:
        raise FetchFailed("it is no llms.txt: there is no link in it")


def _read_sitemap(body: bytes) -> Iterator[_Found]:
    from services.knowledge.web.contents import decode  # noqa: PLC0415 (as above)

    data = _unpack(body)
    if data.lstrip(b"\xef\xbb\xbf\xff\xfe\xfe\xff \t\r\n\0")[:1] == b"<":
        yield from _SitemapXml().read(data)
        return
    # A list of addresses, one a line, is a sitemap as well.
    lines = [line.strip() for line in decode(data, None).splitlines() if line.strip()]
    if not lines or not lines[0].startswith(("http://", "https://")):
        raise FetchFailed("it is no sitemap")
    for line in lines:
        yield "page", line, ""


_TOO_LARGE = f"it is larger than {MAX_BYTES // 1024**2} MiB"


def _unpack(body: bytes) -> bytes:
    if not body.startswith(_GZIP):
        return body
    unpacking = zlib.decompressobj(_ZLIB_OR_GZIP)
    try:
        data = unpacking.decompress(body, MAX_BYTES + 1)
    except zlib.error:
        raise FetchFailed("it is packed, and damaged") from None
    if len(data) > MAX_BYTES:
        raise FetchFailed(f"unpacked, {_TOO_LARGE}")
    if not unpacking.eof:
        raise FetchFailed("it is packed, and breaks off")
    return data


class _SitemapXml:
    """Collects the addresses in the XML of a sitemap."""

    def __init__(self) -> None:
        self._path: list[str] = []
        self._text: dict[str, str] = {}
        self._found: list[_Found] = []

    def read(self, data: bytes) -> list[_Found]:
        from services.knowledge.web.contents import parse_xml  # noqa: PLC0415 (as above)

        parse_xml(data, "sitemap", on_start=self._start, on_end=self._end, on_text=self._characters)
        return self._found

    def _start(self, name: str, _: object) -> None:
        if not self._path and _local_name(name) not in {"urlset", "sitemapindex"}:
            raise FetchFailed("it is no sitemap, but other XML or a page")
        self._path.append(_local_name(name))
        if len(self._path) == 2:  # noqa: PLR2004 (an entry)
            self._text = {}

    def _end(self, _: str) -> None:
        match self._path:
            case ["urlset", "url"]:
                self._found.append(("page", self._text.get("loc", ""), self._text.get("lastmod", "").strip()))
            case ["sitemapindex", "sitemap"]:
                self._found.append(("list", self._text.get("loc", ""), self._text.get("lastmod", "").strip()))
            case _:
                pass
        self._path.pop()

    def _characters(self, text: str) -> None:
        match self._path:
            case [_, _, ("loc" | "lastmod") as name]:  # not deeper: pictures and films have a `loc` of their own
                known = self._text.get(name, "")
                self._text[name] = known + text[: 2 * LONGEST_URL - len(known)]
            case _:
                pass


def _local_name(name: str) -> str:
    return name.rpartition(" ")[2]
