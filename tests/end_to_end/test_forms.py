"""The forms of the commands about files, through the real discord.py, with callbacks that only take notes."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from model.messages import Attachment
from services.conversations import phrases
from services.discord.slash import COMMANDS, GROUPS, Call, Callback, CommandRefused, Commands
from tests.loopback.clients import logged_in
from tests.loopback.discord_server import DiscordServer
from tests.loopback.permissions import Permission

pytestmark = pytest.mark.real_time


@dataclass
class Notes:
    """Everything that the callbacks were told."""

    calls: list[tuple[str, Call, dict[str, object]]] = field(default_factory=list[tuple[str, Call, dict[str, object]]])
    says: str | Exception = "done"

    async def take(self, name: str, call: Call, told: dict[str, object]) -> str:
        self.calls.append((name, call, told))
        if isinstance(self.says, Exception):
            raise self.says
        return self.says


def noted(notes: Notes, name: str) -> Callback:
    async def told(call: Call, **options: object) -> str:
        return await notes.take(name, call, options)

    return told


@asynccontextmanager
async def offering(server: DiscordServer, notes: Notes, *, documents: bool = True) -> AsyncGenerator[Commands]:
    names = [name for name in COMMANDS if documents or name == "ask" or name.startswith("privacy")]
    async with logged_in(server) as client:
        commands = Commands(client, {name: noted(notes, name) for name in names}, phrases)
        commands.arrived(server.guild.id)
        await server.until(lambda: server.state.commands)
        yield commands
        await commands.close()


async def test_each_command_reaches_its_callback_with_its_options(discord_server: DiscordServer) -> None:
    help_, ada, notes = discord_server.add_channel("help"), discord_server.add_member("ada"), Notes()
    file = ("restart.md", b"# Restart\n", "text/markdown")
    async with offering(discord_server, notes):
        await discord_server.answer_to(help_, ada, "kb add", file=file, title="How to restart")
        await discord_server.answer_to(help_, ada, "kb add", text="Turn it off.", title="Off")
        await discord_server.answer_to(help_, ada, "kb list")
        await discord_server.answer_to(help_, ada, "kb remove", title="Off")
        await discord_server.answer_to(help_, ada, "kb forget")
        await discord_server.answer_to(help_, ada, "kb visibility", where="thread")
        await discord_server.answer_to(help_, ada, "evidence list")
        await discord_server.answer_to(help_, ada, "evidence delete", filename="server.log")
        await discord_server.answer_to(help_, ada, "privacy opt-out")
        await discord_server.answer_to(help_, ada, "privacy opt-in")
        await discord_server.answer_to(help_, ada, "privacy forget")
        last = await discord_server.answer_to(help_, ada, "ask", question="Runs it?")
    (_, call, given), *others = notes.calls
    document = given["file"]
    assert isinstance(document, Attachment)
    assert (document.filename, document.size, document.content_type) == ("restart.md", 10, "text/markdown")
    assert document.url.startswith(discord_server.origin)
    assert given == {"file": document, "text": None, "title": "How to restart"}
    assert (call.user_id, call.guild_id, call.place_id) == (ada.id, discord_server.guild.id, help_.id)
    assert [(name, told) for name, _, told in others] == [
        ("kb add", {"file": None, "text": "Turn it off.", "title": "Off"}),
        ("kb list", {}),
        ("kb remove", {"title": "Off"}),
        ("kb forget", {}),
        ("kb visibility", {"where": "thread"}),
        ("evidence list", {}),
        ("evidence delete", {"filename": "server.log"}),
        ("privacy opt-out", {}),
        ("privacy opt-in", {}),
        ("privacy forget", {}),
        ("ask", {"question": "Runs it?"}),
    ]
    assert {name for name, _, _ in notes.calls} == COMMANDS.keys()
    assert (last.content, last.ephemeral, last.allowed_mentions) == ("done", True, {"parse": []})
    assert not discord_server.unknown


def test_the_documentation_lists_every_command() -> None:
    page = (Path(__file__).parents[2] / "docs" / "operating.md").read_text()
    table = page.partition("## Slash commands")[2].partition("\n\nOnly the caller")[0]
    listed: list[str] = []
    for cells in re.findall(r"^\| `/(.*?)` \|", table, re.MULTILINE):
        first, *others = cells.split("`, `")
        group = first.partition(" ")[0]
        listed += [first if group in GROUPS else group, *(f"{group} {each}" for each in others)]
    assert listed == list(COMMANDS)


async def test_without_documents_there_are_no_commands_about_them(discord_server: DiscordServer) -> None:
    discord_server.add_channel("help")
    async with offering(discord_server, Notes(), documents=False):
        (registered,) = discord_server.state.commands.values()
    assert [command["name"] for command in registered] == ["ask", "privacy"]


async def test_who_may_manage_messages_there_is_a_moderator(discord_server: DiscordServer) -> None:
    help_, notes = discord_server.add_channel("help"), Notes()
    ada = discord_server.add_member("ada")
    mod = discord_server.add_member("mod", role := discord_server.add_role("mods", Permission.MANAGE_MESSAGES))
    thread = await discord_server.start_thread(help_, ada, "a thread")
    async with offering(discord_server, notes):
        for who in (ada, mod, discord_server.guild.owner):
            await discord_server.answer_to(thread, who, "evidence list")
    assert [call.is_moderator for _, call, _ in notes.calls] == [False, True, True]
    assert [call.place_id for _, call, _ in notes.calls] == [thread.id] * 3
    assert notes.calls[1][1].role_ids[1:] == (role.id,)


async def test_what_a_callback_raises_is_for_the_log_and_not_for_the_caller(
    discord_server: DiscordServer, caplog: pytest.LogCaptureFixture
) -> None:
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    notes = Notes(says=ValueError("/secret/path"))
    async with offering(discord_server, notes):
        assert "try again later" in (await discord_server.answer_to(help_, ada, "kb list")).content
        notes.says = CommandRefused("You have no such runbook.")
        assert (await discord_server.answer_to(help_, ada, "kb remove", title="x")).content == str(notes.says)
        notes.says = "   "
        assert (await discord_server.answer_to(help_, ada, "kb list")).content == "There is nothing to say."
    assert "/secret/path" in caplog.text


async def test_an_endless_answer_is_cut_after_ten_pieces(discord_server: DiscordServer) -> None:
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    async with offering(discord_server, Notes(says="word " * 10_000)):
        one = await discord_server.call(help_, ada, "kb list")
        await discord_server.until_told(one)
    assert len(one.said) == 10
    assert "left out" in one.texts[-1]
    assert all(piece.ephemeral for piece in one.said)


async def test_a_command_that_has_changed_meanwhile_says_so(
    discord_server: DiscordServer, caplog: pytest.LogCaptureFixture
) -> None:
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    async with offering(discord_server, Notes()):
        (registered,) = discord_server.state.commands.values()
        registered.append({**registered[0], "name": "older", "options": []})
        one = await discord_server.call(help_, ada, "older")
        await discord_server.until(lambda: one.answered)
    assert "has changed" in one.texts[0]
    assert one.said[0].ephemeral
    assert "in an unknown form" in caplog.text


async def test_a_call_that_comes_while_the_bot_stops_is_told_so(discord_server: DiscordServer) -> None:
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    async with offering(discord_server, Notes()) as commands:
        await commands.close()
        assert "restarted" in (await discord_server.answer_to(help_, ada, "kb list")).content
