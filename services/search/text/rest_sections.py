"""Builds an article from a tree of docutils: assigns its blocks to headings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from docutils import nodes

from services.search.text.rest_blocks import Blocks, recovered_heading
from services.search.text.rest_inline import Inline, Style
from services.search.text.rest_parser import parse_rest
from services.search.text.sections import Article, Block, Section

_TRANSPARENT = (nodes.container, nodes.compound)


def read_tree(text: str) -> Article:
    """The article of a text.

    Raises:
        Exception: of any kind, where docutils cannot take the text.
    """
    document = parse_rest(text)
    return _Outline(document).article()


class _Open:
    """The section that is being read.

    Attributes:
        is_empty_place: whether nothing is kept of it without a block: it is no heading, or others stand below it.
    """

    def __init__(self, headings: tuple[str, ...], anchor: str, *, is_empty_place: bool = False) -> None:
        self.headings = headings
        self.anchor = anchor
        self.blocks: list[Block] = []
        self.is_empty_place = is_empty_place


class _Outline:
    def __init__(self, document: nodes.document) -> None:
        self._document = document
        names = Inline(document, {})
        found = list(_labelled(document))
        self._anchors = {id(section): nodes.make_id(label) for label, section in found}
        titles = {label: _title(section, names) for label, section in found}
        self._inline = Inline(document, titles)
        self._blocks = Blocks(self._inline)
        self._sections: list[_Open] = []

    def article(self) -> Article:
        first = next(iter(self._document.findall(nodes.section)), None)
        title = _title(first, self._inline) if first is not None else ""
        top = self._open((title,) if title else (), "", is_empty_place=True)
        self._walk(_without_metadata(self._document.children), top, ())
        kept = (one for one in self._sections if one.blocks or not one.is_empty_place)
        return Article(title, tuple(Section(one.headings, one.anchor, tuple(one.blocks)) for one in kept))

    def _open(self, headings: tuple[str, ...], anchor: str, *, is_empty_place: bool = False) -> _Open:
        self._sections.append(_Open(headings, anchor, is_empty_place=is_empty_place))
        return self._sections[-1]

    def _walk(self, children: Iterable[nodes.Node], below: _Open, path: tuple[str, ...]) -> None:
        """Read what stands below a heading. `path`: the headings, none before the title."""
        current, names = below, path
        for child in children:
            if isinstance(child, nodes.section):
                current.is_empty_place = True
                self._section(child, names)
            elif isinstance(child, _TRANSPARENT):
                self._walk(child.children, current, names)
            elif isinstance(child, nodes.system_message) and (heading := recovered_heading(child)):
                below.is_empty_place = True
                names = (*path, heading)
                current = self._open(names, nodes.make_id(heading))
            else:
                current = self._add(self._blocks.read(child), current)

    def _section(self, node: nodes.section, path: tuple[str, ...]) -> None:
        names = (*path, _title(node, self._inline))
        anchor = (
            ""
            if len(self._sections) == 1 and not self._sections[0].blocks
            else self._anchors.get(id(node)) or str((node["ids"] or [""])[0])
        )
        self._walk(
            (child for child in node.children if not isinstance(child, nodes.title)), self._open(names, anchor), names
        )

    def _add(self, blocks: list[Block], section: _Open) -> _Open:
        """Add blocks to a section, which is opened again where another one came between."""
        if not blocks:
            return section
        if self._sections[-1] is not section:
            section = self._open(section.headings, section.anchor, is_empty_place=True)
        section.blocks += blocks
        return section


def _title(section: nodes.Element, inline: Inline) -> str:
    title = next((child for child in section.children if isinstance(child, nodes.title)), None)
    return inline.markdown(title, Style.PLAIN) if title is not None else ""


def _labelled(document: nodes.document) -> Iterator[tuple[str, nodes.section]]:
    """Each label that stands before a heading, with its section; the nearest one last."""
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
    """Without the field list that a document begins with: Sphinx takes `:orphan:` and the like, and shows none."""
    for number, child in enumerate(children):
        if isinstance(child, nodes.field_list):
            return [*children[:number], *children[number + 1 :]]
        if not isinstance(child, nodes.Invisible | nodes.substitution_definition | nodes.system_message):
            break
    return children
