"""Text that people wrote, made fit for one line of a terminal."""

from __future__ import annotations

import re
import unicodedata

from rich.cells import cell_len
from rich.text import Text

_MENTION = re.compile(r"<(?:@[!&]?|#|a?:\w+:)\d+>\s*")
_UNSEEN = {"\ufe0e", "\ufe0f"}
"""Variation selectors: terminals disagree on how wide they make what stands before them."""
_READ = 4_000
"""Characters. Nothing behind them fits into a line."""


def one_line(text: str) -> str:
    """Without line breaks, control characters (among them the escape that begins a terminal's commands), characters
    that turn the direction of writing, and half surrogate pairs; without Discord's ids of people, as they say nothing.
    """
    seen = "".join(map(_seen, _MENTION.sub("", text[:_READ])))
    return " ".join(seen.split())


def visible_lines(text: str) -> list[str]:
    """The lines of `text`, with their indentation and everything visible in them, and nothing that `one_line` drops
    for doing something to the terminal.
    """
    return ["".join(map(_seen, line)).rstrip() for line in text.split("\n")]


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


def _seen(character: str) -> str:
    if character in _UNSEEN:
        return ""
    if character.isspace():
        return " "
    return "" if unicodedata.category(character).startswith("C") else character
