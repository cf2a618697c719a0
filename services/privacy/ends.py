"""The record of how parts ended, without one person. Blocking."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from services.privacy.text_match import TextMatch
from services.storage import DataFolder, Record, edit
from services.team import REMOVED
from services.telemetry import parse_ended


def files_of(folder: DataFolder) -> list[Path]:
    return sorted(folder.outcomes.glob("*.jsonl"))


def asked_by(folder: DataFolder, user_id: int) -> Iterator[str]:
    """Return what the person asked, including questions without a reply."""
    for path in files_of(folder):
        entries = (parse_ended(line) for line in path.read_bytes().splitlines())
        yield from (entry.question for entry in entries if entry and entry.author_id == user_id and entry.question)


def without(user_id: int, match: TextMatch) -> Callable[[Record], Record | None]:
    """Return an edit for `storage.edit`: it drops the records of the person's parts. Others may have repeated the
    person's words: such a question becomes `[removed]`.
    """

    def change(row: Record) -> Record | None:
        if row.get("author_id") == str(user_id):
            return None
        return {**row, "question": REMOVED} if match.found_in(str(row.get("question", ""))) else row

    return change


def rename_topics(folder: DataFolder, ids: Mapping[str, str]) -> None:
    """Replace the ids of sources in recorded outcomes, votes and posts. `ids`: the new ids by the old ones."""
    for path in (folder.feedback, folder.posts, *files_of(folder)) if ids else ():
        edit(path, lambda row: cast("Record", _replaced(row, ids)))


def _replaced(value: object, ids: Mapping[str, str]) -> object:
    if isinstance(value, str):
        return ids.get(value, value)
    if isinstance(value, list):
        return [_replaced(each, ids) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {ids.get(name, name): _replaced(each, ids) for name, each in cast("dict[str, Any]", value).items()}
    return value
