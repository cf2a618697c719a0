"""A disk with as much room as a test says."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace


def disk_with(*, total: float, free: float, asked: list[object] | None = None) -> Callable[[object], SimpleNamespace]:
    """In place of `shutil.disk_usage`; sizes are in bytes. `asked`: gets the paths."""

    def disk_usage(path: object) -> SimpleNamespace:
        if asked is not None:
            asked.append(path)
        return SimpleNamespace(total=total, free=free)

    return disk_usage
