"""A gap, from its questions to the next asker, over restarts, a rebuild and a forgotten author."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from html import unescape
from pathlib import Path

import aiohttp
import pytest

from services.team.archive_files import pairs_in
from tests.end_to_end.conftest import Launch
from tests.end_to_end.processes import ROOT, STARTING, write_config
from tests.end_to_end.test_commands import holding, offered
from tests.end_to_end.test_dashboard import TOKEN, free_port
from tests.loopback.discord_server import DiscordServer
from tests.loopback.model import Channel, User

pytestmark = [pytest.mark.real_time, pytest.mark.slow]

RAW = "Can the importer leave out the raw files of my camera?"
PORT = "Which port does the sync daemon listen on behind a firewall?"
TINT = "Why do my printed posters come out with a purple tint?"
ASKED = (
    (RAW, "how do I make the importer skip the raw files of my camera?"),
    (PORT, "what port has to be open in the firewall for the sync daemon?"),
    (TINT, "my posters are printed with a purple tint, why is that?"),
)
RAW_AGAIN = "is there a way to have the importer skip raw camera files?"
PORT_AGAIN = "behind our firewall, which port has to be open for the sync daemon?"
RAW_ANSWER = "Put skip_raw = true into the importer section: raw files of the camera are left out then."
RAW_EDITED = "Put skip_raw = always into the importer section: raw files of the camera are left out then."
PORT_ANSWER = "Open port 7312 in the firewall: the sync daemon listens on sync_port, and nothing else has to be open."
# With a word beside each number: among the digits of the ids, a number alone stands by chance.
KIMS_WORDS = ("port 7312", "port 9544", "sync_port")
PORT_NEWER = "Open port 9544 in the firewall: since version 5 the sync daemon no longer listens on the old one."


class Operator:
    """Runs the bot, its commands and its dashboard. The bot answers without a model."""

    def __init__(self, launch: Launch, server: DiscordServer, data: Path, team: tuple[User, ...]) -> None:
        self.server, self.data, self._launch, self._port = server, data, launch, free_port()
        self._place = server.add_channel("general")
        self._config = write_config(
            data,
            discord={
                "team_member_ids": [each.id for each in team],
                "message_batch_wait_seconds": 0.15,
                "team_active_seconds": 1,
            },
            metrics={"port": self._port},
            dashboard={"enabled": True, "token": TOKEN, "show_texts": True},
        )

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[aiohttp.ClientSession]:
        """The bot, and somebody who has logged in to its dashboard."""
        self.server.state.commands.clear()
        process = await self._launch(self._config)
        await self.server.until(lambda: offered(self.server), STARTING)
        jar = aiohttp.CookieJar(unsafe=True)
        async with aiohttp.ClientSession(f"http://127.0.0.1:{self._port}", cookie_jar=jar) as session:
            async with session.post("/login", data={"token": TOKEN, "to": "/audit"}) as response:
                assert (response.status, response.url.path) == (200, "/audit")
            yield session
        process.terminate()
        code, said = await process.end(STARTING)
        assert code == 0, said
        assert "Traceback" not in said

    async def command(self, *words: str) -> str:
        """What `app.py` prints."""
        arguments = ("app.py", "--config", str(self._config), *words)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, *arguments), cwd=ROOT, env=os.environ, stdout=asyncio.subprocess.PIPE
        )
        said, _ = await process.communicate()
        assert process.returncode == 0
        return said.decode()

    async def ask(self, *asked: tuple[Channel, str]) -> None:
        """Somebody new asks each, and then all have their ends, which are written now and then."""
        ends = self._ends() + len(asked)
        for place, question in asked:
            await self.server.say(place, self._newcomer(), question)
        await self.server.until(lambda: self._ends() >= ends, STARTING)

    async def answer(self, question: str) -> str:
        """What somebody new is answered, in a channel where nobody has asked before."""
        posted = len(self.server.posts)
        await self.server.say(self._place, self._newcomer(), question)
        await self.server.until(lambda: len(self.server.posts) > posted, STARTING)
        return self.server.posts[-1].content

    async def nothing(self, question: str) -> bool:
        """Whether somebody new is not answered."""
        posted = len(self.server.posts)
        await self.ask((self._place, question))
        return len(self.server.posts) == posted

    def _newcomer(self) -> User:
        return self.server.add_member(f"asker-{len(self.server.guild.members)}")

    def _ends(self) -> int:
        return sum(path.read_text().count("\n") for path in self.data.glob("state/outcomes/*.jsonl"))

    async def teach(self, place: Channel, author: User, question: str, answer: str) -> str:
        """What a team member is told after the form of `/teach`."""
        shown = await self.server.call(place, author, "teach")
        await self.server.until(lambda: shown.form is not None, STARTING)
        sent = await self.server.submit(shown, question, answer)
        await self.server.until(lambda: sent.said, STARTING)
        return "\n".join(sent.texts)


async def page(session: aiohttp.ClientSession, path: str) -> str:
    async with session.get(path) as response:
        assert response.status == 200
        return unescape(await response.text())


async def send(session: aiohttp.ClientSession, path: str, **fields: str) -> str:
    key = re.search(r'name="key" value="([^"]*)"', await page(session, "/gaps"))
    assert key is not None
    async with session.post(path, data={"key": key[1], **fields}) as response:
        assert response.status == 200
        return unescape(await response.text())


def gaps_in(text: str) -> dict[str, str]:
    """The address of each gap by its title, those that were dismissed left out."""
    found = re.findall(r'id="gap-(\w+)".*?<h2[^>]*><span[^>]*>[^<]*</span> (.*?)</h2>', text, re.DOTALL)
    return {title: f"/gaps/{gap_id}" for gap_id, title in found}


def assert_dismissed(text: str) -> None:
    dismissed = text.partition('id="dismissed"')[2]
    assert (RAW in dismissed, TINT in dismissed) == (True, True)


async def answer_the_gaps(operator: Operator, places: tuple[Channel, Channel], kim: User, lea: User) -> None:
    """One is answered at the dashboard, one in Discord, and one is dismissed."""
    async with operator.running() as session:
        await operator.ask(*(each for questions in ASKED for each in zip(places, questions, strict=True)))
        assert operator.server.posts == []
        gaps = gaps_in(await page(session, "/gaps"))
        assert set(gaps) == {RAW, PORT, TINT}
        assert (await page(session, "/")).count("Write what is missing: ") == 3
        assert f"{RAW}</textarea>" in await page(session, f"{gaps[RAW]}/answer")
        told = await send(session, f"{gaps[RAW]}/answer", question=RAW, answer=RAW_ANSWER, author=str(lea.id))
        assert re.search(r"filed under \S+: who asks this next gets the answer\. The gap is dismissed\.", told)
        said = await operator.teach(places[0], kim, PORT, PORT_ANSWER)
        assert re.search(r"filed under `\S+`: who asks this next gets the answer\.", said)
        assert_dismissed(await send(session, f"{gaps[TINT]}/dismiss"))
        assert RAW_ANSWER in await operator.answer(RAW_AGAIN)
        assert PORT_ANSWER in await operator.answer(PORT_AGAIN)


async def answer_one_anew(operator: Operator, place: Channel, kim: User, raw: Path) -> None:
    async with operator.running() as session:
        answer = await operator.answer(RAW_AGAIN)
        assert (RAW_EDITED in answer, RAW_ANSWER in answer) == (True, False)
        assert PORT_ANSWER in await operator.answer(PORT_AGAIN)
        text = await page(session, "/gaps")
        assert set(gaps_in(text)) == {PORT}
        assert "The team has answered this since." in text
        assert_dismissed(text)
        assert "Write what is missing" not in await page(session, "/")
        said = await operator.teach(place, kim, PORT, PORT_NEWER)
        [_, older, _, newer] = pairs_in(raw)
        assert f"Stored as `{newer.id}`" in said
        assert f"It replaces `{older.id}`." in said
        for question in (PORT_AGAIN, PORT):
            answer = await operator.answer(question)
            assert (PORT_NEWER in answer, PORT_ANSWER in answer) == (True, False)


async def test_a_gap_stays_answered_until_its_answer_is_replaced_or_its_author_forgotten(
    launch: Launch, discord_server: DiscordServer, data: Path
) -> None:
    places = discord_server.add_channel("help"), discord_server.add_channel("questions")
    kim, lea = discord_server.add_member("kim"), discord_server.add_member("lea")
    operator, raw = Operator(launch, discord_server, data, (kim, lea)), data / "team-knowledge" / "raw"
    await answer_the_gaps(operator, places, kim, lea)

    assert re.search(r"^ +2  added$", await operator.command("--regen"), re.MULTILINE)
    listed = await operator.command("--kb", "list")
    assert listed.startswith("2 topics with 2 conversations; 2 captured in all.")
    assert (RAW in listed, PORT in listed) == (True, True)
    assert "the team has answered 2 of them since" in await operator.command("--report")
    [first, *_] = pairs_in(raw)
    edited = await operator.command("--kb", "edit", first.id, "--answer", RAW_EDITED, "--author", str(lea.id))
    assert edited.rstrip().endswith(f"It replaces {first.id} then.")
    await answer_one_anew(operator, places[1], kim, raw)

    await operator.command("--forget", str(kim.id))
    listed = await operator.command("--kb", "list")
    assert listed.startswith("1 topic with 1 conversation;")
    assert (RAW in listed, PORT in listed) == (True, False)
    assert [holding(data, word) for word in KIMS_WORDS] == [[], [], []]
    async with operator.running() as session:
        assert RAW_EDITED in await operator.answer(RAW_AGAIN)
        assert await operator.nothing(PORT_AGAIN)
        text = await page(session, "/gaps")
        assert "[removed]" not in text
        assert_dismissed(text)
    assert [holding(data, word) for word in KIMS_WORDS] == [[], [], []]
    assert not discord_server.unknown
