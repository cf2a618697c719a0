"""Slash commands: offered in each server, answered to their caller alone."""

from __future__ import annotations

import asyncio
import gc
import json
import math
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from aiohttp import web

from assembly import forgetting
from assembly.answering import ModelOptions
from assembly.slash_commands import COMMANDS, Row
from clock import now
from commands.live import LiveOptions
from examples.extending.slash_command import WHERE
from model.outcomes import OutcomeKind, Reason
from services.conversations import OptOutFile, Posts, phrases
from services.conversations.posts import Post
from services.discord.slash import Call, CommandOption
from services.documents.store import Folders, Origin, sqlite_store
from services.llm.recording import read
from services.privacy import find_remaining_words
from tests.end_to_end.bots import RunningBot
from tests.end_to_end.conftest import Start, llm, settings_of
from tests.end_to_end.scenes import answering
from tests.loopback import llm_scenes as scenes
from tests.loopback.discord_server import INVOKER, DiscordServer
from tests.loopback.interactions import Interaction
from tests.loopback.llm_answers import plausible, wanted
from tests.loopback.llm_server import LLMServer
from tests.services.documents import cases

pytestmark = pytest.mark.real_time

QUESTION = "how can I restore a backup?"


def offered(server: DiscordServer) -> list[dict[str, Any]]:
    return server.state.commands.get(f"/applications/{server.bot.id}/guilds/{server.guild.id}/commands", [])


async def until_offered(server: DiscordServer) -> None:
    await server.until(lambda: offered(server))


async def said(server: DiscordServer, one: Interaction) -> str:
    """The whole answer, all of it seen by nobody else, pinging nobody."""
    await server.until_told(one)
    assert all(piece.ephemeral for piece in one.said)
    assert all(piece.allowed_mentions == {"parse": []} for piece in one.said)
    assert all(len(piece.content) <= 2000 for piece in one.said)
    return "\n".join(one.texts)


def opted_out(bot: RunningBot) -> list[str]:
    path = bot.settings.app.data_dir / "state" / "opt-outs.json"
    return json.loads(path.read_text()) if path.exists() else []


def holding(folder: Path, word: str) -> list[Path]:
    """The files that hold a word."""

    def has_it(path: Path) -> bool:
        try:
            return path.is_file() and word in path.read_text(errors="replace")
        except FileNotFoundError:  # replaced by the running bot in between
            return False

    return [path for path in folder.rglob("*") if has_it(path)]


async def until_quiet(server: DiscordServer, exchanges: Path) -> None:
    """Wait until what was captured has been sorted: the model is asked no more."""
    sizes = [0]

    def settled() -> bool:
        sizes.append(exchanges.stat().st_size)
        return len(sizes) > 100 and sizes[-1] == sizes[-100]

    await server.until(settled)


async def test_commands_are_offered_in_the_servers_that_the_bot_is_in(
    start: Start, discord_server: DiscordServer
) -> None:
    discord_server.add_channel("help")
    bot = await start()
    await until_offered(discord_server)
    names = {command["name"]: [each["name"] for each in command["options"]] for command in offered(discord_server)}
    assert names["privacy"] == ["opt-out", "opt-in", "forget"]
    assert names["ask"] == ["question"]
    assert await bot.stop() == 0
    assert not discord_server.unknown


async def test_a_new_session_registers_nothing_anew(start: Start, discord_server: DiscordServer) -> None:
    discord_server.add_channel("help")
    bot = await start()
    await until_offered(discord_server)
    await discord_server.invalidate_session()
    await discord_server.until(lambda: discord_server.gateway.identified == 2)
    await bot.until_idle()
    assert discord_server.count("PUT", "/commands$") == 1


