"""Removes one person from recordings: from recorded exchanges with models (--llm-record) and from recordings of
Discord (--record). Blocking.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from services.assistant import GatingResult
from services.discord import THREAD_TYPES, BadLine, Dispatch, RecordingFilter, parse_line, render_line
from services.llm import NotFound, first_valid_object
from services.privacy.text_match import LONG_CHARS, TextMatch
from services.storage import Record, edit_records, files, read_records
from services.team import REMOVED
from services.telemetry import number_of


@dataclass(frozen=True, slots=True)
class DroppedExchanges:
    """How many exchanges were removed; `left`: lines for the operator."""

    exchanges: int
    left: list[str]


def drop_exchanges(
    recordings: Iterable[Path], user_id: int, texts: list[str], ids: Collection[str] = ()
) -> DroppedExchanges:
    """Drop what is about a person's conversations, and what holds one of their `texts`, or the id of a source that is
    called by a word of theirs. Raises OSError.
    """
    match, count = TextMatch(texts), 0
    left: list[str] = []
    for path in recordings:
        # Steps after the gate may have been asked in its words.
        theirs = [*texts, *_rewritten_queries(path, match)]
        either, of_others, unmarked = TextMatch(theirs), TextMatch(theirs, LONG_CHARS), 0

        def without(exchange: Record) -> Record | None:
            nonlocal unmarked
            people, said = exchange.get("people"), _text_of(exchange)
            if isinstance(people, list) and str(user_id) in people:
                return None
            if (of_others if people else either).found_in(said) or any(each in said for each in ids):  # noqa: B023 (called at once)
                return None
            unmarked += "people" not in exchange
            return exchange

        edited = edit_records(path, without)
        count += edited.dropped
        if edited.damaged:
            left.append(f"{path}: {number_of(edited.damaged, 'damaged line')}")
        if unmarked:
            left.append(
                f"{path}: {number_of(unmarked, 'exchange')} of an earlier program, which did not note whose words they "
                "hold: what they asked and got no reply to cannot be told apart"
            )
        if match.too_short:
            short = number_of(match.too_short, "text")
            left.append(f"{path}: {short} of theirs not searched for, too short to be anybody's own")
    return DroppedExchanges(count, left)


def _rewritten_queries(path: Path, match: TextMatch) -> list[str]:
    """The queries that the gate has made of the person's questions."""
    queries: list[str] = []
    for exchange in read_records(path):
        if exchange.get("step") == "gate" and match.found_in(_text_of(exchange)):
            with suppress(NotFound):
                result = first_valid_object("\n".join(_strings(exchange.get("response"))), GatingResult)
                queries.append(result.rewrite_query or "")
    return [query for query in queries if query.strip()]


def _text_of(exchange: Record) -> str:
    return "\n".join(_strings([exchange.get("request"), exchange.get("response"), exchange.get("error")]))


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        parts = cast("dict[str, object]", value).values() if isinstance(value, dict) else cast("list[object]", value)
        for each in parts:
            yield from _strings(each)


_REACTIONS = {"MESSAGE_REACTION_ADD", "MESSAGE_REACTION_REMOVE"}


@dataclass(slots=True)
class PersonInRecording:
    """A person's texts and names of threads in a recording, and the ids of their messages, threads and attachments.

    `damaged`: lines that could not be read.
    """

    texts: list[str] = field(default_factory=list[str])
    messages: set[str] = field(default_factory=set[str])
    attachments: set[str] = field(default_factory=set[str])
    damaged: int = 0


def attachments_of(recording: Path) -> Path:
    """The folder beside a recording that holds what people attached."""
    return recording.with_name(f"{recording.name}.attachments")


def find_in_recording(path: Path, user_id: int) -> PersonInRecording:
    """Find what a recording holds of a person. Raises OSError."""
    found = PersonInRecording()
    for line in _lines(path):
        dispatch = _parsed(line)
        if dispatch is None:
            found.damaged += bool(line.strip())
            continue
        for each in _objects(dispatch.d):
            # Also in what others have replied to.
            author = each.get("author")
            if isinstance(author, Mapping) and str(cast("Mapping[str, object]", author).get("id")) == str(user_id):
                _add_message(each, found)
            if each.get("type") in THREAD_TYPES and str(each.get("owner_id")) == str(user_id):
                _add_thread(each, found)
    return found


def remove_from_recording(path: Path, user_id: int, found: PersonInRecording, match: TextMatch) -> int:
    """Remove a person's messages, reactions and attachments from a recording, and their words from the rest, such as
    the names of threads. `match` finds their texts. Returns how many dispatches that concerned. Raises OSError.
    """
    clearing = RecordingFilter(lambda author_id, _text: author_id == user_id)
    kept: list[bytes] = []
    gone = changed = 0
    for line in _lines(path):
        dispatch = _parsed(line)
        if dispatch is None:
            kept.append(line)
            continue
        cleared = clearing.filter(dispatch)
        if cleared is None or (cleared.t in _REACTIONS and str(cleared.d.get("user_id")) == str(user_id)):
            gone += 1
            continue
        left = cast("Mapping[str, object]", _payload_without(cleared.d, user_id, found.messages, match.found_in))
        changed += left != dispatch.d
        kept.append(line if left == dispatch.d else render_line(Dispatch(cleared.at, cleared.t, left)).encode())
    if gone or changed:
        files.replace(path, b"".join(kept))
    for name in found.attachments:
        files.remove(attachments_of(path) / name)
    for unfinished in attachments_of(path).glob("*.part"):
        files.remove(unfinished)
    return gone + changed


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


def _add_message(said: Mapping[str, object], found: PersonInRecording) -> None:
    if isinstance(text := said.get("content"), str) and text.strip():
        found.texts.append(text)
    if isinstance(message_id := said.get("id"), str | int):
        found.messages.add(str(message_id))
    files_of = said.get("attachments")
    for each in cast("list[object]", files_of) if isinstance(files_of, list) else []:
        if isinstance(each, Mapping) and (name := str(cast("Mapping[str, object]", each).get("id"))).isdigit():
            found.attachments.add(name)


def _add_thread(opened: Mapping[str, object], found: PersonInRecording) -> None:
    """Its name is removed as that of a thread which was opened on a message of theirs is."""
    if isinstance(name := opened.get("name"), str) and name.strip():
        found.texts.append(name)
    found.messages.add(str(opened.get("id")))


def _payload_without(value: object, user_id: int, messages: set[str], theirs: Callable[[str], bool]) -> object:
    """A payload in which what they wrote, what their threads are called, and their own names are `[removed]`."""
    if isinstance(value, str):
        return REMOVED if theirs(value) else value
    if isinstance(value, list):
        return [_payload_without(each, user_id, messages, theirs) for each in cast("list[object]", value)]
    if not isinstance(value, Mapping):
        return value
    held = cast("Mapping[str, object]", value)
    if str(held.get("id")) == str(user_id) and "username" in held:
        return {"id": held["id"], "username": REMOVED}
    left = {key: _payload_without(each, user_id, messages, theirs) for key, each in held.items()}
    # A thread has the id of the message that it was opened on, and mostly its words for a name.
    about = [held.get("id")]
    for each in _objects(held.get("message_reference")):
        about += [each.get("channel_id"), each.get("message_id")]
    if any(each.get("bot") for each in _objects(held.get("author"))):
        about.append(held.get("channel_id"))  # an answer, which takes up what they asked
    if messages & {str(each) for each in about}:
        left |= {key: REMOVED for key in ("name", "content") if held.get(key)}
    return left
