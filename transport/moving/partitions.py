"""Which partition a channel belongs to: as the server reckons, when it transforms `messages.<channel>`."""

from __future__ import annotations

_OFFSET, _PRIME = 0x811C9DC5, 0x01000193


def partition_of(channel_id: int, partitions: int) -> int:
    """FNV-1a of 32 bits, of the id as it is written, modulo the number of partitions."""
    hashed = _OFFSET
    for byte in str(channel_id).encode():
        hashed = (hashed ^ byte) * _PRIME & 0xFFFFFFFF
    return hashed % partitions
