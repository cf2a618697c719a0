"""A lock that expires by itself: the first process to ask does a job that is needed once for all."""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import logging

from nats.aio.client import Client
from nats.js.errors import KeyWrongLastSequenceError

from transport.connection import AWAY, streams_of
from transport.layout import LOCKS

log = logging.getLogger(__name__)


async def claim_once(client: Client, key: str, process: str, seconds: int) -> bool:
    """True for the first process that asks for `key` within `seconds`. Also True if the server does not answer: doing
    the
    job twice is better than not at all.
    """
    try:
        await (await streams_of(client).key_value(LOCKS)).create(key, process.encode(), msg_ttl=seconds)
    except KeyWrongLastSequenceError:
        return False
    except AWAY as error:
        log.info("%s: the server does not tell who does it (%s)", key, error)
    return True
