"""Parses reStructuredText into a tree of docutils nodes, with directives and roles of ours.

The registries of docutils are not used: all threads share them, they lack Sphinx's names, and some of their directives
open files. Importing this imports docutils; `reading` does so when the first document is read.
"""

from __future__ import annotations

import copy
import re
import time
from collections.abc import Callable, Iterator
from functools import cache
from itertools import count
from types import SimpleNamespace
from typing import Any

from docutils import nodes
from docutils.frontend import get_default_settings
from docutils.parsers.rst import Parser, states
from docutils.statemachine import StringList
from docutils.utils import new_document

from services.search.text.rest_directives import DirectiveCall, name_set, nodes_for, parse_call

_MAX_INLINE_CHARS = 2_000
"""The time of docutils grows with the square of a paragraph's length: a longer one is read in pieces of whole lines."""
_NUMBER = re.compile(r"\d+")

_TEXT_ROLES = name_set("""
    ref doc term numref any download abbr dfn manpage eq title t title-reference menuselection guilabel emphasis
    strong sub sup subscript superscript index cite footcite user
""")
_UNSEEN_ROLES = frozenset(["fa", "fab", "fas", "material-regular", "octicon", "raw"])
_CALLED_ROLES = frozenset(["func", "function", "meth", "method"])
_VERBATIM_ROLES = frozenset(["code", "math", "literal", "samp", "regexp", "file"])
_CODE_ROLES = name_set("""
    attr class command confval const data envvar exc func function kbd keyword meth method mod obj option program
    property py setting token type
""")
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
    "sub": nodes.subscript,
    "subscript": nodes.subscript,
    "sup": nodes.superscript,
    "superscript": nodes.superscript,
}


class RoleReader(states.Inliner):
    """Reads inline markup, with our roles instead of the registry of docutils.

    Attributes:
        bases: the base of each role that the document defines with `.. role:: name(base)`, by name.
    """

    def __init__(self, check: Callable[[], None]) -> None:
        """`check`: called for each piece of text; raises to stop the reading."""
        super().__init__()
        self._check = check
        self.bases: dict[str, str] = {}

    def parse(self, text: str, lineno: int, memo: Any, parent: Any) -> Any:
        found: list[nodes.Node] = []
        messages: list[nodes.Node] = []
        for piece in _split_paragraph(text):
            self._check()
            part, said = super().parse(piece, lineno, memo, parent)
            found += part
            messages += said
        return found, messages

    def interpreted(self, rawsource: str, text: str, role: str | None, lineno: int) -> Any:
        """Return the nodes of one piece of interpreted text; an unknown role is no error."""
        del lineno
        name = (role or "").lower()
        name = self.bases.get(name, name).rpartition(":")[2]
        if name in _UNSEEN_ROLES:
            return [], []
        plain = nodes.unescape(text, name in _VERBATIM_ROLES)
        node = _make_node(name, plain)
        node.rawsource = rawsource
        return [node], []


for _name, _pattern in vars(states.Inliner).items():
    if isinstance(_pattern, str) and not _name.startswith("__"):
        setattr(RoleReader, _name, _pattern)  # docutils looks for them in the class itself, not in what it is made from


def _split_paragraph(text: str) -> list[str]:
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


def _make_node(role: str, text: str) -> nodes.TextElement:  # noqa: PLR0911 (a table of kinds)
    """Make the node of interpreted text. `role`: without its domain; `text`: unescaped."""
    title = _explicit_title(text) if role not in _VERBATIM_ROLES else None
    if role in _LINKS:
        return _link_node(role, text, title)
    if role in ("ref", "numref") and title is None:
        return nodes.inline("", text, reflabel=text.strip())
    if role in ("doc", "download") and title is None:
        return nodes.inline("", _label_words(_page_name(text)))
    if role in _NODES:
        return _NODES[role]("", title or text) if role else nodes.emphasis("", text)
    if role == "menuselection":
        return nodes.strong("", text.replace("-->", "→"))
    if role in _TEXT_ROLES:
        return nodes.inline("", title or text)
    if title is not None:
        return nodes.inline("", title) if " " in title else nodes.literal("", title)
    return _code_node(role, text)


