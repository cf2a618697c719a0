"""Slash commands: their form on Discord, how each is answered, and what a callback gets and may raise. What they do is
given as callbacks.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol

import discord
from discord import app_commands
from discord.app_commands import Range

from model.messages import Attachment
from services.discord.live.calls import FAILURES, reason
from services.discord.text import split

Interaction = discord.Interaction[discord.Client]
Answer = Awaitable[str]  # what the caller reads: Markdown of any length, shown to nobody else

PRIVACY_COMMAND_SECONDS = 10.0  # how long a shutdown waits for a wish for privacy
MANY_PIECES = 10  # Discord takes few follow-ups to one command at once, and nobody reads more of them

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Call:
    """The caller of a command, and the place where it was called.

    `can_view` and `is_moderator` are as Discord says. For a private thread that only its members see, membership has
    to be checked as well.
    """

    id: int  # the interaction's, a snowflake made when the command was called
    user_id: int
    guild_id: int
    place_id: int  # a channel or a thread
    is_moderator: bool  # may manage messages or threads there
    can_view: bool  # can view the channel
    role_ids: tuple[int, ...] = ()
    language: str = "en"  # to answer in


class CallPhrases(Protocol):
    """The fixed sentences about calls themselves, in one language."""

    @property
    def language(self) -> str: ...

    def say(self, sentence: str) -> str:
        """A sentence by its name."""
        ...


Speaks = Callable[[str], CallPhrases]
"""The sentences for a caller, by the locale that Discord shows to them (`pt-BR`)."""


class CommandRefused(Exception):
    """The command cannot be done; the message is one line for the caller, and says what to do instead."""


class RunbookActions(Protocol):
    """`/kb`: a person's own runbooks. Each raises `CommandRefused`."""

    def add(self, call: Call, document: Attachment | str, title: str | None) -> Answer:
        """`document`: a file, or the text itself."""
        ...

    def list(self, call: Call) -> Answer: ...

    def remove(self, call: Call, title: str) -> Answer: ...

    def forget(self, call: Call) -> Answer:
        """Remove all of them."""
        ...

    def show_in_threads(self, call: Call, *, shown: bool) -> Answer:
        """Allow or forbid answers in public threads that are taken from the caller's runbooks."""
        ...


class EvidenceActions(Protocol):
    """`/evidence`: the files of a thread. Each raises `CommandRefused`."""

    def list(self, call: Call) -> Answer: ...

    def delete(self, call: Call, filename: str) -> Answer: ...


@dataclass(frozen=True, slots=True)
class Callbacks:
    """The functions that carry out the commands. Each raises `CommandRefused`; a command whose function is None does
    not exist.
    """

    ask: Callable[[Call, str], Answer]
    opt_out: Callable[[Call], Answer]
    opt_in: Callable[[Call], Answer]
    forget: Callable[[Call], Answer]
    speaks: Speaks
    runbooks: RunbookActions | None = None
    evidence: EvidenceActions | None = None


