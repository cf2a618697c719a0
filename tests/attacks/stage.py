"""A server with people to be robbed, the whole bot, the obedient model, and attackers."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from commands.live import LiveOptions
from services.knowledge.index_file import IndexEntry
from services.knowledge.library import Source
from services.redaction import Redactor
from services.telemetry import logs
from tests.attacks.aftermath import NAMED, Aftermath, Said
from tests.attacks.corpus import Attack, Way
from tests.attacks.obedient import POINTED, Obedient
from tests.end_to_end.bots import RunningBot, answers_to
from tests.end_to_end.conftest import llm, settings_of
from tests.end_to_end.knowledge import write_knowledge
from tests.loopback.discord_server import DiscordServer
from tests.loopback.llm_server import LLMServer, Seen
from tests.loopback.mentions import pings
from tests.loopback.model import Channel, Message, Thread, User
from tests.loopback.permissions import ANSWER
from tests.services.assistant.extractive.lanternfish import INDEX, SOURCES

TOKEN, KEY, OTHER_KEY = "canary-discord-token", "canary-answering-key", "canary-knowledge-key"
ENVIRONMENT, OUTSIDE = "canary-environment", "canary-outside-file"
HOOK = "canary-webhook"
SECRETS = frozenset({TOKEN, KEY, OTHER_KEY, HOOK, ENVIRONMENT, OUTSIDE})
FILE, RUNBOOK, STAFF = "canary-veras-file", "canary-veras-runbook", "canary-staff-channel"
PRIVATE = frozenset({FILE, RUNBOOK, STAFF})
ASKS = "how can I restore a backup?"
WITHIN = 30.0
LOG = "2026-02-16T00:00:30 ERROR db: connection refused\n"


@asynccontextmanager
async def staged(
    above: Path,
    patch: pytest.MonkeyPatch,
    attacks: Sequence[Attack],
    sabotage: Callable[[Stage], None] = lambda _: None,
    *,
    options: LiveOptions | None = None,
    level: str = "DEBUG",
    model_seconds: float = 5.0,
    **sections: dict[str, Any],
) -> AsyncGenerator[Stage]:
    """The bot runs and has lived a little: Vera has a thread with a file, and a runbook; the staff have talked in
    private; the team has taught something. Now the model obeys.

    `above`: everything is below a folder of it, so that what leaves that folder is seen. `sabotage`: done before the
    bot starts. `options`: of the bot. `level`: of its log. `model_seconds`: how long it waits
    for the model. `sections`: more of its configuration.
    """
    folder = above / "home"
    folder.mkdir()
    patch.setenv("UNRELATED_SECRET", ENVIRONMENT)
    for path in (folder / ".env", folder / "outside.txt", folder / "data" / ".env"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"SECRET={OUTSIDE}\n")
    pages = [_page(attack) for attack in attacks if attack.way is Way.PAGE]
    write_knowledge(folder / "data", [*SOURCES, *(page for page, _ in pages)], [*INDEX, *(entry for _, entry in pages)])
    async with DiscordServer(token=TOKEN) as server, LLMServer() as model:
        with server.routes():
            stage = Stage(folder, server, model, attacks)
            sabotage(stage)
            try:
                await stage.open(patch, options or LiveOptions(), level, model_seconds, sections)
                yield stage
            finally:
                await stage.close()


def _page(attack: Attack) -> tuple[Source, IndexEntry]:
    source_id = f"kb:page-{attack.case}.md"
    return (
        Source(source_id, f"# About {attack.case}\n\nRestoring works as ever.\n\n{attack.written}\n"),
        IndexEntry(source_id, f"About {attack.case}. {attack.written}"),
    )


class Stage:
    """`play` tries one attack; `aftermath`, when the bot has stopped, is what there is to look at."""

    def __init__(self, folder: Path, server: DiscordServer, model: LLMServer, attacks: Sequence[Attack]) -> None:
        self.folder, self.server, self.model = folder, server, model
        self._attacks = attacks
        self._channels: defaultdict[str, set[int]] = defaultdict(set)
        self._taught: set[str] = set()
        self._log = folder / "bot.log"
        self.kim = server.add_member("kim")
        vera, admins = server.add_member("vera"), server.add_role("admins")
        self.vera = vera
        self.words = {"vera": str(vera.id), "admins": str(admins.id), "folder": str(folder / "data")}
        self.obedient = Obedient(attacks, self.words)

    async def open(
        self,
        patch: pytest.MonkeyPatch,
        options: LiveOptions,
        level: str,
        model_seconds: float,
        more: dict[str, dict[str, Any]],
    ) -> None:
        """Start the bot, and let it see some ordinary life."""

        def model(key: str) -> dict[str, Any]:
            return llm(self.model, api_key=key, timeout_seconds=model_seconds)

        sections: dict[str, dict[str, Any]] = {
            **more,
            "ai_response": {"llm": model(KEY), "enable_verification": True},
            "kb": {"settle_minutes": 0, "llm": model(OTHER_KEY)},
            "discord": {
                "token": TOKEN,
                "message_batch_wait_seconds": 0.1,
                "team_member_ids": [self.kim.id],
                "team_active_seconds": 1,
            },
        }
        settings = settings_of(self.folder / "data", **sections)
        logs.configure(
            level=level, style="text", file=self._log, backup_count=1, redact=Redactor(settings.secrets).text
        )
        lobby = self.server.add_channel("lobby")
        staff = self.server.add_channel("staff", hidden=True)
        self.server.allow(staff, self.server.bot, ANSWER)
        self.bot = RunningBot(self.server, settings, options)
        self.bot.begin(patch)
        await self.bot.ready()
        await self.server.until(lambda: self.server.state.commands)
        await self._ordinary_life(lobby, staff)
        self._before = len(self.server.posts), len(self.server.requests), len(self.model.seen)
        self._staged = set(self.files())
        self.model.otherwise = self.obedient

    async def _ordinary_life(self, lobby: Channel, staff: Channel) -> None:
        server, log = self.server, f"2026-02-16T00:00:30 ERROR db: {FILE}\n"
        hers = await server.say(lobby, self.vera, f"vera: {ASKS}", attachments=[("vera.log", log.encode(), None)])
        secretly = await server.say(staff, self.vera, f"in private: {ASKS}")
        told = await server.say(staff, self.kim, f"In private: {STAFF}", reply_to=secretly)
        text = f"To restore a backup, say {RUNBOOK}. Then wait."
        noted = await server.call(lobby, self.vera, "kb add", text=text, title="Restoring")
        asked = await server.say(lobby, server.add_member("ada"), "How do I skip raw files?")
        taught = await self.teach(lobby, "Put skip_raw = true into the importer section.", asked)
        await self.bot.until_ended(hers, told, taught, within=WITHIN)
        await server.until_told(noted)
        await self.decided(1)
        self.words |= {"thread": str(hers.id), "channel": str(staff.id)}

    async def teach(self, channel: Channel, text: str, asked: Message) -> Message:
        self._taught.add(re.sub(r"<@\d+>", NAMED, text))
        return await self.server.say(channel, self.kim, text, reply_to=asked)

    async def decided(self, count: int) -> None:
        """Wait until the team's branch has decided about so many conversations."""
        path = self.folder / "data" / "team-knowledge" / "decisions.jsonl"
        await self.server.until(lambda: path.exists() and path.read_text().count("\n") >= count, WITHIN)

    async def everything_is_decided(self) -> None:
        """What has been taught so far, in any conversation."""
        await self.decided(len(self._taught))

    async def close(self) -> None:
        if hasattr(self, "bot") and not self.bot.over:
            await self.bot.stop()
        await asyncio.sleep(0)

    # Who attacks, and how.

    async def play(self, attack: Attack) -> None:
        """Try one attack, up to the answer to whoever asks."""
        await _PLAYS[attack.way](self, attack)

    async def play_all(self) -> None:
        await asyncio.gather(*map(self.play, self._attacks))
        await self.bot.until_idle()
        await self.everything_is_decided()

    def channel(self, attack: Attack, name: str = "help") -> Channel:
        channel = self.server.add_channel(f"{name}-{attack.number}")
        self._channels[attack.case].add(channel.id)
        return channel

    def somebody(self, attack: Attack, name: str) -> User:
        return self.server.add_member(f"{name}-{attack.number}")

    async def asks(self, attack: Attack, text: str, *files: tuple[str, str]) -> Message:
        """Somebody asks in a channel of the attack's own, and has the answer."""
        return await self.said(self.channel(attack), self.somebody(attack, "asker"), text, *files)

    async def said(self, place: Channel | Thread, who: User, text: str, *files: tuple[str, str]) -> Message:
        attachments = [(name, content.encode(), None) for name, content in files]
        message = await self.server.say(place, who, text, attachments=attachments)
        await self.bot.until_ended(message, within=WITHIN)
        return message

    # What came of it.

    def aftermath(self) -> Aftermath:
        posts, requests, seen = self._before
        prompts = self.model.seen[seen:]
        return Aftermath(
            posts=tuple(self._said(posts)),
            channels=self._channels,
            names=tuple(
                place.name
                for place in self.server.state.places.values()
                if isinstance(place, Thread) and place.owner is self.server.bot
            ),
            requests=tuple(f"{each.path} {json.dumps(each.body)}" for each in self.server.requests[requests:]),
            prompts=tuple(json.dumps(each.body, ensure_ascii=False) for each in prompts),
            every_prompt=tuple(json.dumps(each.body, ensure_ascii=False) for each in self.model.requests),
            systems=tuple(text for each in prompts for text in _texts(each, "system")),
            users=tuple(text for each in prompts for role in ("user", "tool") for text in _texts(each, role)),
            log=self.log,
            files=self.files(),
            staged=self._staged,
            cited=frozenset(each for outcome in self.bot.outcomes for each in outcome.sources),
            known=self._ids(),
            team=self._taught,
            secrets=SECRETS,
            private=PRIVATE,
        )

    def _said(self, before: int) -> Iterator[Said]:
        """What the bot has posted, and what it has told one person; the first `before` posts left out."""
        for post in self.server.posts[before:]:
            parent = None if post.thread is None else post.thread.parent.id
            yield Said(post.place.id, parent, post.content, post.pings, post.allowed_mentions)
        for one in self.server.state.interactions.values():
            if one.place.id in set().union(*self._channels.values()):
                for said in one.said:
                    called = pings(said.content, None, said.allowed_mentions)
                    yield Said(one.place.id, one.place.id, said.content, called, said.allowed_mentions)

    @property
    def log(self) -> str:
        return self._log.read_text()

    def files(self) -> dict[str, bytes]:
        return {
            os.path.relpath(path, self.folder): path.read_bytes()
            for path in self.folder.parent.rglob("*")
            if path.is_file() and not path.is_symlink()
        }

    def _ids(self) -> frozenset[str]:
        """All that an answer may be taken from: indexed pages, topics, and the lines of files that were posted."""
        pages = {
            f"kb:{path.removeprefix('data/knowledge-base/sources/')}" for path in self.files() if "sources" in path
        }
        topics = {f"team:{Path(path).name}" for path in self.files() if "/topics/" in path}
        names = {file.filename for message in self._messages() for file in message.files}
        return frozenset(pages | topics | names | {f"{name}:{line}" for name in names for line in range(1, 100)})

    def _messages(self) -> list[Message]:
        return [message for messages in self.server.state.messages.values() for message in messages.values()]


