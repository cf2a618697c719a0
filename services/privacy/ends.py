"""The record of how parts ended, without one person. Blocking."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from services.privacy.text_match import TextMatch
from services.storage import DataFolder, Record
from services.team import REMOVED
from services.telemetry import parse_ended


def files_of(folder: DataFolder) -> list[Path]:
    return sorted(folder.outcomes.glob("*.jsonl"))


def asked_by(folder: DataFolder, user_id: int) -> Iterator[str]:
    """What the person asked, also where there was no reply."""
    for path in files_of(folder):
        entries = (parse_ended(line) for line in path.read_bytes().splitlines())
        yield from (entry.question for entry in entries if entry and entry.author_id == user_id and entry.question)


def without(user_id: int, match: TextMatch) -> Callable[[Record], Record | None]:
    """Drops how the person's parts ended. Others may have repeated their words: such a question becomes `[removed]`."""

    def change(row: Record) -> Record | None:
        if row.get("author_id") == str(user_id):
            return None
        return {**row, "question": REMOVED} if match.found_in(str(row.get("question", ""))) else row

    return change
