"""Small state files in JSON: lists of ids, and objects. A damaged one is reported and read as empty. Blocking."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

log = logging.getLogger(__name__)


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
    kept: Any = json.loads(read_text(path) or "[]")
    return {int(user_id) for user_id in kept}


def read_object(path: Path) -> dict[str, Any]:
    """A JSON object; an empty one where there is none, or it is damaged."""
    try:
        content: Any = json.loads(read_text(path) or "{}")
    except ValueError:
        content = None
    if not isinstance(content, dict):
        log.warning("%s is damaged and taken for empty", path)
        return {}
    return cast("dict[str, Any]", content)


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""
