"""Writes the inline nodes of docutils as Discord's Markdown, with references, labels and substitutions resolved."""

from __future__ import annotations

import re
from enum import Enum

from docutils import nodes

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


class Inline:
    """Reads inline nodes of one document."""

    def __init__(self, document: nodes.document, labels: dict[str, str]) -> None:
        """`labels`: the title of each section that has a label, by the label."""
        self._document = document
        self._labels = labels
        self._substitutes: dict[tuple[str, Style], str] = {}
        self._depth = 0
        _link_anonymous(document)

    def markdown(self, node: nodes.Element, style: Style = Style.MARKDOWN) -> str:
        """The text of an element, in one line, without spaces around it."""
        return _SPACES.sub(" ", self._children(node, style)).strip()

    def lines(self, node: nodes.Element) -> str:
        """The plain text of an element, its lines kept."""
        return self._children(node, Style.PLAIN)

    def _children(self, node: nodes.Element, style: Style) -> str:
        parts = [self._one(child, style) for child in node.children]
        for number, child in enumerate(node.children[1:]):
            if isinstance(child, nodes.literal):  # a role before a literal is a slip of the pen
                parts[number] = _STRAY_ROLE.sub("", parts[number])
        return "".join(parts)

    def _one(self, node: nodes.Node, style: Style) -> str:  # noqa: C901, PLR0911 (a table of kinds)
        match node:
            case nodes.Text():
                return node.astext() if style is Style.PLAIN else escape(node.astext())
            case nodes.literal() | nodes.math():
                return node.astext() if style is Style.PLAIN else code(node.astext())
            case nodes.emphasis() | nodes.title_reference():
                return self._marked("*", node, style)
            case nodes.strong():
                return self._marked("**", node, style)
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
            self._substitutes[key] = name  # what a definition that holds itself finds
            self._depth += 1
            self._substitutes[key] = self._children(definitions[found], style)[:_MAX_SUBSTITUTE_CHARS]
            self._depth -= 1
        return self._substitutes[key]

    def _reference(self, node: nodes.reference, style: Style) -> str:
        text = self._children(node, style)
        target = str(node.get("refuri") or "") or self._address(str(node.get("refname") or ""))
        if style is Style.PLAIN or not text.strip():
            return text + self._tail(node, text, target)
        bare = node.astext()
        if target in (bare, f"mailto:{bare}"):
            return bare
        if not target:
            return text + self._tail(node, text, target)
        address = re.sub(r"\s+", "%20", target).replace("(", "%28").replace(")", "%29")
        return f"[{text.strip()}]({address})"

    def _tail(self, node: nodes.Element, text: str, target: str) -> str:
        """`MYAPP_` in capitals is meant as it stands, unless something has that name."""
        name = str(node.get("refname") or "")
        unknown = bool(name) and not target and name not in self._document.nameids
        return "_" if unknown and "`" not in node.rawsource and _ALL_CAPS.fullmatch(text) else ""

    def _address(self, name: str) -> str:
        """Where a named reference leads, empty for places in this document."""
        for _ in range(_MAX_HOPS):
            target = self._document.ids.get(self._document.nameids.get(name) or "")
            if target is None:
                return ""
            if target.get("refuri"):
                return str(target["refuri"])
            name = str(target.get("refname") or "")
        return ""


def escape(text: str) -> str:
    """Text in which nothing is taken for Markdown. A `_` within a word is none."""
    return _SPECIAL.sub(lambda match: "".join(f"\\{char}" for char in match[0]), text)


def code(text: str) -> str:
    """Inline code, in one line."""
    line = _SPACES.sub(" ", text).strip()
    if "`" not in line:
        return f"`{line}`" if line else ""
    return f"`` {line} ``" if "``" not in line else escape(line)


def _link_anonymous(document: nodes.document) -> None:
    """`text`__ leads to the next `__ target` that no other one took."""
    targets = [node for node in document.findall(nodes.target) if node.get("anonymous")]
    references = [node for node in document.findall(nodes.reference) if node.get("anonymous")]
    for reference, target in zip(references, targets, strict=False):
        for key in ("refuri", "refname"):
            if target.get(key):
                reference[key] = target[key]
