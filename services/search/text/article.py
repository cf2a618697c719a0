"""The structure that every reader of documents produces: an article of sections below a path of headings, made of
blocks (prose, list, code, table); the anchors of its headings, as site generators make them; the layout of lists,
tables and code: aligned text where it fits, else a list; and the passages that it is cut into.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import zip_longest
from typing import NamedTuple

from services.search.languages import normalised


class BlockKind(StrEnum):
    PROSE = "prose"
    LIST = "list"
    CODE = "code"
    TABLE = "table"


class Block(NamedTuple):
    """A paragraph, a list, a table or a listing, in the Markdown that Discord shows.

    It has no markup of the source's own language: no directive, tab marker, HTML or role. Code is fenced, with its
    language where that is known; a table is aligned text in a fence. Links are `[text](target)`, targets as written.
    """

    kind: BlockKind
    text: str


class Section(NamedTuple):
    """The text below one heading, up to the next heading of any level.

    Attributes:
        headings: plain text, the title of the document first; empty where it has none.
        anchor: what follows `#` in the address of this section on the published page; empty for the top of the page.
        blocks: in order; none is empty.
        day: of an answer of the team, as `2026-02-01`; empty where it is not known.
        quotable: False: it can be found and named, but not shown as an answer.
        helped: whether somebody said that this answer helped.
        doubted: whether somebody has doubted it.
    """

    headings: tuple[str, ...]
    anchor: str
    blocks: tuple[Block, ...]
    day: str = ""
    quotable: bool = True
    helped: bool = False
    doubted: bool = False

    @property
    def text(self) -> str:
        """The text of the blocks, without the heading."""
        return "\n\n".join(block.text for block in self.blocks)

    @property
    def heading(self) -> str:
        """The heading as a line of Markdown; empty if there is none."""
        return f"{'#' * min(len(self.headings), 6)} {self.headings[-1]}" if self.headings else ""

    @property
    def markdown(self) -> str:
        """The heading and the text below it."""
        return "\n\n".join(part for part in (self.heading, self.text) if part)


class Article(NamedTuple):
    """A parsed document.

    Attributes:
        title: plain text: of the front matter, else the first heading of the highest level; empty where there is none.
        sections: in order. A section without blocks is left out, unless its heading has no other section.
        permalink: the address or path at which the document says it is published; empty where it does not.
    """

    title: str
    sections: tuple[Section, ...]
    permalink: str = ""

    @property
    def markdown(self) -> str:
        return "\n\n".join(section.markdown for section in self.sections)

    def contents(self, max_chars: int) -> str:
        """Return the headings, also those without a section of their own, as a nested list of at most `max_chars`
        characters. If there are too many, the deepest are left out first, then the last.
        """
        paths = dict.fromkeys(each.headings[: end + 1] for each in self.sections for end in range(len(each.headings)))
        text = ""
        for depth in range(max(map(len, paths), default=0), 0, -1):
            text = "\n".join(f"{'  ' * (len(path) - 1)}- {path[-1]}" for path in paths if len(path) <= depth)
            if len(text) <= max_chars:
                return text
        return text[: max(max_chars, 0)].rpartition("\n")[0]


_CHANGELOG_TITLE = "Changelog"
"""The title of a document whose highest headings are versions: the first version is not the title of the others."""
_VERSION = re.compile(r"(?:version |release )?[\[(]?v?\d+\.\d+", re.IGNORECASE)


class Heading(NamedTuple):
    """`level`: 1 is the highest; `title`: plain text, empty where the page hides it; `anchor`: the author's own, empty
    where there is none; `whole`: the title with what the page hides of it, of which the anchor is made.
    """

    level: int
    title: str
    anchor: str = ""
    whole: str = ""


Piece = Heading | Block


def make_article(pieces: Sequence[Piece], slugs: Slugs, title: str = "", permalink: str = "") -> Article:
    """Build an article of headings and blocks in order. `title` and `permalink`: from the front matter.

    Without a title, the first heading of the highest level becomes the title, except in a list of versions. The title
    opens every path of headings. A heading that repeats it is left out, and one that opens the page has no anchor.
    """
    top = _first_highest(pieces)
    if top is not None and _is_version(top) and _count_versions(pieces, top.level) > 1:
        top, title = None, title or _CHANGELOG_TITLE
    title = title or (top.title if top else "")
    sections: list[Section] = []
    path: dict[int, str] = {0: title} if title else {}
    anchor = ""
    blocks: list[Block] = []
    for number, piece in enumerate(pieces):
        if isinstance(piece, Block):
            blocks.append(piece)
            continue
        slug = piece.anchor or slugs(piece.whole or piece.title)
        if not piece.title:
            continue
        sections.append(Section(tuple(path.values()), anchor, tuple(blocks)))
        anchor = "" if number == 0 and piece is top else slug
        path = {level: name for level, name in path.items() if level < piece.level}
        if not (piece is top and _repeats(piece.title, title)):
            path[piece.level] = piece.title
        blocks = []
    sections.append(Section(tuple(path.values()), anchor, tuple(blocks)))
    return Article(title, tuple(_drop_empty(sections, bool(top))), permalink)


def _first_highest(pieces: Iterable[Piece]) -> Heading | None:
    headings = [piece for piece in pieces if isinstance(piece, Heading) and piece.title]
    return min(headings, key=lambda heading: heading.level, default=None)


def _is_version(heading: Heading) -> bool:
    return bool(_VERSION.match(heading.title))


def _count_versions(pieces: Iterable[Piece], level: int) -> int:
    return sum(isinstance(piece, Heading) and piece.level == level and _is_version(piece) for piece in pieces)


def _repeats(heading: str, title: str) -> bool:
    return set(re.findall(r"\w+", heading.casefold())) <= set(re.findall(r"\w+", title.casefold()))


def _drop_empty(sections: list[Section], has_headings: bool) -> Iterable[Section]:
    for at, section in enumerate(sections):
        below = sections[at + 1].headings if at + 1 < len(sections) else ()
        has_subsections = len(below) > len(section.headings) and below[: len(section.headings)] == section.headings
        is_continued = at + 1 < len(sections) and below == section.headings
        if section.blocks or (has_headings and section.headings and not has_subsections and not is_continued):
            yield section


Slugs = Callable[[str], str]
"""Makes the anchor of a title."""

_NOT_MKDOCS = re.compile(r"[^\w\s-]")
_NOT_GITHUB = re.compile(r"[^\w\- ]")
_MKDOCS_BREAKS = re.compile(r"[-\s]+")
_VITEPRESS_BREAKS = re.compile(r"[\s~`!@#$%^&*()\-_+=\[\]{}|\\;:\"'“”‘’<>,.?/]+")
_DOCUTILS_BREAKS = re.compile(r"[^a-z0-9]+")
_DOCUTILS_START = re.compile(r"^[-0-9]+")
_NUMBERED = re.compile(r"[-_]([1-9][0-9]?)")


class SiteGenerator(StrEnum):
    """The program that makes a site of documents; `repository`: a host of repositories that shows files as they are."""

    MKDOCS = "mkdocs"
    SPHINX = "sphinx"
    VITEPRESS = "vitepress"
    DOCUSAURUS = "docusaurus"
    MDBOOK = "mdbook"
    REPOSITORY = "repository"


class _UniqueSlugs:
    """Makes the anchors of one page; a repeated title gets a number behind `separator`."""

    def __init__(self, make_slug: Slugs, separator: str) -> None:
        self._make_slug = make_slug
        self._separator = separator
        self._used: set[str] = set()
        self._repeats: dict[str, int] = {}

    def __call__(self, title: str) -> str:
        name = slug = self._make_slug(title)
        while name in self._used:
            self._repeats[slug] = self._repeats.get(slug, 0) + 1
            name = f"{slug}{self._separator}{self._repeats[slug]}"
        self._used.add(name)
        return name


def mkdocs_slugs() -> Slugs:
    """Return the maker of anchors of Python-Markdown's `toc`, which MkDocs uses: `_1` is the second with a name."""
    return _UniqueSlugs(_mkdocs, "_")


