"""An operator changes something from another process: the one that keeps it does so, or the operator is told which."""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from nats.aio.client import Client

from assembly.dashboard import DashboardTeam
from assembly.distributed import keepers
from assembly.distributed.fleet_outcomes import FleetGaps, FleetOutcomes, FleetTeam
from assembly.distributed.keepers import ArchiveKeeper, ask_filing, keep_decision, note_refusal, tell_refusal
from assembly.distributed.process import Process, open_process
from assembly.graph_parts import ServerParts
from assembly.health import HealthMonitor
from assembly.teaching import part_of_lesson
from assembly.team import open_team
from clock import now
from model.health import Condition, HealthTopic, merge_conditions
from model.outcomes import Outcome, OutcomeKind
from model.servers import Servers
from reporting.reading import DismissedQuestions
from services.storage import DataFolder, files
from services.team import AuditLog, LessonForm, PairLinks, read_audit, removals
from services.team.archive import render
from services.team.decisions import Action, Actor, Decision
from services.team.library import TeamLibrary
from settings import Settings, load
from sinks.results import OutcomeRecord
from tests.end_to_end.processes import ROOT
from tests.loopback.nats_server import NatsServer
from tests.team import pair
from tests.transport.connected import client
from transport.connection import ServerAway
from transport.fenced_log import Fenced, FencedLog
from transport.folder_log import LogJournal
from transport.requests import ALERTS, ARCHIVE, OPERATORS, answering, ask

__all__ = ["client"]

pytestmark = pytest.mark.real_time

FILED = pair(1, "Where is the lamp?", "On the left.")
DISMISSED = {1_458_745_245_675_032_710, 1_458_745_245_675_032_711}


@pytest.fixture
def settings(tmp_path: Path, nats_server: NatsServer) -> Settings:
    config = tmp_path / "config.yaml"
    config.write_text(f"transport: '{nats_server.url}'\napp: {{data_dir: {tmp_path / 'data'}}}\n")
    return load(config)


@pytest.fixture
async def process(client: Client, settings: Settings) -> AsyncGenerator[Process]:
    async with open_process(settings, ("worker",)) as opened:
        yield opened


@pytest.fixture
def library(settings: Settings, tmp_path: Path) -> TeamLibrary:
    """Return the library of the process that keeps the archive: one conversation in a topic."""
    kept = settings.with_data_in(tmp_path / "team")
    files.append(kept.kb.team_raw_dir / "2026-W08.txt", render(FILED).encode())
    opened = open_team(kept)
    opened.decide(Decision(FILED.id, "2026-02-16T00:01:00Z", Action.ADDED, Actor.LLM, "lamp"), FILED)
    return opened


def keeper_of(client: Client, library: TeamLibrary) -> ArchiveKeeper:
    parts = SimpleNamespace(captures=SimpleNamespace(curation=SimpleNamespace(library=library)))
    return ArchiveKeeper(client, cast("Servers[ServerParts]", Servers({None: parts})))


async def test_nobody_who_answers_is_told_with_the_process_to_start(client: Client) -> None:
    with pytest.raises(ServerAway, match=r"no process keeps the archive now; start one with --role team"):
        await ask(client, ARCHIVE, {})
    with pytest.raises(ServerAway, match=r"no worker has partition 0 now; start one with --role worker"):
        await ask(client, OPERATORS, {})


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(28, "No space left on device"), "No space left"),
        (Fenced("team"), "team belongs to another process now"),
        (KeyError("guild"), "guild"),
    ],
)
async def test_what_fails_there_is_told_here(client: Client, error: Exception, told: str) -> None:
    async def fail(_asked: Mapping[str, Any]) -> Mapping[str, Any]:
        raise error

    async with answering(client, ARCHIVE, fail):
        with pytest.raises(ServerAway, match=told):
            await ask(client, ARCHIVE, {})


async def test_an_answer_that_takes_too_long_says_that_it_may_be_done(client: Client) -> None:
    async def hang(_asked: Mapping[str, Any]) -> Mapping[str, Any]:
        await asyncio.Event().wait()
        return {}

    async with answering(client, ARCHIVE, hang):
        with pytest.raises(ServerAway, match=r"no answer within 0\.1 s; look whether it is done"):
            await ask(client, ARCHIVE, {}, 0.1)


async def test_the_documented_permissions_are_enough(tmp_path: Path, nats_server: NatsServer) -> None:
    del nats_server  # there is a server to run
    page = (ROOT / "docs" / "scaling.md").read_text()
    allowed = [
        ", ".join(f'"{each}"' for each in re.findall(rf"^{verb}: +(.*)$", page, re.MULTILINE)[0].split())
        for verb in ("publish", "subscribe")
    ]
    user = f'{{ user: bot, password: "p", permissions: {{ publish: [{allowed[0]}], subscribe: [{allowed[1]}] }} }}'
    refused = list[Exception]()

    async def on_error(error: Exception) -> None:
        refused.append(error)

    async def echo(asked: Mapping[str, Any]) -> Mapping[str, Any]:
        return asked

    with NatsServer(tmp_path, "strict", f"authorization {{ users: [ {user} ] }}\n") as server:
        strict = Client()
        await strict.connect(server.url, user="bot", password="p", error_cb=on_error)
        try:
            for subject in (ARCHIVE, OPERATORS, ALERTS):
                async with answering(strict, subject, echo):
                    assert await ask(strict, subject, {"a": 1}) == {"a": 1}
        finally:
            await strict.close()
    assert refused == []