def _explicit_title(text: str) -> str | None:
    """Return the title of `title <target>`, None if there is no target."""
    title, mark, _ = text.rstrip().removesuffix(">").rpartition("<")
    return title.strip() or None if mark and text.rstrip().endswith(">") else None


def _code_node(role: str, text: str) -> nodes.TextElement:
    """Make the node for a role that names an object, a file or a key, or that is unknown."""
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


def _link_node(role: str, text: str, title: str | None) -> nodes.TextElement:
    name, address = _LINKS[role]
    number, _, place = (text if title is None else text.rpartition("<")[2].rstrip("> ")).partition("#")
    target = address.format(number.strip().removeprefix("!")) + (f"#{place}" if place else "")
    return nodes.reference("", title or f"{name} {number}", refuri=target)


def _page_name(path: str) -> str:
    """Name a page without a title: by its file, or by the folder whose index it is."""
    parts = [part for part in path.split("/") if part.strip(". ")] or [path]
    return parts[-2] if len(parts) > 1 and parts[-1].strip() == "index" else parts[-1]


def _label_words(label: str) -> str:
    return " ".join(label.replace("-", " ").replace("_", " ").split())


_FREE_SECONDS = 1.0
_SECONDS_PER_CHAR = 8e-6
"""Processor time of this thread; documentation takes a fifth of it, tables of options the most. For some constructs the
time of docutils grows with the square of their number: a text full of them is not read to the end.
"""
_MAX_GRID = 30_000
"""Lines of a grid table times its columns: docutils tries every corner for each cell. A larger one stays as it is."""
_WORDS = re.compile(r"(?:[^\W_]++(?:, | |-(?=[^\W_])|$)){1,100}")
"""Plain words, which have no markup: no construct begins or ends with a letter or digit, or has nothing else."""
_SYMBOLS = "*†‡§¶#"


class TooSlow(Exception):
    """Reading the text takes longer than that of any documentation of its size."""


def parse_rest(text: str) -> nodes.document:
    """Parse a text. Footnotes are numbered; references stay as they are.

    Raises:
        Exception: of any kind, where docutils cannot take the text.
    """
    document = new_document("", copy.copy(_settings()))
    check = _deadline_check(len(text))
    roles = RoleReader(check)
    _check_at_each_line(document, check)
    parser = Parser(inliner=roles)
    parser.state_classes = _STATES
    parser.parse(text, document)
    _number_footnotes(document)
    return document


@cache
def _settings() -> Any:
    """Return the defaults of docutils, without a configuration file, and with everything off that opens or prints."""
    settings = get_default_settings(Parser)  # pyright: ignore[reportArgumentType] (a class is what it wants)
    vars(settings).update(
        {
            "auto_id_prefix": "id",  # as Sphinx has it: the anchor of a second section of one title
            "file_insertion_enabled": False,
            "halt_level": 5,
            "line_length_limit": 1 << 40,
            "raw_enabled": False,
            "report_level": 5,
            "warning_stream": False,
        }
    )
    return settings


def _deadline_check(chars: int) -> Callable[[], None]:
    end = time.thread_time() + _FREE_SECONDS + chars * _SECONDS_PER_CHAR

    def check() -> None:
        if time.thread_time() > end:
            raise TooSlow

    return check


def _check_at_each_line(document: nodes.document, check: Callable[[], None]) -> None:
    """Call `check` where the parser tells the document its line, the one place where it can be stopped."""

    def note_source(source: Any, offset: Any) -> None:
        document.current_source, document.current_line = source, offset
        check()

    vars(document)["note_source"] = note_source


