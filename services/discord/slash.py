"""Slash commands: rows of their table (`assembly/slash_commands.py: COMMANDS`), callbacks, registration, answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from inspect import Parameter, Signature
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

import discord
from discord import app_commands, ui
from discord.app_commands import Range
from discord.app_commands.transformers import RangeTransformer

from clock import BackgroundTasks
from model.messages import Attachment
from services.discord.live.calls import FAILURES, reason
from services.discord.live.interactions import entered_in, on_interactions
from services.discord.text import split

Interaction = discord.Interaction[discord.Client]
Callback = Callable[..., Awaitable[str]]
"""The function behind a command: called with the `Call`, and the options by name. Returns the answer, Markdown of any
length, which only the caller sees. Raises `CommandRefused`."""

ALWAYS_RUNS_SECONDS = 10.0  # how long a shutdown waits for commands that always run
MAX_PIECES = 10  # Discord takes few follow-ups to one command at once, and nobody reads more of them

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Call:
    """The caller of a command, and the place where it was called.

    `can_view` and `is_moderator` are from Discord. In a private thread, membership has to be checked as well.
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
        """Return a sentence by its name."""
        ...


PhrasesByLocale = Callable[[str], CallPhrases]
"""Gives the sentences for a caller by the locale of their Discord client (`pt-BR`)."""


class CommandRefused(Exception):
    """A command is refused; the message is one line for the caller, and says what to do instead."""


MAX_QUESTION_CHARS = 1_000
MAX_TITLE_CHARS = 100
MAX_LINE_CHARS = 200
"""A field of a form that takes more has several lines."""
MAX_TEXT_CHARS = 6_000
"""The most that Discord takes as the value of an option (API reference, "Application Command Option")."""


class CommandOption(NamedTuple):
    """An option of a slash command. `type` is an annotation as discord.py reads it."""

    description: str
    type: Any
    required: bool = True

    @property
    def is_text(self) -> bool:
        """Return True if its value is free text."""
        return self.type is str or isinstance(self.type, RangeTransformer)


QUESTION = CommandOption("What you want to know.", Range[str, 1, MAX_QUESTION_CHARS])
"""A command with this option takes private questions."""

ServicesT = TypeVar("ServicesT")


@dataclass(frozen=True)  # no slots: Python 3.11 cannot make a frozen, generic class with them by `SlashCommand[…]()`
class SlashCommand(Generic[ServicesT]):
    """A slash command, as a row of a table.

    Attributes:
        description: for Discord and the documentation.
        make_callback: makes the function behind the command from the services that it needs.
        always_runs: it runs even if Discord does not take its answer.
        needs_documents: it is offered only where the bot reads files.
        is_unredacted: its texts reach the callback with their secrets, also those of people who have opted out: no
            model sees them.
        team_only: others are refused.
        form_title: of the form in which its options are filled in, all of them texts. Empty: it needs no form.
    """

    description: str
    make_callback: Callable[[ServicesT], Callback]
    options: Mapping[str, CommandOption] = field(default_factory=dict[str, CommandOption])
    always_runs: bool = False
    needs_documents: bool = False
    is_unredacted: bool = False
    team_only: bool = False
    form_title: str = ""


