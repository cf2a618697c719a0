"""reStructuredText into a tree of nodes: the parser of docutils, with directives and roles of ours in place of its registries.

Those registries are shared by all threads, know nothing of Sphinx's names, and hold directives that open files. Importing
this imports docutils; `rest` does so when the first document is read.
"""

from __future__ import annotations

import copy
import re
from functools import cache
from types import SimpleNamespace
from typing import Any

from docutils import nodes
from docutils.frontend import get_default_settings
from docutils.parsers.rst import Parser, states
from docutils.statemachine import StringList
from docutils.transforms.references import Footnotes
from docutils.utils import new_document

from services.search.text.rest_directives import Call, read_call, run
from services.search.text.rest_roles import RoleReader

_LINES_READ = 40
"""How often a line may be read, on average: a list in a note in a list reads its lines once a level."""
_FREE_LINES = 20_000


class TooDeep(Exception):
    """The text is nested so deeply that reading it would take too long."""


def parse_rest(text: str) -> nodes.document:
    """The tree of a text, with footnotes numbered and references left as they are.

    Raises:
        Exception: of any kind. docutils is not made for text that is not reStructuredText.
    """
    document = new_document("", copy.copy(_settings()))
    _bound_lines(document, text)
    roles = RoleReader()
    parser = Parser(inliner=roles)
    parser.state_classes = _STATES
    parser.parse(text, document)
    Footnotes(document).apply()
    return document


@cache
def _settings() -> Any:
    """Docutils' defaults, without any configuration file, and with nothing that opens or prints."""
    settings = get_default_settings(Parser)
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


def _bound_lines(document: nodes.document, text: str) -> None:
    """Count the lines as the parser goes to them, and stop it when there are too many."""
    left = _FREE_LINES + _LINES_READ * text.count("\n")

    def note_source(source: Any, offset: Any) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise TooDeep
        document.current_source, document.current_line = source, offset

    vars(document)["note_source"] = note_source


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
        del presets
        machine = self.state_machine
        lines, _, offset, blank_finish = machine.get_first_known_indented(match.end(), strip_top=0)
        call = read_call(match.group(1), lines, offset)
        return run(self, call), bool(blank_finish or machine.is_next_line_blank())

    @property
    def bases(self) -> dict[str, str]:
        return self.inliner.bases

    def parsed(self, call: Call, *, with_argument: bool = False) -> nodes.container:
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
        (_OurDirectives.directive if method is states.Body.directive else method, pattern)
        for method, pattern in states.Body.explicit.constructs
    ]
    explicit = SimpleNamespace(patterns=states.Body.explicit.patterns, constructs=constructs)
    return type(state.__name__, (_OurDirectives, state), {"explicit": explicit, "nested_sm_cache": _MACHINES})


_MACHINES: list[Any] = []
"""State machines to use again, as docutils does; those of its own states are not ours to take."""
_STATES = tuple(_mixed(state) for state in states.state_classes)
