"""Requests that other processes answer: one for all, which keeps what is asked to be changed; or each worker, about its
drafts. They are messages of NATS that no stream keeps; whoever asks waits for the answer.

    millrace.archive    the process that keeps the archive (role team)
    millrace.operators  the worker with partition 0, which keeps what belongs to no channel
    millrace.alerts     the same worker, which tells people what is wrong
    millrace.drafts     every worker, for the dashboard of one of them
"""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments untyped.

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error, NoRespondersError

from clock import BackgroundTasks
from services.conversations import UNKNOWN_DRAFT, Draft, DraftAction, Drafts, parse_draft, render_draft
from transport.connection import ServerAway, subscribe
from transport.members import Members
from transport.rebalancing import WORKER

ARCHIVE, OPERATORS, ALERTS = "millrace.archive", "millrace.operators", "millrace.alerts"
KEEPERS: Mapping[str, str] = {
    ARCHIVE: "no process keeps the archive now; start one with --role team",
    OPERATORS: "no worker has partition 0 now; start one with --role worker",
    ALERTS: "no worker has partition 0 now",
}
"""Who answers each subject, and what to do if nobody does."""
ANSWER_SECONDS = 10.0
_FAILED = "failed"

Answer = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""Answers a request, both as JSON objects. What it raises is told to whoever asked, in its own words."""

log = logging.getLogger(__name__)


async def ask(
    client: Client, subject: str, asked: Mapping[str, Any], seconds: float = ANSWER_SECONDS
) -> Mapping[str, Any]:
    """Ask the process that keeps what `subject` is about, and return its answer. Raises ServerAway: nobody answers in
    time, or the request failed there; it says why and what to do.
    """
    try:
        reply = await client.request(subject, json.dumps(asked).encode(), timeout=seconds)
    except NoRespondersError:
        raise ServerAway(KEEPERS[subject]) from None
    except TimeoutError:
        raise ServerAway(f"no answer within {seconds:g} s; look whether it is done, and try again") from None
    except Error as error:
        raise ServerAway(f"NATS does not answer ({str(error) or type(error).__name__}); try again") from error
    answer: Mapping[str, Any] = json.loads(reply.data)
    if _FAILED in answer:
        raise ServerAway(str(answer[_FAILED]))
    return answer


@asynccontextmanager
async def answering(client: Client, subject: str, answer: Answer) -> AsyncGenerator[None]:
    """Answer the requests on a subject until the end of the block; with an error one that cannot be read."""

    async def respond(message: Msg) -> None:
        try:
            said = await answer(json.loads(message.data))
        except Exception as error:  # noqa: BLE001 (whoever asked is told)
            log.warning("%s: not done: %s", subject, str(error) or type(error).__name__)
            said = {_FAILED: str(error) or type(error).__name__}
        await message.respond(json.dumps(said).encode())

    async with _responding(client, subject, respond):
        yield


@asynccontextmanager
async def _responding(
    client: Client, subject: str, respond: Callable[[Msg], Coroutine[Any, Any, None]]
) -> AsyncGenerator[None]:
    """Begin to `respond` to each message at once, until the end of the block."""
    tasks = BackgroundTasks()

    async def on_message(message: Msg) -> None:
        tasks.start(respond(message))

    subscription = await subscribe(client, subject, on_message)
    try:
        yield
    finally:
        await subscription.unsubscribe()
        await tasks.close()


# The drafts of all workers

DRAFTS = "millrace.drafts"
LIST_SECONDS = 2.0
"""How long the other workers may take to list their drafts."""
DECISION_SECONDS = 60.0
MAX_LISTED = 100
"""The number of drafts that one worker lists, oldest first: a message of NATS has a limit."""


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
            await self.client.publish(DRAFTS, json.dumps(asked).encode(), reply=inbox)
            for _ in range(most):
                yield (await replies.next_msg(timeout=seconds)).data
        except (TimeoutError, Error) as error:
            log.info("drafts: not all workers have answered (%s)", str(error) or type(error).__name__)
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

    async def respond(message: Msg) -> None:
        asked = json.loads(message.data)
        if not asked:
            waiting = chain.from_iterable(drafts.waiting for drafts in owned())
            await message.respond(listed(islice(waiting, MAX_LISTED), client.max_payload))
            return
        draft_id = int(asked["draft_id"])
        drafts = next((each for each in owned() if each.find(draft_id) is not None), None)
        if drafts is not None:
            # A worker of an earlier version does not say who it is, nor what was seen.
            action, text = DraftAction(asked["action"]), str(asked["text"])
            seen, operator = str(asked.get("seen", "")), str(asked.get("operator", ""))
            told = await drafts.decide(draft_id, action, text=text, seen=seen, operator=operator)
            await message.respond(told.encode())

    async with _responding(client, DRAFTS, respond):
        yield
