"""What outlives the process: catch-up marks and what was posted. One line or file of each, read and written.

A file that is damaged is reported and taken for empty, or as far as it is sound: losing it costs a second look at a
few messages, never an answer.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from clock import run_blocking
from services.conversations.posts import Post
from services.conversations.seen import Mark
from services.storage import files, read_object, read_text

_POST = TypeAdapter(Post)

log = logging.getLogger(__name__)


def read_marks(path: Path) -> dict[int, Mark]:
    """`{"<place>": {"below": "<id>", "done": ["<id>", …]}}`, ids as strings; for a guild as a whole, minus its id."""
    marks: dict[int, Mark] = {}
    for place_id, mark in read_object(path).items():
        try:
            marks[int(place_id)] = Mark(int(mark["below"]), {int(message_id) for message_id in mark["done"]})
        except (TypeError, ValueError, KeyError):
            log.warning("%s: the mark of place %.40r is damaged and left out", path, place_id)
    return marks


def copied(marks: Mapping[int, Mark]) -> dict[int, Mark]:
    """Marks that stay as they are now."""
    return {place_id: Mark(mark.below, set(mark.done)) for place_id, mark in marks.items()}


def render_marks(marks: Mapping[int, Mark]) -> bytes:
    text = {
        str(place_id): {"below": str(mark.below), "done": [str(message_id) for message_id in sorted(mark.done)]}
        for place_id, mark in sorted(marks.items())
    }
    return json.dumps(text, indent=0).encode() + b"\n"


def read_posts(path: Path) -> list[Post]:
    """One JSON object a line, oldest first."""
    posts: list[Post] = []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        try:
            posts.append(_POST.validate_json(line))
        except ValidationError:
            log.warning("%s, line %d: damaged, left out", path, number)
    return posts


def render_post(post: Post) -> bytes:
    return json.dumps(asdict(post), ensure_ascii=False).encode() + b"\n"


class PostFile:
    """Keeps posts durably, each as it is made."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def keep(self, post: Post) -> None:
        """A reply stands on Discord whether or not this file can be written: an error is logged, not raised."""
        try:
            await run_blocking(files.append, self._path, render_post(post))
        except OSError as error:
            log.error("a reply was not noted down, so its thread will not be found again: %s", error)  # noqa: TRY400 (a line for the operator)
