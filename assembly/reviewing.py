"""Decides about drafts for the people who press the buttons in the review channel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from model.messages import Author
from services.conversations import UNKNOWN_DRAFT, DraftAction, Drafts, People
from services.discord.live import Press
from sinks.drafts import why_too_late

TEAM_ONLY = "Only the team decides about answers."


@dataclass(frozen=True, slots=True)
class TeamDesk:
    """`services.discord.live.ReviewDesk`, for the team of the server in which was asked.

    Attributes:
        drafts_with: returns the drafts among which one is, by its id; None: it is unknown here.
    """

    drafts_with: Callable[[int], Drafts | None]
    people: People

    def refusal(self, press: Press) -> str | None:
        drafts, draft_id = self.drafts_with(press.button.draft_id), press.button.draft_id
        draft = None if drafts is None else drafts.find(draft_id)
        if draft is None:
            return UNKNOWN_DRAFT
        if not self.people.is_team(Author(press.user_id, "", role_ids=press.role_ids), draft.reply.guild_id):
            return TEAM_ONLY
        return why_too_late(draft)

    def text_of(self, draft_id: int) -> str:
        drafts = self.drafts_with(draft_id)
        draft = None if drafts is None else drafts.find(draft_id)
        return "" if draft is None else draft.text

    async def decide(self, press: Press) -> str:
        drafts = self.drafts_with(press.button.draft_id)
        if drafts is None:
            return UNKNOWN_DRAFT
        button = press.button
        action, text = DraftAction(button.action), press.text or ""
        return await drafts.decide(button.draft_id, action, press.user_id, text, seen=button.version)
