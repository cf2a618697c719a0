"""Numbers of things, as people read them."""

from __future__ import annotations


def number_of(count: int, thing: str, things: str = "") -> str:
    """`1 file`, `2 files`; `things`: what several are called, where an s is not enough."""
    return f"{count} {thing if count == 1 else things or f'{thing}s'}"
