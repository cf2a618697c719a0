"""Removes one person from recordings: from recorded calls of models (--llm-record), and from recordings of Discord
(--record). Blocking.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, cast

from model.messages import is_snowflake, snowflake_at
from services.assistant import GatingResult
from services.discord import THREAD_TYPES, BadLine, Dispatch, RecordingFilter, parse_line, render_line
from services.llm import NotFound, first_valid_object
from services.privacy.text_match import LONG_CHARS, Said, TextMatch
from services.storage import Record, edit_records, files, json_object, read_records
from services.team import REMOVED, archive
from services.telemetry import number_of


@dataclass(frozen=True, slots=True)
class DroppedCalls:
    """The numbers of calls that were dropped, and that lost lines; `left`: lines for the operator."""

    calls: int
    redacted: int
    left: list[str]


def drop_llm_calls(
    recordings: Collection[Path],
    user_id: int,
    texts: list[str],
    ids: Mapping[str, str] | None = None,
    own: Callable[[list[str]], list[str]] = list,
) -> DroppedCalls:
    """Drop the calls about a person's conversations, and those made from the person's `texts` or from a source that is
    renamed (`ids`: new ids by old ones). Calls of others that repeat the person's words lose only these lines. `own`:
    reduces texts to what only this person has written. Raises OSError.
    """
    ids, count, redacted, left = ids or {}, 0, 0, list[str]()
    # The steps after the gate may have been asked with the query that it wrote.
    match = TextMatch(own(texts))
    theirs = own([*texts, *(query for path in recordings for query in _rewritten_queries(path, user_id, match))])
    unnamed, of_others = TextMatch(theirs), TextMatch(theirs, LONG_CHARS)
    too_short = TextMatch(texts).too_short
    for path in recordings:
        missing = Counter[str]()
        edited = edit_records(path, _edit_of_calls(user_id, unnamed, of_others, ids, missing))
        count += edited.dropped
        redacted += edited.changed
        if edited.damaged:
            left.append(f"{path}: {number_of(edited.damaged, 'damaged line')}")
        if unmarked := missing["people"]:
            left.append(
                f"{path}: {number_of(unmarked, 'exchange')} of an earlier program, which did not note whose words they "
                "hold: what they asked and got no reply to cannot be told apart"
            )
        elif unmarked := missing["format"]:
            left.append(
                f"{path}: {number_of(unmarked, 'exchange')} of an earlier program, which did not note whose files they "
                "hold passages of"
            )
        if too_short:
            short = number_of(too_short, "text")
            left.append(f"{path}: {short} of theirs not searched for, too short to be anybody's own")
    return DroppedCalls(count, redacted, left)


def _edit_of_calls(
    user_id: int, unnamed: TextMatch, of_others: TextMatch, ids: Mapping[str, str], missing: Counter[str]
) -> Callable[[Record], Record | None]:
    """Return a function for `edit_records`. `unnamed`: finds the person's words in calls that name nobody; `of_others`:
    in calls that name other people. `missing`: counts keys that the kept calls do not have.
    """

    def change(call: Record) -> Record | None:
        people = call.get("people")
        if isinstance(people, list) and people:
            # A reply may say in other words what its sources say.
            if str(user_id) in people or any(map(of_others.whole_lines_in, _sources_in(call))):
                return None
            kept = cast("Record", _redacted(call, of_others, ids))
        else:
            text = _text_of(call)
            found_in = unnamed.whole_lines_in if "format" in call else unnamed.found_in
            if found_in(text) or any(each in text for each in ids):
                return None
            kept = call
        missing.update({"people", "format"} - set(call))
        return kept

    return change


def _rewritten_queries(path: Path, user_id: int, match: TextMatch) -> list[str]:
    """Return the queries that the gate has written for the person's questions."""
    queries: list[str] = []
    for call in read_records(path):
        people = call.get("people")
        theirs = str(user_id) in people if isinstance(people, list) and people else match.found_in(_text_of(call))
        if call.get("step") == "gate" and theirs:
            with suppress(NotFound):
                result = first_valid_object("\n".join(_strings(call.get("response"))), GatingResult)
                queries.append(result.rewrite_query or "")
    return [query for query in queries if query.strip()]


_MARK = re.compile(r"^<<<(?P<end>end of )?(?P<name>[\w ]+)>>>$", re.MULTILINE)
_ENTRY = re.compile(r"^(?=Id: )", re.MULTILINE)
_PUBLISHED = {"index", "source"}
_SOURCES = {"source", "topic", "pair", "evidence"}
"""The sections that a reply is made from: the conversation is the asker's own, and of the index only ids are used."""


