"""Chooses the reader of a document by its name or its text, and reads plain text and HTML itself. docutils is imported
when the first reST document is read; trafilatura in the processes that read HTML only.
"""

from __future__ import annotations

import html
import logging
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from clock import Processes, WorkStopped, wait_in_real_time
from services.search.text import markdown
from services.search.text.article import (
    Article,
    Block,
    BlockKind,
    Heading,
    Piece,
    Section,
    fenced,
    lowered,
    make_article,
    mkdocs_slugs,
    raised,
)
from services.search.text.markdown import clean, read_web_text, with_bare_titles
from services.search.text.markdown_html import HIDING_STYLE

_MAX_TITLE_CHARS = 120
_UNDERLINE_LEVELS = {"=": 1, "-": 2, "~": 3, "*": 3, "^": 3}
_ITEM = re.compile(r"\s{0,8}(?:[-*+•]|\d{1,3}[.)])\s+\S.*")
_WORD = re.compile(r"\w")


def read_plain(text: str) -> Article:
    """Read paragraphs, lists and indented listings, word for word. Underlined lines are headings; if there are none,
    short lines on their own that do not end like a sentence. Never raises.
    """
    lines = clean(text).replace("\f", "\n\n").split("\n")
    return make_article(with_bare_titles([*_pieces(lines)]), mkdocs_slugs())


def _pieces(lines: Sequence[str]) -> Iterator[Piece]:
    """Split at empty lines and at underlined titles."""
    paragraph: list[str] = []
    for line in lines:
        level = _underline_level(line, paragraph[-1] if paragraph else "")
        if level:
            title = paragraph.pop().strip()
            yield from _blocks(paragraph)
            yield Heading(level, title)
            paragraph = []
        elif line.strip():
            paragraph.append(line.rstrip())
        elif paragraph and paragraph[0].startswith(("    ", "\t")):
            paragraph.append("")  # a listing goes on after an empty line
        else:
            yield from _blocks(paragraph)
            paragraph = []
        if len(paragraph) > 1 and not paragraph[-2] and not _is_indented(paragraph[-1:]):
            yield from _blocks(paragraph[:-1])
            paragraph = paragraph[-1:]
    yield from _blocks(paragraph)


def _underline_level(line: str, title: str) -> int:
    line, width = line.strip(), len(title.strip())
    if not 0 < width <= _MAX_TITLE_CHARS or len(line) < max(3, width - 2) or len(line) > 2 * _MAX_TITLE_CHARS:
        return 0
    return _UNDERLINE_LEVELS.get(line[0], 0) if line == line[0] * len(line) and _WORD.search(title) else 0


def _is_indented(lines: Sequence[str]) -> bool:
    return all(line.startswith(("    ", "\t")) or not line for line in lines)


def _blocks(lines: Sequence[str]) -> Iterator[Block]:
    text = "\n".join(lines).strip("\n").rstrip()
    if not _WORD.search(text):
        return
    if _ITEM.fullmatch(lines[0]):
        yield Block(BlockKind.LIST, textwrap.dedent(text))
    elif _is_indented(lines):
        yield Block(BlockKind.CODE, fenced(textwrap.dedent(text)))
    else:
        yield Block(BlockKind.PROSE, textwrap.dedent(text))


_UNREADABLE = re.compile(r"[\x00-\x08\x0e-\x1b\x7f\ufeff]")
"""Invisible; docutils marks escapes with NUL."""
_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1{2,1000}[ \t]*")
_MAX_REST_TITLE_CHARS = 300
_LONGEST_PARAGRAPH_CHARS = 10_000
_REST_ITEM = re.compile(r"(?:[-*+•]|\(?(?:\d{1,9}|[a-zA-Z#])[.)])[ \t]|\.\.[ \t]|:[\w-]{1,100}:")


def read_rest(text: str) -> Article:
    """Read reStructuredText, in the Markdown that Discord shows. Never raises; safe for threads.

    A text that docutils cannot take or that has an endless paragraph gives paragraphs below its underlined titles. No
    file is read and no address opened. A megabyte of documentation takes about 2 seconds of one core; no text of that
    size more than 10.
    """
    from services.search.text.rest_article import read_article  # noqa: PLC0415 (loads docutils, which takes some 50 ms)

    readable = _UNREADABLE.sub("", text)
    if _has_endless_paragraph(readable):
        return _as_paragraphs(readable)
    try:
        return read_article(readable)
    except Exception:  # noqa: BLE001 (docutils fails in many ways on what is not its language; RecursionError is one)
        return _as_paragraphs(readable)


