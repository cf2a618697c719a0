"""Reads the roles of inline reStructuredText (`:ref:`, `:class:`, `:pep:` and any other) as Sphinx shows them.

Importing this imports docutils; `rest` does so when the first document is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from docutils import nodes
from docutils.parsers.rst import states

_MAX_INLINE_CHARS = 2_000
"""The time of docutils grows with the square of a paragraph: a longer one is read in pieces that end with a line."""
_NUMBER = re.compile(r"\d+")

_TEXT_ROLES = frozenset(
    [
        "ref",
        "doc",
        "term",
        "numref",
        "any",
        "download",
        "abbr",
        "dfn",
        "manpage",
        "eq",
        "title",
        "t",
        "title-reference",
        "menuselection",
        "guilabel",
        "emphasis",
        "strong",
        "sub",
        "sup",
        "subscript",
        "superscript",
        "index",
        "cite",
        "footcite",
        "user",
    ]
)
_UNSEEN_ROLES = frozenset(["fa", "fab", "fas", "material-regular", "octicon", "raw"])
_CALLED_ROLES = frozenset(["func", "function", "meth", "method"])
_VERBATIM_ROLES = frozenset(
    [
        "code",
        "math",
        "literal",
        "samp",
        "regexp",
        "file",
    ]
)
_CODE_ROLES = frozenset(
    [
        "attr",
        "class",
        "command",
        "confval",
        "const",
        "data",
        "envvar",
        "exc",
        "func",
        "function",
        "kbd",
        "keyword",
        "meth",
        "method",
        "mod",
        "obj",
        "option",
        "program",
        "property",
        "py",
        "setting",
        "token",
        "type",
    ]
)
_LINKS = {
    "pep": ("PEP", "https://peps.python.org/pep-{:0>4}/"),
    "rfc": ("RFC", "https://datatracker.ietf.org/doc/html/rfc{}"),
    "cve": ("CVE", "https://www.cve.org/CVERecord?id=CVE-{}"),
    "cwe": ("CWE", "https://cwe.mitre.org/data/definitions/{}.html"),
}
_NODES: dict[str, type[nodes.TextElement]] = {
    "": nodes.emphasis,  # the role of `text` alone is that of titles of works
    "emphasis": nodes.emphasis,
    "title": nodes.emphasis,
    "title-reference": nodes.emphasis,
    "t": nodes.emphasis,
    "dfn": nodes.emphasis,
    "strong": nodes.strong,
    "guilabel": nodes.strong,
}


class RoleReader(states.Inliner):
    """Reads inline markup. Takes roles from here, not from the registry of docutils, which all threads share.

    Attributes:
        bases: of each role that the document defines with `.. role:: name(base)`, the base.
    """

    def __init__(self, check: Callable[[], None]) -> None:
        """`check` is called now and then, and raises to stop the reading."""
        super().__init__()
        self._check = check
        self.bases: dict[str, str] = {}

    def parse(self, text: str, lineno: int, memo: Any, parent: Any) -> Any:
        found: list[nodes.Node] = []
        messages: list[nodes.Node] = []
        for piece in _pieces(text):
            self._check()
            part, said = super().parse(piece, lineno, memo, parent)
            found += part
            messages += said
        return found, messages

    def interpreted(self, rawsource: str, text: str, role: str | None, lineno: int) -> Any:
        """The nodes of one piece of interpreted text; never a complaint that a role is unknown."""
        del lineno
        name = (role or "").lower()
        name = self.bases.get(name, name).rpartition(":")[2]
        if name in _UNSEEN_ROLES:
            return [], []
        plain = nodes.unescape(text, name in _VERBATIM_ROLES)
        node = _node(name, plain)
        node.rawsource = rawsource
        return [node], []


for _name, _pattern in vars(states.Inliner).items():
    if isinstance(_pattern, str) and not _name.startswith("__"):
        setattr(RoleReader, _name, _pattern)  # docutils looks for them in the class itself, not in what it is made from


def _pieces(text: str) -> list[str]:
    if len(text) <= _MAX_INLINE_CHARS:
        return [text]
    pieces = [""]
    for line in text.splitlines(keepends=True):
        for start in range(0, len(line), _MAX_INLINE_CHARS):
            part = line[start : start + _MAX_INLINE_CHARS]
            if len(pieces[-1]) + len(part) > _MAX_INLINE_CHARS:
                pieces.append("")
            pieces[-1] += part
    return pieces


def _node(role: str, text: str) -> nodes.TextElement:  # noqa: PLR0911 (a table of kinds)
    """What is shown of interpreted text: `role` without its domain, `text` unescaped."""
    title = _explicit_title(text) if role not in _VERBATIM_ROLES else None
    if role in _LINKS:
        return _link(role, text, title)
    if role in ("ref", "numref") and title is None:
        return nodes.inline("", text, reflabel=text.strip())
    if role in ("doc", "download") and title is None:
        return nodes.inline("", _words(_page(text)))
    if role in _NODES:
        return _NODES[role]("", title or text) if role else nodes.emphasis("", text)
    if role == "menuselection":
        return nodes.strong("", text.replace("-->", "→"))
    if role in _TEXT_ROLES:
        return nodes.inline("", title or text)
    if title is not None:
        return nodes.literal("", title) if _is_code(title) else nodes.inline("", title)
    return _code(role, text)


def _explicit_title(text: str) -> str | None:
    """The title of `title <target>`."""
    title, mark, _ = text.rstrip().removesuffix(">").rpartition("<")
    return title.strip() or None if mark and text.rstrip().endswith(">") else None


def _code(role: str, text: str) -> nodes.TextElement:
    """Of a role that names an object, a file, a key, or that nobody here knows."""
    if role in _VERBATIM_ROLES and role != "samp":
        return nodes.literal("", text)
    if role not in _CODE_ROLES and _NUMBER.fullmatch(text):
        return nodes.inline("", f"#{text}")  # an issue, a request, a discussion
    if role == "samp":
        return nodes.literal("", text.replace("{", "").replace("}", ""))
    shown = text.removeprefix("!")
    if shown.startswith("~"):
        shown = shown[1:].rpartition(".")[2]
    shown = shown.removeprefix(".")
    if role in _CALLED_ROLES and not shown.endswith(")"):
        shown += "()"
    return nodes.literal("", shown)


def _link(role: str, text: str, title: str | None) -> nodes.TextElement:
    name, address = _LINKS[role]
    number, _, place = (text if title is None else text.rpartition("<")[2].rstrip("> ")).partition("#")
    target = address.format(number.strip().removeprefix("!")) + (f"#{place}" if place else "")
    return nodes.reference("", title or f"{name} {number}", refuri=target)


def _page(path: str) -> str:
    """What a page may be called that nobody named here: its file, or the folder whose index it is."""
    parts = [part for part in path.split("/") if part.strip(". ")] or [path]
    return parts[-2] if len(parts) > 1 and parts[-1].strip() == "index" else parts[-1]


def _words(label: str) -> str:
    return " ".join(label.replace("-", " ").replace("_", " ").split())


def _is_code(title: str) -> bool:
    return " " not in title
