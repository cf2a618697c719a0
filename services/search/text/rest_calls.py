"""Parses a directive of reStructuredText, and defines the nodes that directives become beside those of docutils."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from docutils import nodes

_OPTION = re.compile(r":(?P<name>[\w-]+):(?: +(?P<value>.*)|$)")
_FIELDS_OF_OBJECTS = frozenset(["returns", "return", "rtype"])


class Lead(nodes.General, nodes.Element):
    """A title (the first child) and what it introduces. `style`: `note` (text follows on the same line) or `title`."""


class Signature(nodes.General, nodes.Element):
    """A described object: its names or signatures in `lines`, and its description."""


class Language(nodes.Invisible, nodes.Element):
    """Sets the language of the following listings that name none."""


class DirectiveCall(NamedTuple):
    """A directive as it stands in the text.

    Attributes:
        name: in small letters, without its domain.
        domain: whether it had one (`py:function`).
        direct: whether the argument begins on the line of the name.
        argument: the lines up to the options or the first empty line, as docutils keeps lines.
        options: by name; the value of a flag is empty.
        content: the rest.
        offset: the line of the text with which the content begins.
    """

    name: str
    domain: bool
    direct: bool
    argument: Any
    options: dict[str, str]
    content: Any
    offset: int

    @property
    def title(self) -> str:
        return " ".join(" ".join(self.argument).split())

    @property
    def body(self) -> str:
        """The content as text, without empty lines around it."""
        return "\n".join(self.content).strip("\n").rstrip()


def read_call(full_name: str, lines: Any, offset: int) -> DirectiveCall:
    """Split the lines of a directive into argument, options and content. Nothing is refused."""
    domain, _, name = full_name.lower().rpartition(":")
    direct = len(lines) > 0 and bool(lines[0].strip())
    start = 0 if direct else 1
    end = start
    while end < len(lines) and lines[end].strip():
        end += 1
    first_option = next((at for at in range(start, end) if _is_option(lines[at])), end)
    options: dict[str, str] = {}
    for line in lines[first_option:end]:
        match = _OPTION.match(line)
        if match:
            options[match["name"].lower()] = (match["value"] or "").strip()
        else:
            last = next(reversed(options))
            options[last] = f"{options[last]} {line.strip()}".strip()
    return DirectiveCall(name, bool(domain), direct, lines[start:first_option], options, lines[end:], offset + end)


def _is_option(line: str) -> bool:
    match = _OPTION.match(line)
    return match is not None and match["name"] not in _FIELDS_OF_OBJECTS