class Answering:
    """Runs callbacks and shows what they return. `close` cancels what is in progress and need not be done."""

    def __init__(self, speaks: Speaks) -> None:
        self._speaks = speaks
        self._tasks: set[asyncio.Task[object]] = set()
        self._privacy_tasks: set[asyncio.Task[str]] = set()
        self._closing = False

    async def answer(
        self, interaction: Interaction, say: Callable[[Call], Answer], *, in_any_case: bool = False
    ) -> None:
        """Answer one call. Never raises, except when it is cancelled.

        `in_any_case`: it is begun before Discord is told of it, and whatever becomes of that does not stop it.
        """
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 (a coroutine runs in a task)
        self._tasks.add(task)
        try:
            said = self.phrases(interaction)
            wish = self._begun(_said(interaction, say, said)) if in_any_case else None
            if not await _acknowledged(interaction) and wish is None:
                return
            if wish is not None:
                text = await asyncio.shield(wish)
            else:
                text = said.say("stopping") if self._closing else await _said(interaction, say, said)
            await _show(interaction, text, said)
        except asyncio.CancelledError:
            if not self._closing:
                raise
        except FAILURES as error:
            log.warning("command /%s: not answered: %s", _name(interaction), reason(error))
        except Exception:
            log.exception("command /%s: not answered", _name(interaction))
        finally:
            self._tasks.discard(task)

    def phrases(self, interaction: Interaction) -> CallPhrases:
        return self._speaks(str(interaction.locale))

    async def close(self) -> None:
        """Answer nothing more; cancel what is in progress. What is done in any case has a while to finish."""
        self._closing = True
        if self._privacy_tasks:
            await asyncio.wait(self._privacy_tasks, timeout=PRIVACY_COMMAND_SECONDS)
        tasks = [*self._tasks, *self._privacy_tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begun(self, wish: Coroutine[Any, Any, str]) -> asyncio.Task[str]:
        task = asyncio.create_task(wish)
        self._privacy_tasks.add(task)
        task.add_done_callback(self._privacy_tasks.discard)
        return task


async def _acknowledged(interaction: Interaction) -> bool:
    """Announce an answer; gives whether Discord takes one."""
    try:
        # Within three seconds, or Discord says that the bot did not respond.
        await interaction.response.defer(ephemeral=True, thinking=True)
    except FAILURES as error:
        log.warning("command /%s: not answered: %s", _name(interaction), reason(error))
        return False
    except Exception as error:  # noqa: BLE001 (discord.py could not read what Discord said to it)
        log.info("command /%s: Discord's acknowledgement is odd (%s)", _name(interaction), type(error).__name__)
    return True


async def _said(interaction: Interaction, say: Callable[[Call], Answer], said: CallPhrases) -> str:
    try:
        return await say(_call_of(interaction, said))
    except CommandRefused as refused:
        return str(refused)
    except Exception:
        # The text of an error may hold anything, and is for the operator.
        log.exception("command /%s failed", _name(interaction))
        return said.say("failed")


async def _show(interaction: Interaction, text: str, said: CallPhrases) -> None:
    """Replace "thinking" by `text`, and post below it what does not fit."""
    pieces = split(text) or [said.say("nothing_to_say")]
    if len(pieces) > MANY_PIECES:
        pieces = [*pieces[: MANY_PIECES - 1], said.say("rest_left_out")]
    first, *more = pieces
    nobody = discord.AllowedMentions.none()
    await interaction.edit_original_response(content=first, allowed_mentions=nobody)
    for piece in more:
        await interaction.followup.send(piece, ephemeral=True, allowed_mentions=nobody, suppress_embeds=True)


def _call_of(interaction: Interaction, said: CallPhrases) -> Call:
    if interaction.guild_id is None or interaction.channel_id is None:
        raise CommandRefused(said.say("server_only"))
    granted = interaction.permissions
    user = interaction.user
    return Call(
        id=interaction.id,
        user_id=user.id,
        guild_id=interaction.guild_id,
        place_id=interaction.channel_id,
        is_moderator=granted.administrator or granted.manage_messages or granted.manage_threads,
        can_view=granted.administrator or granted.view_channel,
        role_ids=tuple(role.id for role in user.roles) if isinstance(user, discord.Member) else (),
        language=said.language,
    )


def _name(interaction: Interaction) -> str:
    return interaction.command.qualified_name if interaction.command is not None else "?"


REGISTERING_SECONDS = 120.0
MOST_CHARS = 1_000  # of a question
MOST_TITLE_CHARS = 100
MOST_TEXT_CHARS = 6_000
"""The most that Discord takes as the value of an option (API reference, "Application Command Option")."""

Command = app_commands.Command[Any, ..., None]
Form = Command | app_commands.Group


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
        async def add_runbook(call: Call) -> str:
            if (file is None) == (text is None):
                raise CommandRefused(answering.phrases(interaction).say("file_or_text"))
            if text is not None and title is None:
                raise CommandRefused(answering.phrases(interaction).say("text_needs_title"))
            return await runbooks.add(call, text or "" if file is None else _attachment(file), title)

        await answering.answer(interaction, add_runbook)

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
