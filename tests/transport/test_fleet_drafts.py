"""The dashboard of one worker lists the drafts of all, and has them decided about where they are."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from nats.aio.client import Client

from services.conversations.drafts import DraftAction, DraftEnd, DraftRequest, Drafts
from tests.services.conversations.made_drafts import made_draft
from tests.transport.connected import client
from transport import requests
from transport.members import Member, Members
from transport.requests import FleetDrafts, answer_fleet

__all__ = ["client"]

pytestmark = pytest.mark.real_time


@dataclass
class AliveMembers:
    alive: dict[str, Member] = field(
        default_factory=lambda: {name: Member(name, roles) for name, roles in (("a", ("worker",)), ("b", ("gateway",)))}
    )

    async def list_alive(self) -> dict[str, Member]:
        return self.alive


async def drafts_in(folder: Path, *ids: int) -> Drafts:
    drafts = Drafts(folder)
    for draft_id in ids:
        await drafts.put(made_draft(draft_id, held_at=float(draft_id), text="Run it.\nThen this."))

    def on_request(request: DraftRequest) -> None:
        request.tell(f"{request.operator}: {request.action} {request.draft_id} {request.text}".strip())

    drafts.requests.subscribe(on_request)
    return drafts


async def test_drafts_of_all_workers_are_listed_and_decided_about(client: Client, tmp_path: Path) -> None:
    first, second = await drafts_in(tmp_path / "1", 9, 11), await drafts_in(tmp_path / "2", 10, 12)
    await second.put(made_draft(12).as_ended(DraftEnd.DISCARDED, 5, 0.0))
    members = AliveMembers()
    members.alive["c"] = Member("c", ("worker",))
    fleet = FleetDrafts(client, cast("Members", members))
    async with answer_fleet(client, lambda: [first]), answer_fleet(client, lambda: [second]):
        waiting = await fleet.waiting()
        assert [draft.id for draft in waiting] == [9, 10, 11]
        assert waiting[0].text == "Run it.\nThen this."
        assert await fleet.decide(10, DraftAction.EDIT, operator="ana", text="Do so.") == "ana: edit 10 Do so."
        assert await fleet.decide(9, DraftAction.POST, operator="bob") == "bob: post 9"
        # As a dashboard of an earlier version asks.
        asked = json.dumps({"draft_id": 9, "action": "post", "text": ""}).encode()
        assert (await client.request(requests.DRAFTS, asked, timeout=5)).data == b": post 9"


async def test_long_drafts_leave_room_for_each_other(
    client: Client, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    drafts = await drafts_in(tmp_path, 9)
    for number in range(10, 20):
        await drafts.put(made_draft(number, held_at=float(number), asked_texts=("y" * (client.max_payload // 5),)))
    fleet = FleetDrafts(client, cast("Members", AliveMembers()))
    async with answer_fleet(client, lambda: [drafts]):
        assert [draft.id for draft in await fleet.waiting()] == [*range(9, 20)]
        for number in range(20, 30):
            await drafts.put(made_draft(number, held_at=float(number), text="y" * (client.max_payload // 5)))
        assert [draft.id for draft in await fleet.waiting()] == [*range(9, 24)]
    assert "more wait than the dashboard" in caplog.text


async def test_a_worker_that_is_silent_is_left_out(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "LIST_SECONDS", 0.1)
    monkeypatch.setattr(requests, "DECISION_SECONDS", 0.1)
    members: Any = AliveMembers()
    members.alive["c"] = Member("c", ("worker",))
    drafts = await drafts_in(tmp_path, 9)
    async with answer_fleet(client, lambda: [drafts]):
        assert [draft.id for draft in await FleetDrafts(client, members).waiting()] == [9]
        assert "not known any more" in await FleetDrafts(client, members).decide(5, DraftAction.POST, operator="ana")
