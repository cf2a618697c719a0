"""The answers that wait for approval, as the dashboard shows them and lets one decide."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from aiohttp.test_utils import TestClient

from services.conversations import Draft, DraftAction, DraftEnd, DraftRequest, DraftState
from sinks.drafts import edited_meanwhile, why_too_late
from tests.dashboard.made import ANNA, AT, GUILD, HELP, NASTY, TOKEN, Box, page, served
from tests.services.conversations.made_drafts import made_draft

pytestmark = pytest.mark.real_time

DRAFT = made_draft(
    0xA2,
    channel_id=HELP,
    asker_id=ANNA,
    question=f"How do I restore? {NASTY}",
    text=f"Run restore. {NASTY}",
    held_at=AT,
    until=AT + 86_400,
)


@dataclass
class FakeDrafts:
    """Ends a draft by every decision but an edit."""

    drafts: list[Draft] = field(default_factory=lambda: [DRAFT])
    decided: list[tuple[int, str, str, str]] = field(default_factory=list[tuple[int, str, str, str]])
    by: list[str] = field(default_factory=list[str])

    async def waiting(self) -> Sequence[Draft]:
        return self.drafts

    async def decide(self, draft_id: int, action: DraftAction, *, operator: str, text: str = "", seen: str = "") -> str:
        self.by.append(operator)
        self.decided.append((draft_id, str(action), text, seen))
        if action is DraftAction.EDIT:
            self.drafts = [replace(DRAFT, text=text, edited_by=0)]
        else:
            self.drafts = []
        return f"Done: {action}."


async def send(client: TestClient[Any, Any], action: str, **data: str) -> tuple[int, str]:
    shown = dict(re.findall(r'name="(key|seen)" value="(\w+)"', await page(client, "/drafts")))
    form = {"key": "", **shown, **data}
    async with client.post(f"/drafts/{DRAFT.id}/{action}", data=form) as response:
        return response.status, await response.text()


@pytest.mark.parametrize(
    ("action", "changed", "says"),
    [
        ("edit", {"text": "Newer.", "edited_by": ANNA}, "{} has edited the answer meanwhile"),
        ("post", {"state": DraftState.APPROVED, "decided_by": ANNA}, "{} has approved it"),
        ("discard", {"state": DraftState.ENDED, "end": DraftEnd.POSTED, "decided_by": ANNA}, "Posted by {}."),
    ],
)
async def test_who_was_faster_is_told_by_a_pseudonym(action: str, changed: dict[str, Any], says: str) -> None:
    """As everywhere; what is given back of the operator's own text stays."""

    class Slow(FakeDrafts):
        async def decide(
            self, draft_id: int, action: DraftAction, *, operator: str, text: str = "", seen: str = ""
        ) -> str:
            draft = replace(DRAFT, **changed)
            request = DraftRequest(draft_id, action, text=text, seen=seen, operator=operator)
            return why_too_late(draft) or edited_meanwhile(draft, request)

    async with served(Box(drafts=Slow())) as client:
        _, shown = await send(client, action, text="Ask <@5> for *more*.")
    who = "@" + (f"{ANNA:x}" * 8)[:8]
    assert says.format(who) in html.unescape(shown)
    assert str(ANNA) not in shown
    assert ("Ask <@5> for *more*." in html.unescape(shown)) is (action == "edit")


@pytest.mark.parametrize("texts", [False, True])
async def test_the_list_shows_what_waits_and_texts_only_where_asked_for(texts: bool) -> None:
    async with served(Box(texts=texts, drafts=FakeDrafts())) as client:
        assert '1 answer waits for approval, the oldest for <span class="number">1 h<' in await page(client, "/answers")
        shown = await page(client, "/drafts")
    assert "1 answer waits for approval" in shown
    assert "confidence 0.42" in shown
    assert "restore.md" in shown
    assert f"https://discord.com/channels/{GUILD}/{HELP}/{0xA2}" in shown
    assert f"https://discord.com/channels/{GUILD}/77/78" in shown
    assert NASTY not in shown
    assert str(ANNA) not in shown
    assert ("How do I restore?" in shown) is texts
    assert ("Run restore." in shown) is texts
    assert ("textarea" in shown) is texts
    assert "keep as the team" not in shown


async def test_a_draft_is_edited_and_posted() -> None:
    drafts = FakeDrafts()
    async with served(Box(texts=True, drafts=drafts)) as client:
        status, shown = await send(client, "edit", text="Line one.\r\nLine two.")
        assert (status, "Done: edit." in shown, "keep as the team" in shown) == (200, True, True)
        status, shown = await send(client, "post")
        assert (status, "Done: post." in shown, "0 answers wait" in shown) == (200, True, True)
    text = "Line one.\nLine two."
    assert drafts.decided == [
        (DRAFT.id, "edit", text, DRAFT.version),
        (DRAFT.id, "post", "", replace(DRAFT, text=text).version),
    ]


async def test_a_form_of_another_site_and_a_stranger_decide_nothing() -> None:
    drafts = FakeDrafts()
    async with served(Box(drafts=drafts)) as client:
        assert (await send(client, "post", key="0"))[0] == 403
    async with served(Box(drafts=drafts, token=TOKEN)) as client:
        async with client.post(f"/drafts/{DRAFT.id}/post") as response:
            assert response.status == 401
        async with client.get("/drafts", allow_redirects=False) as response:
            assert response.status == 303
    assert drafts.decided == []


async def test_an_unknown_action_is_no_page() -> None:
    drafts = FakeDrafts()
    async with served(Box(drafts=drafts)) as client:
        assert (await send(client, "resume"))[0] == 404
    assert drafts.decided == []


async def test_where_nothing_waits_there_is_no_page_and_no_link() -> None:
    async with served(Box()) as client:
        assert "/drafts" not in await page(client, "/answers")
        async with client.get("/drafts") as response:
            assert response.status == 404


async def test_what_is_being_posted_cannot_be_decided_about() -> None:
    posting = replace(DRAFT, state=DraftState.APPROVED, end=DraftEnd.POSTED)
    async with served(Box(drafts=FakeDrafts([posting]))) as client:
        shown = await page(client, "/drafts")
    assert "It is being posted" in shown
    assert "<button>Post" not in shown
