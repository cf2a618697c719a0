"""What a replay learns, with a model on loopback and without one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assembly.answering import ModelOptions
from clock import rfc3339
from commands.replay import ReplayOptions, replay
from model.messages import DISCORD_EPOCH_MS
from services.team.archive_files import StoredBlock
from services.team.library import TeamLibrary
from settings import Settings
from tests.loopback.llm_scenes import content, status
from tests.loopback.llm_server import LLMServer

pytestmark = pytest.mark.real_time

START = 1_771_200_000.0
GUILD, HELP, KIM = 9, 11, 50
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8


def said(
    second: float, author: int, text: str, *, to: Mapping[str, Any] | None = None, image: int = 0
) -> dict[str, Any]:
    """A dispatch with a message of `author`, the one on the team being Kim."""
    message_id = (round((START + second) * 1000) - DISCORD_EPOCH_MS) << 22
    payload: dict[str, Any] = {
        "id": str(message_id),
        "type": 0 if to is None else 19,
        "channel_id": str(HELP),
        "guild_id": str(GUILD),
        "author": {"id": str(author), "username": f"user{author}"},
        "content": text,
        "timestamp": rfc3339(START + second),
        "attachments": [],
    }
    if to is not None:
        payload["message_reference"] = {"message_id": to["d"]["id"], "channel_id": str(HELP)}
    if image:
        url = f"https://cdn.discordapp.com/{image}/a.png"
        payload["attachments"] = [
            {"id": str(image), "filename": "a.png", "size": len(PNG), "url": url, "content_type": "image/png"}
        ]
    return {"at": rfc3339(START + second), "t": "MESSAGE_CREATE", "d": payload}


def recorded(folder: Path, *dispatches: Mapping[str, Any]) -> Path:
    places = {"id": str(GUILD), "name": "g", "channels": [{"id": str(HELP), "type": 0, "name": "help"}], "threads": []}
    first = {"at": rfc3339(START), "t": "GUILD_CREATE", "d": places}
    path = folder / "day.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in (first, *dispatches)))
    (folder / "day.jsonl.attachments").mkdir(exist_ok=True)
    (folder / "day.jsonl.attachments" / "7").write_bytes(PNG)
    return path


def a_day(count: int = 1, image: int = 0) -> list[dict[str, Any]]:
    """So many questions, each with Kim's answer ten minutes before the next."""
    dispatches: list[dict[str, Any]] = []
    for number in range(count):
        begins = 600.0 * number
        asked = said(begins, 100 + number, f"How do I skip raw files of camera {number}?", image=image)
        answer = said(begins + 10, KIM, f"Set skip_raw for camera {number} in the importer.", to=asked)
        dispatches += [asked, answer]
    return dispatches


class Stage:
    def __init__(self, folder: Path, server: LLMServer) -> None:
        self.folder, self.server = folder, server
        self.data = folder / "data"
        self.options = ReplayOptions(folder / "day.jsonl", self.data, as_json=True)
        model = {"base_url": server.base_url, "api_key": "k", "model": "m", "timeout_seconds": 5, "max_retries": 0}
        self.sections: dict[str, Any] = {
            "discord": {"team_member_ids": [KIM], "reply_mode": "off"},
            "kb": {"llm": model},
            "ai_response": {"llm": model, "llm_enable_image": True},
        }

    async def plays(self, dispatches: Sequence[Mapping[str, Any]]) -> int:
        """Gives the exit code."""
        recorded(self.folder, *dispatches)
        settings = Settings.model_validate(self.sections).resolve_paths(self.folder)
        return await asyncio.to_thread(replay, settings, self.options)

    @property
    def decided(self) -> list[str]:
        path = self.data / "team-knowledge" / "decisions.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [json.loads(line)["action"] for line in lines]

    @property
    def raw(self) -> str:
        return "".join(path.read_text() for path in sorted((self.data / "team-knowledge" / "raw").glob("*.txt")))

    @property
    def pending(self) -> list[Path]:
        return sorted((self.data / "team-knowledge" / "pending").glob("*"))


