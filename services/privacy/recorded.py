"""Removes one person from recordings of Discord (`--record`). Only while no bot is writing them. Blocking."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from services.discord import BadLine, Dispatch, RecordingFilter, parse_line, render_line
from services.privacy.text_match import TextMatch
from services.storage import files
from services.team import REMOVED

_REACTIONS = {"MESSAGE_REACTION_ADD", "MESSAGE_REACTION_REMOVE"}


@dataclass(slots=True)
class Recorded:
    """What a recording holds of a person: their texts, and the ids of their messages and attachments.

    `damaged`: lines that could not be read.
    """

    texts: list[str] = field(default_factory=list[str])
    messages: set[str] = field(default_factory=set[str])
    attachments: set[str] = field(default_factory=set[str])
    damaged: int = 0


def attachments_of(recording: Path) -> Path:
    """The folder beside a recording that holds what people attached."""
    return recording.with_name(f"{recording.name}.attachments")


def look_through(path: Path, user_id: int) -> Recorded:
    """Find what a recording holds of a person. Raises OSError."""
    found = Recorded()
    for line in _lines(path):
        dispatch = _parsed(line)
        if dispatch is None:
            found.damaged += bool(line.strip())
            continue
        for each in _objects(dispatch.d):
            # Also in what others have replied to.
            author = each.get("author")
            if isinstance(author, Mapping) and str(cast("Mapping[str, object]", author).get("id")) == str(user_id):
                _note(each, found)
    return found


def clear(path: Path, user_id: int, found: Recorded, match: TextMatch) -> int:
    """Remove a person's messages, reactions and attachments from a recording, and their words from the rest, such as
    the names of threads. `match` finds their texts. Returns how many dispatches were removed. Raises OSError.
    """
    clearing = RecordingFilter(lambda author_id, _text: author_id == user_id)
    kept: list[bytes] = []
    gone = changed = 0
    for line in _lines(path):
        dispatch = _parsed(line)
        if dispatch is None:
            kept.append(line)
            continue
        cleared = clearing.clear(dispatch)
        if cleared is None or (cleared.t in _REACTIONS and str(cleared.d.get("user_id")) == str(user_id)):
            gone += 1
            continue
        left = cast("Mapping[str, object]", _without(cleared.d, user_id, found.messages, match.found_in))
        changed += left != dispatch.d
        kept.append(line if left == dispatch.d else render_line(Dispatch(cleared.at, cleared.t, left)).encode())
    if gone or changed:
        files.replace(path, b"".join(kept))
    for name in found.attachments:
        files.remove(attachments_of(path) / name)
    for unfinished in attachments_of(path).glob("*.part"):
        files.remove(unfinished)
    return gone


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from file


def _parsed(line: bytes) -> Dispatch | None:
    try:
        return parse_line(line.decode("utf-8-sig"))
    except (UnicodeDecodeError, BadLine):
        return None


def _objects(value: object) -> Iterator[Mapping[str, object]]:
    if isinstance(value, Mapping):
        held = cast("Mapping[str, object]", value)
        yield held
        for each in held.values():
            yield from _objects(each)
    elif isinstance(value, list):
        for each in cast("list[object]", value):
            yield from _objects(each)


def _note(said: Mapping[str, object], found: Recorded) -> None:
    if isinstance(text := said.get("content"), str) and text.strip():
        found.texts.append(text)
    if isinstance(message_id := said.get("id"), str | int):
        found.messages.add(str(message_id))
    files_of = said.get("attachments")
    for each in cast("list[object]", files_of) if isinstance(files_of, list) else []:
        if isinstance(each, Mapping) and (name := str(cast("Mapping[str, object]", each).get("id"))).isdigit():
            found.attachments.add(name)


def _without(value: object, user_id: int, messages: set[str], theirs: Callable[[str], bool]) -> object:
    """A payload in which what they wrote, what their threads are called, and their own names are `[removed]`."""
    if isinstance(value, str):
        return REMOVED if theirs(value) else value
    if isinstance(value, list):
        return [_without(each, user_id, messages, theirs) for each in cast("list[object]", value)]
    if not isinstance(value, Mapping):
        return value
    held = cast("Mapping[str, object]", value)
    if str(held.get("id")) == str(user_id) and "username" in held:
        return {"id": held["id"], "username": REMOVED}
    left = {key: _without(each, user_id, messages, theirs) for key, each in held.items()}
    # A thread has the id of the message that it was opened on, and mostly its words for a name.
    about = [held.get("id")]
    for each in _objects(held.get("message_reference")):
        about += [each.get("channel_id"), each.get("message_id")]
    if any(each.get("bot") for each in _objects(held.get("author"))):
        about.append(held.get("channel_id"))  # an answer, which takes up what they asked
    if messages & {str(each) for each in about}:
        left |= {key: REMOVED for key in ("name", "content") if held.get(key)}
    return left
