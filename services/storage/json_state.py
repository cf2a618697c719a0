"""State in JSON: lists of ids, single objects, and files with one object per line. Damage is logged. Blocking."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from services.storage import files

Record = dict[str, Any]

_DAMAGE_ERRORS = (TypeError, ValueError, OverflowError, RecursionError)
"""The errors of reading ids from damaged JSON: the third for 1e400, which is read as an infinity."""

log = logging.getLogger(__name__)


class DamagedIds(Exception):
    """A list of ids cannot be read. The message is one line with the remedy."""

    def __init__(self, path: Path) -> None:
        remedy = "mend it by hand (a list in JSON, each id in quotes), or take it from a backup"
        super().__init__(f"{path} is damaged, and whose ids it holds cannot be told; {remedy}")


def read_ids(path: Path) -> set[int]:
    """Read a JSON list of ids, such as of people who opted out. Raises DamagedIds."""
    try:
        ids: Any = json.loads(read_text(path) or "[]")
        if isinstance(ids, list):
            return {int(each) for each in cast("list[Any]", ids)}
    except _DAMAGE_ERRORS:
        pass
    raise DamagedIds(path)


def render_ids(ids: Iterable[int]) -> bytes:
    return json.dumps([str(each) for each in sorted(ids)], indent=0).encode() + b"\n"


def render_object(members: Mapping[str, object]) -> bytes:
    """Return a JSON object with a line for each value. With `indent`, Python's encoder takes six times as long."""
    return json.dumps(members, separators=(",\n", ": ")).encode() + b"\n"


def read_object(path: Path) -> Record:
    """Read a JSON object; an empty one if the file does not exist, or is damaged."""
    content = json_object(read_text(path) or "{}")
    if content is None:
        log.warning("%s is damaged and taken for empty", path)
    return content or {}


def read_text(path: Path) -> str:
    """Read a text file; an empty text if it does not exist."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""


@dataclass(slots=True)
class LineEdits:
    """The numbers of lines that `edit_records` changed, dropped, and left as they are, as they are no JSON object."""

    changed: int = 0
    dropped: int = 0
    damaged: int = 0


def read_records(path: Path) -> list[Record]:
    """Read the JSON objects of a file of lines, without damaged lines; none if it does not exist. Raises OSError."""
    try:
        return parse_records(path.read_bytes())
    except FileNotFoundError:
        return []


def parse_records(content: bytes) -> list[Record]:
    """Read the JSON objects in the content of a file of lines, without damaged lines."""
    return [record for record in map(json_object, content.splitlines()) if record is not None]


def replace_strings(value: object, new: Mapping[str, str]) -> object:
    """Return a JSON value with each string that is a key of `new` replaced by its value, also where it is a name."""
    if isinstance(value, str):
        return new.get(value, value)
    if isinstance(value, list | tuple):
        return [replace_strings(each, new) for each in cast("Sequence[object]", value)]
    if isinstance(value, Mapping):
        members = cast("Mapping[str, object]", value).items()
        return {new.get(name, name): replace_strings(each, new) for name, each in members}
    return value


def edit_records(path: Path, change: Callable[[Record], Record | None]) -> LineEdits:
    """Pass each object of a file of lines through `change`: None drops its line, an equal object leaves it as it is.

    A missing file has no lines. Atomic; a file without changes is not written. Appends of all processes wait meanwhile.
    Raises OSError.
    """
    edits = LineEdits()
    edited: list[bytes] = []
    with files.locked_for_edit(path):
        try:
            lines = path.read_bytes().splitlines(keepends=True)
        except FileNotFoundError:
            return edits
        for line in lines:
            record = json_object(line)
            after = None if record is None else change(dict(record))
            if record is None:
                edits.damaged += bool(line.strip())
                edited.append(line)
            elif after is None:
                edits.dropped += 1
            elif after != record:
                edits.changed += 1
                edited.append(json.dumps(after).encode() + b"\n")
            else:
                edited.append(line)
        if edits.changed or edits.dropped:
            files.replace(path, b"".join(edited))
    return edits


def json_object(text: str | bytes) -> Record | None:
    """Return `text` as one JSON object; None if it is not one."""
    try:
        content: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("Record", content) if isinstance(content, dict) else None
