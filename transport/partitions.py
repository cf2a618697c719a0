"""Which partition a channel belongs to: as the server reckons, when it transforms `messages.<channel>`."""

from __future__ import annotations

from functools import lru_cache

_OFFSET, _PRIME = 0x811C9DC5, 0x01000193


@lru_cache(maxsize=1 << 14)
def partition_of(channel_id: int, partitions: int) -> int:
    """FNV-1a of 32 bits, of the id as it is written, modulo the number of partitions."""
    hashed = _OFFSET
    for byte in str(channel_id).encode():
        hashed = (hashed ^ byte) * _PRIME & 0xFFFFFFFF
    return hashed % partitions
