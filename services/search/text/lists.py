"""Lays out lists as Discord's Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from services.search.text.sections import Block, BlockKind


def listed(items: Iterable[tuple[str, Sequence[Block]]]) -> list[Block]:
    """Lay out a list, in as few blocks as possible. `items`: the mark of each item and its blocks.

    A listing or a table in an item stands on its own, at the margin; so does what comes behind it in the same item.
    """
    found: list[Block] = []
    lines: list[str] = []
    for mark, blocks in items:
        for number, block in enumerate(blocks):
            if block.kind in (BlockKind.CODE, BlockKind.TABLE) or (number and not lines):
                found += [*_joined(lines), block]
                lines.clear()
            else:
                lines.append(_indented(block.text, "  " if number else mark))
    return found + _joined(lines)


def _joined(lines: Sequence[str]) -> list[Block]:
    return [Block(BlockKind.LIST, "\n".join(lines))] if lines else []


def _indented(text: str, mark: str) -> str:
    """With a mark before its first line and the lines below it indented by two spaces, as Discord wants it."""
    return mark + text.replace("\n", "\n  ")
