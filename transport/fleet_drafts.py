"""The drafts of all workers, for the dashboard of one of them: asked for over NATS each time."""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments untyped.

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error

from clock import BackgroundTasks
from services.conversations import UNKNOWN_DRAFT, Draft, DraftAction, Drafts, parse_draft, render_draft
from transport.connection import subscribe
from transport.members import Members
from transport.rebalancing import WORKER

SUBJECT = "millrace.drafts"
LIST_SECONDS = 2.0
"""How long the other workers may take to list their drafts."""
DECISION_SECONDS = 60.0
MOST_LISTED = 100
"""The number of drafts that one worker lists, oldest first: a message of NATS has a limit."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FleetDrafts:
    """Implements `dashboard.DraftList`. Drafts in partitions that nobody owns at the moment are left out."""

    client: Client
    members: Members

    async def waiting(self) -> Sequence[Draft]:
        members = await self.members.list_alive()
        workers = sum(WORKER in member.roles for member in members.values())
        lines = [line async for data in self._ask({}, workers, LIST_SECONDS) for line in data.splitlines()]
        found = (parse_draft(line) for line in lines)
        return sorted((draft for draft in found if draft is not None), key=lambda draft: (draft.held_at, draft.id))

    async def decide(self, draft_id: int, action: DraftAction, *, operator: str, text: str = "", seen: str = "") -> str:
        asked = {"draft_id": draft_id, "action": action, "text": text, "seen": seen, "operator": operator}
        async for data in self._ask(asked, 1, DECISION_SECONDS):
            return data.decode()
        return f"No worker has answered. {UNKNOWN_DRAFT}"

    async def _ask(self, asked: dict[str, Any], most: int, seconds: float) -> AsyncGenerator[bytes]:
        inbox = self.client.new_inbox()
        replies = await self.client.subscribe(inbox)
        try:
            await self.client.publish(SUBJECT, json.dumps(asked).encode(), reply=inbox)
            for _ in range(most):
                yield (await replies.next_msg(timeout=seconds)).data
        except (TimeoutError, Error) as error:
            log.info("drafts: not all workers have answered (%s)", error or type(error).__name__)
        finally:
            await replies.unsubscribe()


def listed(waiting: Iterable[Draft], most_bytes: int) -> bytes:
    """Return as many of the drafts as a message holds, a line each, without what no dashboard shows."""
    found = b""
    for draft in waiting:
        line = render_draft(replace(draft, asked_texts=()))
        if len(found) + len(line) > most_bytes:
            log.warning("drafts: more wait than the dashboard of another worker is sent (max_payload of NATS)")
            break
        found += line
    return found


@asynccontextmanager
async def answer_fleet(client: Client, owned: Callable[[], Iterable[Drafts]]) -> AsyncGenerator[None]:
    """Answer the dashboards of other workers until the end of the block. `owned`: gives the drafts of this worker."""
    tasks = BackgroundTasks()

    async def decide(message: Msg, asked: dict[str, Any]) -> None:
        draft_id = int(asked["draft_id"])
        for drafts in owned():
            if drafts.find(draft_id) is not None:
                # A worker of an earlier version does not say who it is, nor what was seen.
                action, text = DraftAction(asked["action"]), str(asked["text"])
                seen, operator = str(asked.get("seen", "")), str(asked.get("operator", ""))
                told = await drafts.decide(draft_id, action, text=text, seen=seen, operator=operator)
                await message.respond(told.encode())
                return

    async def on_request(message: Msg) -> None:
        asked = json.loads(message.data)
        if asked:
            tasks.start(decide(message, asked))
        else:
            waiting = chain.from_iterable(drafts.waiting for drafts in owned())
            await message.respond(listed(islice(waiting, MOST_LISTED), client.max_payload))

    subscription = await subscribe(client, SUBJECT, on_request)
    try:
        yield
    finally:
        await subscription.unsubscribe()
        await tasks.close()
