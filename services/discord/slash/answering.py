"""The answer to a command: seen by the caller alone, in pieces that Discord takes, and never a traceback."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import discord

from services.discord.live.calls import FAILURES, reason
from services.discord.slash.calls import Call, CommandRefused
from services.discord.text import split

Interaction = discord.Interaction[discord.Client]

NOTHING = "There is nothing to say."
FAILED = "That did not work. Please try again later; if it goes on, tell the people who run this bot."
STOPPING = "The bot is being restarted. Please try again in a minute."
MANY_PIECES = 10
"""Discord takes few follow-ups to one command at once, and nobody reads more of them."""
CUT = "… (the rest is left out)"

log = logging.getLogger(__name__)


class Answering:
    """Runs callbacks and shows what they say. `close` ends what is under way."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[object]] = set()
        self._closing = False

    async def answer(self, interaction: Interaction, say: Callable[[Call], Awaitable[str]]) -> None:
        """Answer one call. Never raises, but when it is cancelled."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 (a coroutine runs in a task)
        self._tasks.add(task)
        try:
            # Within three seconds, or Discord says that the bot did not respond.
            await interaction.response.defer(ephemeral=True, thinking=True)
            await show(interaction, STOPPING if self._closing else await self._said(interaction, say))
        except asyncio.CancelledError:
            if not self._closing:
                raise
        except FAILURES as error:
            log.warning("command /%s: not answered: %s", _name(interaction), reason(error))
        except Exception:
            log.exception("command /%s: not answered", _name(interaction))
        finally:
            self._tasks.discard(task)

    async def close(self) -> None:
        """Answer nothing more; what is under way is given up."""
        self._closing = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _said(self, interaction: Interaction, say: Callable[[Call], Awaitable[str]]) -> str:
        try:
            return await say(call_of(interaction))
        except CommandRefused as refused:
            return str(refused)
        except Exception:
            # What an error says may hold anything, and is for the operator.
            log.exception("command /%s failed", _name(interaction))
            return FAILED


async def show(interaction: Interaction, text: str) -> None:
    """Put `text` in the place of "thinking", and what does not fit below it.

    Raises:
        discord.DiscordException, aiohttp.ClientError, OSError, RuntimeError: Discord did not take it.
    """
    pieces = split(text) or [NOTHING]
    if len(pieces) > MANY_PIECES:
        pieces = [*pieces[: MANY_PIECES - 1], CUT]
    first, *more = pieces
    nobody = discord.AllowedMentions.none()
    await interaction.edit_original_response(content=first, allowed_mentions=nobody)
    for piece in more:
        await interaction.followup.send(piece, ephemeral=True, allowed_mentions=nobody, suppress_embeds=True)


def call_of(interaction: Interaction) -> Call:
    """Raises `CommandRefused` outside of servers, where no command is registered."""
    if interaction.guild_id is None or interaction.channel_id is None:
        raise CommandRefused("Commands work in a server only.")
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
    )


def _name(interaction: Interaction) -> str:
    return interaction.command.qualified_name if interaction.command is not None else "?"
