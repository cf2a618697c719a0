"""What Discord sends, and recordings and exports of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given

from model.events import PlaceSeen
from services.discord.dispatches import BadLine, Dispatch, parse_line, read_frame, render_line
from services.discord.exports import Export, NotAnExport, PrivateExport
from services.discord.recordings import BadRecording, RecordingFilter, read
from services.discord.wire import USED_TYPES, Decoder, OddPayload, read_message, read_quoted_message
from tests.fuzzing.mutations import (
    DEEP,
    LONG,
    THOROUGHLY,
    as_json,
    damaged,
    distorted,
    json_files,
    line_files,
    one_line,
)

USER = {"id": "7", "username": "ada", "global_name": "Ada", "bot": False}
MEMBER = {"nick": "A", "roles": ["55"], "user": USER}
FILE = {"id": "8", "filename": "a.log", "size": 12, "url": "https://cdn.example/a", "content_type": "text/plain"}
QUOTED = {"id": "39", "channel_id": "20", "author": USER, "content": "before"}
POST: dict[str, Any] = {
    "id": "40",
    "channel_id": "20",
    "guild_id": "1",
    "type": 19,
    "author": USER,
    "member": MEMBER,
    "content": "hi",
    "mentions": [{**USER, "member": MEMBER}],
    "attachments": [FILE],
    "webhook_id": None,
    "message_reference": {"type": 0, "message_id": "39", "channel_id": "20"},
    "referenced_message": QUOTED,
    "message_snapshots": [{"message": QUOTED}],
}
CHANNEL: dict[str, Any] = {
    "id": "20",
    "type": 15,
    "name": "help",
    "guild_id": "1",
    "parent_id": "5",
    "permission_overwrites": [{"id": "1", "allow": "0", "deny": "1024"}],
    "available_tags": [{"id": "3", "name": "solved"}],
}
THREAD: dict[str, Any] = {
    "id": "40",
    "type": 11,
    "name": "Q",
    "guild_id": "1",
    "parent_id": "20",
    "owner_id": "7",
    "applied_tags": ["3"],
    "thread_metadata": {"archived": True, "locked": False, "archive_timestamp": "2026-02-01T00:00:00Z"},
}
ROLE = {"id": "1", "permissions": "1024"}
REACTION = {
    "user_id": "7",
    "channel_id": "20",
    "message_id": "40",
    "emoji": {"id": None, "name": "👍"},
    "member": MEMBER,
}
PAYLOADS: dict[str, dict[str, Any]] = {
    "READY": {"v": 10, "user": USER, "guilds": [{"id": "1"}], "session_id": "s"},
    "GUILD_CREATE": {
        "id": "1",
        "name": "G",
        "roles": [ROLE],
        "channels": [CHANNEL],
        "threads": [THREAD],
        "members": [],
    },
    "GUILD_DELETE": {"id": "1", "unavailable": False},
    "GUILD_ROLE_UPDATE": {"guild_id": "1", "role": ROLE},
    "THREAD_LIST_SYNC": {"guild_id": "1", "channel_ids": ["20"], "threads": [THREAD], "members": []},
    **dict.fromkeys(("CHANNEL_CREATE", "CHANNEL_UPDATE", "CHANNEL_DELETE"), CHANNEL),
    **dict.fromkeys(("THREAD_CREATE", "THREAD_UPDATE", "THREAD_DELETE"), THREAD),
    **dict.fromkeys(("MESSAGE_CREATE", "MESSAGE_UPDATE"), POST),
    "MESSAGE_DELETE": {"id": "40", "channel_id": "20", "guild_id": "1"},
    "MESSAGE_DELETE_BULK": {"ids": ["39", "40"], "channel_id": "20"},
    **dict.fromkeys(("MESSAGE_REACTION_ADD", "MESSAGE_REACTION_REMOVE"), REACTION),
    "TYPING_START": {"channel_id": "20", "guild_id": "1", "user_id": "7", "timestamp": 1, "member": MEMBER},
}
AT = "2026-02-01T00:00:00.000Z"
FRAMES = [{"op": 0, "s": 1, "t": t, "d": d} for t, d in PAYLOADS.items()]
LINES = [{"at": AT, "t": t, "d": d} for t, d in PAYLOADS.items()]
EXPORT: dict[str, Any] = {
    "guild": {"id": "1", "name": "G"},
    "channel": {"id": "30", "type": "GuildPublicThread", "categoryId": "20", "category": "help", "name": "GPU?"},
    "messages": [
        {
            "id": "30",
            "type": "Default",
            "timestamp": AT,
            "timestampEdited": None,
            "content": "Hi",
            "author": {"id": "7", "name": "ada", "nickname": "Ada", "isBot": False, "roles": [{"id": "55"}]},
            "attachments": [{"id": "8", "url": "https://cdn/a.png", "fileName": "a.png", "fileSizeBytes": 12}],
            "mentions": [{"id": "9", "name": "bob", "nickname": "Bobby", "isBot": False}],
        },
        {
            "id": "31",
            "type": "Reply",
            "content": "Ho",
            "author": {"id": "8", "name": "b"},
            "reference": {"messageId": "30", "channelId": "30", "guildId": "1"},
        },
    ],
    "messageCount": 2,
}


def test_the_payloads_are_those_that_are_read() -> None:
    assert set(PAYLOADS) == USED_TYPES


@THOROUGHLY
@given(distorted(*FRAMES).map(as_json) | damaged(*map(as_json, FRAMES)))
@example(b'{"op": 0, "t": "READY", "d": ' + b"[" * DEEP)
def test_a_frame_is_a_dispatch_or_nothing_and_what_is_odd_is_told_without_its_content(frame: bytes) -> None:
    """Pitfall 80: the bot sees each frame before discord.py does; whatever is raised here costs the connection."""
    dispatch = read_frame(frame.decode("utf-8", "replace"), 5.0)
    if dispatch is None:
        return
    decoder = Decoder()
    decoder.decode(Dispatch(1.0, "GUILD_CREATE", PAYLOADS["GUILD_CREATE"]))
    for event in decoder.decode(dispatch):
        assert event.at == 5.0
        if isinstance(event, PlaceSeen):
            assert 0 <= event.place.id < 2**64
            "".join([event.place.name, *event.place.tags]).encode()
    assert decoder.decode(Dispatch(6.0, "MESSAGE_CREATE", POST))


@THOROUGHLY
@given(distorted(POST))
@example({**POST, "content": "\ud83d", "author": {**USER, "username": "\ud83d", "global_name": None}})
def test_a_message_is_one_or_odd(payload: Any) -> None:
    for reader in (read_message, read_quoted_message):
        try:
            found = reader(payload)
        except OddPayload as odd:
            one_line(odd)
        else:
            assert found is None or 0 <= found.id < 2**64
            if found is not None:
                "".join([found.text, found.author.name, *(name for _, name in found.mentions)]).encode()
                "".join(file.filename + file.url for file in found.attachments).encode()


@THOROUGHLY
@given(distorted(*LINES).map(as_json) | damaged(*map(as_json, LINES)))
def test_a_line_of_a_recording_is_a_dispatch_or_bad_and_what_is_written_is_read_again(line: bytes) -> None:
    try:
        dispatch = parse_line(line.decode("utf-8", "replace"))
    except BadLine as bad:
        one_line(bad)
        return
    cleared = RecordingFilter(lambda _author, _text: False).filter(dispatch)
    if cleared is not None:
        try:
            written = render_line(cleared)
        except ValueError:  # 1e400 is read as an infinity, which JSON does not have
            return
        again = parse_line(written)
        assert (again.t, again.d) == (cleared.t, cleared.d)
        assert again.at == pytest.approx(cleared.at, abs=0.001)


@THOROUGHLY
@given(line_files(*LINES) | json_files(EXPORT))
def test_a_file_to_replay_gives_dispatches_or_one_line_that_says_why_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    caplog.clear()
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    try:
        dispatches = list(read(path))
    except BadRecording as bad:
        one_line(bad, str(path))
        return
    assert dispatches
    # What is not there was told.
    lines = sum(1 for line in content.split(b"\n") if line.strip(b"\xef\xbb\xbf \t\r\x0b\x0c"))
    told = sum("skipped" in each or "ends early" in each for each in caplog.messages)
    if dispatches[0].d.get("user") != {"id": "0", "username": "bot", "bot": True}:
        assert len(dispatches) + told >= lines


@THOROUGHLY
@given(json_files(EXPORT))
@example(as_json({**EXPORT, "channel": {**EXPORT["channel"], "type": LONG}}))
@example(as_json({**EXPORT, "messages": [{**EXPORT["messages"][0], "type": LONG}]}))
def test_an_export_is_read_as_far_as_it_can_be(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    try:
        dispatches = list(Export(path).dispatches())
    except (NotAnExport, PrivateExport) as error:
        one_line(error)
        return
    for each in dispatches:
        parse_line(render_line(each))