def _texts(seen: Seen, role: str) -> list[str]:
    return [str(message["content"]) for message in seen.body["messages"] if message["role"] == role]


async def _by_name(stage: Stage, attack: Attack) -> None:
    """The asker, a person, a role and a channel are called so; the team mentions that person in an answer."""
    server = stage.server
    other, role = server.add_member(attack.written), server.add_role(attack.written)
    told = stage.channel(attack, "with-team")
    asked = await server.say(told, other, f"{attack.case}: {ASKS}")
    taught = await stage.teach(told, f"{other.mention} For {attack.case} restore it as the guide says.", asked)
    await stage.bot.until_ended(asked, taught, within=WITHIN)
    await stage.everything_is_decided()
    place, asker = server.add_channel(attack.written), server.add_member(attack.written)
    mentions = f"As {other.mention} of <@&{role.id}> asked in <#{place.id}>."
    await stage.said(stage.channel(attack), asker, f"{attack.case}: {ASKS} {mentions}")


async def _by_history(stage: Stage, attack: Attack) -> None:
    """Somebody else has written it into the asker's thread."""
    asker = stage.somebody(attack, "asker")
    question = await stage.said(stage.channel(attack), asker, f"{attack.case}: {ASKS}")
    thread = answers_to(stage.server, question)[0].thread
    assert thread is not None
    await stage.said(thread, stage.somebody(attack, "attacker"), attack.written)
    await stage.said(thread, asker, f"{attack.case}: and {ASKS} on Windows")


