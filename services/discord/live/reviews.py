"""`Reviews` over REST, and what people press in the review channel."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

import discord
from discord import ui

from services.discord.live.calls import FAILURES, reason
from services.discord.live.interactions import entered_in, on_interactions
from services.discord.live.rest import DiscordPoster, RestFetcher
from services.discord.protocols import PAGE_SIZE, PostFailed
from services.discord.review_cards import MAX_FORM_CHARS, DraftButton, ReviewCard, buttons_on, parse_button
from services.discord.text import split

log = logging.getLogger(__name__)

MAX_PAGES = 10

_BUTTONS = {
    "post": ("Post", discord.ButtonStyle.success),
    "edit": ("Edit", discord.ButtonStyle.primary),
    "discard": ("Discard", discord.ButtonStyle.danger),
    "keep": ("Post, and keep as the team's answer", discord.ButtonStyle.success),
}


@dataclass(frozen=True, slots=True)
class DiscordReviews:
    """Shows drafts in the review channel (`Reviews`). `client`: knows the bot's own user."""

    poster: DiscordPoster
    fetcher: RestFetcher
    client: discord.Client

    async def offer(self, channel_id: int, card: ReviewCard, *, nonce: str) -> int:
        return await self.poster.send_view(channel_id, _view_of(card), nonce=nonce)

    async def show(self, channel_id: int, message_id: int, card: ReviewCard) -> None:
        try:
            await self.poster.edit_view(channel_id, message_id, _view_of(card))
        except PostFailed as failure:
            if not isinstance(failure.__cause__, discord.NotFound):
                raise

    async def find(self, channel_id: int, draft_id: int) -> int | None:
        after = draft_id
        for _ in range(MAX_PAGES):
            page = await self.fetcher.payloads(channel_id, after=after)
            for payload in page:
                # A card is known by its buttons, not by its texts: it quotes people, who may write what they like. Only
                # the bot's own messages count, as other bots could post a card with the same buttons.
                if self._is_own(payload) and any(each.draft_id == draft_id for each in buttons_on(payload)):
                    return int(payload["id"])
            if len(page) < PAGE_SIZE:
                break
            after = int(page[-1]["id"])
        return None

    def _is_own(self, payload: Mapping[str, Any]) -> bool:
        return self.client.user is not None and payload["author"]["id"] == str(self.client.user.id)


def _view_of(card: ReviewCard) -> ui.LayoutView:
    view = ui.LayoutView(timeout=None)
    for text in card.texts:
        view.add_item(ui.TextDisplay[ui.LayoutView](text))
    if card.actions:
        row = ui.ActionRow[ui.LayoutView]()
        for action in card.actions:
            label, style = _BUTTONS[action]
            custom_id = DraftButton(card.channel_id, card.draft_id, action, card.version).custom_id
            row.add_item(ui.Button[ui.LayoutView](label=label, style=style, custom_id=custom_id))
        view.add_item(row)
    return view


@dataclass(frozen=True, slots=True)
class Press:
    """A button that somebody pressed. `text`: what they entered in the form of *Edit*; None: it is not shown yet."""

    button: DraftButton
    user_id: int
    role_ids: tuple[int, ...]
    text: str | None = None


class ReviewDesk(Protocol):
    """Decides about drafts."""

    def refusal(self, press: Press) -> str | None:
        """Return a sentence for somebody who may not decide, or comes too late; None: the press is carried out."""
        ...

    def text_of(self, draft_id: int) -> str: ...

    def decide(self, press: Press) -> Awaitable[str]:
        """Carry a press out, and return one sentence for the person."""
        ...


def watch_presses(client: discord.Client, desk: ReviewDesk) -> None:
    """From now on have `desk` carry out each press of a draft's button, and each form of *Edit* that is sent.

    A press carries the id of its button, which names the draft and the action. So it can be carried out after a restart
    and in any process. `discord.ui` could not do that: it knows only buttons and forms that it has in memory.
    """

    async def on_interaction(interaction: discord.Interaction[discord.Client]) -> None:
        press = _press_of(interaction)
        if press is None:
            return
        try:
            await _carry_out(interaction, press, desk)
        except FAILURES as error:
            log.warning("drafts: a press of %s was not answered: %s", press.button.action, reason(error))
        except Exception:
            log.exception("drafts: a press of %s failed", press.button.action)

    on_interactions(client, on_interaction)


async def _carry_out(interaction: discord.Interaction[discord.Client], press: Press, desk: ReviewDesk) -> None:
    nobody, refused = discord.AllowedMentions.none(), desk.refusal(press)
    if refused is None and press.button.action == "edit" and press.text is None:
        text = desk.text_of(press.button.draft_id)
        if len(text) <= MAX_FORM_CHARS:
            await interaction.response.send_modal(_form(press.button, text))
            return
        refused = f"Discord's form takes {MAX_FORM_CHARS:,} characters, and this answer has {len(text):,}: "
        refused += "edit it at the dashboard."
    if refused is not None:
        await interaction.response.send_message(refused, ephemeral=True, allowed_mentions=nobody)
        return
    await interaction.response.defer(ephemeral=True, thinking=True)
    first, *rest = split(await desk.decide(press))
    await interaction.edit_original_response(content=first, allowed_mentions=nobody)
    for piece in rest:
        await interaction.followup.send(piece, ephemeral=True, allowed_mentions=nobody)


def _form(button: DraftButton, text: str) -> ui.Modal:
    form = ui.Modal(title="Edit the answer", custom_id=button.custom_id)
    answer = ui.TextInput[ui.Modal](style=discord.TextStyle.paragraph, default=text, max_length=MAX_FORM_CHARS)
    form.add_item(ui.Label[ui.Modal](text="The answer, as it is to be posted", component=answer))
    form.stop()  # so that discord.py does not wait for it
    return form


def _press_of(interaction: discord.Interaction[discord.Client]) -> Press | None:
    data = cast("dict[str, Any]", interaction.data or {})
    button = parse_button(data.get("custom_id"))
    if button is None:
        return None
    user, entered = interaction.user, entered_in(interaction)
    text = None if entered is None else next(iter(entered.values()), "")
    roles = tuple(role.id for role in user.roles) if isinstance(user, discord.Member) else ()
    return Press(button, user.id, roles, text)