def github_slugs() -> Slugs:
    """Return the maker of anchors of github-slugger, which Docusaurus, Astro and GitHub use: `-1` is the second."""
    return _UniqueSlugs(_github, "-")


def anchor_by(generator: SiteGenerator, title: str, anchor: str) -> str:
    """Return the anchor that a generator gives to a heading. `anchor`: the one that our reader gave it; it is returned
    unchanged if the author chose it.
    """
    for made in dict.fromkeys((_mkdocs(title), _github(title))):
        rest = anchor.removeprefix(made) if made and anchor.startswith(made) else None
        number = _NUMBERED.fullmatch(rest) if rest else None
        if rest == "" or number is not None:
            slug, mark = _SLUGS_OF[generator](title), "_" if generator is SiteGenerator.MKDOCS else "-"
            return f"{slug}{mark}{number[1]}" if number is not None else slug
    return anchor


def _mkdocs(title: str) -> str:
    """Return the anchor as MkDocs makes it; GitHub's, if nothing is left of a title (in Chinese)."""
    plain = normalised("NFKD", title).encode("ascii", "ignore").decode()
    slug = _MKDOCS_BREAKS.sub("-", _NOT_MKDOCS.sub("", plain).strip().lower())
    return slug if slug.strip("-") else _github(title)


