"""Removes one person from recordings: from recorded exchanges with models (--llm-record) and from recordings of
Discord (--record). Blocking.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from services.assistant import GatingResult
from services.discord import THREAD_TYPES, BadLine, Dispatch, RecordingFilter, parse_line, render_line
from services.llm import NotFound, first_valid_object, json_object
from services.privacy.text_match import LONG_CHARS, TextMatch
from services.storage import Record, edit, files, read_records
from services.team import REMOVED
from services.telemetry import number_of


@dataclass(frozen=True, slots=True)
class DroppedExchanges:
    """How many exchanges were removed, and in how many of others a line was; `left`: lines for the operator."""

    exchanges: int
    redacted: int
    left: list[str]


def drop_exchanges(
    recordings: Collection[Path],
    user_id: int,
    texts: list[str],
    ids: Mapping[str, str] | None = None,
    own: Callable[[list[str]], list[str]] = list,
) -> DroppedExchanges:
    """Drop what is about a person's conversations, and what was made from their `texts`, or from a source that is
    called by a word of theirs (`ids`: the new ids of these, by the old ones). Others who repeated their words lose
    these lines alone. `own`: leaves of texts what only this person has written. Raises OSError.
    """
    ids, count, redacted, left = ids or {}, 0, 0, list[str]()
    # Steps after the gate may have been asked in its words.
    match = TextMatch(own(texts))
    theirs = own([*texts, *(query for path in recordings for query in _rewritten_queries(path, user_id, match))])
    anybodys, of_others = TextMatch(theirs), TextMatch(theirs, LONG_CHARS)
    too_short = TextMatch(texts).too_short
    for path in recordings:
        lacking = Counter[str]()
        edited = edit(path, _exchange_without(user_id, anybodys, of_others, ids, lacking))
        count += edited.dropped
        redacted += edited.changed
        if edited.damaged:
            left.append(f"{path}: {number_of(edited.damaged, 'damaged line')}")
        if unmarked := lacking["people"]:
            left.append(
                f"{path}: {number_of(unmarked, 'exchange')} of an earlier program, which did not note whose words they "
                "hold: what they asked and got no reply to cannot be told apart"
            )
        elif unmarked := lacking["format"]:
            left.append(
                f"{path}: {number_of(unmarked, 'exchange')} of an earlier program, which did not note whose files they "
                "hold passages of"
            )
        if too_short:
            short = number_of(too_short, "text")
            left.append(f"{path}: {short} of theirs not searched for, too short to be anybody's own")
    return DroppedExchanges(count, redacted, left)


def _exchange_without(
    user_id: int, anybodys: TextMatch, of_others: TextMatch, ids: Mapping[str, str], lacking: Counter[str]
) -> Callable[[Record], Record | None]:
    """Return an edit for `storage.edit`. `anybodys`: finds the person's words where nobody is named; `of_others`: where
    others are. `lacking`: counts what is not noted of the exchanges that stay.
    """

    def change(exchange: Record) -> Record | None:
        people = exchange.get("people")
        if isinstance(people, list) and people:
            # What a reply was made from, it may have taken up in other words.
            if str(user_id) in people or any(map(of_others.lines_within, _taken_up_in(exchange))):
                return None
            left = cast("Record", _redacted(exchange, of_others, ids))
        else:
            said = _text_of(exchange)
            found_in = anybodys.lines_within if "format" in exchange else anybodys.found_in
            if found_in(said) or any(each in said for each in ids):
                return None
            left = exchange
        lacking.update({"people", "format"} - set(exchange))
        return left

    return change


def _rewritten_queries(path: Path, user_id: int, match: TextMatch) -> list[str]:
    """The queries that the gate has made of the person's questions."""
    queries: list[str] = []
    for exchange in read_records(path):
        people = exchange.get("people")
        theirs = str(user_id) in people if isinstance(people, list) and people else match.found_in(_text_of(exchange))
        if exchange.get("step") == "gate" and theirs:
            with suppress(NotFound):
                result = first_valid_object("\n".join(_strings(exchange.get("response"))), GatingResult)
                queries.append(result.rewrite_query or "")
    return [query for query in queries if query.strip()]