class _Section(NamedTuple):
    """A section of a prompt, and where it begins and ends in the prompt."""

    name: str
    body: str
    start: int
    stop: int


def _sections(prompt: str) -> Iterator[_Section]:
    """Yield the sections of a prompt that have an end. Takes time as the prompt is long, whatever marks it holds."""
    marks = [*_MARK.finditer(prompt)]
    ends: defaultdict[str, deque[re.Match[str]]] = defaultdict(deque)
    for mark in marks:
        if mark["end"]:
            ends[mark["name"]].append(mark)
    stop = 0
    for begin in marks:
        later = ends[begin["name"]]
        while later and later[0].start() < begin.end():
            later.popleft()
        if begin.start() >= stop and not begin["end"] and later:
            end = later.popleft()
            stop = end.end()
            yield _Section(begin["name"], prompt[begin.end() + 1 : end.start()], begin.start(), stop)


def published_in(path: Path) -> Iterator[str]:
    """Yield what nobody in Discord wrote: instructions, documentation and its index. Raises OSError."""
    seen = set[str]()
    for call in read_records(path):
        request = call.get("request")
        if isinstance(request, dict):
            texts = _published_in_request(cast("Record", request), by_us="format" in call)
            new = {text for text in texts if text.strip()} - seen
            seen |= new
            yield from new


def _published_in_request(request: Record, *, by_us: bool) -> Iterator[str]:
    """`by_us`: this program wrote the text between the sections."""
    yield from _strings([request.get("system"), request.get("schema"), request.get("tools")])
    for text in _strings(request.get("user")):
        sections = [*_sections(text)]
        if sections and by_us:
            starts, stops = [each.start for each in sections], [each.stop for each in sections]
            yield "\n".join(text[stop:start] for stop, start in zip([0, *stops], [*starts, None], strict=True))
        for entry in (entry for each in sections if each.name in _PUBLISHED for entry in _ENTRY.split(each.body)):
            if entry.startswith("Id: ") and not entry.startswith("Id: team:"):
                yield entry


def _sources_in(call: Record) -> Iterator[str]:
    """Yield the texts that the reply was made from: sources, pairs, descriptions, results of tools."""
    request = call.get("request")
    if isinstance(request, dict):
        fields = cast("Record", request)
        for text in _strings(fields.get("user")):
            yield from (each.body for each in _sections(text) if each.name in _SOURCES)
        yield from _strings(fields.get("rounds"))


def _redacted(value: object, match: TextMatch, ids: Mapping[str, str]) -> object:
    """Return a recorded value without the lines that `match` finds. The hash, which a replay looks up, stays."""
    if isinstance(value, list):
        return [_redacted(each, match, ids) for each in cast("list[object]", value)]
    if isinstance(value, Mapping):
        return {key: _redacted(each, match, ids) for key, each in cast("Mapping[str, object]", value).items()}
    if not isinstance(value, str):
        return value
    parsed = json_object(value) if value.startswith("{") else None
    if parsed is not None:  # such as a reply, which has to stay valid JSON
        redacted = _redacted(parsed, match, ids)
        return value if redacted == parsed else json.dumps(redacted, ensure_ascii=False)
    text = match.redacted(value)
    for old, new in ids.items():
        text = text.replace(old, new)
    return text


def _text_of(call: Record) -> str:
    return "\n".join(_strings([call.get("request"), call.get("response"), call.get("error")]))


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
    """A person's texts and names of threads in a recording, and the ids of their messages, threads and attachments; and
    the number of damaged lines.
    """

    texts: list[str] = field(default_factory=list[str])
    messages: set[str] = field(default_factory=set[str])
    attachments: set[str] = field(default_factory=set[str])
    damaged: int = 0


def attachments_folder(recording: Path) -> Path:
    """Return the folder of the attachments of a recording."""
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
            # Also messages inside of others, which reply to them.
            author = each.get("author")
            if isinstance(author, Mapping) and str(cast("Mapping[str, object]", author).get("id")) == str(user_id):
                _add_message(each, found)
            if each.get("type") in THREAD_TYPES and str(each.get("owner_id")) == str(user_id):
                _add_thread(each, found)
    return found