async def test_a_pair_is_corrected_where_the_archive_is_kept(
    client: Client, settings: Settings, library: TeamLibrary, tmp_path: Path
) -> None:
    shown = DashboardTeam(settings, None, PairLinks(tmp_path / "places.json"), AuditLog())
    team = FleetTeam(client, shown)
    with pytest.raises(ServerAway, match="no process keeps the archive"):
        await team.correct("remove", FILED.id, "ana")
    keep = partial(keep_decision, DismissedQuestions(tmp_path / "dismissed.json"), AuditLog(tmp_path / "audit.jsonl"))
    async with answering(client, ARCHIVE, keeper_of(client, library).answer):
        with pytest.raises(ServerAway, match="no worker has partition 0 now; start one with --role worker"):
            await team.correct("remove", FILED.id, "ana")
        assert list(library.topics) == ["lamp"], "nothing is done without a line that names who"
    async with answering(client, ARCHIVE, keeper_of(client, library).answer), answering(client, OPERATORS, keep):
        assert (
            await team.correct("remove", FILED.id, "ana")
            == f"{FILED.id} is removed from lamp, which held nothing else and is gone."
        )
        assert list(library.topics) == []
        with pytest.raises(removals.RemovalRefused, match="was removed already"):
            await team.correct("remove", FILED.id, "ana")
        assert await team.correct("restore", FILED.id, "ana") == f"{FILED.id} is in lamp again."
    assert list(library.topics) == ["lamp"]
    told = [entry[1:] for entry in read_audit(tmp_path / "audit.jsonl")]
    assert told == [("ana", f"{action} conversation", FILED.id) for action in ("remove", "restore")]


async def test_what_became_of_a_lesson_is_told_where_it_was_written(
    client: Client, settings: Settings, library: TeamLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    form, lesson_id = LessonForm(None, "Where is the key?", "Under the mat."), 77
    told = await ask_filing(client, None, lesson_id)
    waits = "Taken: it is stored and filed as soon as the archive has it"
    assert told.text == f"{waits} (no process keeps the archive now; start one with --role team)."
    keeper = keeper_of(client, library)
    outcome = Outcome(part_of_lesson(form, lesson_id), time.time(), OutcomeKind.CAPTURED, qa_id=FILED.id)
    async with answering(client, ARCHIVE, keeper.answer):
        asked = asyncio.create_task(ask_filing(client, None, lesson_id))
        await asyncio.sleep(0)
        keeper.on_result(outcome)
        filed = await asked
        monkeypatch.setattr(keepers, "FILING_SECONDS", 0.05)
        unknown = await ask_filing(client, None, lesson_id + 1)
    assert filed == (f"Stored as `{FILED.id}` and filed under `lamp`: who asks this next gets the answer.", True)
    assert unknown == (f"{waits} (its topic is not decided yet).", False)


@dataclass
class Told:
    """Stands for `AlertParts`: people are told some moments after the sample that a change asks for."""

    monitor: HealthMonitor
    after: float = 0.05
    told_at: float = math.inf

    def __post_init__(self) -> None:
        self.monitor.changed.subscribe(self.on_change)

    def on_change(self, _: None) -> None:
        self.told_at = time.monotonic() + self.after

    def is_told(self, topic: HealthTopic) -> bool:
        return topic is HealthTopic.ACCESS and time.monotonic() >= self.told_at


async def test_a_gateway_that_is_refused_ends_when_people_are_told_or_nobody_can_tell_them(
    client: Client, settings: Settings, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("INFO")
    await tell_refusal(client, "Discord refuses the token.")
    assert "nobody is told that Discord refuses the bot: no worker has partition 0 now" in caplog.text
    monitor = HealthMonitor(settings)
    alerts: Any = Told(monitor)
    async with answering(client, ALERTS, partial(note_refusal, monitor, alerts)):
        await tell_refusal(client, "Discord refuses the token.")
        assert time.monotonic() >= alerts.told_at
        [refused] = [each for each in await monitor.sample() if each.topic is HealthTopic.ACCESS]
        assert (refused.is_well, refused.detail) == (False, "Discord refuses the token.")
        alerts.after = math.inf  # the webhook does not answer
        monkeypatch.setattr(keepers, "TELL_SECONDS", 0.05)
        await tell_refusal(client, "Discord refuses the token.")
    # A gateway that is connected later on ends it, whichever process reports it.
    well = Condition(topic=HealthTopic.ACCESS, well={"": now() + 1})
    assert [each.is_well for each in merge_conditions([[refused], [well]])] == [True]


async def test_gaps_are_dismissed_by_the_worker_that_keeps_them_and_seen_by_all(
    client: Client, process: Process, tmp_path: Path
) -> None:
    gaps, folder = FleetGaps(process), tmp_path / "p00"
    assert await gaps.read() == frozenset()
    with pytest.raises(ServerAway, match="no worker has partition 0"):
        await gaps.change("dismiss", DISMISSED, "ana")
    fenced = FencedLog(process.file_connection.streams, "p00")
    await process.file_connection.do(fenced.open("worker", 1.0))
    questions, audit = DismissedQuestions(DataFolder(folder).dismissed), AuditLog(DataFolder(folder).audit)

    async def answer(asked: Mapping[str, Any]) -> Mapping[str, Any]:
        return await keep_decision(questions, audit, asked)

    with files.use_journal(folder, LogJournal(process.file_connection, fenced)):
        async with answering(client, OPERATORS, answer):
            await gaps.change("dismiss", DISMISSED, "ana")
            assert await gaps.read() == DISMISSED
            await gaps.change("restore", [min(DISMISSED)], "ben")
    assert await gaps.read() == {max(DISMISSED)}
    assert questions.read() == {max(DISMISSED)}
    told = [entry[1:] for entry in await FleetOutcomes(process, OutcomeRecord(None, str)).audit()]
    assert told == [
        ("ana", "dismiss gap", str(max(DISMISSED))),
        ("ben", "restore gap", str(min(DISMISSED))),
    ]
