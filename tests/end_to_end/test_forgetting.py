"""A whole life of the bot, and what is left of one person after `--forget`: every byte is looked through."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging.handlers
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from assembly.answering import ModelOptions
from commands.forget import forget
from commands.live import LiveOptions
from commands.regen import rebuild
from model.outcomes import OutcomeKind
from services.privacy.text_match import LONG_CHARS
from services.storage import files
from services.storage.data_folder import DataFolder
from services.telemetry import logs
from settings import Settings
from tests.end_to_end.bots import RunningBot
from tests.end_to_end.conftest import llm, settings_of
from tests.end_to_end.test_commands import until_offered, until_quiet
from tests.loopback.discord_server import DiscordServer
from tests.loopback.llm_answers import plausible, prompt, wanted
from tests.loopback.llm_scenes import Body, saying
from tests.loopback.llm_server import LLMServer
from tests.loopback.model import Thread, User
from tests.root_logger import logging_restored
from tests.services.documents.cases import keep_as_before

__all__ = ["logging_restored"]

pytestmark = pytest.mark.real_time

# One in each text, no two with the same beginning: an index of words writes what two have in common only once.
ASKED, UNANSWERED, ASIDE, SHORT = "blorptang", "snarvelix", "quendry", "Yomf"
UPLOADED, RUNBOOK, WITHDRAWN, COMMANDED = "krazzick", "wubbelin", "drosmekk", "Ünfoltar"
WORDS = (ASKED, UNANSWERED, ASIDE, SHORT, UPLOADED, RUNBOOK, WITHDRAWN, COMMANDED)


def forms(word: str) -> list[bytes]:
    """As it is, casefolded, as JSON escapes it, and without its accents, as an index of words keeps it."""
    plain = word.casefold().replace("ü", "u")
    texts = {word, word.casefold(), word.upper(), json.dumps(word)[1:-1], json.dumps(word.casefold())[1:-1], plain}
    return [text.encode() for text in sorted(texts)]


def left_in(folder: Path) -> dict[Path, set[str]]:
    """The words that each file holds, or is called by."""
    found: dict[Path, set[str]] = {}
    for path in sorted(folder.rglob("*")):
        data = (path.read_bytes() if path.is_file() else b"") + path.name.encode()
        words = {word for word in WORDS if any(form in data for form in forms(word))}
        if words:
            found[path] = words
    return found


def parroting() -> Any:
    """A model that puts every such word which it is shown into whatever it may say."""

    async def play(request: web.Request, body: Body) -> web.StreamResponse:
        name, _ = wanted(body)
        shown = prompt(body)
        heard = " ".join(word for word in WORDS if word.casefold() in shown.casefold()) or "nothing"
        said = plausible(body)
        if name == "GatingResult":
            said |= {"reason": f"it is about {heard}", "rewrite_query": f"How does one restore {heard} from a backup?"}
            said["is_answerable"] = UNANSWERED not in shown or ASKED in shown
        elif name == "AnswerResult":
            said["answer"] = f"You wrote of {heard}; the backup holds it."
        elif name == "ClassificationResult":
            said["topic_name"] = "Backups of old things"
        elif name == "SummaryResult":
            said["summary"] = f"How to restore {heard}."
        return await saying(json.dumps(said))(request, body)

    return play


@dataclass
class Life:
    """What a bot has left behind, and whom it is to forget."""

    data: Path
    settings: Settings
    ada: User


@pytest.fixture
async def life(
    discord_server: DiscordServer,
    llm_server: LLMServer,
    data: Path,
    hurried_discord: None,
    monkeypatch: pytest.MonkeyPatch,
) -> Life:
    """Everything that a person can leave, by what the bot itself does."""
    llm_server.otherwise = parroting()
    server = discord_server
    help_, ada = server.add_channel("help"), server.add_member("ada")
    tess, bob = server.add_member("tess"), server.add_member("bob")
    settings = settings_of(
        data,
        ai_response={"llm": llm(llm_server)},
        discord={"team_member_ids": [str(tess.id)], "team_active_seconds": 0.01, "feedback": True},
        kb={"runtime_refresh_tick_seconds": 0.3},
        documents={"team_name": "The Crew"},
        logging={"level": "DEBUG", "file": {"path": str(data / "logs" / "bot.log")}},
    )
    log_file = data / "logs" / "bot.log"
    logs.configure(level="INFO", style="text", file=log_file, backup_count=3)
    exchanges, recording = data / "llm-recordings" / "day.jsonl", data / "recordings" / "day.jsonl"
    for path in (exchanges, recording):
        path.parent.mkdir()
    bot = RunningBot(server, settings, LiveOptions(record=recording, models=ModelOptions(record=exchanges)))
    bot.begin(monkeypatch, learning=True)
    try:
        await bot.ready()
        await until_offered(server)
        silent = await server.say(help_, ada, f"how can I wash the {UNANSWERED}?")
        await bot.until_ended(silent)
        mine = await server.say(help_, ada, f"how can I restore a backup of my {ASKED} pictures?")
        (answer, *_) = await bot.until_posts(1)
        await server.react(answer.message, ada, "👎")
        await server.react(answer.message, bob, "👍")
        thread = answer.place
        log = (f"2026-02-16T00:00:30 ERROR db: no {UPLOADED}".encode()) + b"\n2026-02-16T00:00:31 INFO web: up\n"
        await server.say(thread, ada, f"and what does the {ASIDE} say?", attachments=[("a.log", log, "text/plain")])
        await bot.until_posts(2)
        # Her words are in what is asked about him.
        await server.say(thread, bob, f"<@{server.bot.id}> is that so for me, too, and for everybody else?")
        await bot.until_posts(3)
        await server.say(thread, ada, SHORT)
        await server.say(thread, tess, "Write lf backup restore and wait for a minute.", reply_to=mine)
        await server.until(lambda: any(result is OutcomeKind.CAPTURED for result, _ in bot.results))
        gone = await server.say(help_, ada, f"never mind the {WITHDRAWN}, which I have found since")
        await bot.until_ended(gone)
        await server.delete(gone)
        runbook = ("r.md", f"# Restarting\n\n1. Stop the {RUNBOOK}.\n2. Turn it on.\n".encode(), "text/markdown")
        await server.until_told(await server.call(help_, ada, "kb add", file=runbook))
        await server.until_told(await server.call(help_, ada, "ask", question=f"how do I restore {COMMANDED}?"))
        await bot.until_idle()
        await until_quiet(server, exchanges)
        await server.until(lambda: list(data.rglob("search-team.sqlite")))
    finally:
        assert await bot.stop() == 0
    # A release before this one has left a collection of topics; the library is rebuilt.
    topics = "\n\n".join(path.read_text() for path in settings.kb.team_topics_dir.glob("*.txt"))
    await keep_as_before(data, "team_x_0123_kb", topics)
    await rebuild(settings, ModelOptions(data / "llm-recordings" / "rebuild.jsonl"), restart=True)
    root = logging.getLogger()
    for handler in root.handlers:
        if isinstance(handler, logging.handlers.TimedRotatingFileHandler):
            handler.doRollover()
    return Life(data, settings, ada)


async def forgotten(life: Life, capsys: pytest.CaptureFixture[str]) -> str:
    """Forget; gives what the operator reads."""
    capsys.readouterr()
    assert await asyncio.to_thread(forget, life.settings, life.ada.id) == 0
    return capsys.readouterr().out


async def test_no_byte_of_a_person_is_left_but_where_the_report_says_so(
    life: Life, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pitfalls 49 and 67."""
    before = left_in(life.data)
    held = {path.relative_to(life.data).as_posix().partition("/")[0] for path in before}
    assert held >= {"evidence", "runbooks", "documents", "team-knowledge", "llm-recordings", "recordings", "state"}
    assert set().union(*before.values()) == set(WORDS)
    report = await forgotten(life, capsys)
    logs_left = sorted((life.data / "logs").iterdir())
    assert len(logs_left) == 2
    assert set(left_in(life.data)) <= set(logs_left)
    for path in logs_left:
        assert f"  {path}: a log; its lines have their id, and may repeat what they wrote" in report
    assert "Nothing of theirs was found." in await forgotten(life, capsys)


