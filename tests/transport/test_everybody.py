"""How parts ended in all processes."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client

from assembly.distributed.fleet_outcomes import FleetOutcomes
from assembly.distributed.process import REPORT_FOLDER, Process, fleet_conditions, open_process
from assembly.distributed.worker import report_of_all_processes
from assembly.health import HealthMonitor
from clock import now, rfc3339
from model.health import Condition, HealthTopic, Trouble
from model.processes import ProcessStatus
from reporting.reading import TimeSpan
from services.conversations.posts import Post, render_post
from services.llm import StepTokens
from services.storage import FileChange
from services.team import AuditEntry, AuditLog
from services.telemetry import render_part_outcome
from settings import load
from sinks.results import OutcomeRecord
from tests.dashboard.made import REPLIED
from tests.loopback.nats_server import NatsServer
from tests.reporting.asked import asked
from tests.transport.connected import client, until
from transport import folder_log
from transport.connection import streams_of
from transport.fenced_log import FencedLog
from transport.folder_log import Writer
from transport.members import answer_status

__all__ = ["client"]

pytestmark = pytest.mark.real_time

DAY = 86_400.0


@pytest.fixture
async def process(client: Client, tmp_path: Path, nats_server: NatsServer) -> AsyncGenerator[Process]:
    config = tmp_path / "config.yaml"
    config.write_text(f"transport: '{nats_server.url}'\napp: {{data_dir: {tmp_path / 'data'}}}\n")
    async with open_process(load(config), ("worker",)) as opened:
        yield opened


async def told(client: Client, scope: str, *changes: FileChange) -> None:
    log = FencedLog(streams_of(client), scope)
    await log.open("somebody", 1.0)
    writer = Writer(log)
    for change in changes:
        await writer.write(change)


def outcomes(at: float) -> str:
    return f"state/outcomes/{rfc3339(at)[:10]}.jsonl"


async def test_all_partitions_and_the_own_memory_are_shown_as_one(client: Client, process: Process) -> None:
    today, before = now(), now() - 3 * DAY
    one, two = asked("One?", at=today - 2), asked("Two?", at=today - 1)
    old = asked("Old?", at=before)
    path = outcomes(today)
    await told(
        client,
        "p03",
        FileChange("replace", path, render_part_outcome(one)),
        FileChange("append", path, b"damaged\n", len(render_part_outcome(one))),
    )
    await told(
        client,
        "p05",
        FileChange("append", path, render_part_outcome(two), 0),
        FileChange("replace", outcomes(before), render_part_outcome(old)),
        FileChange("replace", "state/outcomes/gone.jsonl", b""),
    )
    record = OutcomeRecord(None, str)
    mine = replace(REPLIED, at=today)
    record.recent.append(mine)
    ends = FleetOutcomes(process, record)
    assert [entry.question for entry in await ends.last()] == ["Old?", "One?", "Two?", mine.question]
    assert (await ends.last())[-1].reply == mine.reply
    span = TimeSpan(today - DAY, today + 1)
    assert [entry.question for entry in await ends.of(span)] == ["One?", "Two?"]


async def test_what_was_decided_in_any_partition_is_told_in_order(
    client: Client, process: Process, tmp_path: Path
) -> None:
    for scope, at, by in (("p05", 1.0, "ana"), ("p03", 2.0, "bob")):
        path = tmp_path / scope
        AuditLog(path).note(at, by, "post draft", 7)
        await told(client, scope, FileChange("append", "state/audit.jsonl", path.read_bytes()))
    found = await FleetOutcomes(process, OutcomeRecord(None, str)).audit()
    assert found == [AuditEntry(1.0, "ana", "post draft", "7"), AuditEntry(2.0, "bob", "post draft", "7")]


async def test_tokens_are_added_up(client: Client, process: Process) -> None:
    days = {"2026-01-02": {"gate": [1, 2, 3]}}
    await told(client, "p03", FileChange("replace", "state/tokens.json", json.dumps(days).encode()))
    await told(client, "p04", FileChange("replace", "state/tokens.json", b"damaged"))
    await told(client, "p05", FileChange("replace", "state/tokens.json", json.dumps(days).encode()))
    found = await FleetOutcomes(process, OutcomeRecord(None, str)).tokens()
    assert found.days == {"2026-01-02": {"gate": StepTokens(2, 4, 6)}}


async def test_votes_of_all_partitions_lead_to_their_questions(client: Client, process: Process) -> None:
    at = now() - 60
    row: dict[str, Any] = {"at": rfc3339(at), "voter": "v", "question": "One?", "sources": [], "vote": "down"}
    post = Post(at, 71, 5, 5, 9, 0xA2, opened_thread=True, question="One?", sources=())
    await told(
        client,
        "p03",
        FileChange("replace", "feedback.jsonl", json.dumps({**row, "message_id": "71"}).encode() + b"\n"),
        FileChange("replace", "state/posts.jsonl", render_post(post) + b"damaged\n"),
    )
    other = json.dumps({**row, "message_id": "72", "vote": "up"}).encode() + b"\n"
    await told(client, "p05", FileChange("replace", "feedback.jsonl", other))
    votes = await FleetOutcomes(process, OutcomeRecord(None, str)).votes(TimeSpan(0, now()))
    assert [(vote.message_id, vote.asked_id, vote.ups, vote.downs) for vote in votes] == [
        (71, 0xA2, 0, 1),
        (72, None, 1, 0),
    ]


async def test_a_report_that_is_called_off_leaves_nothing_of_what_was_gathered(
    client: Client, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pitfall 49: nobody who is forgotten would be looked for there."""
    await told(client, "p03", FileChange("replace", "state/posts.jsonl", b"words\n"))
    begun, go_on, make = threading.Event(), threading.Event(), folder_log.write_if_changed

    def slow(*arguments: Any) -> bool:
        begun.set()
        go_on.wait()
        return make(*arguments)

    monkeypatch.setattr(folder_log, "write_if_changed", slow)
    reporting = asyncio.create_task(report_of_all_processes(process, TimeSpan(0, 1), 1))
    await until(begun.is_set)
    reporting.cancel()
    await asyncio.sleep(0)
    assert not reporting.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await reporting
    assert not (process.folder / REPORT_FOLDER).exists()