def _github(title: str) -> str:
    return _NOT_GITHUB.sub("", title.strip().lower()).replace(" ", "-")


def _vitepress(title: str) -> str:
    """Return the anchor as @mdit-vue's `slugify` makes it: hyphens for punctuation, `_` before a leading digit."""
    letters = normalised("NFKD", title)
    plain = "".join(each for each in letters if unicodedata.category(each)[0] not in {"M", "C"} or each in "\t\n")
    slug = _VITEPRESS_BREAKS.sub("-", plain).strip("-").lower()
    return f"_{slug}" if slug[:1].isdigit() else slug


def _docutils(title: str) -> str:
    """Return the anchor as docutils' `make_id` makes it, by which Sphinx names the sections of Markdown too."""
    plain = normalised("NFKD", title.lower()).encode("ascii", "ignore").decode()
    return _DOCUTILS_START.sub("", _DOCUTILS_BREAKS.sub("-", plain)).strip("-") or _github(title)


def _mdbook(title: str) -> str:
    """Return the anchor as mdBook makes it: letters, digits, `_` and `-` stay, and a space becomes a hyphen."""
    return "".join("-" if each.isspace() else each for each in title.lower() if each.isalnum() or each in "_- \t")


_SLUGS_OF: dict[SiteGenerator, Callable[[str], str]] = {
    SiteGenerator.MKDOCS: _mkdocs,
    SiteGenerator.SPHINX: _docutils,
    SiteGenerator.VITEPRESS: _vitepress,
    SiteGenerator.DOCUSAURUS: _github,
    SiteGenerator.MDBOOK: _mdbook,
    SiteGenerator.REPOSITORY: _github,
}


# The layout of blocks, as Discord shows them


def list_blocks(items: Iterable[tuple[str, Sequence[Block]]]) -> list[Block]:
    """Lay out a list, in as few blocks as possible. `items`: the mark of each item and its blocks.

    A listing or a table in an item stands on its own, at the margin; so does the rest of the item behind it.
    """
    found: list[Block] = []
    lines: list[str] = []
    for mark, blocks in items:
        for number, block in enumerate(blocks):
            if block.kind in (BlockKind.CODE, BlockKind.TABLE) or (number and not lines):
                found += [*_list_block(lines), block]
                lines.clear()
            else:
                lines.append(_hang(block.text, "  " if number else mark))
    return found + _list_block(lines)


def _list_block(lines: Sequence[str]) -> list[Block]:
    return [Block(BlockKind.LIST, "\n".join(lines))] if lines else []


def _hang(text: str, mark: str) -> str:
    """Put the mark in front of the first line and indent the others by two spaces, as Discord wants it."""
    return mark + text.replace("\n", "\n  ")


_RAISED = str.maketrans("0123456789+-−–=()n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻⁼⁽⁾ⁿ")
_LOWERED = str.maketrans("0123456789+-−–=()", "₀₁₂₃₄₅₆₇₈₉₊₋₋₋₌₍₎")
_EXPONENT = re.compile(r"(?!(?:st|nd|rd|th|er|e|o|a|tm|sm|r|c)\Z)[\w.,*/+−–-]{1,40}", re.IGNORECASE)
"""But the ends of ordinals and marks: "4th", "Name(TM)"."""


def raised(text: str) -> str:
    """Return a text as an exponent: 10⁶, 2^k. Of digits alone, nobody could tell them from those before."""
    small = text.translate(_RAISED)
    if not set(small) & set(text):
        return small
    if not _EXPONENT.fullmatch(text):
        return text
    return f"^{text}" if len(text) == 1 else f"^({text})"


