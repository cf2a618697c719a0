"""The commands as Discord shows them: names, descriptions and options."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any, Literal

import discord
from discord import app_commands
from discord.app_commands import Range

from model.messages import Attachment
from services.discord.slash.answering import Answering, Interaction
from services.discord.slash.calls import Call, Callbacks, CommandRefused, EvidenceActions, RunbookActions

MOST_CHARS = 1_000
"""Of a question."""
MOST_TITLE_CHARS = 100
MOST_TEXT_CHARS = 6_000
"""The most that Discord takes as the value of an option (API reference, "Application Command Option")."""

Run = Callable[..., Coroutine[Any, Any, None]]
"""Told of a call of one command, with its options by name."""
Form = app_commands.Command[Any, ..., Any] | app_commands.Group


def forms(callbacks: Callbacks, answering: Answering) -> Iterator[Form]:
    """A form for each thing that there is a callback for."""
    yield ask(callbacks, answering)
    yield privacy(callbacks, answering)
    if callbacks.runbooks is not None:
        yield kb(callbacks.runbooks, answering)
    if callbacks.evidence is not None:
        yield evidence(callbacks.evidence, answering)


def ask(callbacks: Callbacks, answering: Answering) -> Form:
    @app_commands.describe(question="What you want to know.")
    async def asked(interaction: Interaction, question: Range[str, 1, MOST_CHARS]) -> None:
        await answering.answer(interaction, lambda call: callbacks.ask(call, question))

    return command("ask", "Ask the bot; only you see the answer.", asked)


def privacy(callbacks: Callbacks, answering: Answering) -> Form:
    def plain(done: Callable[[Call], Awaitable[str]]) -> Run:
        async def run(interaction: Interaction) -> None:
            await answering.answer(interaction, done)

        return run

    return group(
        "privacy",
        "What the bot may do with what you write.",
        command("opt-out", "Leave me alone: read, learn and record nothing that I write.", plain(callbacks.opt_out)),
        command("opt-in", "Count me in again.", plain(callbacks.opt_in)),
        command("forget", "Remove what the bot has kept of me.", plain(callbacks.forget)),
    )


def kb(runbooks: RunbookActions, answering: Answering) -> Form:
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
                raise CommandRefused("Give either a file or a text.")
            if text is not None and title is None:
                raise CommandRefused("A text needs a title.")
            return await runbooks.add(call, text or "" if file is None else attachment(file), title)

        await answering.answer(interaction, kept)

    async def list_(interaction: Interaction) -> None:
        await answering.answer(interaction, runbooks.list)

    @app_commands.describe(title="Its title, as /kb list shows it.")
    async def remove(interaction: Interaction, title: str) -> None:
        await answering.answer(interaction, lambda call: runbooks.remove(call, title))

    async def forget(interaction: Interaction) -> None:
        await answering.answer(interaction, runbooks.forget)

    @app_commands.describe(where="private: only in /ask, where nobody else reads. thread: in your threads as well.")
    async def visibility(interaction: Interaction, where: Literal["private", "thread"]) -> None:
        await answering.answer(interaction, lambda call: runbooks.show_in_threads(call, shown=where == "thread"))

    return group(
        "kb",
        "Your own runbooks, which the bot answers you from.",
        command("add", "Keep a runbook: a file, or text.", add),
        command("list", "Show your runbooks.", list_),
        command("remove", "Remove one of your runbooks.", remove),
        command("forget", "Remove all of your runbooks.", forget),
        command("visibility", "Say where answers may be taken from your runbooks.", visibility),
    )


def evidence(files: EvidenceActions, answering: Answering) -> Form:
    async def list_(interaction: Interaction) -> None:
        await answering.answer(interaction, files.list)

    @app_commands.describe(filename="Its name, as /evidence list shows it.")
    async def delete(interaction: Interaction, filename: str) -> None:
        await answering.answer(interaction, lambda call: files.delete(call, filename))

    return group(
        "evidence",
        "The files of this thread that the bot can search.",
        command("list", "Show the files of this thread.", list_),
        command("delete", "Have the bot forget a file of this thread.", delete),
    )


def command(name: str, description: str, run: Run) -> app_commands.Command[Any, ..., None]:
    return app_commands.Command(name=name, description=description, callback=run)


def group(name: str, description: str, *commands: app_commands.Command[Any, ..., None]) -> app_commands.Group:
    made = app_commands.Group(name=name, description=description)
    for each in commands:
        made.add_command(each)
    return made


def attachment(file: discord.Attachment) -> Attachment:
    return Attachment(file.id, file.filename, file.size, file.url, file.content_type)