def _number_footnotes(document: nodes.document) -> None:
    """Label `[#]_` and `[*]_` as a reader sees them. docutils' own time grows with the square of their number."""
    taken = {name for note in document.footnotes for name in note["names"]}
    numbers = (str(number) for number in count(1) if str(number) not in taken)
    symbols = (_SYMBOLS[number % len(_SYMBOLS)] * (1 + number // len(_SYMBOLS)) for number in count())
    _set_labels(document.autofootnotes, document.autofootnote_refs, numbers)
    _set_labels(document.symbol_footnotes, document.symbol_footnote_refs, symbols)


def _set_labels(notes: list[Any], references: list[Any], labels: Iterator[str]) -> None:
    named: dict[str, str] = {}
    unnamed: list[str] = []
    for note, label in zip(notes, labels, strict=False):
        note.insert(0, nodes.label("", label))
        named.update(dict.fromkeys(note["names"], label))
        if not note["names"]:
            unnamed.append(label)
    left = iter(unnamed)
    for reference in references:
        name = reference.get("refname")
        reference.append(nodes.Text((named.get(name) if name else next(left, None)) or name or "?"))


class _OurDirectives:
    """A mix-in of the states of docutils' parser."""

    state_machine: Any
    inliner: Any
    memo: Any

    def __init__(self, state_machine: Any, debug: bool = False) -> None:
        super().__init__(state_machine, debug)  # pyright: ignore[reportCallIssue] (of the state that this is mixed into)
        self.nested_sm_kwargs = {"state_classes": _STATES, "initial_state": "Body"}

    def directive(self, match: re.Match[str], **presets: Any) -> tuple[list[nodes.Node], bool]:
        """Return the nodes of the directive that begins in this line, and whether an empty line follows it."""
        machine = self.state_machine
        lines, _, offset, blank_finish = machine.get_first_known_indented(match.end(), strip_top=0)
        call = parse_call(match.group(1), lines, offset)
        found = nodes_for(self, call) or ([nodes.inline()] if presets else [])  # a substitution must have a node
        return found, bool(blank_finish or machine.is_next_line_blank())

    def isolate_grid_table(self) -> Any:
        """Return the lines of a grid table as docutils does; a larger one stays as it is written."""
        state: Any = super()
        block, messages, blank_finish = state.isolate_grid_table()
        if block and len(block) * block[0].count("+") > _MAX_GRID:
            text = "\n".join(block)
            return [], [*messages, nodes.literal_block(text, text)], blank_finish
        return block, messages, blank_finish

    def nested_parse(self, block: Any, input_offset: int, node: Any = None, **rest: Any) -> int:
        """Read the lines of a cell, a list or the like into `node`, as docutils does. Plain words in a cell become one
        paragraph without a parser of their own, which takes most of the time of large tables.
        """
        text = "\n".join(block).rstrip() if isinstance(node, nodes.entry) else ""
        if _WORDS.fullmatch(text):
            vars(self.memo.document)["note_source"](None, input_offset)
            node += nodes.paragraph(text, "", nodes.Text(text))
            return input_offset + len(block)
        state: Any = super()
        return state.nested_parse(block, input_offset, node, **rest)

    @property
    def bases(self) -> dict[str, str]:
        return self.inliner.bases

    def parsed(self, call: DirectiveCall, *, with_argument: bool = False) -> nodes.container:
        body = nodes.container()
        lines, offset = call.content, call.offset
        if with_argument and len(call.argument):
            lines = call.argument + StringList(list(lines), source="")
            offset -= len(call.argument)
        state: Any = self
        state.nested_parse(lines, offset, body, match_titles=True)
        return body

    def inline(self, text: str) -> list[nodes.Node]:
        found, _ = self.inliner.parse(text, self.state_machine.abs_line_number(), self.memo, self.state_machine.node)
        return found


def _with_our_directives(state: type[Any]) -> type[Any]:
    """Make a state that runs our directives, with the same name, by which other states find it."""
    constructs = [
        (_OurDirectives.directive if method.__name__ == "directive" else method, pattern)
        for method, pattern in states.Body.explicit.constructs
    ]
    explicit = SimpleNamespace(patterns=states.Body.explicit.patterns, constructs=constructs)
    return type(state.__name__, (_OurDirectives, state), {"explicit": explicit, "nested_sm_cache": _MACHINES})


_MACHINES: list[Any] = []
"""State machines that are used again; docutils keeps its own, for its own states."""
_STATES = tuple(_with_our_directives(state) for state in states.state_classes)