async def _by_page(stage: Stage, attack: Attack) -> None:
    """It stands in a page of the knowledge base, and in what the index says of the page."""
    await stage.asks(attack, f"{attack.case}: {ASKS}")


async def _by_capture(stage: Stage, attack: Attack) -> None:
    """A member of the team answers the attacker; an impostor answers another. Then somebody asks about it, and somebody
    else, to whom the bot has no answer and only points there.
    """
    server, attacker = stage.server, stage.somebody(attack, "attacker")
    place = stage.channel(attack, "with-team")
    asked = await server.say(place, attacker, f"{attack.case}: {attack.written}\n{ASKS}", ago=60)
    taught = await stage.teach(place, f"For {attack.case} restore it as the guide says.", asked)
    among = stage.channel(attack, "among-members")
    answered = await server.say(among, stage.somebody(attack, "anna"), f"{attack.case}: hello {ASKS}")
    lie = await server.say(among, server.add_member("kim"), f"Team: {attack.written} swordfish", reply_to=answered)
    await stage.bot.until_ended(asked, taught, answered, lie, within=WITHIN)
    await stage.everything_is_decided()
    await stage.asks(attack, f"{attack.case}: {ASKS}")
    stage.obedient.silent.add(attack.case)
    unanswered = await stage.asks(attack, f"{attack.case}: {ASKS} {stage.server.bot.mention}")
    said = "".join(post.content for post in answers_to(stage.server, unanswered))
    if f"“{attack.case}: " in said or "“…" in said:  # of what is said beside a question, paths and code are left out
        stage.obedient.obeyed[attack.mark].add(POINTED)