@pytest.fixture
async def stage(tmp_path: Path) -> Any:
    async with LLMServer() as server:
        yield Stage(tmp_path, server)


async def test_all_that_was_captured_is_sorted_by_the_end(stage: Stage) -> None:
    assert await stage.plays(a_day(5)) == 0
    assert stage.decided == ["added"] * 5
    index = (stage.data / "team-knowledge" / "index-team.txt").read_text()
    assert index == "team:what-the-team-says.txt\ntext\n"


async def test_the_library_is_told_of_each_capture_as_it_is_stored(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    stored = TeamLibrary.add_block

    def seen(library: TeamLibrary, block: StoredBlock) -> None:
        told.append(block.text)
        stored(library, block)

    monkeypatch.setattr(TeamLibrary, "add_block", seen)
    assert await stage.plays(a_day(3)) == 0
    assert len(told) == 3
    assert "".join(told) == stage.raw


async def test_images_are_in_words_when_a_capture_is_stored(stage: Stage) -> None:
    assert await stage.plays(a_day(image=7)) == 0
    assert "User: How do I skip raw files of camera 0?\n  [image: An error message.]\nTeam: " in stage.raw


async def test_a_capture_whose_images_fail_waits_for_the_next_run_in_that_folder(stage: Stage) -> None:
    stage.server.otherwise = status(503)
    assert await stage.plays(a_day(image=7)) == 1
    assert stage.raw == ""
    assert len(stage.pending) == 1
    stage.server.otherwise = LLMServer().otherwise
    later = [said(3600, 100, "Good morning, everybody")]
    assert await stage.plays(later) == 0
    assert "[image: An error message.]" in stage.raw
    assert stage.pending == []
    assert stage.decided == ["added"]


async def test_without_images_the_placeholder_is_stored(stage: Stage) -> None:
    """Pitfall 3."""
    stage.sections["ai_response"]["llm_enable_image"] = False
    assert await stage.plays(a_day(image=7)) == 0
    assert "  [image: a.png]\n" in stage.raw


async def test_nobody_looks_at_images_where_there_is_no_model(stage: Stage) -> None:
    stage.sections["kb"]["llm"] = stage.sections["ai_response"]["llm"] = None
    assert await stage.plays(a_day(image=7)) == 0
    assert "  [image: a.png]\n" in stage.raw
    assert stage.server.requests == []


async def test_an_endpoint_that_is_down_leaves_all_to_the_next_start_and_the_run_is_no_success(stage: Stage) -> None:
    stage.server.otherwise = status(503)
    assert await stage.plays(a_day(3)) == 1
    assert stage.decided == []
    assert stage.raw.count("--- QA ---") == 3


async def test_nonsense_is_reported_by_the_exit_code(stage: Stage) -> None:
    stage.server.otherwise = content("The millstream runs backwards.")
    assert await stage.plays(a_day(2)) == 1
    assert stage.decided == ["failed", "failed"]


async def test_the_model_of_knowledge_work_is_asked_and_not_that_of_the_answers(stage: Stage) -> None:
    stage.sections["ai_response"]["llm"] = {**stage.sections["kb"]["llm"], "model": "other"}
    assert await stage.plays(a_day(2)) == 0
    assert {seen.body["model"] for seen in stage.server.seen} == {"m"}


async def test_recorded_exchanges_serve_knowledge_work_too_without_any_network(stage: Stage, tmp_path: Path) -> None:
    exchanges = tmp_path / "exchanges.jsonl"
    stage.options = replace(stage.options, models=ModelOptions(record=exchanges))
    assert await stage.plays(a_day(3, image=7)) == 0
    asked = len(stage.server.requests)
    written = stage.raw
    stage.data = tmp_path / "again"
    stage.options = replace(stage.options, data=stage.data, models=ModelOptions(replay=exchanges))
    assert await stage.plays(a_day(3, image=7)) == 0
    assert len(stage.server.requests) == asked
    assert stage.raw == written
    assert stage.decided == ["added"] * 3