_SECTION = re.compile(r"^<<<(?P<name>[\w ]+)>>>\n(?P<body>.*?)^<<<end of (?P=name)>>>$", re.MULTILINE | re.DOTALL)
_ENTRY = re.compile(r"^(?=Id: )", re.MULTILINE)
_PUBLISHED = {"index", "source"}
_TAKEN_UP = {"source", "topic", "pair", "evidence"}
"""The sections that a reply is made from. A conversation is the asker's, and of an index a reply only names entries."""


def published_in(path: Path) -> Iterator[str]:
    """Yield what exchanges show that nobody in Discord wrote: prompts, documentation and its index. Raises OSError."""
    seen = set[str]()
    for exchange in read_records(path):
        request = exchange.get("request")
        if isinstance(request, dict):
            texts = _published_in_request(cast("Record", request), by_us="format" in exchange)
            new = {text for text in texts if text.strip()} - seen
            seen |= new
            yield from new


def _published_in_request(request: Record, *, by_us: bool) -> Iterator[str]:
    """`by_us`: what stands between the sections was written by this program."""
    yield from _strings([request.get("system"), request.get("schema"), request.get("tools")])
    for text in _strings(request.get("user")):
        sections = [*_SECTION.finditer(text)]
        if sections and by_us:
            yield _SECTION.sub("\n", text)
        for entry in (entry for each in sections if each["name"] in _PUBLISHED for entry in _ENTRY.split(each["body"])):
            if entry.startswith("Id: ") and not entry.startswith("Id: team:"):
                yield entry


def _taken_up_in(exchange: Record) -> Iterator[str]:
    """The texts from which the reply was made: sources, pairs, descriptions, results of tools."""
    request = exchange.get("request")
    if isinstance(request, dict):
        asked = cast("Record", request)
        for text in _strings(asked.get("user")):
            yield from (each["body"] for each in _SECTION.finditer(text) if each["name"] in _TAKEN_UP)
        yield from _strings(asked.get("rounds"))


def _redacted(value: object, match: TextMatch, ids: Mapping[str, str]) -> object:
    """Return a recorded value without the lines that `match` finds. The hash, by which a replay looks, stays."""
    if isinstance(value, list):
        return [_redacted(each, match, ids) for each in cast("list[object]", value)]
    if isinstance(value, Mapping):
        return {key: _redacted(each, match, ids) for key, each in cast("Mapping[str, object]", value).items()}
    if not isinstance(value, str):
        return value
    held = json_object(value) if value.startswith("{") else None
    if held is not None:  # such as a reply, which has to stay readable
        left = _redacted(held, match, ids)
        return value if left == held else json.dumps(left, ensure_ascii=False)
    text = match.redacted(value)
    for old, new in ids.items():
        text = text.replace(old, new)
    return text


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
    the names of threads. `match` finds what only they have written. Returns how many dispatches that concerned. Raises
    OSError.
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
        left = cast("Mapping[str, object]", _payload_without(cleared.d, user_id, found.messages, match.redacted))
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


def _payload_without(value: object, user_id: int, messages: set[str], redacted: Callable[[str], str]) -> object:
    """A payload in which what they wrote, what their threads are called, and their own names are `[removed]`."""
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, list):
        return [_payload_without(each, user_id, messages, redacted) for each in cast("list[object]", value)]
    if not isinstance(value, Mapping):
        return value
    held = cast("Mapping[str, object]", value)
    if str(held.get("id")) == str(user_id) and "username" in held:
        return {"id": held["id"], "username": REMOVED}
    left = {key: _payload_without(each, user_id, messages, redacted) for key, each in held.items()}
    # A thread has the id of the message that it was opened on, and mostly its words for a name.
    about = [held.get("id")]
    for each in _objects(held.get("message_reference")):
        about += [each.get("channel_id"), each.get("message_id")]
    if any(each.get("bot") for each in _objects(held.get("author"))):
        about.append(held.get("channel_id"))  # an answer, which takes up what they asked
    if messages & {str(each) for each in about}:
        left |= {key: REMOVED for key in ("name", "content") if held.get(key)}
    return left
