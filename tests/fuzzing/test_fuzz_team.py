"""What the team has taught: archive, topics, decisions, places, waiting captures, the state of the library."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given

from clock import from_rfc3339
from model.conversations import Image
from model.messages import Attachment
from services.knowledge import topic_blocks
from services.team import archive, decisions, pending, state, topics
from services.team.archive import PairTurn, Speaker
from services.team.captures import Capture, CapturedImage, CapturedMessage
from services.team.decisions import Action, Actor, Decision, FiledPiece, Remark
from services.team.pair_links import PairLinks
from services.team.state import LibraryUnusable, TeamState
from services.team.topics import Correction
from tests.fuzzing.mutations import DEEP, THOROUGHLY, as_json, damaged, damaged_text, json_files, line_files, one_line
from tests.services.team.test_archive import a_pair

AT = "2026-03-01T12:00:00.000000Z"
PAIRS = [a_pair("Line\n--- QA ---\nUser: no", "Answer: é 😀\n\n  indented"), a_pair("Q?", "A.", second=58)]
EARLIER = """\
--- QA ---
id: qa_20260201_031057
timestamp: 2026-02-01T03:10:57Z
conversation_id: thread_17
message_ids: msg_1, msg_2
User: My node
Team: Run this:
  nvidia-smi

"""
ARCHIVE = "".join(map(archive.render, PAIRS))
TOPIC = "".join(
    topics.topic_block(pair, (Correction(AT, "the drivers are part of it"),)).text
    for pair in (*PAIRS, replace(PAIRS[0], author_ids=(3, 4)))
) + "".join(replace(topics.topic_block(pair), speakers=("User A", "Team (to User A)")).text for pair in PAIRS)
DECISIONS = [
    Decision(
        PAIRS[0].id,
        AT,
        Action.ADDED,
        Actor.LLM,
        "gpu-drivers",
        (PAIRS[1].id,),
        (),
        "because",
        (Remark(PAIRS[1].id, "x"),),
    ),
    Decision(PAIRS[1].id, AT, Action.REMOVED, Actor.OPERATOR, None, reason="é", pieces=(FiledPiece(("1", "2"), "a"),)),
]
DECIDED = [json.loads(decisions.render(each)) for each in DECISIONS]
PICTURE = CapturedImage(1, 0, -1, Attachment(7, "a.png", 3, "https://cdn.example/7", "image/png"))
SAID = (
    CapturedMessage(1, 11, PairTurn(Speaker.USER, "It says\n[image: a.png]")),
    CapturedMessage(2, 50, PairTurn(Speaker.TEAM, "Restart.")),
)
WAITING = pending.PendingCapture(
    5.5, Capture(None, "thread_1", SAID), (PICTURE,), {PICTURE: Image("a.png", "image/png", b"PNG\n\x00")}
)
STATES = [json.loads(state.render_state(each)) for each in (TeamState(), TeamState(PAIRS[0].id, PAIRS[1].id, 12, "ab"))]
PLACE = {"qa_id": PAIRS[0].id, "guild_id": "1", "channel_id": "20", "message_id": "40"}


@THOROUGHLY
@given(damaged_text(ARCHIVE, EARLIER, ARCHIVE + EARLIER))
def test_a_block_of_the_archive_is_read_or_reported(caplog: pytest.LogCaptureFixture, text: str) -> None:
    caplog.clear()
    found = archive.parse(text)
    whole, _, _ = text.replace("\r\n", "\n").rpartition("\n\n")  # what follows is one truncated block
    marked = sum(line.removeprefix("\ufeff") == archive.MARKER for line in whole.split("\n"))
    assert len(found) + len(caplog.messages) >= marked
    assert all("\n" not in told for told in caplog.messages)
    for pair in found:
        assert archive.parse(archive.render(pair)) == [pair]


@THOROUGHLY
@given(damaged(ARCHIVE.encode(), EARLIER.encode()))
def test_what_is_whole_of_an_archive_ends_with_a_block(data: bytes) -> None:
    length = archive.sound_length(data)
    assert 0 <= length <= len(data)
    assert not length or data[:length].endswith((b"\n\n", b"\n\r\n"))
    assert archive.sound_length(data[:length]) == length


@THOROUGHLY
@given(damaged_text(TOPIC))
def test_a_topic_file_is_read_as_far_as_it_is_one(text: str) -> None:
    blocks = list(topic_blocks(text))
    assert list(topic_blocks("".join(block.text for block in blocks))) == blocks


@THOROUGHLY
@given(line_files(*DECIDED))
def test_a_decision_is_read_or_reported_and_written_as_it_was(caplog: pytest.LogCaptureFixture, data: bytes) -> None:
    caplog.clear()
    found = decisions.parse(data)
    lines = [line for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n") if line.strip()]
    assert len(found) + len(caplog.messages) == len(lines)
    for each in found:
        assert decisions.parse(decisions.render(each).encode()) == [each]


@THOROUGHLY
@given(
    damaged(pending.render_pending(WAITING)) | json_files(json.loads(pending.render_pending(WAITING).split(b"\n")[0]))
)
def test_a_waiting_capture_is_read_whole_or_damaged(data: bytes) -> None:
    try:
        found = pending.parse_pending(data)
    except pending.DamagedCapture as error:
        one_line(error)
        return
    assert pending.parse_pending(pending.render_pending(found)) == found


@THOROUGHLY
@given(json_files(*STATES))
def test_the_state_of_a_library_is_read_or_unusable(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(data)
    try:
        found = state.read_state(path)
    except LibraryUnusable as error:
        one_line(error, str(path))
        return
    path.write_bytes(state.render_state(found))
    assert state.read_state(path) == found


@THOROUGHLY
@given(line_files(PLACE))
@example(b"\xff")
@example(b"[" * DEEP)
@example(as_json({**PLACE, "guild_id": 1e400}))
def test_a_line_of_places_costs_itself_alone(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "places.jsonl"
    path.write_bytes(data.rstrip(b"\n") + b"\n" + as_json(PLACE) + b"\n")
    address = PairLinks(path).address(PAIRS[0].id)
    assert address == "https://discord.com/channels/1/20/40"


@THOROUGHLY
@given(damaged_text(PAIRS[0].id, PAIRS[0].timestamp, PAIRS[0].said_at))
def test_an_id_or_a_time_is_an_instant_or_none(text: str) -> None:
    for read in (archive.instant, archive.timestamp_instant):
        with suppress(archive.BadId):
            assert archive.week_file(read(text)).endswith(".txt")
    with suppress(ValueError):
        from_rfc3339(text)
