"""The frames of Discord's gateway, as text, turned into dispatches."""

from __future__ import annotations

import json
from typing import Any, cast

from services.discord.dispatches import Dispatch

DISPATCH = 0
"""The opcode of an event (API reference, "Gateway Opcodes")."""


def read_frame(frame: str, at: float) -> Dispatch | None:
    """`{"op": 0, "t": …, "d": {…}}` → the dispatch; None for heartbeats and whatever else is no event."""
    try:
        parsed: Any = json.loads(frame)
    except ValueError:
        return None  # discord.py fails at it as well, and the connection starts again
    if not isinstance(parsed, dict):
        return None
    fields = cast("dict[str, Any]", parsed)
    type_, payload = fields.get("t"), fields.get("d")
    if fields.get("op") != DISPATCH or not isinstance(type_, str):
        return None
    return Dispatch(at, type_, cast("dict[str, Any]", payload) if isinstance(payload, dict) else {})
