"""What the team teaches in a form, and what the next asker gets."""

from __future__ import annotations

import errno
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from html import unescape
from pathlib import Path

import aiohttp
import pytest

import assembly.teaching
from assembly.teaching import LessonStore
from model.outcomes import OutcomeKind
from services.conversations import phrases
from services.redaction import Redactor
from services.storage import DataFolder, files
from services.team import LessonForm, LessonRefused, TeachingResult, archive_files, read_audit
from tests.end_to_end.bots import RunningBot
from tests.end_to_end.conftest import Start, llm
from tests.end_to_end.test_commands import holding, said, until_offered
from tests.end_to_end.test_dashboard import TOKEN, free_port
from tests.end_to_end.test_team_knowledge import ANSWERED, ASKED, knowledge
from tests.loopback.discord_server import DiscordServer
from tests.loopback.interactions import Interaction
from tests.loopback.llm_scenes import status
from tests.loopback.llm_server import LLMServer
from tests.loopback.model import Channel, Message, Permission, User

pytestmark = pytest.mark.real_time

NEWER = "Put skip_raw = true into the importer section."
"""Shorter, and nothing that the older one does not say."""


@pytest.fixture
async def help_(discord_server: DiscordServer) -> Channel:
    return discord_server.add_channel("help")


@pytest.fixture
async def kim(discord_server: DiscordServer) -> User:
    return discord_server.add_member("kim")


@pytest.fixture
async def ada(discord_server: DiscordServer) -> User:
    return discord_server.add_member("ada")


async def begun(start: Start, server: DiscordServer, kim: User) -> RunningBot:
    bot = await start(discord={"team_member_ids": [kim.id], "team_active_seconds": 1})
    await until_offered(server)
    return bot


async def shown_form(server: DiscordServer, place: Channel, user: User) -> Interaction:
    one = await server.call(place, user, "teach")
    await server.until(lambda: one.form is not None)
    return one


async def taught(server: DiscordServer, place: Channel, user: User, question: str, answer: str) -> str:
    form = await shown_form(server, place, user)
    return await said(server, await server.submit(form, question, answer))


async def answer_to(bot: RunningBot, server: DiscordServer, place: Channel, user: User) -> str:
    posted = len(server.posts)
    await server.say(place, user, ASKED)
    *_, post = await bot.until_posts(posted + 1)
    assert bot.outcomes[-1].result is OutcomeKind.REPLIED
    return post.content


async def test_what_is_taught_answers_the_next_asker_until_it_is_taught_anew(
    start: Start, discord_server: DiscordServer, help_: Channel, kim: User, ada: User, data: Path
) -> None:
    bot = await begun(start, discord_server, kim)
    first = await taught(discord_server, help_, kim, ASKED, ANSWERED)
    assert "filed under `importer-skip-raw-files`" in first
    assert ANSWERED in await answer_to(bot, discord_server, help_, ada)
    second = await taught(discord_server, help_, kim, ASKED, NEWER)
    [old, new] = archive_files.pairs_in(knowledge(data) / "raw", 2)
    assert f"It replaces `{old.id}`." in second
    assert (new.author_ids, new.conversation_id[:7]) == ((kim.id, kim.id), "taught_")
    bob = discord_server.add_member("bob")
    assert NEWER in await answer_to(bot, discord_server, help_, bob)
    assert await bot.stop() == 0
    assert not discord_server.unknown


async def test_a_stranger_is_shown_no_form_and_cannot_send_one(
    start: Start, discord_server: DiscordServer, help_: Channel, kim: User, ada: User, data: Path
) -> None:
    bot = await begun(start, discord_server, kim)
    refused = await discord_server.call(help_, ada, "teach")
    assert await said(discord_server, refused) == phrases("en").team_only
    assert refused.form is None
    form = await shown_form(discord_server, help_, kim)
    form.user = ada
    assert await said(discord_server, await discord_server.submit(form, ASKED, ANSWERED)) == phrases("en").team_only
    assert await bot.stop() == 0
    assert not (knowledge(data) / "raw").exists()


