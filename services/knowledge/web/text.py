"""What was read out of a body."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PageText:
    text: str
    title: str
    """Empty when it names none."""