async def test_the_health_of_all_processes_is_one_and_lacks_what_nobody_reports(
    client: Client, process: Process, nats_server: NatsServer
) -> None:
    monitor = HealthMonitor(process.configured, place="here")
    at = now()
    lost = Condition(topic=HealthTopic.DISCORD, troubles={"there": Trouble(at - 60, at)})
    status = ProcessStatus(
        name="gateway-1", roles=("gateway",), version="0.1.0", uptime_seconds=1.0, conditions=(lost,)
    )
    answering = await answer_status(client, lambda: status)
    found = {each.topic: each for each in await fleet_conditions(process, monitor)}
    assert found[HealthTopic.DISCORD].troubles == lost.troubles
    assert found[HealthTopic.DISK].detail.endswith("MB are free")
    assert found[HealthTopic.KNOWLEDGE].detail == "no process reports it: does any play the role knowledge?"
    assert HealthTopic.SOURCES not in found
    await answering.unsubscribe()
    found = {each.topic: each for each in await fleet_conditions(process, monitor)}
    assert found[HealthTopic.DISCORD].detail == "no process reports it: does any play the role gateway?"
    nats_server.end()
    try:
        assert await fleet_conditions(process, monitor) == []
    finally:
        nats_server.start()


async def test_a_file_that_was_removed_is_not_there(client: Client, process: Process) -> None:
    path = outcomes(now())
    await told(client, "p03", FileChange("replace", path, render_part_outcome(asked("One?", at=now()))))
    await told(client, "p03", FileChange("remove", path))
    assert await FleetOutcomes(process, OutcomeRecord(None, str)).last() == []


async def test_while_nats_is_away_the_own_memory_is_shown(
    client: Client, process: Process, nats_server: NatsServer, caplog: pytest.LogCaptureFixture
) -> None:
    record = OutcomeRecord(None, str)
    record.recent.append(REPLIED)
    nats_server.end()
    try:
        ends = FleetOutcomes(process, record)
        assert await ends.last() == [REPLIED]
        assert await ends.of(TimeSpan(REPLIED.at, REPLIED.at + 1)) == [REPLIED]
        assert (await ends.tokens()).days == {}
    finally:
        nats_server.start()
    assert "the dashboard shows less than there is: NATS does not answer" in caplog.text
