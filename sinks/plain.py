"""Text that people wrote, made safe for one line of a terminal."""

from __future__ import annotations

import re
import unicodedata

from rich.cells import cell_len
from rich.text import Text

_MENTION = re.compile(r"<(?:@[!&]?|#|a?:\w+:)\d+>\s*")
_SELECTORS = {"\ufe0e", "\ufe0f"}
"""Variation selectors: terminals disagree on the width of what precedes them."""
_READ = 4_000
"""Characters; nothing after them fits into a line."""


def one_line(text: str) -> str:
    """`text` without line breaks, control characters (such as terminal escapes), characters that turn the direction
    of writing, half surrogate pairs, and Discord's mentions by id.
    """
    return " ".join("".join(map(_visible, _MENTION.sub("", text[:_READ]))).split())


def visible_lines(text: str) -> list[str]:
    """The lines of `text` with their indentation, without the control characters that `one_line` drops."""
    return ["".join(map(_visible, line)).rstrip() for line in text.split("\n")]


def in_cells(text: str, width: int, *, keep_end: bool = False) -> str:
    """`text` in exactly `width` columns, cut or filled. `keep_end` cuts off the beginning: the ends of paths differ."""
    line = one_line(text)
    if keep_end and cell_len(line) > width:
        line = line[-4 * width :]
        while cell_len(line) > width - 1:
            line = line[1:]
        line = f"…{line.lstrip('…')}"
    fitted = Text(line)
    fitted.truncate(max(width, 1), overflow="ellipsis", pad=True)
    return fitted.plain


def _visible(character: str) -> str:
    if character in _SELECTORS:
        return ""
    if character.isspace():
        return " "
    return "" if unicodedata.category(character).startswith("C") else character