async def test_a_form_that_was_shown_before_a_restart_is_taken(
    start: Start, discord_server: DiscordServer, help_: Channel, kim: User
) -> None:
    bot = await begun(start, discord_server, kim)
    form = await shown_form(discord_server, help_, kim)
    assert await bot.stop() == 0
    again = await begun(start, discord_server, kim)
    assert "filed under" in await said(discord_server, await discord_server.submit(form, ASKED, ANSWERED))
    assert await again.stop() == 0


async def test_what_is_wrong_with_a_lesson_is_said_and_its_text_comes_back(
    start: Start, discord_server: DiscordServer, help_: Channel, kim: User, data: Path
) -> None:
    bot = await begun(start, discord_server, kim)
    empty = await taught(discord_server, help_, kim, "   ", ANSWERED)
    assert empty.startswith("The question is empty: write one.")
    assert ANSWERED in empty
    vague = await taught(discord_server, help_, kim, ASKED, "let me check")
    assert "but not filed, so that nobody is answered from it" in vague
    hidden = await taught(
        discord_server, help_, kim, ASKED, f"@everyone {ANSWERED} Then set password=hunter2-hunter2-9 in it."
    )
    assert hidden.startswith("1 secret in it was made unreadable. Stored as")
    stored = "".join(path.read_text() for path in (knowledge(data) / "raw").iterdir())
    assert "hunter2" not in stored
    await bot.stop()


OPERATORS = {
    "ana": {"role": "corrects", "token": "the-token-of-ana-alone"},
    "bob": {"role": "looks_on", "token": "the-token-of-bob-alone"},
}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def test_a_gap_is_answered_at_the_dashboard_and_the_next_asker_gets_that(
    start: Start, discord_server: DiscordServer, help_: Channel, kim: User, ada: User, data: Path
) -> None:
    port = free_port()
    bot = await start(
        discord={"team_member_ids": [kim.id], "team_active_seconds": 1},
        metrics={"port": port},
        dashboard={"enabled": True, "token": TOKEN, "show_texts": True, "operators": OPERATORS},
    )
    asked = await discord_server.say(help_, ada, ASKED)
    await bot.until_ended(asked)
    assert discord_server.posts == []
    headers = bearer(OPERATORS["ana"]["token"])
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}", headers=headers) as session:
        async with session.get("/gaps") as response:
            [path] = re.findall(r'href="(/gaps/\w+/answer)"', await response.text())
        sent = {"question": ASKED, "answer": ANSWERED, "author": str(kim.id), "guild": str(discord_server.guild.id)}
        async with session.post(path, data=sent, headers=bearer(OPERATORS["bob"]["token"])) as response:
            assert response.status == 403
        async with session.post(path, data=sent) as response:
            text = await response.text()
            assert "filed under importer-skip-raw-files" in text
            assert "The gap is dismissed." in text
        async with session.get("/gaps") as response:
            assert path not in await response.text()
        async with session.post(f"{path.removesuffix('/answer')}/restore") as response:
            assert response.status == 200
        async with session.get("/audit") as response:
            assert response.status == 403
        async with session.get("/audit", headers=bearer(TOKEN)) as response:
            shown = re.findall(r"<code>(\w+)</code></td><td [^>]*>([\w ]+)</td>", await response.text())
    assert shown == [("ana", "restore gap"), ("ana", "dismiss gap"), ("ana", "teach")]
    audited = DataFolder(data).audit.read_text()
    assert "skip" not in audited  # nobody's words
    [pair] = archive_files.pairs_in(knowledge(data) / "raw", 2)
    assert pair.author_ids == (ada.id, kim.id)
    assert ANSWERED in await answer_to(bot, discord_server, help_, discord_server.add_member("bob"))
    assert await bot.stop() == 0


