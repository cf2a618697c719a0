"""reStructuredText into a tree of nodes: the parser of docutils, with directives and roles of ours.

The registries of docutils are shared by all threads, know nothing of Sphinx's names, and hold directives that open
files: none of them is asked. Importing this imports docutils; `rest` does so when the first document is read.
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

from services.search.text.rest_calls import DirectiveCall, read_call
from services.search.text.rest_directives import run
from services.search.text.rest_roles import RoleReader

_FREE_SECONDS = 4.0
_SECONDS_PER_CHAR = 16e-6
"""Of this thread's processor. Documentation takes a tenth of it, tables of options the most. With some constructs the
time that docutils needs grows with the square of their number: a text that is full of them is not read to the end."""
_MAX_GRID = 30_000
"""Lines of a grid table by its columns: docutils looks at every corner for each cell. A larger one stays as it is."""
_WORDS = re.compile(r"(?:[^\W_]++(?:, | |-(?=[^\W_])|$)){1,100}")
"""Letters and digits: no construct of reStructuredText begins or ends with one of them, or is made of nothing else."""
_SYMBOLS = "*†‡§¶#"


class TooSlow(Exception):
    """The text takes longer than any documentation of its size."""


def parse_rest(text: str) -> nodes.document:
    """The tree of a text, with footnotes numbered and references left as they are.

    Raises:
        Exception: of any kind. docutils is not made for text that is not reStructuredText.
    """
    document = new_document("", copy.copy(_settings()))
    check = _deadline(len(text))
    roles = RoleReader(check)
    _call_for_each_line(document, check)
    parser = Parser(inliner=roles)
    parser.state_classes = _STATES
    parser.parse(text, document)
    _number_footnotes(document)
    return document


@cache
def _settings() -> Any:
    """The defaults of docutils, without any configuration file, and with nothing that opens or prints."""
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


def _deadline(chars: int) -> Callable[[], None]:
    end = time.thread_time() + _FREE_SECONDS + chars * _SECONDS_PER_CHAR

    def check() -> None:
        if time.thread_time() > end:
            raise TooSlow

    return check


def _call_for_each_line(document: nodes.document, check: Callable[[], None]) -> None:
    """The parser tells the document which line it goes to; that is where it can be stopped."""

    def note_source(source: Any, offset: Any) -> None:
        document.current_source, document.current_line = source, offset
        check()

    vars(document)["note_source"] = note_source


def _number_footnotes(document: nodes.document) -> None:
    """Give `[#]_` and `[*]_` the labels that a reader sees.

    What docutils has for this needs a time that grows with the square of their number.
    """
    taken = {name for note in document.footnotes for name in note["names"]}
    numbers = (str(number) for number in count(1) if str(number) not in taken)
    symbols = (_SYMBOLS[number % len(_SYMBOLS)] * (1 + number // len(_SYMBOLS)) for number in count())
    _label(document.autofootnotes, document.autofootnote_refs, numbers)
    _label(document.symbol_footnotes, document.symbol_footnote_refs, symbols)


def _label(notes: list[Any], references: list[Any], labels: Iterator[str]) -> None:
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
    """Mixed into each state of docutils' parser."""

    state_machine: Any
    inliner: Any
    memo: Any

    def __init__(self, state_machine: Any, debug: bool = False) -> None:
        super().__init__(state_machine, debug)  # pyright: ignore[reportCallIssue] (of the state that this is mixed into)
        self.nested_sm_kwargs = {"state_classes": _STATES, "initial_state": "Body"}

    def directive(self, match: re.Match[str], **presets: Any) -> tuple[list[nodes.Node], bool]:
        """The nodes of the directive that begins in this line, and whether an empty line follows it."""
        machine = self.state_machine
        lines, _, offset, blank_finish = machine.get_first_known_indented(match.end(), strip_top=0)
        call = read_call(match.group(1), lines, offset)
        found = run(self, call) or (
            [nodes.inline()] if presets else []
        )  # what a substitution stands for is never nothing
        return found, bool(blank_finish or machine.is_next_line_blank())

    def isolate_grid_table(self) -> Any:
        """The lines of a grid table, as docutils does it, unless there are too many."""
        state: Any = super()
        block, messages, blank_finish = state.isolate_grid_table()
        if block and len(block) * block[0].count("+") > _MAX_GRID:
            text = "\n".join(block)
            return [], [*messages, nodes.literal_block(text, text)], blank_finish
        return block, messages, blank_finish

    def nested_parse(self, block: Any, input_offset: int, node: Any = None, **rest: Any) -> int:
        """Read the lines of a cell, a list or the like into `node`, as docutils does it. Plain words in a cell are one
        paragraph: a parser of its own for each is what large tables take their time with.
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


def _mixed(state: type[Any]) -> type[Any]:
    """A state that runs our directives. It keeps its name, by which the others go to it."""
    constructs = [
        (_OurDirectives.directive if method.__name__ == "directive" else method, pattern)
        for method, pattern in states.Body.explicit.constructs
    ]
    explicit = SimpleNamespace(patterns=states.Body.explicit.patterns, constructs=constructs)
    return type(state.__name__, (_OurDirectives, state), {"explicit": explicit, "nested_sm_cache": _MACHINES})


_MACHINES: list[Any] = []
"""State machines to use again, as docutils does; those of its own states are not ours to take."""
_STATES = tuple(_mixed(state) for state in states.state_classes)
