"""Requests that one process answers for all: the one that keeps what is asked to be changed. They are messages of NATS
that no stream keeps; whoever asks waits for the answer.

    millrace.archive    the process that keeps the archive (role team)
    millrace.operators  the worker with partition 0, which keeps what belongs to no channel
    millrace.alerts     the same worker, which tells people what is wrong
"""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments untyped.

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error, NoRespondersError

from clock import BackgroundTasks
from transport.connection import ServerAway, subscribe

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
        raise ServerAway(f"NATS does not answer ({error or type(error).__name__}); try again") from error
    answer: Mapping[str, Any] = json.loads(reply.data)
    if _FAILED in answer:
        raise ServerAway(str(answer[_FAILED]))
    return answer


@asynccontextmanager
async def answering(client: Client, subject: str, answer: Answer) -> AsyncGenerator[None]:
    """Answer the requests on a subject until the end of the block. A request of another version, which cannot be read,
    is answered as one that failed.
    """
    tasks = BackgroundTasks()

    async def respond(message: Msg) -> None:
        try:
            said = await answer(json.loads(message.data))
        except Exception as error:  # noqa: BLE001 (whoever asked is told)
            log.warning("%s: not done: %s", subject, error or type(error).__name__)
            said = {_FAILED: str(error) or type(error).__name__}
        await message.respond(json.dumps(said).encode())

    async def on_request(message: Msg) -> None:
        tasks.start(respond(message))

    subscription = await subscribe(client, subject, on_request)
    try:
        yield
    finally:
        await subscription.unsubscribe()
        await tasks.close()
