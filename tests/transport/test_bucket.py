"""Values by key, read at once."""

from __future__ import annotations

import asyncio

import pytest
from nats.aio.client import Client

from tests.transport.connected import client
from transport.connection import streams_of
from transport.key_value import KeyBucket, read_values
from transport.streams import PEOPLE

__all__ = ["client"]

pytestmark = pytest.mark.real_time


async def test_what_is_kept_now_is_read(client: Client) -> None:
    bucket = KeyBucket(streams_of(client), PEOPLE)
    assert await read_values(streams_of(client), PEOPLE) == {}
    for key, value in {"a.1": b"one", "a.2": b"two", "b": b"three", "gone": b"four"}.items():
        await bucket.put(key, value)
    await bucket.put("a.1", b"newer")
    await bucket.remove("gone")
    purged = await streams_of(client).key_value(PEOPLE)
    await purged.put("deleted", b"five")
    await purged.purge("deleted")
    assert await read_values(streams_of(client), PEOPLE) == {"a.1": b"newer", "a.2": b"two", "b": b"three"}
    assert await read_values(streams_of(client), PEOPLE, "a.*") == {"a.1": b"newer", "a.2": b"two"}


async def test_a_busy_process_finds_all_that_there_is(client: Client) -> None:
    """A watcher of nats-py sometimes says that there is nothing."""
    await KeyBucket(streams_of(client), PEOPLE).put("a", b"one")
    found = await asyncio.gather(*(read_values(streams_of(client), PEOPLE) for _ in range(50)))
    assert found == [{"a": b"one"}] * 50


async def test_the_marker_of_a_purged_key_counts_as_its_revision(client: Client) -> None:
    bucket = KeyBucket(streams_of(client), PEOPLE)
    assert await bucket.get("key") == (b"", 0)
    await bucket.put("key", b"one")
    await bucket.purge_with_ttl("key", 60)
    value, revision = await bucket.get("key")
    assert (value, revision > 0) == (b"", True)
    assert not await bucket.put("key", b"two", 0)
    assert await bucket.put("key", b"two", revision)
