"""Checks that a draft consists of text of the sources."""

from __future__ import annotations

from collections.abc import Sequence

from services.assistant.extractive.quoting import FROM, NOTICE
from services.knowledge import Source

_OURS = {"", "…", "```", NOTICE}


def foreign_lines(draft: str, sources: Sequence[Source]) -> list[str]:
    """The lines of `draft` that are neither in a source nor ours. White space does not count."""
    held = " ".join(" ".join(source.text.split()) for source in sources)
    lines = [" ".join(line.split()) for line in draft.split("\n")]
    return [line for line in lines if line not in _OURS and line not in held and not _names_origin(line)]


def _names_origin(line: str) -> bool:
    return line.startswith(FROM) and line.endswith(":")