class CommandRunner:
    """Runs callbacks and shows their answers. `close` cancels the calls in progress that need not run."""

    def __init__(self, phrases: PhrasesByLocale, is_team: Callable[[Call], bool] = lambda _: False) -> None:
        self._phrases = phrases
        self._is_team = is_team
        self._tasks: set[asyncio.Task[object]] = set()
        self._always_run_tasks: set[asyncio.Task[str]] = set()
        self._closing = False

    async def answer(
        self, interaction: Interaction, callback: Callable[[Call], Awaitable[str]], *, always_runs: bool = False
    ) -> None:
        """Answer one call. Never raises, except when it is cancelled.

        `always_runs`: begin before the call is acknowledged to Discord, and go on if that fails.
        """
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 (a coroutine runs in a task)
        self._tasks.add(task)
        try:
            phrases = self.phrases(interaction)
            always_run_task = self._start(_run(interaction, callback, phrases)) if always_runs else None
            if not await _acknowledge(interaction) and always_run_task is None:
                return
            if always_run_task is not None:
                text = await asyncio.shield(always_run_task)
            else:
                text = phrases.say("stopping") if self._closing else await _run(interaction, callback, phrases)
            await _show(interaction, text, phrases)
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
        return self._phrases(str(interaction.locale))

    def check_team(self, call: Call) -> None:
        """Raise CommandRefused for somebody who is not in the team."""
        if not self._is_team(call):
            raise CommandRefused(self._phrases(call.language).say("team_only"))

    async def show_form(self, interaction: Interaction, command: SlashCommand[Any], name: str) -> None:
        """Show the form of a command, or say why not. Never raises."""
        phrases = self.phrases(interaction)
        try:
            try:
                call = _call_of(interaction, phrases)
                if command.team_only:
                    self.check_team(call)
            except CommandRefused as refused:
                nobody = discord.AllowedMentions.none()
                await interaction.response.send_message(str(refused), ephemeral=True, allowed_mentions=nobody)
            else:
                await interaction.response.send_modal(_modal(command, name))
        except FAILURES as error:
            log.warning("command /%s: its form was not shown: %s", name, reason(error))
        except Exception:
            log.exception("command /%s: its form was not shown", name)

    async def close(self) -> None:
        """Answer nothing more, and cancel the calls in progress. Those that always run have a while to finish."""
        self._closing = True
        if self._always_run_tasks:
            await asyncio.wait(self._always_run_tasks, timeout=ALWAYS_RUNS_SECONDS)
        tasks = [*self._tasks, *self._always_run_tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self, command: Coroutine[Any, Any, str]) -> asyncio.Task[str]:
        task = asyncio.create_task(command)
        self._always_run_tasks.add(task)
        task.add_done_callback(self._always_run_tasks.discard)
        return task


async def _acknowledge(interaction: Interaction) -> bool:
    """Announce an answer. Returns True if Discord takes one."""
    try:
        # Within three seconds, or Discord says that the bot did not respond.
        await interaction.response.defer(ephemeral=True, thinking=True)
    except FAILURES as error:
        log.warning("command /%s: not answered: %s", _name(interaction), reason(error))
        return False
    except Exception as error:  # noqa: BLE001 (discord.py could not read what Discord said to it)
        log.info("command /%s: Discord's acknowledgement is odd (%s)", _name(interaction), type(error).__name__)
    return True


async def _run(interaction: Interaction, callback: Callable[[Call], Awaitable[str]], phrases: CallPhrases) -> str:
    try:
        return await callback(_call_of(interaction, phrases))
    except CommandRefused as refused:
        return str(refused)
    except Exception:
        # The text of an error may hold anything, and is for the operator.
        log.exception("command /%s failed", _name(interaction))
        return phrases.say("failed")


async def _show(interaction: Interaction, text: str, phrases: CallPhrases) -> None:
    """Replace "thinking" by `text`, and post below it what does not fit."""
    pieces = split(text) or [phrases.say("nothing_to_say")]
    if len(pieces) > MAX_PIECES:
        pieces = [*pieces[: MAX_PIECES - 1], phrases.say("rest_left_out")]
    first, *more = pieces
    nobody = discord.AllowedMentions.none()
    await interaction.edit_original_response(content=first, allowed_mentions=nobody)
    for piece in more:
        await interaction.followup.send(piece, ephemeral=True, allowed_mentions=nobody, suppress_embeds=True)


def _call_of(interaction: Interaction, phrases: CallPhrases) -> Call:
    if interaction.guild_id is None or interaction.channel_id is None:
        raise CommandRefused(phrases.say("server_only"))
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
        language=phrases.language,
    )


def _name(interaction: Interaction) -> str:
    return interaction.command.qualified_name if interaction.command is not None else "?"


REGISTERING_SECONDS = 120.0

_DiscordCommand = app_commands.Command[Any, ..., None]
AppCommand = _DiscordCommand | app_commands.Group


class _Tree(app_commands.CommandTree[discord.Client]):
    def __init__(self, client: discord.Client, runner: CommandRunner) -> None:
        super().__init__(client)
        self._runner = runner

    async def on_error(self, interaction: Interaction, error: app_commands.AppCommandError, /) -> None:
        """Answer a call that does not fit a registered command, mostly of an older version of it."""
        log.warning("a command was called in an unknown form: %s", type(error).__name__)
        try:
            text = self._runner.phrases(interaction).say("command_changed")
            await interaction.response.send_message(text, ephemeral=True)
        except Exception as failure:  # noqa: BLE001 (nobody waits for this task: what it raised would be lost)
            log.debug("not answered: %s", reason(failure))


