"""Writes a tree of docutils nodes as an article: inline markup, tables, blocks and sections."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from itertools import zip_longest
from typing import Any

from docutils import nodes

from services.search.text.article import (
    Article,
    Block,
    BlockKind,
    Cell,
    Section,
    fenced,
    list_blocks,
    lowered,
    raised,
    table_blocks,
)
from services.search.text.rest_directives import Language, Signature, TitledContent
from services.search.text.rest_parser import parse_rest

_MAX_SUBSTITUTE_CHARS = 2_000
"""Substitutions can hold each other: without a bound, a few lines become gigabytes."""
_MAX_HOPS = 10
_SPECIAL = re.compile(r"[*`]|\\(?=[^\w\s])|(?<![^\W_])_|_(?![^\W_])|~~|\|\|")
_STRAY_ROLE = re.compile(r"(?<!\w):[a-z]{1,30}:\Z")
_SPACES = re.compile(r"\s+")
_ALL_CAPS = re.compile(r"[A-Z0-9_]+")
_WORDS = re.compile(r"[-_\s]+")


class Style(Enum):
    MARKDOWN = "markdown"
    BOLD = "bold"
    """Markdown between the marks of bold text, which holds no other emphasis."""
    PLAIN = "plain"


class InlineReader:
    """Reads inline nodes of one document."""

    def __init__(self, document: nodes.document, labels: dict[str, str]) -> None:
        """`labels`: the title of each section that has a label, by the label."""
        self._document = document
        self._labels = labels
        self._substitutes: dict[tuple[str, Style], str] = {}
        self._depth = 0

    def text(self, node: nodes.Element, style: Style = Style.MARKDOWN) -> str:
        """Return the text of an element, in one line, without spaces around it."""
        return _SPACES.sub(" ", self._children(node, style)).strip()

    def lines(self, node: nodes.Element) -> str:
        """Return the plain text of an element with its line breaks."""
        return self._children(node, Style.PLAIN)

    def _children(self, node: nodes.Element, style: Style) -> str:
        parts = [self._text_of(child, style) for child in node.children]
        for number, child in enumerate(node.children[1:]):
            if isinstance(child, nodes.literal):  # a role before a literal is a slip of the pen
                parts[number] = _STRAY_ROLE.sub("", parts[number])
        return "".join(parts)

    def _text_of(self, node: nodes.Node, style: Style) -> str:  # noqa: C901, PLR0911, PLR0912 (a table of kinds)
        match node:
            case nodes.Text():
                return node.astext() if style is Style.PLAIN else escape(node.astext())
            case nodes.literal() | nodes.math():
                return node.astext() if style is Style.PLAIN else code(node.astext())
            case nodes.emphasis() | nodes.title_reference():
                return self._marked("*", node, style)
            case nodes.strong():
                return self._marked("**", node, style)
            case nodes.superscript():
                return raised(self._children(node, style))
            case nodes.subscript():
                return lowered(self._children(node, style))
            case nodes.reference():
                return self._reference(node, style)
            case nodes.footnote_reference() | nodes.citation_reference():
                return f"[{node.astext()}]"
            case nodes.substitution_reference():
                return self._substitute(node, style)
            case nodes.image() | nodes.raw() | nodes.system_message():
                return ""
            case nodes.target() if "refuri" in node or "refname" in node:
                return ""
            case nodes.inline() if "reflabel" in node:
                return self._label(str(node["reflabel"]), style)
            case nodes.Element():
                return self._children(node, style)
            case _:
                return ""

    def _marked(self, mark: str, node: nodes.Element, style: Style) -> str:
        text = self._children(node, style if style is Style.PLAIN else Style.BOLD)
        return f"{mark}{text}{mark}" if style is Style.MARKDOWN and text.strip() else text

    def _label(self, label: str, style: Style) -> str:
        text = self._labels.get(nodes.fully_normalize_name(label)) or _WORDS.sub(" ", label.rpartition(":")[2]).strip()
        return text if style is Style.PLAIN else escape(text)

    def _substitute(self, node: nodes.Element, style: Style) -> str:
        name = node.astext()
        definitions = self._document.substitution_defs
        found = name if name in definitions else self._document.substitution_names.get(name.lower(), "")
        if found not in definitions:
            return name if style is Style.PLAIN else escape(name)
        key = (found, style)
        if key not in self._substitutes:
            if self._depth == _MAX_HOPS:
                return name
            self._substitutes[key] = name  # for a definition that contains itself
            self._depth += 1
            self._substitutes[key] = self._children(definitions[found], style)[:_MAX_SUBSTITUTE_CHARS]
            self._depth -= 1
        return self._substitutes[key]

    def _reference(self, node: nodes.reference, style: Style) -> str:
        text = self._children(node, style)
        target = str(node.get("refuri") or "") or self._address(str(node.get("refname") or ""))
        if style is Style.PLAIN or not text.strip():
            return text + self._trailing_underscore(node, text, target)
        bare = node.astext()
        if target in (bare, f"mailto:{bare}"):
            return bare
        if not target:
            return text + self._trailing_underscore(node, text, target)
        address = re.sub(r"\s+", "%20", target).replace("(", "%28").replace(")", "%29")
        return f"[{text.strip()}]({address})"

    def _trailing_underscore(self, node: nodes.Element, text: str, target: str) -> str:
        """Return the `_` of `MYAPP_` in capitals, which is no reference unless something has that name."""
        name = str(node.get("refname") or "")
        unknown = bool(name) and not target and name not in self._document.nameids
        return "_" if unknown and "`" not in node.rawsource and _ALL_CAPS.fullmatch(text) else ""

    def _address(self, name: str) -> str:
        """Return the address that a named reference leads to; empty within this document."""
        for _ in range(_MAX_HOPS):
            target = self._document.ids.get(self._document.nameids.get(name) or "")
            if target is None:
                return ""
            if target.get("refuri"):
                return str(target["refuri"])
            name = str(target.get("refname") or "")
        return ""


def escape(text: str) -> str:
    """Escape everything that Markdown takes for markup. A `_` within a word is not escaped."""
    return _SPECIAL.sub(lambda match: "".join(f"\\{char}" for char in match[0]), text)


def code(text: str) -> str:
    """Return inline code in one line."""
    line = _SPACES.sub(" ", text).strip()
    if "`" not in line:
        return f"`{line}`" if line else ""
    return f"`` {line} ``" if "``" not in line else escape(line)


def _link_anonymous(document: nodes.document) -> None:
    """Lead each `text`__ to the `__ target` of the same number."""
    targets = [node for node in document.findall(nodes.target) if node.get("anonymous")]
    references = [node for node in document.findall(nodes.reference) if node.get("anonymous")]
    for reference, target in zip(references, targets, strict=False):
        for key in ("refuri", "refname"):
            if target.get(key):
                reference[key] = target[key]


_EMPTY = Cell("", ())


def _rows_of(part: nodes.Element, read_cell: Callable[[nodes.Element], Cell]) -> list[list[Cell]]:
    """Return the cells of each row. Where a cell spans several places, all but its first are empty."""
    rows: list[list[Cell]] = []
    rows_spanned: dict[int, int] = {}  # by column: the rows below that a cell above still spans

    def fill_spanned(cells: list[Cell]) -> None:
        while rows_spanned.get(len(cells), 0):
            rows_spanned[len(cells)] -= 1
            cells.append(_EMPTY)

    for row in part.children:
        cells: list[Cell] = []
        for entry in row.children:
            fill_spanned(cells)
            if isinstance(entry, nodes.Element):
                width = 1 + int(entry.get("morecols", 0))
                columns = range(len(cells), len(cells) + width)
                rows_spanned.update(dict.fromkeys(columns, int(entry.get("morerows", 0))))
                cells += [read_cell(entry), *[_EMPTY] * (width - 1)]
        fill_spanned(cells)
        rows.append(cells)
    return rows


_LANGUAGE = re.compile(r"[\w+#.-]{1,30}")
_NO_LANGUAGE = frozenset(["default", "none", "guess", "text", "plain"])
_AT_START = re.compile(r"\A(?:#{1,3}|-#|>{1,3}|[-+])(?= )")
"""Discord takes it for a heading, small print, a quote or an item at the beginning of a line."""
_TABLE_RULE = re.compile(r"(?=[+| ]*+[-=])[-=+| ]++")
_INLINE_MARKS = re.compile(r":[\w.+-]{1,30}:(?=`)|`{1,2}_{0,2}")
_ENDS_ITSELF = (".", ":", "?", "!", "…", "。", "？", "！", "：")
_PARAMETERS = frozenset(
    ["arg", "argument", "cvar", "ivar", "key", "keyword", "kwarg", "kwparam", "param", "parameter", "var"]
)
_RAISES = frozenset(["except", "exception", "raise", "raises", "throws"])
_TYPES = frozenset(["kwtype", "paramtype", "type", "vartype"])
_RESULTS = {"return": "Returns", "returns": "Returns", "rtype": "Return type", "yields": "Yields", "yield": "Yields"}


class BlockReader:
    """Reads the block nodes of one document, in order: a listing has the language that was set last."""

    def __init__(self, inline: InlineReader) -> None:
        self._inline = inline
        self._language = ""
        self._readers: dict[type[nodes.Node], Callable[[Any], list[Block]]] = {
            nodes.paragraph: self._paragraph,
            nodes.literal_block: self._listing,
            nodes.doctest_block: self._doctest,
            nodes.math_block: self._listing,
            nodes.bullet_list: self._bullets,
            nodes.enumerated_list: self._numbered,
            nodes.definition_list_item: self._definition,
            nodes.field_list: self._fields,
            nodes.option_list: self._options,
            nodes.line_block: self._line_block,
            nodes.attribution: self._attribution,
            nodes.table: self._table,
            nodes.footnote: self._footnote,
            nodes.citation: self._footnote,
            nodes.system_message: self._refused_text,
            TitledContent: self._titled_content,
            Signature: self._signature,
            Language: self._set_language,
            nodes.title: self._title,
        }

    def read(self, node: nodes.Node) -> list[Block]:
        """Return the blocks of a node; none if it is invisible. A section within a note or a tab is no section here."""
        read = self._readers.get(type(node))
        if read is not None:
            return read(node)
        if isinstance(
            node, nodes.Invisible | nodes.image | nodes.raw | nodes.substitution_definition | nodes.transition
        ):
            return []
        if isinstance(node, nodes.TextElement | nodes.Text):
            return self._loose(node)
        return self._read_all(node.children)

    def _read_all(self, found: Iterable[nodes.Node]) -> list[Block]:
        return [block for node in found for block in self.read(node)]

    def _paragraph(self, node: nodes.Element) -> list[Block]:
        text = _AT_START.sub(r"\\\g<0>", self._inline.text(node))
        return [Block(BlockKind.PROSE, text)] if text else []

    def _loose(self, node: nodes.Node) -> list[Block]:
        """Read inline nodes in the place of a block."""
        return self._paragraph(nodes.paragraph("", "", node.deepcopy())) if not isinstance(node, nodes.target) else []

    def _title(self, node: nodes.Element) -> list[Block]:
        text = self._inline.text(node, Style.BOLD)
        return [Block(BlockKind.PROSE, f"**{text}**")] if text else []

    def _listing(self, node: nodes.Element) -> list[Block]:
        text = self._inline.lines(node)
        language = str(node.get("language") or self._language)
        return _fenced(text, language or ("python" if text.lstrip().startswith(">>> ") else ""))

    def _doctest(self, node: nodes.Element) -> list[Block]:
        return _fenced(node.astext(), "python")

    def _set_language(self, node: nodes.Element) -> list[Block]:
        self._language = str(node["language"])
        return []

    def _bullets(self, node: nodes.Element) -> list[Block]:
        return list_blocks([("- ", self._read_all(item.children)) for item in node.children])

    def _numbered(self, node: nodes.Element) -> list[Block]:
        start = int(node.get("start", 1))
        return list_blocks(
            [(f"{number}. ", self._read_all(item.children)) for number, item in enumerate(node.children, start)]
        )

    def _definition(self, node: nodes.Element) -> list[Block]:
        terms = [self._inline.text(term, Style.BOLD) for term in node.children if isinstance(term, nodes.term)]
        kinds = [self._inline.text(kind) for kind in node.children if isinstance(kind, nodes.classifier)]
        body = [part for part in node.children if isinstance(part, nodes.definition)]
        line = " : ".join([f"**{', '.join(filter(None, terms))}**", *kinds])
        return _with_lead_in(line, "\n", self._read_all(body))

    def _fields(self, node: nodes.Element) -> list[Block]:
        return list_blocks([("- ", self._field(field)) for field in node.children if isinstance(field, nodes.field)])

    def _field(self, node: nodes.field) -> list[Block]:
        name, *body = node.children
        lead = _field_name(
            name.astext(), self._inline.text(name, Style.BOLD) if isinstance(name, nodes.Element) else ""
        )
        return _with_lead_in(lead, " ", self._read_all(body))

    def _options(self, node: nodes.Element) -> list[Block]:
        return list_blocks([("- ", self._option(item)) for item in node.children])

    def _option(self, node: nodes.Node) -> list[Block]:
        group, *body = node.children
        names = ", ".join(code("".join(part.astext() for part in option.children)) for option in group.children)
        return _with_lead_in(names, " – ", self._read_all(body))

    def _line_block(self, node: nodes.Element) -> list[Block]:
        lines = [self._inline.text(line) for line in node.findall(nodes.line)]
        text = "\n".join(lines).strip("\n")
        return [Block(BlockKind.PROSE, text)] if text else []

    def _attribution(self, node: nodes.Element) -> list[Block]:
        return [Block(BlockKind.PROSE, f"— {self._inline.text(node)}")]

    def _footnote(self, node: nodes.Element) -> list[Block]:
        label = next((child.astext() for child in node.children if isinstance(child, nodes.label)), "")
        body = [child for child in node.children if not isinstance(child, nodes.label)]
        return _with_lead_in(f"[{label}]", " ", self._read_all(body))

    def _titled_content(self, node: TitledContent) -> list[Block]:
        title, *body = node.children
        text = self._inline.text(title, Style.BOLD) if isinstance(title, nodes.Element) else ""
        if not text:
            return self._read_all(body)
        if node["style"] == "note":
            return _with_lead_in(
                f"**{text}**" if text.endswith(_ENDS_ITSELF) else f"**{text}:**", " ", self._read_all(body)
            )
        return _with_lead_in(f"**{text}**", "\n", self._read_all(body))

    def _signature(self, node: Signature) -> list[Block]:
        lines = "\n".join(f"**{code(line)}**" for line in node["lines"] if line)
        return _with_lead_in(lines, "\n", self._read_all(node.children))

    def _table(self, node: nodes.table) -> list[Block]:
        titles = [block for child in node.children if isinstance(child, nodes.title) for block in self._title(child)]
        heads = [row for head in node.findall(nodes.thead) for row in _rows_of(head, self._cell)]
        rows = [row for body in node.findall(nodes.tbody) for row in _rows_of(body, self._cell)]
        columns = zip_longest(*heads, fillvalue=_EMPTY)
        header = [" ".join(filter(None, (cell.plain for cell in column))) for column in columns]
        return titles + table_blocks(header, rows, rich=any(_is_rich(cell) for row in rows for cell in row))

    def _cell(self, node: nodes.Element) -> Cell:
        parts = [part for part in node.findall() if isinstance(part, nodes.TextElement) and _is_leaf_block(part)]
        plain = " ".join(filter(None, (self._inline.text(part, Style.PLAIN) for part in parts)))
        return Cell(plain, tuple(self._read_all(node.children)))

    def _refused_text(self, node: nodes.Element) -> list[Block]:
        """Return a text that docutils could not read as it is written: a user may want it."""
        texts = [part.astext() for part in node.children if isinstance(part, nodes.literal_block)]
        heading = refused_heading(node)
        if heading:
            return [Block(BlockKind.PROSE, f"**{heading}**")]
        return [
            block
            for text in texts
            if not text.lstrip().startswith("..")
            for block in _fenced(_without_markup(text), "")
        ]


def _is_rich(cell: Cell) -> bool:
    """Return whether aligned text would lose something: a link, or more than a line of text."""
    return len(cell.blocks) > 1 or any(
        block.kind is not BlockKind.PROSE or "](" in block.text or "\n" in block.text for block in cell.blocks
    )


def refused_heading(node: nodes.Element) -> str:
    """Return the heading that docutils refused for its level or position; empty for other complaints."""
    for part in node.children:
        if isinstance(part, nodes.literal_block):
            lines = [line.strip() for line in part.astext().split("\n") if line.strip()]
            words = [line for line in lines if not _is_adornment(line)]
            if len(words) == 1 and 1 < len(lines) <= 3:  # noqa: PLR2004 (a line, with one below it and maybe one above)
                return words[0]
    return ""


def _without_markup(text: str) -> str:
    """Strip rules and inline markup from a table that docutils could not read."""
    lines = [line for line in text.split("\n") if not _TABLE_RULE.fullmatch(line)]
    return _INLINE_MARKS.sub("", "\n".join(lines))


def _is_adornment(line: str) -> bool:
    return len(set(line)) == 1 and not line[0].isalnum()


def _is_leaf_block(node: nodes.Node) -> bool:
    return not isinstance(node.parent, nodes.TextElement) and not isinstance(node, nodes.Invisible)


def _field_name(name: str, shown: str) -> str:
    """Name a field as Sphinx does for fields of Python's objects, else as it is `shown`."""
    kind, *words = name.split() or [""]
    if words and kind in _PARAMETERS:
        of_type = f" ({code(' '.join(words[:-1]))})" if words[:-1] else ""
        return f"{code(words[-1])}{of_type} –"
    if words and kind in _RAISES:
        return f"**Raises** {code(' '.join(words))}:"
    if words and kind in _TYPES:
        return f"Type of {code(' '.join(words))}:"
    return f"**{_RESULTS.get(name, shown)}:**"