@asynccontextmanager
async def dashboard_of(start: Start, kim: User) -> AsyncGenerator[tuple[RunningBot, aiohttp.ClientSession]]:
    """A bot, and somebody at its dashboard."""
    port = free_port()
    bot = await start(
        discord={"team_member_ids": [kim.id], "team_active_seconds": 1},
        metrics={"port": port},
        dashboard={"enabled": True, "token": TOKEN, "show_texts": True},
    )
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}", headers=headers) as session:
        yield bot, session
    assert await bot.stop() == 0


def form_of(question: Message) -> str:
    return f"/gaps/{question.id:x}/answer"


async def filled_in(session: aiohttp.ClientSession, question: Message) -> str:
    """The question in the form for an answer to a gap."""
    async with session.get(form_of(question)) as response:
        return unescape((await response.text()).partition('rows="3" required>')[2].partition("</textarea>")[0])


async def sent(session: aiohttp.ClientSession, question: Message, text: str) -> tuple[int, str]:
    """Send the form for an answer to a gap."""
    async with session.post(form_of(question), data={"question": text, "answer": ANSWERED}) as response:
        return response.status, await response.text()


async def test_only_what_everybody_can_read_as_it_was_asked_is_in_a_form(
    start: Start, discord_server: DiscordServer, help_: Channel, kim: User, ada: User, data: Path
) -> None:
    board = discord_server.add_channel("board", hidden=True)
    discord_server.allow(board, discord_server.bot, Permission.VIEW_CHANNEL | Permission.READ_MESSAGE_HISTORY)
    asked = {
        board: f"{ASKED[:-1]} of Zebra Corp?",
        help_: "Where do I find the colour of the walrus in the large lantern?",
    }
    later = ["Does the barn door close by itself at night in winter?", "Who may paint the seventh boat of the harbour?"]
    async with dashboard_of(start, kim) as (bot, session):
        private, public = [await discord_server.say(place, ada, text) for place, text in asked.items()]
        deleted, edited = [await discord_server.say(help_, discord_server.add_member(text[:3]), text) for text in later]
        for each in (private, public, deleted, edited):
            await bot.until_ended(each)
        assert await filled_in(session, public) == asked[help_]
        assert await filled_in(session, deleted) == later[0]
        await discord_server.delete(deleted)
        await discord_server.edit(edited, "Never mind.")
        for question, text in ((private, asked[board]), (deleted, later[0]), (edited, later[1])):
            assert await filled_in(session, question) == ""
            status, told = await sent(session, question, text)
            assert (status, "write it in your own words" in told) == (422, True)
        history = bot.parts.services.history if bot.parts else None
        assert history is not None
        discord_server.allow(help_, discord_server.bot, Permission.VIEW_CHANNEL | Permission.READ_MESSAGE_HISTORY)
        discord_server.deny(help_, ada, Permission.VIEW_CHANNEL)
        await discord_server.until(lambda: not history.place(help_.id).public)
        assert await filled_in(session, public) == ""
        assert not list((knowledge(data) / "raw").glob("*"))


async def test_the_askers_words_go_with_the_asker_whatever_signs_are_in_them(
    start: Start, discord_server: DiscordServer, help_: Channel, kim: User, ada: User, data: Path
) -> None:
    async with dashboard_of(start, kim) as (bot, session):
        await until_offered(discord_server)
        asked = await discord_server.say(
            help_, ada, f"{ASKED} My zebra illness leaves no time \U0001f468\u200d\U0001f469"
        )
        await bot.until_ended(asked)
        status, told = await sent(session, asked, await filled_in(session, asked))
        assert (status, "filed under" in told) == (200, True)
        assert holding(data, "zebra")
        await said(discord_server, await discord_server.call(help_, ada, "privacy forget"))
        assert holding(data, "zebra") == []


