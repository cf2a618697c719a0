"""The forms of the slash commands, through the real discord.py, with callbacks that only take notes."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast, get_args

import discord
import pytest

from assembly.reference import generated
from assembly.slash_commands import COMMANDS, GROUPS, Row, SlashServices, callback_of
from model.messages import Attachment
from services.conversations import phrases
from services.discord.slash import QUESTION, Call, Callback, CommandOption, CommandRefused, CommandRegistry
from settings.reference import main, with_table
from tests.loopback.clients import logged_in
from tests.loopback.discord_server import DiscordServer
from tests.loopback.interactions import Upload
from tests.loopback.permissions import Permission
from tests.test_house import PRODUCT

pytestmark = pytest.mark.real_time

FILE: Upload = ("restart.md", b"# Restart\n", "text/markdown")


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
async def offering(server: DiscordServer, notes: Notes, *, documents: bool = True) -> AsyncGenerator[CommandRegistry]:
    offered = {
        name: (command, noted(notes, name))
        for name, command in COMMANDS.items()
        if documents or not command.needs_documents
    }
    async with logged_in(server) as client:
        commands = CommandRegistry(client, offered, GROUPS, phrases)
        commands.register_in(server.guild.id)
        await server.until(lambda: server.state.commands)
        yield commands
        await commands.close()


def sample(option: CommandOption) -> str | Upload:
    """A value that an option may have."""
    if option.is_text:
        return "some words"
    return FILE if option.type is discord.Attachment else get_args(option.type)[0]


async def test_each_command_reaches_its_callback_with_its_options(discord_server: DiscordServer) -> None:
    help_, ada, notes = discord_server.add_channel("help"), discord_server.add_member("ada"), Notes()

    async def check(name: str, given: dict[str, str | Upload]) -> None:
        said = await discord_server.answer_to(help_, ada, name, **given)
        reached, call, told = notes.calls[-1]
        assert reached == name
        assert (call.user_id, call.guild_id, call.place_id) == (ada.id, discord_server.guild.id, help_.id)
        assert told.keys() == COMMANDS[name].options.keys()
        for key, value in told.items():
            if isinstance(value, Attachment):
                assert (value.filename, value.size, value.content_type) == ("restart.md", 10, "text/markdown")
                assert value.url.startswith(discord_server.origin)
            else:
                assert value == given.get(key)
        assert (said.content, said.ephemeral, said.allowed_mentions) == ("done", True, {"parse": []})

    async with offering(discord_server, notes):
        for name, command in COMMANDS.items():
            if command.form_title:  # it is called without options, and a form asks for them (test_teaching.py)
                continue
            await check(name, {key: sample(each) for key, each in command.options.items()})
            await check(name, {key: sample(each) for key, each in command.options.items() if each.required})
    assert not discord_server.unknown


def test_the_documentation_lists_every_command() -> None:
    assert main(["--check"], Path(__file__).parents[2], generated) == 0


def test_elsewhere_private_questions_are_called_that() -> None:
    """So that one more command for them changes no other page, setting or docstring."""
    root = Path(__file__).parents[2]
    asking = [name for name, row in COMMANDS.items() if QUESTION in row.options.values()]
    files = [*root.glob("docs/*.md"), *(path for name in PRODUCT for path in (root / name).rglob("*.py"))]
    texts = {path: path.read_text() for path in files if path.name != "slash_commands.py"}
    operating = root / "docs" / "operating.md"
    texts[operating] = with_table(texts[operating], operating.name, "slash commands", "")
    command = re.compile(rf"(?<![\w/-])/(?:{'|'.join(asking)})\b")
    naming = [str(path.relative_to(root)) for path, text in texts.items() if command.search(text)]
    assert naming == [], "say `a private question` there, instead of the name of a command"


async def test_without_documents_there_are_no_commands_about_them(discord_server: DiscordServer) -> None:
    discord_server.add_channel("help")
    async with offering(discord_server, Notes(), documents=False):
        (registered,) = discord_server.state.commands.values()
    needed = {name.partition(" ")[0]: command.needs_documents for name, command in COMMANDS.items()}
    assert [command["name"] for command in registered] == [name for name, needs in needed.items() if not needs]


async def one_option(_: Call, first: str) -> str:
    return first


@pytest.mark.parametrize("options", [(), ("second",), ("first", "second")])
def test_a_row_whose_callback_takes_other_options_is_an_error(options: Sequence[str]) -> None:
    row = Row("Odd.", lambda _: one_option, {name: CommandOption("A word.", str) for name in options})
    with pytest.raises(TypeError, match=r"^/odd: its options are"):
        callback_of("odd", row, cast("SlashServices", None))


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