def lowered(text: str) -> str:
    """Return a text as an index, if it is a number: H₂O."""
    small = text.translate(_LOWERED)
    return text if set(small) & set(text) else small


_MAX_WIDTH = 90
"""In columns. Discord shows about a hundred on a wide screen; a table with broken lines is unreadable."""


class Cell(NamedTuple):
    """The same words twice. `plain`: one line, for aligned text; `blocks`: as Discord's Markdown, for a list."""

    plain: str
    blocks: tuple[Block, ...]


Row = Sequence[Cell]


def table_blocks(header: Sequence[str], rows: Sequence[Row], *, rich: bool = False) -> list[Block]:
    """Lay out a table as aligned text; as a list if that is too wide, or if its cells are `rich`: more than plain text.

    `header` may be empty. Empty rows and columns are left out; an empty table gives no block.
    """
    rows = [row for row in rows if any(cell.plain for cell in row)]
    lines = [header, *([cell.plain for cell in row] for row in rows)]
    columns = [column for column in zip_longest(*lines, fillvalue="") if any(column)]
    widths = [max(map(_display_width, column)) for column in columns]
    if not columns:
        return []
    if rows and (rich or sum(width + 3 for width in widths) > _MAX_WIDTH):
        return list_blocks(("- ", _row_blocks(header, row)) for row in rows)
    text = [" | ".join(map(_padded, line, widths)).rstrip() for line in zip(*columns, strict=True)]
    if any(header):
        text.insert(1, "-+-".join("-" * width for width in widths))
    else:
        del text[0]
    return [Block(BlockKind.TABLE, fenced("\n".join(text)))]


def fenced(text: str, language: str = "") -> str:
    """Fence code. Fences within it are broken up, as Discord knows no longer ones."""
    inner = text.replace("```", "`\u200b`\u200b`")
    return f"```{language}\n{inner}\n```"


def _row_blocks(header: Sequence[str], row: Row) -> list[Block]:
    """Lay out a row: the first cell in bold, then the others on the same line, each behind its header. A cell that is
    more than text follows on lines of its own.
    """
    found: list[Block] = []
    first, named = "", list[str]()
    for at, cell in enumerate(row):
        text = " ".join(block.text for block in cell.blocks if block.kind is BlockKind.PROSE)
        rest = [block for block in cell.blocks if block.kind is not BlockKind.PROSE]
        if at == 0 and text:
            first = f"**{text.replace('**', '')}**"
        elif text or rest:
            name = f"{header[at]}: " if at < len(header) and header[at] else ""
            named.append(f"{name}{text}".strip())
        if rest:
            found += [*_row_line(first, named), *rest]
            first, named = "", []
    return found + _row_line(first, named)


def _row_line(first: str, named: Sequence[str]) -> list[Block]:
    text = " – ".join(filter(None, [first, "; ".join(filter(None, named))]))
    return [Block(BlockKind.PROSE, text)] if text else []


def _display_width(text: str) -> int:
    return len(text) if text.isascii() else sum(map(_char_columns, text))


def _char_columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _display_width(text))


# Passages

PASSAGE_CHARS = 1_000
"""About what the packaged model reads (256 tokens): the rest of a longer passage would be found by its words alone."""
_MAX_PASSAGES = 20_000
"""The most passages of one source: a file of a few megabytes has fewer."""
_MIN_WORDS = 3
_ANNOUNCEMENT_CHARS = 300
_WORD = re.compile(r"[^\W\d_]{2,}")
_LINK = re.compile(r"\[([^\[\]\n]*)\]\([^()\n]*\)")
_MANY_LINKS = 4
_SENTENCE = re.compile(r".+?(?:[.!?](?=\s)|[。！？]|\Z)\s*", re.DOTALL)
"""A sentence with the white space behind it. A `.` within a word, as in `docs.example.com`, ends none."""


class Passage(NamedTuple):
    """A part of one section, about `PASSAGE_CHARS` long.

    Attributes:
        section: the index of its section in the article.
        headings: of that section, the title of the document first.
        text: Markdown, as people read it.
        quotable: False for a list of links: it is found, but never shown as an answer.
    """

    section: int
    headings: tuple[str, ...]
    text: str
    quotable: bool = True

    @property
    def heading(self) -> str:
        return " › ".join(self.headings)

    @property
    def with_heading(self) -> str:
        """The text that is embedded: the headings and the passage, which hardly ever repeats them."""
        return f"{self.heading}\n{self.text}" if self.headings else self.text


