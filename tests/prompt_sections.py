"""Reads the sections of prompts back, as `services.llm.prompting` has rendered them."""

from __future__ import annotations

import re

from services.llm.prompting import INDENT, LABEL_BAR, MARKER_BAR, Field, is_bracket

_FIELD = re.compile(r"(?P<label>[A-Z][^:\n]*): (?P<text>.*)")


def parse(rendered: str) -> tuple[str, list[Field]]:
    """Return the name of a section and its cleaned fields. Raises ValueError: it is not exactly one section."""
    first, *body = rendered.split("\n")
    name = first.removeprefix("<<<").removesuffix(">>>")
    if first != f"<<<{name}>>>" or not body or body.pop() != f"<<<end of {name}>>>":
        raise ValueError("Not one section: its first and last lines do not match.")
    fields: list[Field] = []
    for line in body:
        if line.startswith(INDENT) and fields:
            label, text, _ = fields[-1]
            fields[-1] = Field(label, f"{text}\n{_unguarded(line.removeprefix(INDENT))}")
        elif opening := _FIELD.fullmatch(line):
            fields.append(Field(opening["label"], _unguarded(opening["text"])))
        else:
            raise ValueError(f"Not one section: {line!r} is neither a field nor a further line of one.")
    return name, fields


def _unguarded(line: str) -> str:
    if line.startswith(MARKER_BAR):
        chars = iter(line.removeprefix(MARKER_BAR))
        # `next` skips the backslash after each bracket.
        return "".join(char + next(chars, "")[:0] if is_bracket(char) else char for char in chars)
    return line.removeprefix(LABEL_BAR)
