"""What a worker does for people beside its partitions."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from nats.aio.client import Client

from assembly.distributed.people import keep_feedback_key
from assembly.distributed.process import open_process
from services.privacy import pseudonym_key
from services.storage.data_folder import DataFolder
from settings import Settings, load
from tests.loopback.nats_server import NatsServer
from tests.transport.connected import client
from transport.locks import is_first
from transport.people import SharedPeople, open_people

__all__ = ["client"]

pytestmark = pytest.mark.real_time


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
    await keep_feedback_key(people, one)
    before = pseudonym_key(old.feedback_key)  # of an earlier installation
    for folder in (other, old):
        await keep_feedback_key(people, folder)
    assert pseudonym_key(one.feedback_key) == pseudonym_key(other.feedback_key) == pseudonym_key(old.feedback_key)
    assert pseudonym_key(old.feedback_key) != before


async def test_the_key_of_an_installation_that_was_moved_stays(people: SharedPeople, tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    before = pseudonym_key(folder.feedback_key)
    await keep_feedback_key(people, folder)
    assert pseudonym_key(folder.feedback_key) == before


async def test_commands_of_a_server_are_one_worker_s_to_register(client: Client) -> None:
    assert [await is_first(client, "commands-5", name, 60) for name in ("a", "b")] == [True, False]
    assert await is_first(client, "commands-6", "b", 60)


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
