"""Writes the block nodes of docutils as blocks of Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from docutils import nodes

from services.search.text.lists import listed
from services.search.text.rest_calls import Language, Lead, Signature
from services.search.text.rest_inline import Inline, Style, code
from services.search.text.rest_tables import read_table
from services.search.text.sections import Block, BlockKind
from services.search.text.tables import Cell, fenced, table

_LANGUAGE = re.compile(r"[\w+#.-]{1,30}")
_NO_LANGUAGE = frozenset(["default", "none", "guess", "text", "plain"])
_AT_START = re.compile(r"\A(?:#{1,3}|-#|>{1,3}|[-+])(?= )")
"""What Discord takes for a heading, small print, a quote or an item at the beginning of a line."""
_RULED = re.compile(r"(?=[+| ]*+[-=])[-=+| ]++")
_INLINE_MARKS = re.compile(r":[\w.+-]{1,30}:(?=`)|`{1,2}_{0,2}")
_ENDS_ITSELF = (".", ":", "?", "!", "…", "。", "？", "！", "：")
_PARAMETERS = frozenset(
    ["arg", "argument", "cvar", "ivar", "key", "keyword", "kwarg", "kwparam", "param", "parameter", "var"]
)
_RAISES = frozenset(["except", "exception", "raise", "raises", "throws"])
_TYPES = frozenset(["kwtype", "paramtype", "type", "vartype"])
_RESULTS = {"return": "Returns", "returns": "Returns", "rtype": "Return type", "yields": "Yields", "yield": "Yields"}


class Blocks:
    """Reads the block nodes of one document, from its beginning to its end (listings take the language set before)."""

    def __init__(self, inline: Inline) -> None:
        self._inline = inline
        self._language = ""
        self._kinds: dict[type[nodes.Node], Callable[[Any], list[Block]]] = {
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
            nodes.section: self._section,
            nodes.system_message: self._recovered,
            Lead: self._lead,
            Signature: self._signature,
            Language: self._set_language,
            nodes.title: self._title,
        }

    def read(self, node: nodes.Node) -> list[Block]:
        """The blocks of a node; none for what nobody sees."""
        read = self._kinds.get(type(node))
        if read is not None:
            return read(node)
        if isinstance(
            node, nodes.Invisible | nodes.image | nodes.raw | nodes.substitution_definition | nodes.transition
        ):
            return []
        if isinstance(node, nodes.TextElement | nodes.Text):
            return self._loose(node)
        return self._all(node.children)

    def _all(self, found: Iterable[nodes.Node]) -> list[Block]:
        return [block for node in found for block in self.read(node)]

    def _paragraph(self, node: nodes.Element) -> list[Block]:
        text = _AT_START.sub(r"\\\g<0>", self._inline.markdown(node))
        return [Block(BlockKind.PROSE, text)] if text else []

    def _loose(self, node: nodes.Node) -> list[Block]:
        """Inline nodes that stand where a block should."""
        return self._paragraph(nodes.paragraph("", "", node.deepcopy())) if not isinstance(node, nodes.target) else []

    def _title(self, node: nodes.Element) -> list[Block]:
        text = self._inline.markdown(node, Style.BOLD)
        return [Block(BlockKind.PROSE, f"**{text}**")] if text else []

    def _section(self, node: nodes.Element) -> list[Block]:
        """A heading within a note, a tab, an option: no section of the document."""
        return self._all(node.children)

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
        return listed([("- ", self._all(item.children)) for item in node.children])

    def _numbered(self, node: nodes.Element) -> list[Block]:
        start = int(node.get("start", 1))
        return listed([(f"{number}. ", self._all(item.children)) for number, item in enumerate(node.children, start)])

    def _definition(self, node: nodes.Element) -> list[Block]:
        terms = [self._inline.markdown(term, Style.BOLD) for term in node.children if isinstance(term, nodes.term)]
        kinds = [self._inline.markdown(kind) for kind in node.children if isinstance(kind, nodes.classifier)]
        body = [part for part in node.children if isinstance(part, nodes.definition)]
        line = " : ".join([f"**{', '.join(filter(None, terms))}**", *kinds])
        return _led(line, "\n", self._all(body))

    def _fields(self, node: nodes.Element) -> list[Block]:
        return listed([("- ", self._field(field)) for field in node.children if isinstance(field, nodes.field)])

    def _field(self, node: nodes.field) -> list[Block]:
        name, *body = node.children
        lead = _field_name(
            name.astext(), self._inline.markdown(name, Style.BOLD) if isinstance(name, nodes.Element) else ""
        )
        return _led(lead, " ", self._all(body))

    def _options(self, node: nodes.Element) -> list[Block]:
        return listed([("- ", self._option(item)) for item in node.children])

    def _option(self, node: nodes.Node) -> list[Block]:
        group, *body = node.children
        names = ", ".join(code("".join(part.astext() for part in option.children)) for option in group.children)
        return _led(names, " – ", self._all(body))

    def _line_block(self, node: nodes.Element) -> list[Block]:
        lines = [self._inline.markdown(line) for line in node.findall(nodes.line)]
        text = "\n".join(lines).strip("\n")
        return [Block(BlockKind.PROSE, text)] if text else []

    def _attribution(self, node: nodes.Element) -> list[Block]:
        return [Block(BlockKind.PROSE, f"— {self._inline.markdown(node)}")]

    def _footnote(self, node: nodes.Element) -> list[Block]:
        label = next((child.astext() for child in node.children if isinstance(child, nodes.label)), "")
        body = [child for child in node.children if not isinstance(child, nodes.label)]
        return _led(f"[{label}]", " ", self._all(body))

    def _lead(self, node: Lead) -> list[Block]:
        title, *body = node.children
        text = self._inline.markdown(title, Style.BOLD) if isinstance(title, nodes.Element) else ""
        if not text:
            return self._all(body)
        if node["style"] == "note":
            return _led(f"**{text}**" if text.endswith(_ENDS_ITSELF) else f"**{text}:**", " ", self._all(body))
        return _led(f"**{text}**", "\n", self._all(body))

    def _signature(self, node: Signature) -> list[Block]:
        lines = "\n".join(f"**{code(line)}**" for line in node["lines"] if line)
        return _led(lines, "\n", self._all(node.children))

    def _table(self, node: nodes.table) -> list[Block]:
        titles = [block for child in node.children if isinstance(child, nodes.title) for block in self._title(child)]
        header, rows = read_table(node, self._cell)
        return titles + table(header, rows, rich=any(_is_rich(cell) for row in rows for cell in row))

    def _cell(self, node: nodes.Element) -> Cell:
        parts = [part for part in node.findall() if isinstance(part, nodes.TextElement) and _is_leaf_block(part)]
        plain = " ".join(filter(None, (self._inline.markdown(part, Style.PLAIN) for part in parts)))
        return Cell(plain, tuple(self._all(node.children)))

    def _recovered(self, node: nodes.Element) -> list[Block]:
        """What docutils could not read, as it stands: a reader of the source would want it, and so may a user."""
        texts = [part.astext() for part in node.children if isinstance(part, nodes.literal_block)]
        heading = recovered_heading(node)
        if heading:
            return [Block(BlockKind.PROSE, f"**{heading}**")]
        return [block for text in texts if not text.lstrip().startswith("..") for block in _fenced(_unmarked(text), "")]


def _is_rich(cell: Cell) -> bool:
    """More than a line of text, or a link: aligned text would lose it."""
    return len(cell.blocks) > 1 or any(
        block.kind is not BlockKind.PROSE or "](" in block.text or "\n" in block.text for block in cell.blocks
    )


def recovered_heading(node: nodes.Element) -> str:
    """The heading that docutils refused, for its level or place; empty where it complains about something else."""
    for part in node.children:
        if isinstance(part, nodes.literal_block):
            lines = [line.strip() for line in part.astext().split("\n") if line.strip()]
            words = [line for line in lines if not _is_adornment(line)]
            if len(words) == 1 and 1 < len(lines) <= 3:  # noqa: PLR2004 (a line, with one below it and maybe one above)
                return words[0]
    return ""


def _unmarked(text: str) -> str:
    """A table that docutils could not read, without the lines and the inline markup in it."""
    lines = [line for line in text.split("\n") if not _RULED.fullmatch(line)]
    return _INLINE_MARKS.sub("", "\n".join(lines))


def _is_adornment(line: str) -> bool:
    return len(set(line)) == 1 and not line[0].isalnum()


def _is_leaf_block(node: nodes.Node) -> bool:
    return not isinstance(node.parent, nodes.TextElement) and not isinstance(node, nodes.Invisible)


def _field_name(name: str, shown: str) -> str:
    """What stands for a field: of the fields of Python's objects what Sphinx makes of them, else its name."""
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


def _led(lead: str, joint: str, blocks: Sequence[Block]) -> list[Block]:
    """The blocks behind a lead-in, which shares the block of the text or the list that follows it."""
    if not lead:
        return list(blocks)
    if blocks and blocks[0].kind is BlockKind.PROSE:
        return [Block(BlockKind.PROSE, f"{lead}{joint}{blocks[0].text}"), *blocks[1:]]
    if blocks and blocks[0].kind is BlockKind.LIST:
        return [Block(BlockKind.LIST, f"{lead}\n{blocks[0].text}"), *blocks[1:]]
    return [Block(BlockKind.PROSE, lead.removesuffix(" –")), *blocks]