def said_in_recording(path: Path, user_id: int) -> Iterator[Said]:
    """Yield the messages and names of threads in a recording. Those of bots, and threads of others than the person,
    which the bot may have opened and named after a question, have no author. Raises OSError.
    """
    for dispatch in filter(None, map(_parsed, _lines(path))):
        for each in _objects(dispatch.d):
            author, text = each.get("author"), each.get("content")
            fields = cast("Mapping[str, object]", author) if isinstance(author, Mapping) else dict[str, object]()
            writer, is_anybodys = fields.get("id"), bool(fields.get("bot"))
            is_edited = bool(each.get("edited_timestamp"))
            if each.get("type") in THREAD_TYPES and "owner_id" in each:
                writer, text, is_edited = each["owner_id"], each.get("name"), dispatch.t == "THREAD_UPDATE"
                is_anybodys = str(writer) != str(user_id)
            ids = str(each.get("id")), str(writer)
            if isinstance(text, str) and all(map(is_snowflake, ids)):
                message_id, author_id = map(int, ids)
                at = max(message_id, snowflake_at(dispatch.at)) if is_edited else message_id
                yield Said(at, archive.UNKNOWN if is_anybodys else author_id, text)


def remove_from_recording(path: Path, user_id: int, found: PersonInRecording, match: TextMatch) -> int:
    """Remove a person's messages, reactions and attachments from a recording, and their words from the rest, such as
    the names of threads. `match` finds what only they have written. Returns how many dispatches were dropped or
    changed. Raises OSError.
    """
    recording_filter = RecordingFilter(lambda author_id, _text: author_id == user_id)
    kept: list[bytes] = []
    dropped = changed = 0
    for line in _lines(path):
        dispatch = _parsed(line)
        if dispatch is None:
            kept.append(line)
            continue
        rest = recording_filter.filter(dispatch)
        if rest is None or (rest.t in _REACTIONS and str(rest.d.get("user_id")) == str(user_id)):
            dropped += 1
            continue
        payload = cast("Mapping[str, object]", _payload_without(rest.d, user_id, found.messages, match.redacted))
        changed += payload != dispatch.d
        kept.append(line if payload == dispatch.d else render_line(Dispatch(rest.at, rest.t, payload)).encode())
    if dropped or changed:
        files.replace(path, b"".join(kept))
    for name in found.attachments:
        files.remove(attachments_folder(path) / name)
    for unfinished in attachments_folder(path).glob("*.part"):
        files.remove(unfinished)
    return dropped + changed


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
        fields = cast("Mapping[str, object]", value)
        yield fields
        for each in fields.values():
            yield from _objects(each)
    elif isinstance(value, list):
        for each in cast("list[object]", value):
            yield from _objects(each)


def _add_message(message: Mapping[str, object], found: PersonInRecording) -> None:
    if isinstance(text := message.get("content"), str) and text.strip():
        found.texts.append(text)
    if isinstance(message_id := message.get("id"), str | int):
        found.messages.add(str(message_id))
    attached = message.get("attachments")
    for each in cast("list[object]", attached) if isinstance(attached, list) else []:
        if isinstance(each, Mapping) and (name := str(cast("Mapping[str, object]", each).get("id"))).isdigit():
            found.attachments.add(name)


def _add_thread(thread: Mapping[str, object], found: PersonInRecording) -> None:
    """Add a thread as if it were a message: both have names that are removed."""
    if isinstance(name := thread.get("name"), str) and name.strip():
        found.texts.append(name)
    found.messages.add(str(thread.get("id")))


def _payload_without(value: object, user_id: int, messages: set[str], redacted: Callable[[str], str]) -> object:
    """Return a payload with `[removed]` for the person's texts, names, and the names of their threads."""
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, list):
        return [_payload_without(each, user_id, messages, redacted) for each in cast("list[object]", value)]
    if not isinstance(value, Mapping):
        return value
    fields = cast("Mapping[str, object]", value)
    if str(fields.get("id")) == str(user_id) and "username" in fields:
        return {"id": fields["id"], "username": REMOVED}
    kept = {key: _payload_without(each, user_id, messages, redacted) for key, each in fields.items()}
    # A thread has the id of the message that it was opened on, and mostly its words for a name.
    ids = [fields.get("id")]
    for each in _objects(fields.get("message_reference")):
        ids += [each.get("channel_id"), each.get("message_id")]
    if any(each.get("bot") for each in _objects(fields.get("author"))):
        ids.append(fields.get("channel_id"))  # an answer, which may repeat the question
    if messages & {str(each) for each in ids}:
        kept |= {key: REMOVED for key in ("name", "content") if fields.get(key)}
    return kept