@pytest.mark.parametrize("status", [403, 429, 400, 500])
async def test_a_registration_that_fails_is_one_line_and_the_bot_goes_on(
    start: Start, discord_server: DiscordServer, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    body = {"message": "no", "code": 50001 if status == 403 else 0, "retry_after": 3600, "global": False}
    headers = {"Via": "1.1 google"} if status == 429 else {}
    discord_server.fail_next("PUT", "/commands$", status=status, times=99, body=body, headers=headers)
    bot = await start()
    await discord_server.until(lambda: "no slash commands" in caplog.text)
    await discord_server.say(help_, ada, QUESTION)
    await bot.until_posts(1)
    assert bot.results == [(OutcomeKind.REPLIED, None)]
    lines = [record for record in caplog.records if "no slash commands" in record.message]
    assert len(lines) == 1
    assert lines[0].exc_info is None
    assert ("applications.commands" in lines[0].message) == (status == 403)


async def test_an_odd_answer_to_a_registration_is_one_line(
    start: Start, discord_server: DiscordServer, caplog: pytest.LogCaptureFixture
) -> None:
    discord_server.add_channel("help")
    discord_server.fail_next("PUT", "/commands$", status=200, body={"odd": 1})
    await start()
    await discord_server.until(lambda: "no slash commands: Discord's answer cannot be read" in caplog.text)
    await discord_server.invalidate_session()
    await until_offered(discord_server)


async def test_a_registration_that_failed_is_tried_again_with_the_next_session(
    start: Start, discord_server: DiscordServer, caplog: pytest.LogCaptureFixture
) -> None:
    discord_server.add_channel("help")
    discord_server.fail_next("PUT", "/commands$", status=403)
    await start()
    await discord_server.until(lambda: "no slash commands" in caplog.text)
    await discord_server.invalidate_session()
    await until_offered(discord_server)


async def test_a_question_by_command_is_answered_to_the_one_who_asked(
    start: Start, discord_server: DiscordServer
) -> None:
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    bot = await start()
    await until_offered(discord_server)
    one = await discord_server.call(help_, ada, "ask", question=QUESTION)
    assert "lf backup restore" in await said(discord_server, one)
    assert one.deferred
    assert not discord_server.posts
    assert not bot.ends, "it is no message: nothing is recorded, captured or counted among the outcomes"
    assert await bot.stop() == 0


async def test_another_command_takes_private_questions_by_the_same_budget(
    start: Start, discord_server: DiscordServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worked example of docs/extending.md."""
    monkeypatch.setattr("assembly.slash_commands.COMMANDS", {**COMMANDS, "where": WHERE})
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    await start(limits={"chains_per_user_per_hour": 2})
    await until_offered(discord_server)
    texts = [
        await said(discord_server, await discord_server.call(help_, ada, "where", question=each))
        for each in (QUESTION, "good morning all", QUESTION)
    ]
    assert texts == ["*Backup and restore*", phrases("en").not_answerable, phrases("en").used_up]


async def test_a_long_answer_by_command_comes_in_pieces(
    start: Start, discord_server: DiscordServer, llm_server: LLMServer
) -> None:
    """Pitfall 24."""
    llm_server.otherwise = answering(AnswerResult={"answer": "```\n" + "lf import --verbose\n" * 140 + "```"})
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    await start(ai_response={"llm": llm(llm_server)})
    await until_offered(discord_server)
    one = await discord_server.call(help_, ada, "ask", question=QUESTION)
    await discord_server.until(lambda: len(one.said) == 2)
    text = await said(discord_server, one)
    assert text.count("```") == 4
    assert text.count("lf import") == 140


async def test_an_answer_by_command_pings_nobody(
    start: Start, discord_server: DiscordServer, llm_server: LLMServer
) -> None:
    """Pitfall 19."""
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    llm_server.otherwise = answering(AnswerResult={"answer": f"@everyone {ada.mention}, wait."})
    await start(ai_response={"llm": llm(llm_server)})
    await until_offered(discord_server)
    one = await discord_server.call(help_, ada, "ask", question=QUESTION)
    assert "@everyone" in await said(discord_server, one)
    assert not any(piece.message.pings for piece in one.said)


async def test_questions_by_command_count_against_the_budget(start: Start, discord_server: DiscordServer) -> None:
    help_, ada, bob = (
        discord_server.add_channel("help"),
        discord_server.add_member("ada"),
        discord_server.add_member("b"),
    )
    bot = await start(limits={"chains_per_user_per_hour": 1, "answers_per_day": 2})
    await until_offered(discord_server)
    texts = [
        await said(discord_server, await discord_server.call(help_, who, "ask", question=QUESTION))
        for who in (ada, ada, bob, bob)
    ]
    assert ["lf backup restore" in text for text in texts] == [True, False, True, False]
    assert "try again later" in texts[1]
    assert bot.parts is not None
    assert bot.parts.state.spent[bot.parts.state.folder.usage].answers == 2
    assert await bot.stop() == 0
    assert json.loads((bot.settings.app.data_dir / "state" / "usage.json").read_text())["answers"] == 2


async def test_whoever_is_forgotten_gets_no_hour_anew(start: Start, discord_server: DiscordServer, data: Path) -> None:
    help_, eve = discord_server.add_channel("help"), discord_server.add_member("eve")
    bot = await start(limits={"chains_per_user_per_hour": 1})
    await until_offered(discord_server)
    texts = list[str]()
    for _ in range(2):
        texts.append(await said(discord_server, await discord_server.call(help_, eve, "ask", question=QUESTION)))
        await said(discord_server, await discord_server.call(help_, eve, "privacy forget"))
    assert ["lf backup restore" in text for text in texts] == [True, False]
    assert await bot.stop() == 0
    kept = (data / "state" / "usage.json").read_text()
    assert len(json.loads(kept)["begun"]) == 1
    assert str(eve.id) not in kept


async def test_chatter_by_command_gets_a_line_and_no_answer(start: Start, discord_server: DiscordServer) -> None:
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    await start()
    await until_offered(discord_server)
    one = await discord_server.call(help_, ada, "ask", question="good morning all")
    assert "cannot answer that" in await said(discord_server, one)


async def test_a_failure_is_one_neutral_line(
    start: Start, discord_server: DiscordServer, llm_server: LLMServer, caplog: pytest.LogCaptureFixture
) -> None:
    llm_server.otherwise = scenes.status(401, says="key sk-loopback is wrong")
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    await start(ai_response={"llm": llm(llm_server)})
    await until_offered(discord_server)
    one = await discord_server.call(help_, ada, "ask", question=QUESTION)
    assert await said(discord_server, one) == phrases("en").failed
    assert "Rejected" in caplog.text


async def test_opting_out_takes_effect_at_once_and_outlives_the_process(
    start: Start, discord_server: DiscordServer
) -> None:
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    bot = await start()
    await until_offered(discord_server)
    assert "From now on" in await said(discord_server, await discord_server.call(help_, ada, "privacy opt-out"))
    assert opted_out(bot) == [str(ada.id)]
    message = await discord_server.say(help_, ada, QUESTION)
    await bot.until_ended(message)
    assert bot.ignored(Reason.OPTED_OUT)
    refused = await discord_server.call(help_, ada, "ask", question=QUESTION)
    assert "You have opted out" in await said(discord_server, refused)
    assert "already" in await said(discord_server, await discord_server.call(help_, ada, "privacy opt-out"))
    assert await bot.stop() == 0
    again = await start()
    later = await discord_server.say(help_, ada, QUESTION)
    await again.until_ended(later)
    assert again.ignored(Reason.OPTED_OUT)
    assert "counted in again" in await said(discord_server, await discord_server.call(help_, ada, "privacy opt-in"))
    assert opted_out(again) == []
    await discord_server.say(help_, ada, QUESTION)
    await again.until_posts(1)
    assert "have not opted out" in await said(discord_server, await discord_server.call(help_, ada, "privacy opt-in"))


async def test_a_command_that_takes_a_text_is_given_none_of_who_opted_out_and_no_secret(
    start: Start, discord_server: DiscordServer, llm_server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def repeat(call: Call, words: str) -> str:
        return f"{call.language}: {words}"

    row = Row("Repeat it.", lambda _: repeat, {"words": CommandOption("What to repeat.", str)})
    monkeypatch.setattr("assembly.slash_commands.COMMANDS", {**COMMANDS, "repeat": row})
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    bot = await start(ai_response={"llm": llm(llm_server)})
    await until_offered(discord_server)
    assert bot.settings.ai_response.llm is not None
    secret = bot.settings.ai_response.llm.api_key.get_secret_value()
    question = f" Wie kann ich die Sicherung mit {secret} wiederherstellen? "
    text = await said(discord_server, await discord_server.call(help_, ada, "repeat", words=question))
    assert text.startswith("de: Wie kann ich die Sicherung mit ")
    assert secret not in text
    await said(discord_server, await discord_server.call(help_, ada, "privacy opt-out"))
    text = await said(discord_server, await discord_server.call(help_, ada, "repeat", words=question))
    assert text == phrases("en").not_read


async def test_private_questions_beyond_those_that_may_wait_are_refused(
    start: Start, discord_server: DiscordServer, llm_server: LLMServer, caplog: pytest.LogCaptureFixture
) -> None:
    go = asyncio.Event()

    async def waiting(request: web.Request, body: scenes.Body) -> web.StreamResponse:
        await go.wait()
        return await scenes.good()(request, body)

    llm_server.otherwise = waiting
    caplog.set_level("INFO")
    help_, askers = discord_server.add_channel("help"), [discord_server.add_member(f"m{n}") for n in range(4)]
    limits = {"max_concurrent_answers": 1, "max_waiting_answers": 2}
    await start(ai_response={"llm": llm(llm_server, timeout_seconds=30), **limits})
    await until_offered(discord_server)
    calls = [await discord_server.call(help_, who, "ask", question=QUESTION) for who in askers[:3]]
    await discord_server.until(lambda: len([t for t in asyncio.all_tasks() if t.get_name() == INVOKER]) == len(calls))
    refused = await discord_server.call(help_, askers[3], "ask", question=QUESTION)
    await discord_server.until(lambda: refused.texts)
    assert refused.texts == [phrases("en").used_up]
    go.set()
    told = [await said(discord_server, call) for call in calls]
    told.append(await said(discord_server, await discord_server.call(help_, askers[3], "ask", question=QUESTION)))
    assert phrases("en").used_up not in told
    ends = [line for line in caplog.messages if line.startswith("/ask: ")]
    assert ends == ["/ask: overloaded", *["/ask: replied"] * 4]


async def test_opting_out_calls_off_what_is_under_way(
    start: Start, discord_server: DiscordServer, llm_server: LLMServer
) -> None:
    llm_server.otherwise = scenes.slow(0.5)
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    bot = await start(ai_response={"llm": llm(llm_server)})
    await until_offered(discord_server)
    answering_now = await discord_server.say(help_, ada, QUESTION)
    await discord_server.until(lambda: llm_server.seen)
    waiting = await discord_server.say(help_, ada, "and on Windows?")
    await said(discord_server, await discord_server.call(help_, ada, "privacy opt-out"))
    await bot.until_ended(answering_now, waiting)
    assert not discord_server.posts
    asked = len(llm_server.seen)
    await bot.until_idle()
    assert len(llm_server.seen) == asked


async def test_forgetting_removes_what_the_running_bot_has_kept(
    start: Start, discord_server: DiscordServer, llm_server: LLMServer, data: Path
) -> None:
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    tess, bob = discord_server.add_member("tess"), discord_server.add_member("bob")
    exchanges = data / "llm-recordings" / "day.jsonl"
    exchanges.parent.mkdir()
    bot = await start(
        LiveOptions(models=ModelOptions(record=exchanges)),
        ai_response={"llm": llm(llm_server)},
        discord={"team_member_ids": [str(tess.id)], "team_active_seconds": 0.01, "feedback": True},
    )
    await until_offered(discord_server)
    mine = await discord_server.say(help_, ada, "how can I restore a backup of my zebra pictures?")
    await bot.until_posts(1)
    await discord_server.say(help_, tess, "With lf backup restore.", reply_to=mine)
    await discord_server.until(lambda: any(result is OutcomeKind.CAPTURED for result, _ in bot.results))
    await bot.until_idle()
    await until_quiet(discord_server, exchanges)
    assert {path.name for path in holding(data, "zebra")} >= {"posts.jsonl", "day.jsonl"}
    text = await said(discord_server, await discord_server.call(help_, ada, "privacy forget"))
    for what in ("1 message in captured", "1 answer that I remembered", "recorded exchanges"):
        assert what in text
    assert "Out of my reach" in text
    await discord_server.say(help_, bob, QUESTION)
    await bot.until_posts(2)
    assert await bot.stop() == 0
    assert not holding(data, "zebra")
    steps = {exchange.step for exchange in read(exchanges)}
    assert "generate" in steps, "what was asked afterwards stands in the file that took the old one's place"
    assert str(ada.id) not in (data / "state" / "usage.json").read_text()


async def test_what_is_answered_while_its_asker_is_forgotten_leaves_nothing_behind(
    start: Start, discord_server: DiscordServer, llm_server: LLMServer, data: Path
) -> None:
    """Pitfall 67."""
    reached, go = asyncio.Event(), asyncio.Event()

    async def slowly(request: web.Request, body: scenes.Body) -> web.StreamResponse:
        if wanted(body)[0] == "AnswerResult":
            reached.set()
            await go.wait()
        return await scenes.saying(json.dumps(plausible(body)))(request, body)

    llm_server.otherwise = slowly
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    bot = await start(ai_response={"llm": llm(llm_server)})
    await until_offered(discord_server)
    asked = await discord_server.say(help_, ada, "how can I restore a backup of my zebra pictures?")
    await discord_server.until(reached.is_set)
    await said(discord_server, await discord_server.call(help_, ada, "privacy forget"))
    go.set()
    await bot.until_ended(asked)
    assert await bot.stop() == 0
    assert bot.results == [(OutcomeKind.CANCELLED, Reason.DELETED)]
    assert not holding(data, "zebra")
    assert not holding(data / "state" / "outcomes", str(ada.id))


@pytest.mark.usefixtures("hurried_discord")
@pytest.mark.parametrize("ahead", [-5.0, 5.0])
async def test_what_was_asked_before_the_wish_goes_by_discord_s_clock(
    ahead: float, data: Path, llm_server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Discord's is `ahead`: what is being posted at the wish leaves nothing behind, what is asked later is kept."""
    reached, go, add = asyncio.Event(), asyncio.Event(), Posts.add

    async def held(self: Posts, post: Post) -> None:
        reached.set()
        await go.wait()
        await add(self, post)

    monkeypatch.setattr(Posts, "add", held)
    async with DiscordServer(clock=lambda: now() + ahead) as server:
        with server.routes():
            help_, ada = server.add_channel("help"), server.add_member("ada")
            bot = RunningBot(server, settings_of(data, ai_response={"llm": llm(llm_server)}), LiveOptions())
            bot.begin(monkeypatch)
            try:
                await bot.ready()
                await until_offered(server)
                asked = await server.say(help_, ada, "how can I restore a backup of my zebra pictures?")
                await server.until(reached.is_set)
                await said(server, await server.call(help_, ada, "privacy forget"))
                again = await server.say(help_, ada, "how can I restore a backup of my lion pictures?")
                go.set()
                await bot.until_ended(asked, again)
            finally:
                await bot.stop()
    assert not holding(data, "zebra")
    assert "lion" in (data / "state" / "posts.jsonl").read_text()
    assert holding(data / "state" / "outcomes", "lion")


@pytest.mark.parametrize(("place", "enabled"), [("documents/copies", True), ("evidence", False)])
async def test_what_another_configuration_has_kept_of_their_files_is_forgotten_as_well(
    place: str, enabled: bool, start: Start, discord_server: DiscordServer, data: Path
) -> None:
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    store = sqlite_store(Folders(data / place, data / place))
    posted = replace(cases.new("a.log", "no zebra here"), origin=Origin("a.log", uploader_id=ada.id))
    await store.add(cases.case(), [posted])
    await store.close()
    assert holding(data, "zebra")
    await start(documents={"enabled": enabled})
    await until_offered(discord_server)
    assert "1 file in threads" in await said(discord_server, await discord_server.call(help_, ada, "privacy forget"))
    assert not holding(data, "zebra")


async def test_who_is_not_known_has_nothing_to_forget(start: Start, discord_server: DiscordServer) -> None:
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    await start()
    await until_offered(discord_server)
    assert "kept nothing" in await said(discord_server, await discord_server.call(help_, ada, "privacy forget"))


async def test_who_asks_to_be_forgotten_again_and_again_is_one_removal_at_a_time(
    start: Start, discord_server: DiscordServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pitfall 64: each removal reads every file of the data folder."""
    begun, running, at_once = [0], [0], [0]
    all_called = threading.Event()

    def looked(*args: Any) -> list[str]:
        begun[0] += 1
        running[0] += 1
        at_once[0] = max(at_once[0], running[0])
        all_called.wait(30.0)
        lines = find_remaining_words(*args)
        running[0] -= 1
        return lines

    monkeypatch.setattr("assembly.forgetting.find_remaining_words", looked)
    help_, ada, bob = discord_server.add_channel("help"), *map(discord_server.add_member, ("ada", "bob"))
    await start()
    await until_offered(discord_server)
    calls = [await discord_server.call(help_, ada, "privacy forget")]
    await discord_server.until(lambda: begun[0])
    calls += [await discord_server.call(help_, who, "privacy forget") for who in [ada] * 6 + [bob]]
    await discord_server.until(lambda: len([t for t in asyncio.all_tasks() if t.get_name() == INVOKER]) == len(calls))
    all_called.set()
    texts = [await said(discord_server, each) for each in calls]
    assert (begun[0], at_once[0]) == (3, 1), "hers, what she may have written since, and his"
    assert all("kept nothing" in text for text in texts)
    again = await said(discord_server, await discord_server.call(help_, ada, "privacy forget"))
    assert (again, begun[0]) == (phrases("en").forgotten_lately, 3)


async def test_a_state_folder_that_cannot_be_written_is_told_and_the_choice_holds(
    start: Start, discord_server: DiscordServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    bot = await start()
    await until_offered(discord_server)
    with monkeypatch.context() as full:
        full.setattr("services.conversations.people.OptOutFile._save", full_disk)
        one = await discord_server.call(help_, ada, "privacy opt-out")
        assert "could not be written down" in await said(discord_server, one)
    message = await discord_server.say(help_, ada, QUESTION)
    await bot.until_ended(message)
    assert bot.ignored(Reason.OPTED_OUT)


def full_disk(*_: object) -> None:
    raise OSError(28, "No space left on device")


async def test_interactions_are_never_recorded(start: Start, discord_server: DiscordServer, tmp_path: Path) -> None:
    recording = tmp_path / "session.jsonl"
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    bot = await start(LiveOptions(record=recording))
    await until_offered(discord_server)
    one = await discord_server.call(help_, ada, "ask", question=QUESTION)
    await said(discord_server, one)
    assert await bot.stop() == 0
    assert one.token not in recording.read_text()
    assert "INTERACTION" not in recording.read_text()


async def test_a_dry_run_offers_no_commands(start: Start, discord_server: DiscordServer) -> None:
    discord_server.add_channel("help")
    bot = await start(LiveOptions(dry_run=True))
    await bot.until_idle()
    assert await bot.stop() == 0
    assert not offered(discord_server)


async def test_a_call_under_way_at_shutdown_leaves_nothing_behind(
    start: Start, discord_server: DiscordServer, llm_server: LLMServer
) -> None:
    llm_server.otherwise = scenes.slow(30)
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    bot = await start(ai_response={"llm": llm(llm_server)})
    await until_offered(discord_server)
    one = await discord_server.call(help_, ada, "ask", question=QUESTION)
    await discord_server.until(lambda: llm_server.seen)
    assert await bot.stop() == 0
    assert not one.answered


async def test_discord_refusing_an_answer_is_a_line_in_the_log(
    start: Start, discord_server: DiscordServer, caplog: pytest.LogCaptureFixture
) -> None:
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    await start()
    await until_offered(discord_server)
    discord_server.fail_next("POST", "/callback$", status=404, body={"message": "Unknown interaction", "code": 10062})
    await discord_server.call(help_, ada, "ask", question=QUESTION)
    await discord_server.until(lambda: "command /ask: not answered" in caplog.text)
    again = await discord_server.call(help_, ada, "ask", question=QUESTION)
    assert "lf backup restore" in await said(discord_server, again)


@pytest.mark.parametrize(("status", "body"), [(200, {}), (404, {"message": "Unknown interaction", "code": 10062})])
async def test_a_wish_for_privacy_counts_whatever_becomes_of_its_acknowledgement(
    start: Start, discord_server: DiscordServer, status: int, body: dict[str, Any]
) -> None:
    """Pitfall 78."""
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    bot = await start()
    await until_offered(discord_server)
    discord_server.fail_next("POST", "/callback$", status=status, body=body)
    await discord_server.call(help_, ada, "privacy opt-out")
    await discord_server.until(lambda: opted_out(bot))
    assert opted_out(bot) == [str(ada.id)]


async def test_a_wish_for_privacy_waits_for_no_acknowledgement(start: Start, discord_server: DiscordServer) -> None:
    """Pitfall 78: Discord takes the acknowledgement and never answers."""
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    bot = await start()
    await until_offered(discord_server)
    discord_server.fail_next("POST", "/callback$", delay=math.inf)
    await discord_server.call(help_, ada, "privacy opt-out")
    await discord_server.until(lambda: opted_out(bot))
    assert opted_out(bot) == [str(ada.id)]


async def test_a_wish_for_privacy_is_not_cut_off_by_a_stop(
    start: Start, discord_server: DiscordServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pitfall 78."""
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    bot = await start()
    await until_offered(discord_server)
    begun, opt_out = asyncio.Event(), OptOutFile.add

    async def slowly(opt_outs: OptOutFile, user_id: int) -> None:
        begun.set()
        await asyncio.sleep(0.5)
        await opt_out(opt_outs, user_id)

    monkeypatch.setattr(OptOutFile, "add", slowly)
    await discord_server.call(help_, ada, "privacy opt-out")
    await begun.wait()
    assert await bot.stop() == 0
    assert opted_out(bot) == [str(ada.id)]


async def test_an_unknown_form_whose_answer_cannot_be_read_is_no_loose_end(
    start: Start, discord_server: DiscordServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Pitfall 78: a task that nobody waits for must not raise."""
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    await start()
    await until_offered(discord_server)
    lost: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: lost.append(context))
    (commands,) = discord_server.state.commands.values()
    next(each for each in commands if each["name"] == "ask")["name"] = "asked"
    discord_server.fail_next("POST", "/callback$", status=200, body={})
    await discord_server.call(help_, ada, "asked", question=QUESTION)
    await discord_server.until(lambda: "in an unknown form" in caplog.text)
    await discord_server.until(lambda: not any(task.get_name() == INVOKER for task in asyncio.all_tasks()))
    gc.collect()
    assert lost == []


async def test_a_question_is_answered_although_its_acknowledgement_cannot_be_read(
    start: Start, discord_server: DiscordServer, llm_server: LLMServer
) -> None:
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    await start(ai_response={"llm": llm(llm_server)})
    await until_offered(discord_server)
    discord_server.fail_next("POST", "/callback$", status=200, body={})
    await discord_server.call(help_, ada, "ask", question=QUESTION)
    await discord_server.until(lambda: llm_server.seen)


async def test_what_cannot_be_read_is_not_said_to_be_forgotten(
    start: Start, discord_server: DiscordServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Pitfall 67."""
    monkeypatch.setattr(forgetting, "collect_texts", Mock(side_effect=OSError("the archive cannot be read")))
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    await start()
    await until_offered(discord_server)
    text = await said(discord_server, await discord_server.call(help_, ada, "privacy forget"))
    assert text == phrases("en").not_forgotten
    assert "/privacy forget: the archive cannot be read" in caplog.text
