"""Refuse an export while a request to be forgotten is open, or arrives: the exported files might still hold that
person's data.
"""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

from nats.errors import TimeoutError as NothingHeard
from nats.js import JetStreamContext
from nats.js.kv import KeyValue

from transport.bucket import values
from transport.errors import ServersUnusable
from transport.layout import PEOPLE
from transport.wishes import FORGET

LAST_SECONDS = 0.3
"""How long it is listened, once all is read, for what was wished just before."""


@asynccontextmanager
async def no_open_forget_requests(streams: JetStreamContext) -> AsyncGenerator[Callable[[], Awaitable[None]]]:
    """Gives what is to be awaited when all is read.

    Both raise ServersUnusable: somebody has wished to be forgotten, and not everything of it is done; or has wished it meanwhile,
    so that some of what was read is from before.
    """
    watching = await (await streams.key_value(PEOPLE)).watch(f"{FORGET}.*")
    try:
        known = await values(streams, PEOPLE, f"{FORGET}.*")
        left = {scope for key, value in known.items() for scope in _left(key, value)}
        if left:
            raise ServersUnusable(
                f"--export: a wish to be forgotten is not carried out yet ({', '.join(sorted(left))}): let processes "
                "with the roles worker and team run until it is, then export again"
            )

        async def still_none() -> None:
            while True:
                try:
                    heard = await watching.updates(timeout=LAST_SECONDS)
                except NothingHeard:
                    return
                if isinstance(heard, KeyValue.Entry) and heard.value and heard.value != known.get(heard.key):
                    raise ServersUnusable("--export: somebody has wished to be forgotten meanwhile: export again")

        yield still_none
    finally:
        await watching.stop()


def _left(key: str, value: bytes) -> list[str]:
    """The scopes that are still to be dealt with. A damaged wish is one that nobody has carried out."""
    if not value:
        return []
    try:
        told = cast("dict[str, Any]", json.loads(value))
        return [str(each) for each in told["left"]]
    except (ValueError, KeyError, TypeError):
        return [f"{key} is damaged"]