def _fenced(text: str, language: str) -> list[Block]:
    stripped = "\n".join(line.rstrip() for line in text.split("\n")).strip("\n")
    known = _LANGUAGE.fullmatch(language) and language.lower() not in _NO_LANGUAGE
    return [Block(BlockKind.CODE, fenced(stripped, language.lower() if known else ""))] if stripped else []


def _with_lead_in(lead: str, joint: str, blocks: Sequence[Block]) -> list[Block]:
    """Put a lead-in in front of blocks, joined with the first one if it is text or a list."""
    if not lead:
        return list(blocks)
    if blocks and blocks[0].kind is BlockKind.PROSE:
        return [Block(BlockKind.PROSE, f"{lead}{joint}{blocks[0].text}"), *blocks[1:]]
    if blocks and blocks[0].kind is BlockKind.LIST:
        return [Block(BlockKind.LIST, f"{lead}\n{blocks[0].text}"), *blocks[1:]]
    return [Block(BlockKind.PROSE, lead.removesuffix(" –")), *blocks]


_CONTAINERS = (nodes.container, nodes.compound)


def read_article(text: str) -> Article:
    """Read a text. Raises an Exception of any kind where docutils cannot take it."""
    return _ArticleBuilder(parse_rest(text)).article()


class _OpenSection:
    """A section that is being read. `needs_blocks`: it is left out if it stays empty, as it has no heading of its own,
    or has sections below it.
    """

    def __init__(self, headings: tuple[str, ...], anchor: str, *, needs_blocks: bool = False) -> None:
        self.headings = headings
        self.anchor = anchor
        self.blocks: list[Block] = []
        self.needs_blocks = needs_blocks


