"""What outlives the process: catch-up marks, budgets, and what was posted. One line or file of each, read and written.

A file that is damaged is reported and taken for empty, or as far as it is sound: losing it costs a second look at a
few messages, never an answer.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from clock import run_blocking
from services.conversations.posts import Post
from services.conversations.seen import Mark
from services.llm.budget import Spent
from services.storage import files

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


def read_spent(path: Path) -> Spent:
    """`{"day": …, "answers": …, "tokens": …, "chains": {"<user>": [seconds, …]}}`."""
    kept = read_object(path)
    try:
        return Spent(
            int(kept.get("day", 0)),
            int(kept.get("answers", 0)),
            int(kept.get("tokens", 0)),
            {int(user): deque(float(at) for at in begun) for user, begun in kept.get("chains", {}).items()},
        )
    except (TypeError, ValueError, AttributeError):
        log.warning("%s is damaged: budgets start at zero", path)
        return Spent()


def render_spent(spent: Spent) -> bytes:
    chains = {str(user): list(begun) for user, begun in sorted(spent.chains.items()) if begun}
    counts = {"day": spent.day, "answers": spent.answers, "tokens": spent.tokens, "chains": chains}
    return json.dumps(counts, indent=0).encode() + b"\n"


def read_posts(path: Path) -> list[Post]:
    """One JSON object a line, oldest first."""
    posts: list[Post] = []
    for number, line in enumerate(_text(path).splitlines(), 1):
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


def read_ids(path: Path) -> set[int]:
    """A JSON list of ids: those who opted out."""
    try:
        return _ids(path)
    except (TypeError, ValueError):
        log.error("%s is damaged: nobody counts as opted out until it is mended", path)  # noqa: TRY400 (a line for the operator)
        return set()


def ids_are_damaged(path: Path) -> bool:
    try:
        _ids(path)
    except (TypeError, ValueError):
        return True
    return False


def render_ids(ids: Iterable[int]) -> bytes:
    return json.dumps([str(each) for each in sorted(ids)], indent=0).encode() + b"\n"


def _ids(path: Path) -> set[int]:
    kept: Any = json.loads(_text(path) or "[]")
    return {int(user_id) for user_id in kept}


def read_object(path: Path) -> dict[str, Any]:
    """A JSON object; an empty one where there is none, or it is damaged."""
    try:
        content: Any = json.loads(_text(path) or "{}")
    except ValueError:
        content = None
    if not isinstance(content, dict):
        log.warning("%s is damaged and taken for empty", path)
        return {}
    return cast("dict[str, Any]", content)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""
