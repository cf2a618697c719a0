"""Check whether the asker's own runbooks can be searched."""

from __future__ import annotations

from collections.abc import Sequence


def holds_runbook(files: Sequence[str]) -> bool:
    """`files`: what can be searched, each in a few words."""
    if not files:
        return False
    from services.documents import OwnRunbook  # noqa: PLC0415 (takes long, and most questions are without files)

    return any(isinstance(file, OwnRunbook) for file in files)