class _ArticleBuilder:
    def __init__(self, document: nodes.document) -> None:
        self._document = document
        _link_anonymous(document)
        without_labels = InlineReader(document, {})
        found = list(_labelled_sections(document))
        self._anchors = {id(section): nodes.make_id(label) for label, section in found}
        titles = {label: _title(section, without_labels) for label, section in found}
        self._inline = InlineReader(document, titles)
        self._blocks = BlockReader(self._inline)
        self._sections: list[_OpenSection] = []

    def article(self) -> Article:
        first = next(iter(self._document.findall(nodes.section)), None)
        title = _title(first, self._inline) if first is not None else ""
        top = self._open((title,) if title else (), "", needs_blocks=True)
        self._walk(_without_metadata(self._document.children), top, ())
        kept = (one for one in self._sections if one.blocks or not one.needs_blocks)
        return Article(title, tuple(Section(one.headings, one.anchor, tuple(one.blocks)) for one in kept))

    def _open(self, headings: tuple[str, ...], anchor: str, *, needs_blocks: bool = False) -> _OpenSection:
        self._sections.append(_OpenSection(headings, anchor, needs_blocks=needs_blocks))
        return self._sections[-1]

    def _walk(self, children: Iterable[nodes.Node], section: _OpenSection, path: tuple[str, ...]) -> None:
        """Read what is in a section. `path`: of headings, empty above the title."""
        current, names = section, path
        for child in children:
            if isinstance(child, nodes.section):
                current.needs_blocks = True
                self._section(child, names)
            elif isinstance(child, _CONTAINERS):
                self._walk(child.children, current, names)
            elif isinstance(child, nodes.system_message) and (heading := refused_heading(child)):
                section.needs_blocks = True
                names = (*path, heading)
                current = self._open(names, nodes.make_id(heading))
            else:
                current = self._add(self._blocks.read(child), current)

    def _section(self, node: nodes.section, path: tuple[str, ...]) -> None:
        names = (*path, _title(node, self._inline))
        # The first section, with nothing above it, is the page itself.
        anchor = (
            ""
            if len(self._sections) == 1 and not self._sections[0].blocks
            else self._anchors.get(id(node)) or str((node["ids"] or [""])[0])
        )
        self._walk(
            (child for child in node.children if not isinstance(child, nodes.title)), self._open(names, anchor), names
        )

    def _add(self, blocks: list[Block], section: _OpenSection) -> _OpenSection:
        """Add blocks to a section; open it again if another one was opened since."""
        if not blocks:
            return section
        if self._sections[-1] is not section:
            section = self._open(section.headings, section.anchor, needs_blocks=True)
        section.blocks += blocks
        return section


def _title(section: nodes.Element, inline: InlineReader) -> str:
    title = next((child for child in section.children if isinstance(child, nodes.title)), None)
    return inline.text(title, Style.PLAIN) if title is not None else ""


def _labelled_sections(document: nodes.document) -> Iterator[tuple[str, nodes.section]]:
    """Yield each label in front of a heading with its section, the nearest label last."""
    waiting: list[str] = []
    for node in document.findall():
        if isinstance(node, nodes.target):
            waiting += [] if "refuri" in node or "refname" in node else node["names"]
        elif isinstance(node, nodes.section):
            yield from ((label, node) for label in waiting)
            waiting.clear()
        elif isinstance(node, nodes.Body) and not isinstance(node, nodes.Invisible):
            waiting.clear()


def _without_metadata(children: list[nodes.Node]) -> list[nodes.Node]:
    """Leave out the field list that a document begins with: Sphinx does not show `:orphan:` and the like."""
    for number, child in enumerate(children):
        if isinstance(child, nodes.field_list):
            return [*children[:number], *children[number + 1 :]]
        if not isinstance(child, nodes.Invisible | nodes.substitution_definition | nodes.system_message):
            break
    return children
