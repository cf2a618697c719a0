"""Dispatches encoded as message bodies: one line of the recording format in UTF-8; dispatches about servers are zlib-
compressed.
"""

from __future__ import annotations

import json
import zlib

from clock import rfc3339
from services.discord import BadLine, Dispatch, parse_line, render_line

LARGEST = 64 * 1024 * 1024
"""Of a line, in bytes: a server of 250,000 members, whose channels and roles Discord sends at once, takes a tenth."""
QUICKLY = 1
"""The level of compression: a server's 500 channels take 1 ms of the loop, and a tenth of their size."""


def encode_line(dispatch: Dispatch) -> bytes:
    """The line of a dispatch in UTF-8, also of an interaction, which no recording holds: it carries a token.

    Raises:
        ValueError: `d` is no JSON, or nested too deep.
    """
    if not dispatch.t.startswith("INTERACTION_"):
        return render_line(dispatch).encode()
    fields = {"at": rfc3339(dispatch.at, digits=6), "t": dispatch.t, "d": dispatch.d}
    try:
        return json.dumps(fields, allow_nan=False).encode()
    except RecursionError:
        raise ValueError("nested too deep") from None


def decode_line(data: bytes) -> Dispatch:
    """Raises BadLine: it is none."""
    try:
        return parse_line(data.decode())
    except UnicodeDecodeError:
        raise BadLine("not UTF-8") from None


def encode_compressed(dispatch: Dispatch) -> bytes:
    """The same, compressed (zlib). Raises as `encode_line`."""
    return zlib.compress(encode_line(dispatch), QUICKLY)


def decode_compressed(data: bytes) -> Dispatch:
    """Raises BadLine: it is none, or too long."""
    unpacking = zlib.decompressobj()
    try:
        line = unpacking.decompress(data, LARGEST)
    except zlib.error:
        raise BadLine("not compressed by zlib") from None
    if unpacking.unconsumed_tail:
        raise BadLine(f"more than {LARGEST} bytes")
    if not unpacking.eof:
        raise BadLine("not compressed by zlib")
    return decode_line(line)
