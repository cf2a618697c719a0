"""What stands where a secret stood, or would stand."""

from __future__ import annotations

import re

BREAK_CHARS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
"""What `str.splitlines` breaks at."""

PLACEHOLDER = (
    r"(?:<[^<>\n]{0,60}>|\$\{|\{\{|\[redacted: "
    r"|(?:\$[A-Z_]+|\*+|(?i:null|none|true|false|replace_me))(?![^\s,;)\]}\"'`]))"
)
"""What stands where a value would: documentation is full of it, and blotting it out would spoil answers."""

_PLACEHOLDER = re.compile(PLACEHOLDER)


def label(name: str) -> str:
    return f"[redacted: {name}]"


def labelled(text: str, fixed: str) -> str:
    """`fixed` for each line of `text`, with its line ends."""
    lines = text.splitlines(keepends=True)
    return "".join(fixed + line[len(line.rstrip(BREAK_CHARS)) :] for line in lines)


def is_placeholder(value: str, at: int = 0) -> bool:
    """Whether what stands in `value` from `at` stands where a secret would, and is none."""
    return _PLACEHOLDER.match(value, at) is not None