async def test_what_cannot_be_stored_is_said_and_the_text_comes_back(
    start: Start, discord_server: DiscordServer, help_: Channel, kim: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    bot = await begun(start, discord_server, kim)

    def full(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(files, "append", full)
        text = await taught(discord_server, help_, kim, ASKED, ANSWERED)
    assert text.startswith("It could not be stored: the bot's disk is full or broken.")
    assert ASKED in text
    assert ANSWERED in text
    assert "filed under" in await taught(discord_server, help_, kim, ASKED, ANSWERED)
    assert await bot.stop() == 0


async def test_who_has_opted_out_teaches_nothing(
    start: Start, discord_server: DiscordServer, help_: Channel, kim: User, data: Path
) -> None:
    bot = await begun(start, discord_server, kim)
    await said(discord_server, await discord_server.call(help_, kim, "privacy opt-out"))
    assert "Its author has opted out" in await taught(discord_server, help_, kim, ASKED, ANSWERED)
    await said(discord_server, await discord_server.call(help_, kim, "privacy opt-in"))
    assert "filed under" in await taught(discord_server, help_, kim, ASKED, ANSWERED)
    await said(discord_server, await discord_server.call(help_, kim, "privacy forget"))
    assert await bot.stop() == 0
    assert holding(data, "skip_raw") == []


async def test_a_form_that_comes_twice_is_stored_once(
    start: Start, discord_server: DiscordServer, help_: Channel, kim: User, data: Path
) -> None:
    bot = await begun(start, discord_server, kim)
    assert bot.parts is not None
    teaching = LessonStore(bot.parts, Redactor())
    form = LessonForm(discord_server.guild.id, f"<#{help_.id}>: {ASKED}", ANSWERED, lesson_id=5 << 22, author_id=kim.id)
    assert (await teaching.teach(form, "ana")).is_filed
    assert await teaching.teach(form) == TeachingResult("It was stored already.")
    audited = [(each.by, each.action, each.about) for each in read_audit(DataFolder(data).audit)]
    assert audited == [(by, "teach", f"taught_{5 << 22}") for by in ("ana", str(kim.id))]
    [pair] = archive_files.pairs_in(knowledge(data) / "raw", 2)
    assert pair.turns[0].text == f"#help: {ASKED}"
    await bot.parts.state.opt_outs.add(1)
    with pytest.raises(LessonRefused, match="Whoever asked this has opted out"):
        await teaching.teach(replace(form, lesson_id=0, asker_id=1))
    with pytest.raises(LessonRefused, match="the mark that says so"):
        await teaching.teach(replace(form, lesson_id=0, answer=f"{ANSWERED} !nobot"))
    assert len(read_audit(DataFolder(data).audit)) == len(audited)  # nothing of what was refused
    assert await bot.stop() == 0


async def test_while_the_model_is_away_the_teacher_is_told_that_filing_waits(
    start: Start,
    discord_server: DiscordServer,
    llm_server: LLMServer,
    help_: Channel,
    kim: User,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    llm_server.otherwise = status(503)
    monkeypatch.setattr(assembly.teaching, "FILING_SECONDS", 0.3)
    await start(ai_response={"llm": llm(llm_server)}, discord={"team_member_ids": [kim.id]})
    await until_offered(discord_server)
    text = await taught(discord_server, help_, kim, ASKED, ANSWERED)
    assert text.endswith("and filed as soon as the model that chooses the topic answers.")


@pytest.mark.parametrize("odd", [404, 200])
async def test_a_form_that_discord_does_not_take_is_one_line(
    start: Start,
    discord_server: DiscordServer,
    help_: Channel,
    kim: User,
    caplog: pytest.LogCaptureFixture,
    odd: int,
) -> None:
    bot = await begun(start, discord_server, kim)
    discord_server.fail_next("POST", "/callback$", status=odd, body={}, times=9)
    await discord_server.call(help_, kim, "teach")
    await discord_server.until(lambda: "command /teach: its form was not shown" in caplog.text)
    assert await bot.stop() == 0
