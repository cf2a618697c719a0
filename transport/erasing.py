"""Secure deletion: overwrite messages in the server's files instead of only removing them from the stream.

What a newer message replaces, or a purge takes out, stays in the block files until the server makes them anew. What is
deleted by its number is overwritten at once, on each replica.
"""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

from nats.js import JetStreamContext
from nats.js.errors import APIError

from transport.fence import read_stream
from transport.protocol import NO_MESSAGE, NOT_DELETED


async def erase(streams: JetStreamContext, stream: str, subject: str, before: int | None = None) -> int:
    """Overwrite the messages of a subject. `before`: only those with a smaller number. Gives how many there were.
    Raises as the client.
    """
    numbers = [
        message.metadata.sequence.stream
        async for message in read_stream(streams, stream, subject, headers_only=True)
        if before is None or message.metadata.sequence.stream < before
    ]
    for number in numbers:
        try:
            await streams.delete_msg(stream, number)
        except APIError as error:
            if error.err_code not in (NO_MESSAGE, NOT_DELETED):
                raise
    return len(numbers)
