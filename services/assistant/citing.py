"""What an answer may name: sources that were given to it, and addresses that somebody trustworthy wrote."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from model.conversations import Conversation
from services.assistant.links import remove_foreign_links
from services.knowledge import Source

__all__ = ["Named", "keep_citations", "linkable_texts", "links_block", "named_ids", "remove_foreign_links"]


class Named(NamedTuple):
    """The ids that a model named, told apart."""

    known: list[str]
    unknown: list[str]
    """Made up, or changed: to be logged, never to be loaded or fetched."""


def named_ids(ids: Iterable[str], allowed: Iterable[str]) -> Named:
    """Tells ids that occur in `allowed` from others. Both keep the model's order, without repeats."""
    permitted = set(allowed)
    stripped = list(dict.fromkeys(source_id.strip() for source_id in ids))
    return Named(
        [source_id for source_id in stripped if source_id in permitted],
        [source_id for source_id in stripped if source_id not in permitted],
    )


def keep_citations(citations: Iterable[str], allowed: Iterable[str]) -> list[str]:
    """The citations that name a loaded source (or another allowed id), in order, each once."""
    return named_ids(citations, allowed).known


def linkable_texts(sources: Sequence[Source], conversation: Conversation) -> list[str]:
    """The texts whose addresses an answer may repeat: loaded sources, team turns, the asker's own part."""
    turns = [turn.text for turn in conversation.turns if turn.from_team or turn.asked_now]
    return [*(source.text for source in sources), *(source.url or "" for source in sources), *turns]


def links_block(ids: Iterable[str]) -> str:
    """What follows an answer: a blank line, `Links:`, one `<url>` a line. Empty when no id is a URL.

    The angle brackets keep Discord from showing previews.
    """
    urls = dict.fromkeys(url for source_id in ids if (url := Source(source_id, "").url))
    return "\n\nLinks:\n" + "\n".join(f"<{url}>" for url in urls) if urls else ""
