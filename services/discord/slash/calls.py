"""Calls of commands: what a callback gets and may raise, and the answer that the caller alone sees."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

import discord

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
        if self._wishes:
            await asyncio.wait(self._wishes, timeout=PRIVACY_COMMAND_SECONDS)
        tasks = [*self._tasks, *self._wishes]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begun(self, wish: Coroutine[Any, Any, str]) -> asyncio.Task[str]:
        task = asyncio.create_task(wish)
        self._wishes.add(task)
        task.add_done_callback(self._wishes.discard)
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
