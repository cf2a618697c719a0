from __future__ import annotations

import zlib

import pytest

from services.discord import BadLine, Dispatch
from transport import dispatches

DISPATCH = Dispatch(1795415000.5, "GUILD_CREATE", {"id": "1", "channels": []})


def test_what_is_packed_is_unpacked() -> None:
    assert dispatches.decode_compressed(dispatches.encode_compressed(DISPATCH)) == DISPATCH


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"no zlib", "not compressed"),
        (b"", "not compressed"),
        (dispatches.encode_compressed(DISPATCH)[:-5], "not compressed"),
        (zlib.compress(b" " * 2_000), "more than"),
    ],
    ids=["other bytes", "nothing", "cut off", "a bomb"],
)
def test_what_is_none_is_refused_before_it_fills_the_memory(
    data: bytes, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """H9."""
    monkeypatch.setattr(dispatches, "MAX_LINE_BYTES", 1_999)
    with pytest.raises(BadLine, match=why):
        dispatches.decode_compressed(data)
