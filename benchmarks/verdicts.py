"""Requirements, met or not."""

from __future__ import annotations


def verdict(*requirements: tuple[bool, str]) -> int:
    """Print each, and give the exit code: 0 when all are met."""
    for met, what in requirements:
        print(f"{'pass' if met else 'FAIL'}  {what}")
    return 0 if all(met for met, _ in requirements) else 1