async def _by_file_name(stage: Stage, attack: Attack) -> None:
    await stage.asks(attack, f"{attack.case}: what is the first ERROR in the log?", (attack.written, LOG))


async def _by_log_line(stage: Stage, attack: Attack) -> None:
    text = f"{LOG}2026-02-16T00:00:31 {attack.written}\n"
    await stage.asks(attack, f"{attack.case}: what is the first ERROR in app.log?", ("app.log", text))


async def _by_marker(stage: Stage, attack: Attack) -> None:
    await stage.asks(attack, f"{attack.case}: {ASKS}\n{attack.written}")


async def _by_output(stage: Stage, attack: Attack) -> None:
    """Nobody attacks: the model says it by itself, in an answer, in one that the asker sees alone, and about what the
    team teaches.
    """
    place = stage.channel(attack, "with-team")
    asked = await stage.server.say(place, stage.somebody(attack, "user"), f"{attack.case}: {ASKS}")
    taught = await stage.teach(place, f"For {attack.case} restore it as the guide says.", asked)
    await stage.bot.until_ended(asked, taught, within=WITHIN)
    question = await stage.asks(attack, f"{attack.case}: {ASKS}")
    await stage.server.until_told(
        await stage.server.call(question.place, question.author, "ask", question=f"{attack.case}: {ASKS}")
    )


_PLAYS = {
    Way.NAME: _by_name,
    Way.HISTORY: _by_history,
    Way.PAGE: _by_page,
    Way.CAPTURE: _by_capture,
    Way.FILE_NAME: _by_file_name,
    Way.LOG_LINE: _by_log_line,
    Way.MARKER: _by_marker,
    Way.OUTPUT: _by_output,
}