def _has_endless_paragraph(text: str) -> bool:
    """Return whether a paragraph is longer than people write: the time of docutils grows with the square of its length,
    and no other thread runs meanwhile.
    """
    chars, indent = 0, -1
    for line in text.splitlines():
        body = line.lstrip()
        if not body or len(line) - len(body) != indent or _REST_ITEM.match(body):
            chars, indent = 0, len(line) - len(body)
        chars += len(body)
        if chars > _LONGEST_PARAGRAPH_CHARS:
            return True
    return False


def _as_paragraphs(text: str) -> Article:
    """Split at empty lines; titles are lines above a line of one repeated sign."""
    parts: list[tuple[str, list[Block]]] = [("", [])]
    for is_text, group in groupby(text.splitlines(), key=lambda line: bool(line.strip())):
        for heading, paragraph in _split_at_titles(group) if is_text else ():
            if heading:
                parts.append((heading, []))
            if paragraph:
                parts[-1][1].append(Block(BlockKind.PROSE, paragraph))
    sections = (
        Section((heading,) if heading else (), "", tuple(blocks)) for heading, blocks in parts if heading or blocks
    )
    return Article(next((heading for heading, _ in parts if heading), ""), tuple(sections))


def _split_at_titles(lines: Iterable[str]) -> list[tuple[str, str]]:
    """Split the lines between two empty ones into headings (the first may be empty) and the text below each."""
    found: list[tuple[str, list[str]]] = [("", [])]
    for line in lines:
        if not _ADORNMENT.fullmatch(line.rstrip()):
            found[-1][1].append(line)
        elif found[-1][1] and len(found[-1][1][-1]) <= _MAX_REST_TITLE_CHARS:
            found.append((found[-1][1].pop().strip(), []))
    return [(heading, "\n".join(body)) for heading, body in found]


_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+\S", re.MULTILINE)
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)
_UNDERLINED = re.compile(
    r"^\S[^\n]{0,200}\n(?:={3,}|-{3,}|~{3,}|\^{3,}|\*{3,}|\"{3,}|`{3,}|#{3,}|\+{3,})[ \t]*$", re.MULTILINE
)
_DIRECTIVE = re.compile(r"^[ \t]*\.\. (?:[\w:-]+::|_[^\n:]+:)", re.MULTILINE)
_HTML_ENDINGS = ("html", "htm", "xhtml")
_TAG = re.compile(r"<[^<>]*>")
_WHOLE = re.compile(r"-?[0-9]{1,6}")
_HTML_SECONDS = 30.0
"""Two megabytes of documentation take two seconds."""
_processes = Processes(seconds=_HTML_SECONDS)
_stopped_texts: set[int] = set()
"""Hashes of the texts whose reading was stopped at a limit."""

log = logging.getLogger(__name__)
logging.getLogger("trafilatura").setLevel(logging.CRITICAL)


def read(name: str, text: str) -> Article:
    """Read a document into sections. `name`: its path, the ending of which tells the language, or its address: the
    text of a page was extracted when it was fetched. Never raises.

    Without a known ending, the text tells it: Markdown has headings or fences, reST underlined titles and directives;
    else it is plain text. Blocking; for HTML up to `_HTML_SECONDS`.
    """
    if is_html(name):
        return _read_html(name, text)
    reader = read_web_text if _is_address(name) else _READERS.get(_ending(name)) or _reader_by_text(text)
    return reader(text)


def _ending(name: str) -> str:
    return name.rpartition("/")[2].lower().rpartition(".")[2]


def is_html(name: str) -> bool:
    """Return whether `read` reads a document of this name in another process, and so blocks for longer."""
    return _ending(name) in _HTML_ENDINGS and not _is_address(name)


def _is_address(name: str) -> bool:
    # Also behind the prefix of a kind of source. A path never holds this, nor does the id of a file in a repository.
    return "://" in name


def _reader_by_text(text: str) -> Callable[[str], Article]:
    if len(_UNDERLINED.findall(text)) > 1 and _DIRECTIVE.search(text):
        return read_rest
    return markdown.read_markdown if _HEADING.search(text) or _FENCE.search(text) else read_plain


def _read_markdown(text: str) -> Article:
    return markdown.read_mdx(text) if markdown.is_mdx(text) else markdown.read_markdown(text)