def passages(article: Article) -> list[Passage]:
    """Split an article into passages: whole blocks, as many as fit; a table or a listing stays with the text before it.

    A passage of fewer than three words is left out.
    """
    found: list[Passage] = []
    for number, section in enumerate(article.sections):
        headings = tuple(dict.fromkeys((article.title, *section.headings) if article.title else section.headings))
        found += [
            Passage(number, headings, text, is_more_than_links(text))
            for text in _passage_texts(section)
            if has_words(text)
        ]
        if len(found) >= _MAX_PASSAGES:
            break
    return found[:_MAX_PASSAGES]


def is_more_than_links(text: str) -> bool:
    """Return False for a list of links: four or more, with more words in them than outside."""
    links = _LINK.findall(text)
    return len(links) < _MANY_LINKS or len(_WORD.findall(_LINK.sub(" ", text))) >= len(_WORD.findall(" ".join(links)))


def has_words(text: str) -> bool:
    return len(_WORD.findall(text, 0, 2_000)) >= _MIN_WORDS


def _passage_texts(section: Section) -> Iterator[str]:
    pieces: list[str] = []
    size = 0
    for block in section.blocks:
        # A listing stays with the text before it, up to half as much again.
        room = PASSAGE_CHARS * 3 // 2 if block.kind in {BlockKind.CODE, BlockKind.TABLE} else PASSAGE_CHARS
        for piece in _split_block(block):
            if pieces and size + len(piece) > room and not (len(pieces) == 1 and _announces_next(pieces[0])):
                # A sentence that announces a list or a listing stays with it: neither makes sense alone.
                announcement = pieces.pop() if _announces_next(pieces[-1]) else None
                yield "\n\n".join(pieces)
                pieces = [announcement] if announcement else []
                size = len(announcement) + 2 if announcement else 0
            pieces.append(piece)
            size += len(piece) + 2
    if pieces:
        yield "\n\n".join(pieces)


def _announces_next(text: str) -> bool:
    return len(text) <= _ANNOUNCEMENT_CHARS and text.endswith((":", "：", "**"))


def _split_block(block: Block) -> Iterator[str]:
    """Split a long block into pieces of whole items, lines or sentences; each piece of code is fenced."""
    if len(block.text) <= PASSAGE_CHARS * 3 // 2:
        yield block.text
    elif block.kind in {BlockKind.CODE, BlockKind.TABLE} and block.text.startswith("```"):
        opening, _, rest = block.text.partition("\n")
        yield from (
            f"{opening}\n{lines}\n```" for lines in _join_to_size(rest.removesuffix("```").rstrip().split("\n"), "\n")
        )
    elif block.kind is BlockKind.LIST:
        yield from _close_fences(_join_to_size(_list_items(block.text), "\n"))
    else:
        yield from filter(None, map(str.strip, _join_to_size(_SENTENCE.findall(block.text), "")))


def _list_items(text: str) -> list[str]:
    """Split a list into items, each with all of its lines. Lines of code are not indented."""
    items: list[str] = []
    fence = ""
    for line in text.split("\n"):
        if items and (fence or line.startswith((" ", "\t", "```")) or not line.strip()):
            items[-1] += f"\n{line}"
        else:
            items.append(line)
        if fence:
            fence = "" if line.strip() == fence else fence
        elif line.startswith("```"):
            fence = line[: len(line) - len(line.lstrip("`"))]
    return items


def _close_fences(pieces: Iterator[str]) -> Iterator[str]:
    """Fence both halves of code that was cut in two."""
    opening = ""
    for each in pieces:
        piece = f"{opening}\n{each}" if opening else each
        fences = [line for line in piece.split("\n") if line.startswith("```")]
        opening = fences[-1] if len(fences) % 2 else ""
        yield f"{piece}\n```" if opening else piece


def _join_to_size(parts: list[str], separator: str) -> Iterator[str]:
    """Join parts to texts of `PASSAGE_CHARS`; a part of more than twice that is cut."""
    joined = ""
    for part in parts:
        for start in range(0, max(len(part), 1), PASSAGE_CHARS * 2):
            piece = part[start : start + PASSAGE_CHARS * 2]
            if joined and len(joined) + len(piece) > PASSAGE_CHARS:
                yield joined
                joined = ""
            joined = f"{joined}{separator}{piece}" if joined else piece
    if joined:
        yield joined