class CommandRegistry:
    """One bot's commands. They replace the commands that the application had in a guild before."""

    def __init__(
        self,
        client: discord.Client,
        offered: Mapping[str, tuple[SlashCommand[Any], Callback]],
        groups: Mapping[str, str],
        phrases: PhrasesByLocale,
        is_team: Callable[[Call], bool] = lambda _: False,
    ) -> None:
        """`offered`: by name, each command and its function; `groups`: the descriptions of groups, by the first word of
        the names of two words; `is_team`: returns True for a caller in the team.
        """
        self._runner = CommandRunner(phrases, is_team)
        self._forms = {_FORM_ID + name: each for name, each in offered.items() if each[0].form_title}
        on_interactions(client, self._fill_in)
        self._tree = _Tree(client, self._runner)
        for each in _app_commands(offered, groups, self._runner):
            self._tree.add_command(each)
        self._registered: set[int] = set()
        self._tasks = BackgroundTasks()

    def register_in(self, guild_id: int) -> None:
        """Register the commands in a guild, in the background, unless they are registered."""
        if guild_id in self._registered:
            return
        self._registered.add(guild_id)
        self._tasks.start(self._register(guild_id), name=f"commands of {guild_id}")

    async def _fill_in(self, interaction: Interaction) -> None:
        """Carry out the command whose form somebody has sent, also one that was shown before a restart."""
        data = cast("dict[str, Any]", interaction.data or {})
        known, entered = self._forms.get(data.get("custom_id", "")), entered_in(interaction)
        if known is None or entered is None:
            return
        command, callback = known
        values = {key: entered.get(key, "") for key in command.options}

        async def run(call: Call) -> str:
            if command.team_only:
                self._runner.check_team(call)
            return await callback(call, **values)

        await self._runner.answer(interaction, run)

    async def close(self) -> None:
        """Answer and register nothing more."""
        await self._tasks.close()
        await self._runner.close()

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


_FORM_ID = "command:"
"""Before the name of a command: the id of its form."""


def _modal(command: SlashCommand[Any], name: str) -> ui.Modal:
    form = ui.Modal(title=command.form_title, custom_id=_FORM_ID + name)
    for key, option in command.options.items():
        most = int(option.type.max_value)
        style = discord.TextStyle.short if most <= MAX_LINE_CHARS else discord.TextStyle.paragraph
        field = ui.TextInput[ui.Modal](custom_id=key, style=style, max_length=most)
        form.add_item(ui.Label[ui.Modal](text=key.capitalize(), description=option.description, component=field))
    form.stop()  # so that discord.py does not keep it: its id says all
    return form


def _app_commands(
    offered: Mapping[str, tuple[SlashCommand[Any], Callback]], groups: Mapping[str, str], runner: CommandRunner
) -> Iterable[AppCommand]:
    """Return discord.py's objects for the commands, and for each group."""
    found: dict[str, AppCommand] = {}
    for name, (command, callback) in offered.items():
        first, _, second = name.partition(" ")
        made = _app_command(second or first, command, callback, runner)
        if not second:
            found[first] = made
            continue
        group = found.setdefault(first, app_commands.Group(name=first, description=groups[first]))
        assert isinstance(group, app_commands.Group)  # noqa: S101 (no command is called like a group)
        group.add_command(made)
    return found.values()


def _app_command(name: str, command: SlashCommand[Any], callback: Callback, runner: CommandRunner) -> _DiscordCommand:
    async def show_form(interaction: Interaction) -> None:
        await runner.show_form(interaction, command, name)

    if command.form_title:
        return app_commands.Command(name=name, description=command.description, callback=show_form)

    async def run(interaction: Interaction, **options: Any) -> None:
        values = {key: _own_type(value) for key, value in options.items()}
        await runner.answer(interaction, lambda call: callback(call, **values), always_runs=command.always_runs)

    # discord.py reads the options from the signature.
    parameters = [Parameter("interaction", Parameter.POSITIONAL_OR_KEYWORD)]
    for key, option in command.options.items():
        default = Parameter.empty if option.required else None
        parameters.append(Parameter(key, Parameter.KEYWORD_ONLY, default=default, annotation=option.type))
    run.__signature__ = Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess] (read by `inspect`)
    described = app_commands.describe(**{key: option.description for key, option in command.options.items()})(run)
    return app_commands.Command(name=name, description=command.description, callback=described)


def _own_type(value: object) -> object:
    """Convert the value of an option into the program's own types."""
    if not isinstance(value, discord.Attachment):
        return value
    return Attachment(value.id, value.filename, value.size, value.url, value.content_type)