@pytest.mark.parametrize("closed", [False, True])
async def test_what_others_asked_about_a_persons_file_goes_wherever_it_is_recorded(
    discord_server: DiscordServer,
    llm_server: LLMServer,
    data: Path,
    hurried_discord: None,
    monkeypatch: pytest.MonkeyPatch,
    closed: bool,
) -> None:
    """Pitfall 67: `closed`: the files of the thread are gone before."""
    server = discord_server
    help_, ada, bob = server.add_channel("help"), server.add_member("ada"), server.add_member("bob")
    settings = settings_of(data, ai_response={"llm": llm(llm_server)})
    recorded = data / "recorded" / "day.jsonl"
    recorded.parent.mkdir()
    bot = RunningBot(server, settings, LiveOptions(models=ModelOptions(record=recorded)))
    bot.begin(monkeypatch, learning=False)
    try:
        await bot.ready()
        await until_offered(server)
        log = f"2026-02-16T00:00:30 ERROR db: no {UPLOADED}\n2026-02-16T00:00:31 INFO web: up\n".encode()
        await server.say(help_, ada, "what is the first ERROR in a.log?", attachments=[("a.log", log, "text/plain")])
        (answer, *_) = await bot.until_posts(1)
        question = "which is the first ERROR of all in a.log?"
        await server.until_told(await server.call(answer.place, bob, "ask", question=question))
        await server.until_told(await server.call(help_, bob, "ask", question="how can I restore a backup?"))
        await bot.until_idle()
        if closed:
            assert isinstance(answer.place, Thread)
            await server.change_thread(answer.place, locked=True, archived=True)
            await server.until(lambda: not list((data / "evidence").glob("*.sqlite")))
    finally:
        assert await bot.stop() == 0
    assert recorded in left_in(data)
    assert await asyncio.to_thread(forget, settings, ada.id) == 0
    assert left_in(data) == {}
    people = {tuple(json.loads(line)["people"]) for line in recorded.read_text().splitlines()}
    assert people == {(str(bob.id),)}


