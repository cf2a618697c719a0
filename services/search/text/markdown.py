"""Reads Markdown and MDX with markdown-it and writes their headings and blocks as an article.

MDX is Markdown with statements, components and expressions of JavaScript; these are dropped, and their text stays.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from html import unescape
from typing import NamedTuple

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.footnote import footnote_plugin

from services.search.text.article import (
    Article,
    Block,
    BlockKind,
    Cell,
    Heading,
    Piece,
    fenced,
    github_slugs,
    lowered,
    make_article,
    mkdocs_slugs,
    raised,
    table_blocks,
)
from services.search.text.markdown_extensions import add_generator_rules
from services.search.text.markdown_html import INLINE, Tag, add_html_rules, add_inline_rules, without_hidden

_MAX_LINES = 500
_MAX_VALUE_CHARS = 2000
_KEY = re.compile(r"(?P<key>[A-Za-z_][\w .-]{0,60}?)\s*(?P<mark>[:=])(?:\s(?P<value>.*))?")
_PERMALINKS = ("permalink", "url", "slug")
_GONE_WORDS = r"(?:deprecated|obsolete|outdated|superseded|archived|rejected|withdrawn|retired)\b"
_GONE = re.compile(_GONE_WORDS, re.IGNORECASE)
_STATUS_LINE = re.compile(rf"\**Status\W{{1,6}}({_GONE_WORDS}[\w .-]{{0,60}})", re.IGNORECASE)


class FrontMatter(NamedTuple):
    """`rest`: the text after it, all of the text where there is none. `status`: only one that says that the page is not
    in force any more ("superseded by 7").
    """

    title: str
    permalink: str
    rest: str
    status: str = ""


def read_front_matter(text: str) -> FrontMatter:
    """Return the title and the permalink of a document (empty if not given), and the text after its front matter."""
    text = text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}")
    lines = text.split("\n", _MAX_LINES)
    fence = lines[0].rstrip()
    if fence not in {"---", "+++"}:
        return FrontMatter("", "", text)
    ends = {"---", "..."} if fence == "---" else {"+++"}
    end = next((at for at, line in enumerate(lines[1:_MAX_LINES], 1) if line.rstrip() in ends), None)
    if end is None:
        return FrontMatter("", "", text)
    values = _values(lines[1:end])
    if not values and any(line.strip() for line in lines[1:end]):
        return FrontMatter("", "", text)  # text between two rules
    permalink = next((values[key] for key in _PERMALINKS if values.get(key)), "")
    status = values.get("status", "")
    return FrontMatter(
        values.get("title", ""), permalink, "\n".join(lines[end + 1 :]), status if _GONE.match(status) else ""
    )


def _values(lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    at = 0
    while at < len(lines):
        key = _KEY.fullmatch(lines[at].rstrip()) if len(lines[at]) <= _MAX_VALUE_CHARS else None
        at += 1
        if key is None:
            continue
        more: list[str] = []
        while at < len(lines) and lines[at].startswith((" ", "\t")):
            more.append(lines[at])
            at += 1
        name = key["key"].lower()
        wanted = name in {"title", "status", *_PERMALINKS}
        found.setdefault(name, _scalar("\n".join([key["value"] or "", *more])) if wanted else "")
    return found


def _scalar(text: str) -> str:
    """Read a value as YAML, which strings of TOML nearly are; as written if it is not YAML."""
    if len(text) > _MAX_VALUE_CHARS:
        return ""
    try:
        # Only if it is quoted: `title: uv: a tool` is no YAML, and everybody writes it.
        value: object = yaml.safe_load(text) if text.lstrip()[:1] in {'"', "'", ">", "|"} else text
    except (yaml.YAMLError, ValueError):
        value = text.strip().strip("\"'")
    return " ".join(value.split()) if isinstance(value, str) else ""


_KEPT_SPACE = "\x01"
"""Stands for a space in code while other spaces are joined."""
_WORDS_OF_AN_ALT_TEXT = 5
"""A shorter text of a picture only names it."""

_ICON = re.compile(r":(?:material|fontawesome|octicons|simple|lucide|tabler|bi|fa)-[\w-]+:")
_MARKED = re.compile(r"(?<![=^+\w])(?:==(?=\S)([^=\n]+)==|\^\^(?=\S)([^^\n]+)\^\^|\+\+([\w+\"-]+)\+\+)(?![=^+\w])")
_SPACES = re.compile(r"[^\S\n\x01]+")
_LINE_BREAKS = re.compile(r" ?\n[ \n]*")
_ESCAPED = frozenset("*_`~|")
_WRAPPED = {"b": "**", "strong": "**", "i": "*", "em": "*", "cite": "*", "del": "~~", "s": "~~", "strike": "~~"}
_SMALL: Mapping[str, Callable[[str], str]] = {"sup": raised, "sub": lowered}
_CODE = {"code", "tt", "samp"}
_BOLD_LINES = {"summary", "dt", "h1", "h2", "h3", "h4", "h5", "h6", "legend"}
_UNSPACED_CHAR = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]")


def write_inline(tokens: Sequence[Token] | None, *, plain: bool = False) -> str:
    """Return the text of inline tokens. `plain`: without marks (but those of what is struck out) and link targets, on
    one line.
    """
    writer = _Writer(plain=plain)
    for token in tokens or ():
        writer.add(token)
    return writer.text


def plain_text(tokens: Sequence[Token] | None) -> str:
    return write_inline(tokens, plain=True)


class _Writer:
    def __init__(self, *, plain: bool) -> None:
        self._plain = plain
        self._parts: list[str] = []
        self._open: list[tuple[str, int, Callable[[str], str]]] = []

    @property
    def text(self) -> str:
        text = _LINE_BREAKS.sub("\n", _SPACES.sub(" ", "".join(self._parts)))
        text = " ".join(text.split("\n")) if self._plain else text
        return text.strip().replace(_KEPT_SPACE, " ")

    def add(self, token: Token) -> None:
        kind = token.type
        if kind == "text":
            self._parts.append(_without_marks(token.content))
        elif kind == "text_special":
            self._parts.append(self._special(token))
        elif kind.endswith("break"):
            self._parts.append("\n" if kind == "hardbreak" else self._soft_break())
        elif kind == "code_inline":
            self._parts.append(self._code(token.content))
        elif kind == "image":
            self._parts.append(_picture_text(token.content))
        elif kind == "tag":
            self._tag(token.meta["tag"])
        elif kind in {"strong_open", "em_open", "s_open"}:
            mark = {"strong_open": "**", "em_open": "*", "s_open": "~~"}[kind]
            self._begin(kind.removesuffix("_open"), self._wrap(mark))
        elif kind == "link_open":
            self._begin("link", self._link(str(token.attrs.get("href", ""))))
        elif kind.endswith("_close"):
            self._finish(kind.removesuffix("_close"))

    def _begin(self, name: str, write_inside: Callable[[str], str]) -> None:
        self._open.append((name, len(self._parts), write_inside))

    def _finish(self, name: str) -> None:
        """Close the innermost element with this name. Elements left open within it get no marks."""
        at = next((at for at in range(len(self._open) - 1, -1, -1) if self._open[at][0] == name), None)
        if at is None:
            return
        _, start, write_inside = self._open[at]
        del self._open[at:]
        inside = "".join(self._parts[start:])
        del self._parts[start:]
        core = inside.strip()
        if not core:
            self._parts.append(" " if inside else "")
            return
        before, after = inside[: inside.find(core)], inside[inside.find(core) + len(core) :]
        self._parts += [before, write_inside(core), after]

    def _wrap(self, mark: str) -> Callable[[str], str]:
        # What is struck out does not hold: that has to be seen in a table and a heading, too.
        is_shown = not self._plain or mark == "~~"
        return (lambda inside: f"{mark}{inside.replace(mark, '')}{mark}") if is_shown else str

    def _link(self, target: str) -> Callable[[str], str]:
        if self._plain or not target:
            return str
        return lambda inside: _link_to(inside, target)

    def _code(self, content: str) -> str:
        content = " ".join(content.split("\n")).replace(" ", _KEPT_SPACE)
        if self._plain or not content.strip(_KEPT_SPACE):
            return content
        fence = "`" * (max((len(run) for run in re.findall("`+", content)), default=0) + 1)
        pad = _KEPT_SPACE if content.startswith("`") or content.endswith("`") else ""
        return f"{fence}{pad}{content}{pad}{fence}"

    def _special(self, token: Token) -> str:
        escaped = token.info == "escape" and token.content in _ESCAPED and not self._plain
        return token.markup if escaped else token.content

    def _soft_break(self) -> str:
        last = self._parts[-1][-1:] if self._parts else ""
        return "" if _UNSPACED_CHAR.match(last) else " "

    def _tag(self, tag: Tag) -> None:
        name = tag.element
        if tag.closing:
            self._finish(name)
            self._parts.append("" if name in INLINE or (tag.is_component and not tag.title) else "\n")
        elif name in _WRAPPED:
            self._begin(name, self._wrap(_WRAPPED[name]))
        elif name in _SMALL:
            self._begin(name, _SMALL[name])
        elif name in _CODE:
            self._begin(name, lambda inside: self._code(inside.replace("`", "").replace("\\", "")))
        elif name == "a":
            # A link to itself is there for people to copy its address.
            target = "" if tag.target == f"#{tag.attributes.get('id')}" else tag.target
            self._begin(name, self._link(unescape(target)))
        elif name == "br":
            self._parts.append("\n")
        elif name in {"img", "image"}:
            self._parts.append(_picture_text(unescape(tag.attributes.get("alt", ""))))
        elif name == "li":
            self._parts.append("\n- ")
        elif name in _BOLD_LINES:
            self._parts.append("\n")
            self._begin(name, self._wrap("**"))
        else:
            self._component(tag)

    def _component(self, tag: Tag) -> None:
        if tag.title:
            title = self._link(tag.target)(tag.title)
            self._parts += ["\n", self._wrap("**")(title), "\n"]
        if tag.description:
            self._parts += [" ", tag.description, "\n"]
        if tag.element not in INLINE and not tag.is_component:
            self._parts.append("\n")


def _without_marks(text: str) -> str:
    text = text.replace(_KEPT_SPACE, " ")
    if "-" in text and ":" in text:
        text = _ICON.sub("", text)
    if "==" in text or "^^" in text or "++" in text:
        text = _MARKED.sub(lambda found: found[1] or found[2] or found[3], text)
    return text


def _picture_text(text: str) -> str:
    return text if len(text.split()) >= _WORDS_OF_AN_ALT_TEXT else ""


def _link_to(inside: str, target: str) -> str:
    inside = " ".join(inside.split("\n"))
    if inside in {target, target.removeprefix("mailto:")}:
        return inside
    target = "".join(target.split("\n")).replace(" ", "%20")
    if target.count("(") != target.count(")"):
        target = target.replace("(", "%28").replace(")", "%29")
    return f"[{inside}]({target})"


_NO_INDENT = "\x02"
"""Begins each line of code while lists are put together: such a line is not indented, as Discord would show that."""
_WORD = re.compile(r"\w")
_MARKS = re.compile(r"<!-+|(?<!-)-++>|[{}%]+|\b\w+:\w+ ")
_LANGUAGE = re.compile(r"\s*+\{?\s*+\.?(?P<name>[A-Za-z][\w+#.-]*)")
_TAB_TITLE = re.compile(r"""\[(?P<name>[^\[\]]+)\]|(?<![\w-])tab=(?P<mark>["'])(?P<title>[^"'\n]+)(?P=mark)""")
"""`title="pyproject.toml"` is left out: on pages full of them, search finds less."""
_ANNOTATION = re.compile(
    r"(?<![ \t])[ \t]*+(?:#|//|--|;|<!--|/\*)[ \t]*+(?:\(\d{1,3}\)![ \t]*+){1,5}(?:-->|\*/)?[ \t]*+$", re.MULTILINE
)
_EDITOR_MARK = re.compile(
    r"(?<![ \t])[ \t]*+(?:#|//|--|;|<!--|\{?/\*)[ \t]*+\[!code[^\]\n]{0,200}\][ \t]*+(?:-->|\*/\}?)?[ \t]*+$",
    re.MULTILINE,
)
_REMOVED_LINE = re.compile(
    r"^[ \t]*(?:(?://|#|<!--|\{?/\*)[ \t]*highlight-(?:next-line|start|end)[ \t]*(?:-->|\*/\}?)?"
    r"|(?:#[ \t]*)?-{1,}8<-{1,}.*|(?:<!--|#|//)[ \t]*-{1,}8<-{1,}.*)[ \t]*\n?",
    re.MULTILINE,
)


def pieces(tokens: Sequence[Token]) -> list[Piece]:
    """Return headings and blocks in order."""
    return [
        Block(piece.kind, piece.text.replace(_NO_INDENT, "")) if isinstance(piece, Block) else piece
        for piece in _Reader(tokens).read(0, len(tokens), top=True)
    ]


class _Reader:
    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._ends = _closing_indexes(tokens)

    def read(self, start: int, end: int, *, top: bool = False) -> list[Piece]:
        """Read the tokens between two indexes. Below the top, headings are bold lines."""
        found: list[Piece] = []
        titled = False
        at = start
        while at < end:
            token, close = self._tokens[at], self._ends[at]
            if token.type == "title_end":
                if titled:
                    found.pop()
                titled = False
            for each in self._read_token(token, at, close):
                if not top and isinstance(each, Heading) and not each.title:
                    continue
                piece = each if top or isinstance(each, Block) else Block(BlockKind.PROSE, f"**{each.title}**")
                last = found[-1] if found else None
                if titled and isinstance(piece, Block) and piece.kind is BlockKind.PROSE and isinstance(last, Block):
                    found[-1] = Block(BlockKind.PROSE, f"{last.text}\n{piece.text}")
                else:
                    found.append(piece)
                titled = bool(token.type == "paragraph_open" and token.meta.get("is_title"))
            at = close + 1
        return found

    def _read_token(self, token: Token, at: int, close: int) -> Iterator[Piece]:
        kind = token.type
        if kind == "heading_open":
            inline = self._tokens[at + 1]
            title = plain_text(inline.children) or " ".join(_MARKS.sub(" ", inline.content).split())
            whole = plain_text(token.meta.get("whole"))
            if title or whole:
                yield Heading(int(token.tag[1]), title, token.meta.get("anchor", ""), whole)
        elif kind == "paragraph_open":
            yield from self._paragraph(token, self._tokens[at + 1])
        elif kind in {"fence", "code_block"}:
            yield from _code(token)
        elif kind in {"bullet_list_open", "ordered_list_open", "dl_open"}:
            text = self._list(at, close)
            if _WORD.search(text):
                yield Block(BlockKind.LIST, text)
        elif kind == "table_open":
            yield from self._table(at, close)
        elif kind == "blockquote_open":
            yield from self._quote(token, at, close)
        elif close > at:
            yield from self.read(at + 1, close)

    @staticmethod
    def _paragraph(token: Token, inline: Token) -> Iterator[Block]:
        text = inline.content.strip() if inline.type == "verbatim" else write_inline(inline.children)
        if not _WORD.search(text):
            return
        if token.meta.get("is_title"):
            text = " ".join(text.split("\n")).replace("**", "")
            text = f"**{text}**"
        yield Block(BlockKind.PROSE, text)

    def _list(self, start: int, end: int) -> str:
        ordered = self._tokens[start].type == "ordered_list_open"
        number = int(self._tokens[start].attrs.get("start", 1)) if ordered else 0
        lines: list[str] = []
        at = start + 1
        while at < end:
            token, close = self._tokens[at], self._ends[at]
            if token.type == "dt_open":
                lines.append(f"- **{write_inline(self._tokens[at + 1].children).replace('**', '')}**")
            else:
                mark = "" if token.type == "dd_open" else f"{number}. " if ordered else "- "
                lines.extend(_item(mark, self.read(at + 1, close)))
                number += 1
            at = close + 1
        return "\n".join(lines)

    def _quote(self, token: Token, start: int, end: int) -> Iterator[Piece]:
        alert = token.meta.get("alert")
        inside = self.read(start + 1, end)
        if alert is None:
            yield from (_quoted(piece) if isinstance(piece, Block) else piece for piece in inside)
            return
        first = inside[0] if inside else None
        if alert and isinstance(first, Block) and first.kind is BlockKind.PROSE:
            yield Block(BlockKind.PROSE, f"**{alert}**\n{first.text}")
            inside = inside[1:]
        elif alert:
            yield Block(BlockKind.PROSE, f"**{alert}**")
        yield from inside

    def _table(self, start: int, end: int) -> Iterator[Block]:
        rows: list[list[Cell]] = []
        headers: list[bool] = []
        for at in range(start, end):
            token = self._tokens[at]
            if token.type == "tr_open":
                rows.append([])
                headers.append(True)
            elif token.type in {"th_open", "td_open"} and rows:
                inline = self._tokens[at + 1]
                marked = inline.content if inline.type == "verbatim" else write_inline(inline.children)
                plain = plain_text(inline.children) or ("" if inline.children else marked)
                rows[-1].append(Cell(plain, (Block(BlockKind.PROSE, " ".join(marked.split())),)))
                headers[-1] = headers[-1] and token.type == "th_open"
        header = [cell.plain for cell in rows.pop(0)] if headers and headers[0] else []
        for block in table_blocks(header, rows):
            yield Block(block.kind, _forbid_indent(block.text)) if block.kind is BlockKind.TABLE else block


def _closing_indexes(tokens: Sequence[Token]) -> list[int]:
    """Return for each token the index of the one that closes it, or its own where it opens nothing."""
    ends = list(range(len(tokens)))
    opened: list[int] = []
    for at, token in enumerate(tokens):
        if token.nesting > 0:
            opened.append(at)
        elif token.nesting < 0 and opened:
            ends[opened.pop()] = at
    return ends


def _item(mark: str, inside: Sequence[Piece]) -> list[str]:
    """Return the lines of an item: indented below the first, except those of code."""
    lines = "\n".join(piece.text for piece in inside if isinstance(piece, Block)).split("\n")
    indent = " " * (len(mark) or 2)
    if not mark:
        return [line if line.startswith(_NO_INDENT) else f"{indent}{line}" for line in lines if line]
    if not any(lines):
        return []
    first = [mark.rstrip(), lines[0]] if lines[0].startswith(_NO_INDENT) else [f"{mark}{lines[0]}"]
    return [*first, *(line if line.startswith(_NO_INDENT) or not line else f"{indent}{line}" for line in lines[1:])]


def _quoted(block: Block) -> Block:
    if block.kind in {BlockKind.CODE, BlockKind.TABLE}:
        return block
    lines = [line if line.startswith(_NO_INDENT) else f"> {line}" for line in block.text.split("\n")]
    return Block(block.kind, "\n".join(lines))


def _code(token: Token) -> Iterator[Block]:
    text = token.content
    if "8<" in text or "highlight-" in text:
        text = _REMOVED_LINE.sub("", text)
    if ")!" in text:
        text = _ANNOTATION.sub("", text)
    if "[!code" in text:
        text = _EDITOR_MARK.sub("", text)
    text = textwrap.dedent(text).strip("\n").rstrip()
    if not text.strip():
        return
    tab = _TAB_TITLE.search(token.info)
    title = " ".join((tab["name"] or tab["title"]).replace("*", "").split()) if tab else ""
    if title:
        # As code, since nothing in the name of a file is markup.
        yield Block(BlockKind.PROSE, f"**`{title}`**" if _is_file(title) else f"**{title}**")
    language = _LANGUAGE.match(token.info)
    yield Block(BlockKind.CODE, _forbid_indent(fenced(text, language["name"].lower() if language else "")))


def _is_file(title: str) -> bool:
    return " " not in title and "`" not in title and not {".", "/", "_"}.isdisjoint(title)


def _forbid_indent(text: str) -> str:
    return "\n".join(_NO_INDENT + line for line in text.split("\n"))


_DEEPEST = 30
"""Levels of lists and quotes; deeper ones are one paragraph."""
_IMPORT = re.compile(r"^import\s[^\"'\n]*(?:from\s+)?[\"'][^\"'\n]+[\"'];?[ \t]*$", re.MULTILINE)
_FENCED = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)
_BEGINNING_CHARS = 5000
_OWN_MARKS = str.maketrans("\x00\x01\x02", "\N{REPLACEMENT CHARACTER}" * 3)


def read_markdown(text: str) -> Article:
    """Read Markdown with front matter, tables, tabs, admonitions, containers, HTML and a few components. Never raises.

    Anchors are those that the document gives, else MkDocs'.
    """
    front = read_front_matter(clean(text))
    return make_article(_after_status(front, markdown_pieces(front.rest)), mkdocs_slugs(), front.title, front.permalink)


def read_mdx(text: str) -> Article:
    """Read a page in MDX. Titles of components become bold lines. Never raises.

    Anchors are github-slugger's, as of the generators of such pages.
    """
    front = read_front_matter(clean(text))
    tokens = _parse(front.rest, mdx=True)
    return make_article(_after_status(front, pieces(tokens)), github_slugs(), front.title, front.permalink)


def _after_status(front: FrontMatter, found: list[Piece]) -> list[Piece]:
    """Put the status of a page that is not in force any more below its title, as sites show it. `Status: rejected` may
    also be the first line of the text.
    """
    at = 1 if found and isinstance(found[0], Heading) else 0
    first = found[at] if at < len(found) else None
    written = _STATUS_LINE.match(first.text) if isinstance(first, Block) else None
    status = front.status or (written[1].strip() if written else "")
    return [*found[:at], Block(BlockKind.PROSE, f"**This page is {status}.**"), *found[at:]] if status else found


def is_mdx(text: str) -> bool:
    """Return whether a Markdown file is in fact MDX: it imports something before its first listing."""
    beginning = text[:_BEGINNING_CHARS]
    listing = _FENCED.search(beginning)
    return bool(_IMPORT.search(beginning, 0, listing.start() if listing else len(beginning)))


def markdown_pieces(text: str, *, keep_lines: bool = False) -> list[Piece]:
    """Return the headings and blocks of Markdown without front matter. `keep_lines`: keep its line breaks."""
    tokens = _parse(clean(text), mdx=False, is_page=not keep_lines)
    if keep_lines:
        for child in (child for token in tokens for child in token.children or () if child.type == "softbreak"):
            child.type = "hardbreak"
    return pieces(tokens)


def clean(text: str) -> str:
    """Normalise line ends, and replace the control characters that the reader uses itself."""
    return text.replace("\r\n", "\n").replace("\r", "\n").translate(_OWN_MARKS)


def _parse(text: str, *, mdx: bool, is_page: bool = True) -> list[Token]:
    env: dict[str, object] = {}
    return without_hidden(_parser(mdx=mdx).parse(text, env), env, mdx=mdx, is_page=is_page)


@cache
def _parser(*, mdx: bool) -> MarkdownIt:
    md = MarkdownIt("commonmark", {"maxNesting": _DEEPEST}).enable(["table", "strikethrough"])
    md.use(footnote_plugin, inline=False, move_to_end=False)
    md.use(deflist_plugin)
    add_generator_rules(md, mdx=mdx)
    add_html_rules(md, mdx=mdx)
    add_inline_rules(md, mdx=mdx)
    md.normalizeLink = lambda url: url  # targets stay as they are written
    return md


_BARE_TITLE = re.compile(r"[^\W_][^\n.:;!?`|<>={}\[\]]{2,70}\??")


def read_web_text(text: str, title: str = "") -> Article:
    """Read the text of a web page: Markdown, often without marks of headings and listings. Line breaks are kept."""
    return make_article(with_bare_titles(markdown_pieces(text, keep_lines=True)), mkdocs_slugs(), title)


def with_bare_titles(pieces: Sequence[Piece]) -> list[Piece]:
    """Make headings of short lines that do not end like a sentence, if there are none. The first is the title."""
    if any(isinstance(piece, Heading) for piece in pieces):
        return list(pieces)
    return [
        Heading(2 if at else 1, piece.text)
        if isinstance(piece, Block) and at < len(pieces) - 1 and _is_bare_title(piece)
        else piece
        for at, piece in enumerate(pieces)
    ]


def _is_bare_title(block: Block) -> bool:
    return block.kind is BlockKind.PROSE and bool(_BARE_TITLE.fullmatch(block.text))
