"""What all share is searchable in a replay as it is beside the bot: documentation, and what the team has taught."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from commands.ask import ask
from commands.replay import ReplayOptions, replay
from services.knowledge.index_file import IndexEntry, render
from services.search.embedding import Embedder, Vectors
from services.team.decisions import DecisionLog
from settings import Settings
from tests.commands.test_replay_learning import KIM, recorded, said
from tests.hashing import HashingEmbedder
from tests.loopback.llm_answers import offered, prompt
from tests.loopback.llm_server import LLMServer
from tests.services.team.pairs import added, captured, opened, places_in, store

pytestmark = pytest.mark.real_time

GUIDE = "# Importing\n\nThe importer reads cameras, cards and folders, and sleeps at night.\n"
LOG = b"2026-02-16T00:00:30 ERROR db: connection to 10.0.0.7 refused (E-1042)\n"
TEAM, GLOBAL, CASE = "answer_from_team_kb", "answer_from_global_kb", "answer_from_case_evidence"
EXACT = "query_file"


class InAThread(HashingEmbedder):
    """Works outside of the loop, as the packaged model does."""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        return await asyncio.to_thread(lambda: asyncio.run(HashingEmbedder().embed(texts)))


@pytest.fixture(autouse=True)
def embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    def in_a_thread(_: object, **_options: int) -> Embedder:
        return InAThread()

    monkeypatch.setattr("assembly.answering.embedder_of", in_a_thread)


def a_day(*, files: bool = True) -> list[dict[str, Any]]:
    """Kim teaches something; an hour later somebody asks, with a log."""
    asked = said(0, 100, "How do I skip raw files of camera 7?")
    answer = said(10, KIM, "Set skip_raw for camera 7 in the importer.", to=asked)
    later = said(3600, 101, "Why is camera 7 not imported, is it the importer?")
    if files:
        url = "https://cdn.discordapp.com/8/app.log"
        later["d"]["attachments"] = [{"id": "8", "filename": "app.log", "size": len(LOG), "url": url}]
    return [asked, answer, later]


def configured(folder: Path, server: LLMServer) -> Settings:
    """A bot whose own data folder holds documentation."""
    model = {"base_url": server.base_url, "api_key": "k", "model": "m", "timeout_seconds": 5, "max_retries": 0}
    settings = Settings.model_validate(
        {
            "app": {"data_dir": str(folder / "live")},
            "discord": {"team_member_ids": [KIM], "team_active_seconds": 1},
            "ai_response": {"llm": model},
        }
    ).resolve_paths(folder)
    settings.kb.sources_dir.mkdir(parents=True)
    (settings.kb.sources_dir / "importing.md").write_text(GUIDE)
    settings.kb.index_path.write_text(render([IndexEntry("kb:importing.md", "What the importer reads.")]))
    return settings


async def played(folder: Path, server: LLMServer, capsys: pytest.CaptureFixture[str], **kwargs: bool) -> str:
    """What is printed; the replay works in `folder`/replayed."""
    folder.mkdir()  # noqa: ASYNC240 (a test)
    settings = configured(folder, server)
    recording = recorded(folder, *a_day(**kwargs))
    (folder / "day.jsonl.attachments" / "8").write_bytes(LOG)
    before = {path: path.stat().st_mtime_ns for path in (folder / "live").rglob("*")}
    options = ReplayOptions(recording, folder / "replayed", as_json=True)
    assert await asyncio.to_thread(replay, settings, options) == 0
    assert {path: path.stat().st_mtime_ns for path in (folder / "live").rglob("*")} == before
    return capsys.readouterr().out


def tools_of(server: LLMServer) -> list[list[str]]:
    return [list(offered(seen.body)) for seen in server.seen if offered(seen.body)]


async def test_a_replay_offers_the_tools_that_the_bot_would(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with LLMServer() as server:
        await played(tmp_path / "day", server, capsys)
        assert tools_of(server)
        assert all(sorted(tools) == sorted([CASE, TEAM, GLOBAL, EXACT]) for tools in tools_of(server))


async def test_two_replays_ask_a_model_the_same_and_print_the_same_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printed: list[str] = []
    asked: list[list[str]] = []
    for run in ("one", "two"):
        async with LLMServer() as server:
            printed.append(await played(tmp_path / run, server, capsys))
            asked.append([prompt(seen.body) for seen in server.seen])
    assert printed[0] == printed[1]
    assert asked[0] == asked[1]
    assert json.loads(printed[0].splitlines()[-1])["summary"]["replied"] >= 1


SECRET = "ZEBRA-77"
REBATE = "Which rebate do partners get when they buy many lanterns?"


def teach(data: Path) -> None:
    """A team library in `data` whose only topic holds a secret."""
    known = captured(1, REBATE, f"Partners get a rebate of 37 percent when they buy many lanterns: {SECRET}.")
    store(data, known)
    DecisionLog(places_in(data).decisions).append(added(known, "pricing"))
    opened(data)


@pytest.mark.parametrize("hidden", [True, False])
def test_internal_topics_answer_neither_in_a_replay_nor_in_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, hidden: bool
) -> None:
    (tmp_path / "replayed").mkdir()
    for data in (tmp_path / "live", tmp_path / "replayed"):
        teach(data)
    settings = Settings.model_validate(
        {"app": {"data_dir": "live"}, "kb": {"internal_topics": ["pricing"] if hidden else []}}
    ).resolve_paths(tmp_path)
    recording = recorded(tmp_path, said(0, 101, REBATE))
    assert replay(settings, ReplayOptions(recording, tmp_path / "replayed", as_json=True)) == 0
    assert ask(settings, REBATE) == 0
    out, err = capsys.readouterr()
    assert out.count(SECRET) == (0 if hidden else 2)
    assert (SECRET not in err and "team:pricing" not in err + out) is hidden