async def test_whoever_quotes_the_programs_own_words_takes_no_record_of_others_with_them(
    discord_server: DiscordServer,
    llm_server: LLMServer,
    data: Path,
    hurried_discord: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Pitfall 67: prompts and documentation are there for anybody to read."""
    server = discord_server
    help_, bob, eve = server.add_channel("help"), server.add_member("bob"), server.add_member("eve")
    settings = settings_of(data, ai_response={"llm": llm(llm_server)})
    recorded = data / "llm-recordings" / "day.jsonl"
    recorded.parent.mkdir()
    documented = max(next(settings.kb.sources_dir.rglob("*.md")).read_text().splitlines(), key=len)
    assert len(documented) > LONG_CHARS
    bot = RunningBot(server, settings, LiveOptions(models=ModelOptions(record=recorded)))
    bot.begin(monkeypatch, learning=False)
    try:
        await bot.ready()
        await until_offered(server)
        for number in range(2):
            question = f"how can I restore backup number {number}? I read: {documented}\n{documented}"
            asked = await server.say(help_, bob, f"<@{server.bot.id}> {question}")
            await bot.until_ended(asked)
        await bot.until_idle()
        bobs = recorded.read_bytes()
        prompts = {json.loads(line)["request"]["system"] for line in bobs.splitlines()}
        pasted = [max(prompt.split("\n"), key=len) for prompt in sorted(prompts)]
        eves = f"<@{server.bot.id}> how can I restore a backup?\n" + "\n".join([documented, *pasted])
        await bot.until_ended(await server.say(help_, eve, eves[:1900]))
        await bot.until_idle()
        assert len(recorded.read_bytes()) > len(bobs)
        await server.until_told(await server.call(help_, eve, "privacy forget"))
    finally:
        assert await bot.stop() == 0
    assert recorded.read_bytes() == bobs
    (day,) = (data / "state" / "outcomes").glob("*.jsonl")
    ends = [json.loads(line) for line in day.read_text().splitlines()]
    assert [end["author_id"] for end in ends] == [str(bob.id)] * 2
    assert all(documented in end["question"] for end in ends)


def plant(life: Life) -> list[Path]:
    """What crashes, operators and earlier programs leave lying about: what can only be named."""
    folder, text = DataFolder(life.data), f"how can I restore a backup of my {ASKED} pictures?"
    exchange = {"step": "gate", "hash": "x", "request": {"user": [{"text": f"is {UNANSWERED} odd?"}]}, "error": {}}
    planted = {
        life.data / "backups" / "monday.tar.gz": gzip.compress(text.encode()) + text.encode(),
        life.data / "notes.txt": text.encode(),
        folder.team_raw / "2020-W01.txt.torn": text.encode(),
        folder.team_topics / "gpu.txt.rejected": text.encode(),
        folder.pending / "1-2.capture.damaged": text.encode(),
        folder.llm_recordings / "old.jsonl": json.dumps(exchange).encode() + b"\n",
        folder.root / "elsewhere.jsonl": json.dumps(exchange).encode() + b"\n{damaged " + text.encode() + b"\n",
        folder.evidence / "half.sqlite.bak": text.encode(),
        folder.root / "logs" / "bot.log.2020-01-01": text.encode(),
        folder.root / "people.jsonl.damaged": text.encode(),
    }
    for path, data in planted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return list(planted)


async def test_what_can_only_be_looked_at_by_a_person_is_named(life: Life, capsys: pytest.CaptureFixture[str]) -> None:
    """Pitfall 67."""
    planted = plant(life)
    report = await forgotten(life, capsys)
    left = left_in(life.data)
    assert set(left) >= set(planted), "the test finds what is planted"
    for path in left:
        assert f"  {path}: " in report, path


async def test_what_a_crash_has_left_half_done_goes(life: Life, capsys: pytest.CaptureFixture[str]) -> None:
    """Pitfall 67."""
    folder, text = DataFolder(life.data), f"how can I restore a backup of my {ASKED} pictures?".encode()
    places = [
        folder.root,
        folder.team_topics,
        folder.team_raw,
        folder.team_knowledge,
        folder.posts.parent,
        folder.web_cache,
    ]
    for place in places:
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{files.LEFTOVER_PREFIX}1-1").write_bytes(text)
    (folder.regeneration / "topics").mkdir(parents=True)
    (folder.regeneration / "topics" / "lamps.txt").write_bytes(text)
    (life.data / "recordings" / "day.jsonl.attachments" / "99.part").write_bytes(text)
    head = {"since": "2026-02-01T00:00:00Z", "said": [{"author_id": str(life.ada.id), "text": text.decode()}]}
    files.replace(folder.pending / "1-2.capture", json.dumps(head).encode() + b"\n")
    await forgotten(life, capsys)
    assert {path.parent.name for path in left_in(life.data)} <= {"logs"}


async def test_a_recording_plays_on_without_the_person(life: Life, capsys: pytest.CaptureFixture[str]) -> None:
    recording = life.data / "recordings" / "day.jsonl"
    before = recording.read_text().splitlines()
    await forgotten(life, capsys)
    after = [json.loads(line) for line in recording.read_text().splitlines()]
    assert 3 < len(after) < len(before)
    authors = {line["d"]["author"]["id"] for line in after if line["t"] == "MESSAGE_CREATE"}
    assert str(life.ada.id) not in authors
    assert len(authors) >= 2


async def test_the_running_bot_leaves_no_byte_either_but_in_files_that_its_log_names(
    life: Life,
    discord_server: DiscordServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    bot = RunningBot(discord_server, life.settings, LiveOptions())
    bot.begin(monkeypatch, learning=True)
    try:
        await bot.ready()
        await until_offered(discord_server)
        assert left_in(life.data)
        help_ = discord_server.add_channel("help-again")
        caplog.clear()
        await discord_server.until_told(await discord_server.call(help_, life.ada, "privacy forget"))
        named = [line for line in caplog.messages if line.startswith("/privacy forget: ")]
        for path in left_in(life.data):
            assert any(f"{path}: " in line for line in named), path
            assert path.parent.name in {"logs", "recordings", "day.jsonl.attachments"}
    finally:
        assert await bot.stop() == 0


async def test_an_answer_in_its_window_is_not_captured_with_the_words_of_whom_it_was_for(
    discord_server: DiscordServer, data: Path, hurried_discord: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = discord_server
    help_, ada, tess = server.add_channel("help"), server.add_member("ada"), server.add_member("tess")
    rules = {"team_member_ids": [str(tess.id)], "team_active_seconds": 0.01, "message_batch_wait_seconds": 2.0}
    bot = RunningBot(server, settings_of(data, discord=rules), LiveOptions())
    bot.begin(monkeypatch)
    try:
        await bot.ready()
        await until_offered(server)
        asked = await server.say(help_, ada, f"how can I restore a backup of my {ASKED} pictures?")
        answer = await server.say(help_, tess, "Write lf backup restore and wait for a minute.", reply_to=asked)
        await server.until_told(await server.call(help_, ada, "privacy forget"))
        await bot.until_ended(answer)
        await bot.until_idle()
    finally:
        assert await bot.stop() == 0
    assert not left_in(data)
