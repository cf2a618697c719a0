"""Dispatches: read from the gateway's frames, and from or to the lines of a recording.

A recording is JSON Lines in UTF-8, one dispatch a line, `{"at", "t", "d"}`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, cast

from clock import from_rfc3339, rfc3339

DISPATCH_OPCODE = 0  # the opcode of an event (API reference, "Gateway Opcodes")


class BadLine(ValueError):
    """A line is no dispatch. The text says why, without quoting the line."""


@dataclass(frozen=True, slots=True)
class Dispatch:
    """One gateway event."""

    at: float  # when it was received, in seconds since 1970, UTC
    t: str  # Discord's name of the type, such as `MESSAGE_CREATE`
    d: Mapping[str, object]  # Discord's payload (API v10)


def read_frame(frame: str, at: float) -> Dispatch | None:
    """Read `{"op": 0, "t": …, "d": {…}}`; None for heartbeats and other frames that are no event."""
    try:
        parsed: Any = json.loads(frame)
    except (ValueError, RecursionError):
        return None  # discord.py fails at it as well, and reports it
    if not isinstance(parsed, dict):
        return None
    fields = cast("dict[str, Any]", parsed)
    type_, payload = fields.get("t"), fields.get("d")
    if fields.get("op") != DISPATCH_OPCODE or not isinstance(type_, str):
        return None
    return Dispatch(at, type_, cast("dict[str, Any]", payload) if isinstance(payload, dict) else {})


def parse_line(line: str) -> Dispatch:
    """Read one line of a recording, with or without its line end. Unknown types and fields are kept. Raises BadLine: it
    is not one JSON object with a time stamp `at`, a text `t` and an object `d`.
    """
    try:
        read: object = _JSON.decode(line)
    except json.JSONDecodeError as error:
        raise BadLine(f"not valid JSON: {error.msg} at column {error.colno}") from None
    except (ValueError, RecursionError):
        raise BadLine("not valid JSON: a number is not allowed, or the nesting too deep") from None
    if not isinstance(read, dict):
        raise BadLine("not a JSON object")
    fields = cast("dict[str, object]", read)
    at, t, d = fields.get("at"), fields.get("t"), fields.get("d")
    if not isinstance(t, str) or not isinstance(d, dict) or not isinstance(at, str):
        raise BadLine('not a dispatch: write {"at": time stamp, "t": type, "d": {payload}}')
    try:
        seconds = from_rfc3339(at)
    except (ValueError, OverflowError):
        raise BadLine("`at` is no RFC 3339 time stamp; write it as 2026-02-01T03:10:56.000Z") from None
    return Dispatch(seconds, t, cast("dict[str, object]", d))


def render_line(dispatch: Dispatch) -> str:
    """Return the line of a dispatch, with its line end. `at` keeps microseconds where it has them. Raises ValueError:
    an `INTERACTION_*`, which carries a token that answers in the bot's name; or `d` is no JSON, or nested too deep.
    """
    if dispatch.t.startswith("INTERACTION_"):
        raise ValueError("interactions carry tokens and are never recorded")
    digits = 6 if round(dispatch.at * 1_000_000) % 1_000 else 3
    fields = {"at": rfc3339(dispatch.at, digits=digits), "t": dispatch.t, "d": dispatch.d}
    try:
        line = json.dumps(fields, ensure_ascii=False, allow_nan=False) + "\n"
    except RecursionError:  # what could just be read can be too deep to be written
        raise ValueError("nested too deep") from None
    try:
        line.encode()  # to look at each character would take five times as long as the rest
    except UnicodeEncodeError:  # half a character (a lone surrogate) has no UTF-8 form, only a JSON escape
        return json.dumps(fields, allow_nan=False) + "\n"
    return line


def _refuse(_constant: str) -> NoReturn:
    """Refuse NaN and Infinity, which Python reads but JSON does not have."""
    raise ValueError


_JSON = json.JSONDecoder(parse_constant=_refuse)  # made once: `json.loads` would make one for each line
