"""The copies of what people wrote that processes keep on their disks."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from assembly.distributed.process import drop_copies_of_ended_processes, open_process
from services.storage import files, lock
from settings import Settings, load
from tests.loopback.nats_server import NatsServer
from tests.transport.connected import client

__all__ = ["client"]

COPIES = (
    "p03/state/posts.jsonl",
    "team/team-knowledge/raw/2026-W48.txt",
    "gathered/p03/state/posts.jsonl",
    "worker/team-knowledge/raw/2026-W48.txt",
    "worker/team-knowledge/search-team.sqlite",
    "worker/guilds/7/team-knowledge/topics/zebras.txt",
    "worker/evidence/case_1.sqlite",
    "worker/runbooks/user_1_kb.sqlite",
)
KEPT = ("worker/knowledge-base/search.sqlite", "worker/guilds/7/knowledge-base/index.txt", "knowledge/index.txt")


def fill(folder: Path) -> None:
    for name in (*COPIES, *KEPT):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("words")


def names_in(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} - {".lock"}


@pytest.fixture
def settings(tmp_path: Path, nats_server: NatsServer) -> Settings:
    config = tmp_path / "config.yaml"
    config.write_text(f"transport: '{nats_server.url}'\napp: {{data_dir: {tmp_path / 'data'}}}\n")
    return load(config)


@pytest.mark.real_time
@pytest.mark.usefixtures("client")
async def test_a_process_that_begins_or_ends_leaves_no_copy_of_what_people_wrote(settings: Settings) -> None:
    """Pitfall 49."""
    folder = settings.app.data_dir / "nats" / "1"
    fill(folder)
    async with open_process(settings, ("worker",)) as process:
        assert process.folder == folder
        assert names_in(folder) == set(KEPT)
        fill(folder)
    assert names_in(folder) == set(KEPT)


@pytest.mark.real_time
@pytest.mark.usefixtures("client")
async def test_copies_that_cannot_be_deleted_keep_no_process_from_ending(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refused(path: Path) -> None:
        raise PermissionError(1, "Operation not permitted", str(path))

    with caplog.at_level(logging.WARNING):
        async with open_process(settings, ("worker",)) as process:
            fill(process.folder)
            monkeypatch.setattr(files, "remove_folder", refused)
    assert "Copies of what people wrote stay until the next process begins there" in caplog.text


def test_copies_of_killed_processes_are_deleted_and_those_of_running_ones_stay(tmp_path: Path) -> None:
    for name in ("1", "2"):
        fill(tmp_path / name)
    with lock(tmp_path / "1", "app.py --role"):
        drop_copies_of_ended_processes(tmp_path)
        assert names_in(tmp_path / "1") == {*COPIES, *KEPT}
        assert names_in(tmp_path / "2") == set(KEPT)