def _read_html(name: str, text: str) -> Article:
    """Read a saved page in a process of its own: anybody may have made it, and lxml lets no other thread run. A page
    whose reading is stopped at a limit is read as plain text, and not tried again.
    """
    if hash(text) not in _stopped_texts:
        try:
            return wait_in_real_time(lambda: _processes.run(read_html, text))
        except WorkStopped as error:
            _stopped_texts.add(hash(text))
            log.warning("%s is read as plain text: %s", name, error)
    return read_plain(html.unescape(_TAG.sub("\n", text)))


_MAX_ELEMENTS = 50_000
"""The most elements of a page whose main text is looked for. Of a larger page all text is taken: trafilatura needs
seconds for so many, and minutes for four times as many."""


def read_html(text: str) -> Article:
    """Read the main text of a page, its title and its canonical address. Never raises.

    If trafilatura finds no main text, all text of the body is taken.
    """
    import trafilatura  # noqa: PLC0415 (takes long, and only those processes read HTML)

    # lxml refuses text that declares an encoding, and stops at a NUL.
    text = text.replace("\0", "\N{REPLACEMENT CHARACTER}").lstrip("\N{ZERO WIDTH NO-BREAK SPACE} \t\r\n")
    if text.startswith("<?xml"):
        text = text.partition("?>")[2].lstrip()
    tree = trafilatura.load_html(text if text.startswith("<") else f"<html><body>{text}</body></html>")
    if tree is None:
        return read_web_text(text)  # no page, whatever its name says
    page: Any = tree  # of lxml, which has no types
    _write_out_formats(page)
    title, permalink = _title(page), _permalink(page)
    main = _main_text(page)
    if "~~" not in main and _write_out_strikes(page):
        main = _main_text(page).replace("\\~\\~", "~~")
    main = main or text
    return read_web_text(main.strip(), title)._replace(permalink=permalink)


def _main_text(page: Any) -> str:
    """Return the main text of a page as Markdown; else all text of its body, without formats; empty if it has none."""
    import trafilatura  # noqa: PLC0415 (as above)

    main = None
    if sum(1 for _ in page.iter()) <= _MAX_ELEMENTS:
        main = trafilatura.extract(
            page,
            output_format="markdown",
            include_comments=False,
            include_tables=True,
            include_links=True,
            include_formatting=True,
        )
    return main or trafilatura.html2txt(page)


def _write_out_formats(page: Any) -> None:
    """Write exponents, indexes and numbers of lists into the text, as their tags get lost, and drop what is hidden."""
    for each in page.xpath(".//*[@hidden or @style]"):
        if each.tag not in {"html", "body"} and (
            each.get("hidden") is not None or HIDING_STYLE.search(each.get("style", ""))
        ):
            each.drop_tree()
    for each in [*page.iter("sup", "sub")]:
        text = (raised if each.tag == "sup" else lowered)(each.text_content())
        if text != each.text_content():
            for child in [*each]:
                each.remove(child)
            each.text = text
        each.drop_tag()
    for each in [*page.iter("ol")]:
        items = each.findall("li")
        if {"start", "reversed"} & {*each.keys()} or any(item.get("value") for item in items):
            _number_items(each, items)


def _write_out_strikes(page: Any) -> bool:
    """Write marks of what is struck out into the text, for ways to read that lose the tags; False: there is none."""
    found = [each for each in page.iter("del", "s", "strike") if each.text_content().strip()]
    for each in found:
        each.text, each.tail = f"~~{each.text or ''}", f"~~{each.tail or ''}"
        each.drop_tag()
    return bool(found)


def _number_items(listed: Any, items: Sequence[Any]) -> None:
    """Write the numbers of a list that does not begin with 1, or does not go up by 1, before its items."""
    step = 1 if listed.get("reversed") is None else -1
    number = _whole(listed.get("start"), len(items) if step < 0 else 1)
    for item in items:
        number = _whole(item.get("value"), number)
        item.text = f"{number}. {(item.text or '').lstrip()}"
        number += step
    listed.tag = "ul"


def _whole(text: str | None, otherwise: int) -> int:
    return int(text) if text and _WHOLE.fullmatch(text) else otherwise


def _title(page: Any) -> str:
    for path in (".//h1", ".//head/title", ".//title"):
        found = page.find(path)
        title = "" if found is None else " ".join(found.text_content().split()).rstrip("¶#").rstrip()
        if title:
            return title
    return ""


def _permalink(page: Any) -> str:
    found = page.find(".//link[@rel='canonical']")
    return "" if found is None else (found.get("href") or "").strip()


_READERS = {
    "md": _read_markdown,
    "markdown": _read_markdown,
    "mdx": markdown.read_mdx,
    "rst": read_rest,
    "rest": read_rest,
}
