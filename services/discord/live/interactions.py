"""Interactions that discord.py dispatches to nothing of its own, since neither view nor form is kept in memory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, cast

import discord

Listener = Callable[[discord.Interaction[discord.Client]], Awaitable[None]]


def on_interactions(client: discord.Client, listener: Listener) -> None:
    """Have `listener` called with each interaction of a client, after those that were added before."""
    earlier: Listener | None = getattr(client, "on_interaction", None)

    async def on_interaction(interaction: discord.Interaction[discord.Client]) -> None:
        if earlier is not None:
            await earlier(interaction)
        await listener(interaction)

    client.event(on_interaction)


def entered_in(interaction: discord.Interaction[discord.Client]) -> dict[str, str] | None:
    """Return what somebody entered in a form, by the ids of its fields; None: the interaction is no form."""
    if interaction.type is not discord.InteractionType.modal_submit:
        return None
    return dict(_fields(cast("dict[str, Any]", interaction.data or {}).get("components")))


def _fields(components: object) -> Iterator[tuple[str, str]]:
    """Yield the ids and values of fields, wherever Discord nests them."""
    if isinstance(components, list):
        for each in cast("list[object]", components):
            yield from _fields(each)
    elif isinstance(components, dict):
        found = cast("dict[str, object]", components)
        if isinstance(value := found.get("value"), str):
            yield str(found.get("custom_id")), value
        yield from _fields(found.get("component"))
        yield from _fields(found.get("components"))
