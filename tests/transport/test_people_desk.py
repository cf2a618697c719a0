"""What a worker does for people beside its partitions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from nats.aio.client import Client

from assembly.distributed import forgetting
from assembly.distributed.forgetting import PeopleServices, use_shared_feedback_key
from assembly.distributed.process import Process, open_process
from assembly.forgetting import TeamKnowledgeFiles
from assembly.graph_parts import GraphParts
from services.conversations import InFlight, Withdrawn
from services.knowledge import LibrarySearch
from services.privacy import pseudonym_key
from services.storage import files
from services.storage.data_folder import DataFolder
from services.team import archive
from settings import Settings, load
from sinks.results import OutcomeRecord
from tests.loopback.nats_server import NatsServer
from tests.reporting.asked import asked
from tests.services.team.test_archive import a_pair
from tests.transport.connected import client, until
from transport.locks import claim_once
from transport.people import ForgetReport, SharedPeople, open_people
from transport.streams import TEAM

__all__ = ["client"]

pytestmark = pytest.mark.real_time

WEEK = "2026-W05.txt"


@pytest.fixture
async def people(client: Client) -> AsyncGenerator[SharedPeople]:
    async with open_people(client) as opened:
        yield opened


@pytest.fixture
def settings(tmp_path: Path, nats_server: NatsServer) -> Settings:
    config = tmp_path / "config.yaml"
    config.write_text(f"transport: '{nats_server.url}'\napp: {{data_dir: {tmp_path / 'data'}}}\n")
    return load(config)


async def test_votes_of_a_person_have_one_pseudonym_in_all_partitions(people: SharedPeople, tmp_path: Path) -> None:
    one, other, old = (DataFolder(tmp_path / name) for name in ("p00", "p01", "p02"))
    await use_shared_feedback_key(people, one)
    before = pseudonym_key(old.feedback_key)  # of an earlier installation
    for folder in (other, old):
        await use_shared_feedback_key(people, folder)
    assert pseudonym_key(one.feedback_key) == pseudonym_key(other.feedback_key) == pseudonym_key(old.feedback_key)
    assert pseudonym_key(old.feedback_key) != before


async def test_the_key_of_an_installation_that_was_moved_stays(people: SharedPeople, tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    before = pseudonym_key(folder.feedback_key)
    await use_shared_feedback_key(people, folder)
    assert pseudonym_key(folder.feedback_key) == before


async def test_commands_of_a_server_are_one_worker_s_to_register(client: Client) -> None:
    assert [await claim_once(client, "commands-5", name, 60) for name in ("a", "b")] == [True, False]
    assert await claim_once(client, "commands-6", "b", 60)


async def test_what_a_crash_has_left_of_scopes_is_deleted(client: Client, settings: Settings) -> None:
    """Pitfall 49: nobody would forget anybody in it."""
    assert client.is_connected
    kept = settings.app.data_dir / "nats" / "1"
    for name in ("p03", "team", "worker"):
        (kept / name).mkdir(parents=True)
        (kept / name / "posts.jsonl").write_text("how can I restore it?")
    async with open_process(settings, ["worker"]) as process:
        assert process.folder == kept
        assert sorted(path.name for path in kept.iterdir() if path.is_dir()) == ["worker"]


class Searched:
    """Stands for a `LibrarySearch`; notes what the archive held when the copies were made anew."""

    def __init__(self, raw: Path) -> None:
        self._raw = raw
        self.made_anew_over: list[str] = []

    @asynccontextmanager
    async def team_passages_dropped(self) -> AsyncGenerator[None]:
        yield
        self.made_anew_over.append((self._raw / WEEK).read_text())


@pytest.fixture
def searched(tmp_path: Path) -> Searched:
    """Over a copy of an archive in which person 1 has answered."""
    raw = tmp_path / "raw"
    files.append(raw / WEEK, archive.render(a_pair("What is it?", "This.")).encode())
    return Searched(raw)


@pytest.fixture
def people_services(
    people: SharedPeople, searched: Searched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> PeopleServices:
    monkeypatch.setattr(forgetting, "SETTLE_SECONDS", 0)
    monkeypatch.setattr(forgetting, "LOOK_SECONDS", 0.01)
    state = SimpleNamespace(record=OutcomeRecord(None, str), folder=DataFolder(tmp_path / "worker"))
    services = SimpleNamespace(history=SimpleNamespace(newest_id=0), in_flight=InFlight())
    parts = cast("GraphParts", SimpleNamespace(servers={}, state=state, services=services))
    teachings = TeamKnowledgeFiles(DataFolder(tmp_path), tmp_path / "raw", None, cast("LibrarySearch", searched))
    process = cast("Process", SimpleNamespace(name="one", folder=tmp_path / "nats" / "1"))
    return PeopleServices(process=process, people=people, parts=parts, team_files=[teachings], documents=None)


async def test_copies_for_searching_are_made_anew_once_the_archive_is_without_the_person(
    people: SharedPeople, people_services: PeopleServices, searched: Searched, tmp_path: Path
) -> None:
    """Pitfall 67."""
    killed = tmp_path / "nats" / "2" / "p03" / "state" / "posts.jsonl"
    killed.parent.mkdir(parents=True)
    killed.write_text("words")
    async with aclosing(people_services):
        people.forget_requests.on_change = people_services.on_progress
        request = await people.forget_requests.make(1, ["p00", TEAM])
        await until(lambda: 1 in people.forget_requests.by_user)
        await people_services.forget(1, {})
        assert not killed.exists()
        await people.forget_requests.complete(request, ForgetReport("team", (TEAM,), {}))
        await until(lambda: TEAM not in people.forget_requests.by_user[1].left)
        assert searched.made_anew_over == []  # its copy is not there yet
        files.replace(tmp_path / "raw" / WEEK, b"")
        await until(lambda: searched.made_anew_over)
        assert searched.made_anew_over == [""]


async def test_what_is_forgotten_again_for_renamed_topics_keeps_what_was_due_before(
    people: SharedPeople, people_services: PeopleServices, searched: Searched, tmp_path: Path
) -> None:
    record = people_services.parts.state.record
    record.recent.append(replace(asked("Who am I?", author_id=999), sources=("team:a.txt",)))
    async with aclosing(people_services):
        people.forget_requests.on_change = people_services.on_progress
        request = await people.forget_requests.make(1, ["p00", TEAM])
        await until(lambda: 1 in people.forget_requests.by_user)
        await people_services.forget(1, {})
        files.replace(tmp_path / "raw" / WEEK, b"")
        await people_services.forget(1, {"team:a.txt": "team:c.txt"})
        await people.forget_requests.complete(request, ForgetReport("team", (TEAM,), {}))
        await until(lambda: searched.made_anew_over == [""])
        assert [entry.sources for entry in record.recent] == [("team:c.txt",)]


async def test_of_who_has_written_nothing_the_copies_stay(
    people: SharedPeople, people_services: PeopleServices, searched: Searched
) -> None:
    record = people_services.parts.state.record
    record.recent.extend(asked("Who am I?", author_id=author_id) for author_id in (999, 1))
    async with aclosing(people_services):
        assert (await people_services.forget(999, {})).left == []
        people_services.parts.state.folder.llm_recordings.mkdir(parents=True)
        (line,) = (await people_services.forget(999, {})).left
        assert line.startswith(f"{people_services.parts.state.folder.llm_recordings}: not looked into")
        assert [entry.author_id for entry in record.recent] == [1]  # what the dashboard shows
        people_services.on_progress(await people.forget_requests.make(999, []))
        assert searched.made_anew_over == []


@pytest.mark.parametrize("wish", ["forget", "opt out"])
async def test_private_questions_of_who_withdraws_their_words_end_in_every_worker(
    people_services: PeopleServices, wish: str
) -> None:
    """Pitfall 67."""

    async def answer() -> None:
        with people_services.parts.services.in_flight.work.handling({999}):
            await asyncio.sleep(60)

    answering = asyncio.create_task(answer())
    await asyncio.sleep(0)
    async with aclosing(people_services):
        if wish == "forget":
            await people_services.forget(999, {})
        else:
            people_services.on_opt_out(999)
        with pytest.raises(Withdrawn):
            await answering
