"""Extracts text from response bodies, by content type and charset, in processes of their own."""

from __future__ import annotations

import codecs
import io
import logging
import re
from collections.abc import Callable, Iterator
from typing import ParamSpec, Protocol, TypeVar, cast
from xml.parsers import expat

from clock import WorkRunner, WorkStopped
from services.knowledge.web_interface import FetchFailed, Page

P = ParamSpec("P")
T = TypeVar("T")

# pypdf reports every irregularity, and most files have many.
logging.getLogger("pypdf").setLevel(logging.CRITICAL)
# trafilatura says "discarding data: None"; the caller reports what is wrong with a page.
logging.getLogger("trafilatura").setLevel(logging.CRITICAL)

HTML = frozenset({"text/html", "application/xhtml+xml"})

_PLAIN_TEXT = re.compile(r"text/(plain|(x-)?markdown)|application/(json|[a-z0-9.+-]+\+json)")
_PDF = "application/pdf"
_CHARSET = re.compile(r"""charset\s*+=\s*+["']?\s*+([^\s;"',]+)""", re.IGNORECASE)
_TAG = re.compile(r"<(!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_SNIFFED_CHARS = 1024
"""The characters from which the type is detected if the header has none."""


class Extraction:
    """Extracts text in processes of its own: a page may be made to break its parser, or take seconds, in which the
    gateway's heartbeat would be late (pitfall 38).
    """

    def __init__(self, run: WorkRunner, *, max_bytes: int) -> None:
        self._run = run
        self._max_bytes = max_bytes

    async def text(self, body: bytes, content_type: str) -> Page:
        """Extract the text of a body, in no virtual time. Raises FetchFailed: as `read`, or the process was stopped."""
        return await run_parser(self._run, "its text", read, body, content_type, self._max_bytes)


async def run_parser(run: WorkRunner, what: str, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a parser of a server's answer in a process of its own, as anybody may have made the answer. Raises
    FetchFailed: as `work`, or the process was stopped; `what` begins the message then.
    """
    try:
        return await run(work, *args, **kwargs)
    except WorkStopped as error:
        raise FetchFailed(f"{what} cannot be read: {error}") from None


def media_type(content_type: str, body: bytes) -> str:
    """Return the media type in a header; without one, detect the type of `body`."""
    named = content_type.partition(";")[0].strip().lower()
    if named:
        return named
    if body.startswith(b"%PDF-"):
        return _PDF
    return "text/html" if _TAG.search(body[:_SNIFFED_CHARS].decode("ascii", "replace")) else "text/plain"


def read(body: bytes, content_type: str, max_bytes: int) -> Page:
    """Extract the text and title of `body`. Blocking, for seconds if it is long. Raises FetchFailed: its type is not
    supported, or it has no text.
    """
    kind = media_type(content_type, body)
    found = _CHARSET.search(content_type)
    declared = None if found is None else found[1]
    try:
        text = _extract(kind, body, declared, max_bytes)
    except FetchFailed:
        raise
    except Exception as error:  # pages break parsers in more ways than those document
        raise FetchFailed(f"no text can be read from it ({kind}, {type(error).__name__})") from error
    if not text.text.strip():
        raise FetchFailed("there is no text in it")
    return text


def parse_xml(
    data: bytes,
    noun: str,
    *,
    on_start: Callable[[str, dict[str, str]], object],
    on_end: Callable[[str], object],
    on_text: Callable[[str], object],
) -> None:
    """Parse XML from outside. Blocking. `noun`: what the document should be, for messages. The callbacks get the start
    of each element (its namespace, a blank and its name, with its attributes), its end, and the text between.

    Raises:
        FetchFailed: it is damaged, or declares a document type, which could define entities without end.
    """

    def refuse(*_: object) -> None:
        raise FetchFailed(f"it is no {noun}: it declares a document type")

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler = on_start
    parser.EndElementHandler = on_end
    parser.CharacterDataHandler = on_text
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, LookupError, ValueError):  # the last two are about encodings
        line = parser.CurrentLineNumber
        raise FetchFailed(f"it is no {noun}: its XML breaks off or is wrong in line {line}") from None


def _extract(kind: str, body: bytes, declared: str | None, max_bytes: int) -> Page:
    if kind in HTML:
        return _read_html(decode(body, declared, html=True))
    if _PLAIN_TEXT.fullmatch(kind):
        text = decode(body, declared)
        if "\0" in text:
            raise FetchFailed(f"it calls itself {kind}, and is not text")
        return Page(text, "")
    if kind == _PDF:
        return _read_pdf(body, max_bytes)
    raise FetchFailed(f"documents of its type are not read ({kind[:80]!r})")


MAX_ELEMENTS = 50_000
"""Larger pages give their whole text: trafilatura needs seconds here, and minutes for four times as many elements."""


class _Element(Protocol):
    """The methods of an lxml element that are used here; lxml has no types."""

    def iter(self) -> Iterator[object]: ...
    def find(self, path: str) -> _Element | None: ...
    def text_content(self) -> str: ...


def _read_html(html: str) -> Page:
    """Extract the text and title of a page. If trafilatura finds no main text, the text is that of the whole body,
    which may be empty. Blocking, seconds for a large page.
    """
    import trafilatura  # noqa: PLC0415 (takes longer than the rest of the program)

    html = _without_declaration(html)
    # Text that begins with no tag, or is a single element, is accepted only inside a page.
    tree = trafilatura.load_html(html) if html.startswith("<") else None
    if tree is None:
        tree = trafilatura.load_html(f"<html><body>{html}</body></html>")
    if tree is None:
        return Page("", "")
    root = cast("_Element", tree)
    main = None
    if sum(1 for _ in root.iter()) <= MAX_ELEMENTS:
        main = trafilatura.extract(tree, output_format="markdown", include_comments=False)
    return Page((main or trafilatura.html2txt(tree)).strip(), _title(root))


def _without_declaration(html: str) -> str:
    """Remove the XML declaration, which lxml refuses in text, and each NUL, where it would stop."""
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


def _read_pdf(data: bytes, max_chars: int) -> Page:
    """Extract the text of all pages, with a blank line between two. Raises FetchFailed: the extra is missing, or the
    PDF needs a password or has more than `max_chars` characters; Exception: it is damaged; pypdf has no common class
    for it.
    """
    try:
        from pypdf import PdfReader  # noqa: PLC0415 (of an extra)
    except ImportError:
        raise FetchFailed("it is a PDF, and those are read with the extra `pdf` only: make extra-pdf") from None
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
    return Page("\n\n".join(pages), " ".join(title.split()))


_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16's, with which it begins
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_META_BYTES = 4096
"""The bytes with the charset's declaration; HTML allows 1024, and not every author counts."""
_META = re.compile(
    rb"""<(?:meta|\?xml)\b[^>]*?(?:charset|encoding)\s*=\s*["']?\s*([a-z0-9_.:-]{1,40})""", re.IGNORECASE
)
_KNOWN_CODEC = re.compile(r"utf-(8|16|32)|cp|iso|koi8|mac|gb|big5|euc|shift|ascii|tis|johab|ptcp|hp|kz")
"""The prefixes of Python's codecs for charsets of the web. Other codecs are no charsets, or slow (punycode)."""
_ALSO_VALID_UTF8 = re.compile(r"iso2022|utf-(16|32)")
"""Charsets whose bytes may be valid UTF-8."""
_CODEC_ALIASES = {"iso8859-1": "cp1252", "ascii": "cp1252", "gb2312": "gb18030", "gbk": "gb18030"}
"""The codecs that the web means by these names (WHATWG, Encoding)."""


def decode(data: bytes, declared: str | None, *, html: bool = False) -> str:
    """Decode `data`.

    A byte order mark decides. Without one, valid UTF-8 is UTF-8: other text hardly ever is, and servers call all text
    Latin-1. Other text has the charset `declared` by the server, or (`html`) in a `<meta>`. If none of these fits, the
    text is UTF-8 with U+FFFD for each error.
    """
    for bom, charset in _BOMS:
        if data.startswith(bom):
            return data[len(bom) :].decode(charset, "replace")
    charsets = [_codec_of(declared), _codec_of(_declared_in_html(data)) if html else None]
    named = [charset for charset in charsets if charset is not None]
    odd = [charset for charset in named if _ALSO_VALID_UTF8.match(charset)]
    for charset in (*odd, "utf-8", *named):
        try:
            return data.decode(charset)
        except UnicodeDecodeError:
            continue
    # Undefined bytes of a one-byte charset spoil less text than in UTF-8.
    return data.decode("cp1252" if "cp1252" in named else "utf-8", "replace")


def _declared_in_html(data: bytes) -> str | None:
    found = _META.search(data[:_META_BYTES])
    # The declaration was read as ASCII, so the page cannot be UTF-16.
    return None if found is None or found[1].lower().startswith((b"utf-16", b"utf-32")) else found[1].decode("ascii")


def _codec_of(name: str | None) -> str | None:
    """Return the name of the codec for a charset; None if the charset is unknown."""
    try:
        codec = codecs.lookup((name or "").strip()).name
    except (LookupError, ValueError):
        return None
    return _CODEC_ALIASES.get(codec, codec) if _KNOWN_CODEC.match(codec) else None
