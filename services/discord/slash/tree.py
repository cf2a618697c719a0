"""The commands as Discord shows them, hung into a client and registered in each guild as it arrives."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import Any, Literal

import discord
from discord import app_commands
from discord.app_commands import Range

from model.messages import Attachment
from services.discord.live.calls import reason
from services.discord.slash.calls import (
    Answer,
    Answering,
    Call,
    Callbacks,
    CommandRefused,
    EvidenceActions,
    Interaction,
    RunbookActions,
)

REGISTERING_SECONDS = 120.0
MOST_CHARS = 1_000  # of a question
MOST_TITLE_CHARS = 100
MOST_TEXT_CHARS = 6_000
"""The most that Discord takes as the value of an option (API reference, "Application Command Option")."""

Command = app_commands.Command[Any, ..., None]
Form = Command | app_commands.Group

log = logging.getLogger(__name__)


class _Tree(app_commands.CommandTree[discord.Client]):
    def __init__(self, client: discord.Client, answering: Answering) -> None:
        super().__init__(client)
        self._answering = answering

    async def on_error(self, interaction: Interaction, error: app_commands.AppCommandError, /) -> None:
        """A call that does not fit what is registered: an older form of a command, mostly."""
        log.warning("a command was called in an unknown form: %s", type(error).__name__)
        try:
            text = self._answering.phrases(interaction).say("command_changed")
            await interaction.response.send_message(text, ephemeral=True)
        except Exception as failure:  # noqa: BLE001 (nobody waits for this task: what it raised would be lost)
            log.debug("not answered: %s", reason(failure))


class Commands:
    """One bot's commands. They replace the commands that the application had in a guild before."""

    def __init__(self, client: discord.Client, callbacks: Callbacks) -> None:
        self._answering = Answering(callbacks.speaks)
        self._tree = _Tree(client, self._answering)
        for form in _forms(callbacks, self._answering):
            self._tree.add_command(form)
        self._registered: set[int] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def arrived(self, guild_id: int) -> None:
        """Register the commands in a guild, in the background, unless that has been done."""
        if guild_id in self._registered:
            return
        self._registered.add(guild_id)
        task = asyncio.get_running_loop().create_task(self._register(guild_id), name=f"commands of {guild_id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Answer and register nothing more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._answering.close()

    async def _register(self, guild_id: int) -> None:
        guild = discord.Object(guild_id)
        try:
            self._tree.copy_global_to(guild=guild)
            async with asyncio.timeout(REGISTERING_SECONDS):
                known = await self._tree.sync(guild=guild)
        except Exception as error:  # noqa: BLE001 (an odd answer of Discord can make discord.py raise anything)
            # Tried again when the guild arrives anew, as after each new session.
            self._registered.discard(guild_id)
            forbidden = isinstance(error, discord.Forbidden)
            hint = "; invite the bot with the scope applications.commands" if forbidden else ""
            log.warning("server %d: no slash commands: %s%s", guild_id, reason(error), hint)
        else:
            log.info("server %d: commands %s", guild_id, ", ".join(f"/{command.name}" for command in known))


def _forms(callbacks: Callbacks, answering: Answering) -> Iterator[Form]:
    """A form for each thing that there is a callback for."""

    @app_commands.describe(question="What you want to know.")
    async def ask(interaction: Interaction, question: Range[str, 1, MOST_CHARS]) -> None:
        await answering.answer(interaction, lambda call: callbacks.ask(call, question))

    yield _command("ask", "Ask the bot; only you see the answer.", ask)
    # Carried out although nobody may be told.
    wish = partial(_plain, in_any_case=True)
    yield _group(
        "privacy",
        "What the bot may do with what you write.",
        wish("opt-out", "Leave me alone: read, learn and record nothing that I write.", callbacks.opt_out, answering),
        wish("opt-in", "Count me in again.", callbacks.opt_in, answering),
        wish("forget", "Remove what the bot has kept of me.", callbacks.forget, answering),
    )
    if callbacks.runbooks is not None:
        yield _kb(callbacks.runbooks, answering)
    if callbacks.evidence is not None:
        yield _evidence(callbacks.evidence, answering)


def _kb(runbooks: RunbookActions, answering: Answering) -> Form:
    @app_commands.describe(
        file="A text file, such as a .md or .txt.",
        text="The runbook itself, where it is short.",
        title="What it is called; without one, the name of the file.",
    )
    async def add(
        interaction: Interaction,
        file: discord.Attachment | None = None,
        text: Range[str, 1, MOST_TEXT_CHARS] | None = None,
        title: Range[str, 1, MOST_TITLE_CHARS] | None = None,
    ) -> None:
        async def kept(call: Call) -> str:
            if (file is None) == (text is None):
                raise CommandRefused(answering.phrases(interaction).say("file_or_text"))
            if text is not None and title is None:
                raise CommandRefused(answering.phrases(interaction).say("text_needs_title"))
            return await runbooks.add(call, text or "" if file is None else _attachment(file), title)

        await answering.answer(interaction, kept)

    @app_commands.describe(title="Its title, as /kb list shows it.")
    async def remove(interaction: Interaction, title: str) -> None:
        await answering.answer(interaction, lambda call: runbooks.remove(call, title))

    @app_commands.describe(where="private: only in /ask, where nobody else reads. thread: in your threads as well.")
    async def visibility(interaction: Interaction, where: Literal["private", "thread"]) -> None:
        await answering.answer(interaction, lambda call: runbooks.show_in_threads(call, shown=where == "thread"))

    return _group(
        "kb",
        "Your own runbooks, which the bot answers you from.",
        _command("add", "Keep a runbook: a file, or text.", add),
        _plain("list", "Show your runbooks.", runbooks.list, answering),
        _command("remove", "Remove one of your runbooks.", remove),
        _plain("forget", "Remove all of your runbooks.", runbooks.forget, answering),
        _command("visibility", "Say where answers may be taken from your runbooks.", visibility),
    )


def _evidence(files: EvidenceActions, answering: Answering) -> Form:
    @app_commands.describe(filename="Its name, as /evidence list shows it.")
    async def delete(interaction: Interaction, filename: str) -> None:
        await answering.answer(interaction, lambda call: files.delete(call, filename))

    return _group(
        "evidence",
        "The files of this thread that the bot can search.",
        _plain("list", "Show the files of this thread.", files.list, answering),
        _command("delete", "Have the bot forget a file of this thread.", delete),
    )


def _plain(
    name: str, description: str, done: Callable[[Call], Answer], answering: Answering, *, in_any_case: bool = False
) -> Command:
    """A command without options."""

    async def run(interaction: Interaction) -> None:
        await answering.answer(interaction, done, in_any_case=in_any_case)

    return _command(name, description, run)


def _command(name: str, description: str, run: Callable[..., Coroutine[Any, Any, None]]) -> Command:
    return app_commands.Command(name=name, description=description, callback=run)


def _group(name: str, description: str, *commands: Command) -> app_commands.Group:
    made = app_commands.Group(name=name, description=description)
    for each in commands:
        made.add_command(each)
    return made


def _attachment(file: discord.Attachment) -> Attachment:
    return Attachment(file.id, file.filename, file.size, file.url, file.content_type)
