"""The JetStream streams and buckets that the processes share: their names and configuration, created once and compared
at every start; how a stream is read and watched; the headers and error codes of the server that nats-py does not name.
"""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error, NoRespondersError
from nats.js import JetStreamContext, api

from clock import DAY, rfc3339
from transport.address import ServersUnusable
from transport.connection import ANSWER_SECONDS, streams_of

MESSAGE_ID = "Nats-Msg-Id"
ROLLUP, TTL = "Nats-Rollup", "Nats-TTL"
EXPECTED_LAST = "Nats-Expected-Last-Subject-Sequence"
EXPECTED_LAST_SUBJECT = "Nats-Expected-Last-Subject-Sequence-Subject"
# Headers of a bucket's entries: what was done to a key, and why the server itself did it.
KV_OPERATION, KV_PURGE, MARKER_REASON = "KV-Operation", "PURGE", "Nats-Marker-Reason"

# Error codes of the server.
NO_MESSAGE = 10037
"""The stream has no message of that subject or number."""
NO_STREAM = 10059
NOT_TO_DELETE = (10043, 10057)
"""The message that is to be deleted is not in its stream, or no longer."""
CONSUMER_EXISTS = 10100
"""A work queue has a consumer for these subjects."""
WRONG_EXPECTED_LAST = (10071, 10164)
"""Somebody else has written since."""
DUPLICATE_BEING_STORED, STREAM_FULL = 10158, 10077
_PERMANENT_CODES = range(400, 500)


def may_pass(code: int | None, err_code: int | None) -> bool:
    """Return True if the server may take the same message later, by both codes of its error. A server without a leader
    answers 503. Of two copies of one message, the second is refused until the servers agree on the first.
    """
    return err_code == DUPLICATE_BEING_STORED or code not in _PERMANENT_CODES


_FNV_OFFSET, _FNV_PRIME = 0x811C9DC5, 0x01000193


@lru_cache(maxsize=1 << 14)
def partition_of(channel_id: int, partitions: int) -> int:
    """Return the partition of a channel: 32-bit FNV-1a of the id's decimal digits, modulo the number of partitions. It
    is the hash that the server uses.
    """
    hashed = _FNV_OFFSET
    for byte in str(channel_id).encode():
        hashed = (hashed ^ byte) * _FNV_PRIME & 0xFFFFFFFF
    return hashed % partitions


MESSAGES, PLACES, CAPTURES, ROLES, LOG = "MESSAGES", "PLACES", "CAPTURES", "ROLES", "LOG"
MEMBERS, LOCKS, SEEN, PEOPLE, BUDGETS = "members", "locks", "seen", "people", "budgets"
BLOBS, EVIDENCE = "blobs", "evidence"

DUPLICATE_SECONDS = 300
"""How long the server recognises a repeated message: catch-up and a second gateway publish the same ones."""
CREATE_PAUSES = (0.1, 0.3, 1.0)
"""Seconds between tries to create a stream: after a deletion, or while it elects a leader, the server refuses."""
QUEUE_BYTES = 4 * 1024**3
"""Size limit of a work queue; beyond it the server refuses messages, and gateways wait."""
NANOS = 1_000_000_000  # in a second


@dataclass(frozen=True, slots=True)
class Layout:
    """The settings that streams and buckets are created with.

    Attributes:
        partitions: fixed once the stream of messages exists.
        lease_seconds: after so long without a sign of life, others take over.
        replicas: how many servers keep each message.
    """

    partitions: int = 32
    lease_seconds: float = 3.0
    replicas: int = 1

    def scopes(self) -> list[str]:
        """Return the scopes of the log: each partition, `team` and `knowledge`."""
        return [*(scope_of(number) for number in range(self.partitions)), TEAM, KNOWLEDGE]


TEAM, KNOWLEDGE = "team", "knowledge"


def scope_of(partition: int) -> str:
    return f"p{partition:02}"


def stream_configs(layout: Layout) -> Iterator[Mapping[str, Any]]:
    """Yield the configuration of each stream, as the server's API takes it."""
    common = {"storage": "file", "num_replicas": layout.replicas}
    work_queue = {
        **common,
        "retention": "workqueue",
        "discard": "new",
        "duplicate_window": DUPLICATE_SECONDS * NANOS,
    }
    transform = {"src": "messages.*", "dest": f"messages.{{{{partition({layout.partitions},1)}}}}.{{{{wildcard(1)}}}}"}
    yield {
        **work_queue,
        "name": MESSAGES,
        "subjects": ["messages.*"],
        "subject_transform": transform,
        "max_age": DAY * NANOS,
        "max_bytes": QUEUE_BYTES,
        "allow_msg_ttl": True,
    }
    # Captures do not expire.
    yield {**work_queue, "name": CAPTURES, "subjects": ["captures.*"], "max_bytes": QUEUE_BYTES}
    # Holds no messages: its consumers are the leases of roles without a queue.
    yield {**work_queue, "name": ROLES, "subjects": ["roles.*"]}
    kept = {**common, "retention": "limits", "allow_rollup_hdrs": True, "allow_direct": True}
    yield {**kept, "name": PLACES, "subjects": ["places.*"], "max_msgs_per_subject": 20_000}
    yield {**kept, "name": LOG, "subjects": ["log.>"], "allow_msg_ttl": True}


def bucket_configs(layout: Layout) -> Iterator[Mapping[str, Any]]:
    """Yield the configuration of the streams behind the key-value and object buckets."""
    # Not in memory: after a restart of a single server nobody could tell who is alive.
    common = {"storage": "file", "num_replicas": layout.replicas, "discard": "new", "allow_rollup_hdrs": True}

    def of_values(bucket: str) -> dict[str, Any]:
        names = {"name": f"KV_{bucket}", "subjects": [f"$KV.{bucket}.>"]}
        return {**common, **names, "max_msgs_per_subject": 1, "deny_delete": True, "allow_msg_ttl": True}

    def of_objects(bucket: str) -> dict[str, Any]:
        names = {"name": f"OBJ_{bucket}", "subjects": [f"$O.{bucket}.C.>", f"$O.{bucket}.M.>"]}
        return {**common, **names, "allow_direct": True}

    yield {**of_values(MEMBERS), "max_age": round(layout.lease_seconds * NANOS)}
    yield of_values(SEEN)
    for bucket in (LOCKS, BUDGETS, PEOPLE):  # single keys expire
        yield {**of_values(bucket), "allow_direct": True, "subject_delete_marker_ttl": NANOS}
    # The markers of deleted objects expire: there is one for each thread that had files.
    yield {**of_objects(EVIDENCE), "allow_msg_ttl": True}
    yield of_objects(BLOBS)


async def create_streams(client: Client, layout: Layout) -> None:
    """Create the streams and buckets that are missing. Raises ServersUnusable: an existing one differs from the
    configuration.
    """
    for stream in stream_configs(layout):
        found = await _config_of(client, stream["name"])
        if found is None:
            await _create(client, stream)
            found = await _config_of(client, stream["name"]) or {}
        if (difference := _difference(stream, found)) is not None:
            raise difference
    for bucket in bucket_configs(layout):
        if await _config_of(client, bucket["name"]) is None:
            await _create(client, bucket)
    difference = _lease_difference(layout, await _config_of(client, f"KV_{MEMBERS}") or {})
    if difference is not None:
        raise difference


async def find_differences(client: Client, layout: Layout) -> tuple[list[str], list[ServersUnusable]]:
    """Return the names of existing streams, and the errors that `create_streams` would raise. Creates nothing. Raises
    ServersUnusable: the server does not tell.
    """
    names, differences = list[str](), list[ServersUnusable | None]()
    for stream in stream_configs(layout):
        name = stream["name"]
        answer = await _request(client, f"STREAM.INFO.{name}", {})
        if answer.get("error", {}).get("err_code") == NO_STREAM:
            continue
        if "error" in answer:
            raise ServersUnusable(f"nats: the stream {name} cannot be looked at: {answer['error'].get('description')}")
        names.append(name)
        differences.append(_difference(stream, answer["config"]))
    members = await _config_of(client, f"KV_{MEMBERS}")
    if members is not None:
        differences.append(_lease_difference(layout, members))
    return names, [each for each in differences if each is not None]


def _difference(stream: Mapping[str, Any], found: Mapping[str, Any]) -> ServersUnusable | None:
    """Return the first setting of `stream` that is another on the server; None: all are the same."""
    for key, value in stream.items():
        there = found.get(key)
        if there != value:
            if key == "subject_transform" and isinstance(there, dict):
                shown = cast("dict[str, str]", there).get("dest", "")
                return ServersUnusable(
                    f"nats.partitions: the stream {MESSAGES} was made as {shown}; set the number that it says, "
                    "or begin with another server (--export, --adopt)"
                )
            name = "nats.replicas" if key == "num_replicas" else f"nats: the stream {stream['name']}: {key}"
            return ServersUnusable(
                f"{name}: the server has {there}, wanted is {value}; edit it with `nats stream edit`, or set it so"
            )
    return None


def _lease_difference(layout: Layout, members: Mapping[str, Any]) -> ServersUnusable | None:
    """Return an error if heartbeats would expire sooner or later than leases; else None."""
    kept = members.get("max_age", 0) / NANOS
    if kept == layout.lease_seconds:
        return None
    return ServersUnusable(
        f"nats.lease_seconds: the bucket {MEMBERS} was made for {kept:g} s, wanted are {layout.lease_seconds:g} s; "
        f"end all processes and edit it with `nats stream edit KV_{MEMBERS} --max-age`, or set it so"
    )


async def _config_of(client: Client, name: str) -> dict[str, Any] | None:
    answer = await _request(client, f"STREAM.INFO.{name}", {})
    return answer.get("config")


async def _create(client: Client, stream: Mapping[str, Any]) -> None:
    """Create a stream, unless another process does so at this moment. Raises ServersUnusable: the server refuses."""
    for pause in (*CREATE_PAUSES, None):
        answer = await _request(client, f"STREAM.CREATE.{stream['name']}", stream)
        if "error" not in answer or await _config_of(client, stream["name"]) is not None:
            return
        if pause is None:
            why = answer["error"].get("description")
            raise ServersUnusable(f"nats: the stream {stream['name']} cannot be made: {why}")
        await asyncio.sleep(pause)


async def _request(client: Client, api_path: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Raises ServersUnusable: the server runs without JetStream. Raises as the client."""
    # Not by the client's own classes: they do not know all of these settings, and would leave them out.
    try:
        answer = await client.request(f"$JS.API.{api_path}", json.dumps(body).encode(), timeout=ANSWER_SECONDS)
    except NoRespondersError:
        raise ServersUnusable(
            "transport: the NATS server keeps no streams: start it with JetStream (jetstream { store_dir: … }); a "
            "cluster does so once most of its servers are there"
        ) from None
    return cast("dict[str, Any]", json.loads(answer.data))


# Reading and watching

NEXT_MESSAGE_SECONDS = 10.0
"""How long the next stored message may take."""
CHECK_SECONDS = 0.25
"""How often `watch` checks whether the connection was lost: a restarted server has forgotten its readers."""
CHECKS_WITHOUT_MESSAGES = 20
"""After so many checks without a message the server is asked whether the consumer still exists."""


async def read_stream(
    streams: JetStreamContext, stream: str, subject: str, since: float | None = None, *, headers_only: bool = False
) -> AsyncIterator[Msg]:
    """Yield what a stream holds of a subject now, oldest first. `since`: seconds since 1970. Raises as the client."""
    config = api.ConsumerConfig(deliver_policy=api.DeliverPolicy.ALL)
    if since is not None:
        start = rfc3339(since, digits=6)
        config = api.ConsumerConfig(deliver_policy=api.DeliverPolicy.BY_START_TIME, opt_start_time=start)  # pyright: ignore[reportArgumentType]
    reading = await streams.subscribe(
        subject, stream=stream, ordered_consumer=True, config=config, headers_only=headers_only
    )
    try:
        async for message in _stored_messages(reading):
            yield message
    finally:
        await reading.unsubscribe()


async def watch(client: Client, stream: str, subject: str, config: api.ConsumerConfig) -> AsyncGenerator[Msg | None]:
    """Yield the messages that a stream holds of a subject, then None, then each new one, with None after the last so
    far. `config`: where to begin.

    Ends once the server may have forgotten this reader: watch again. To be closed (`contextlib.aclosing`). Raises as
    the client.
    """
    connects = client.stats["reconnects"]
    reading = await streams_of(client).subscribe(subject, stream=stream, ordered_consumer=True, config=config)
    try:
        async for message in _stored_messages(reading):
            yield message
        yield None
        checks = 0
        while client.stats["reconnects"] == connects:
            try:
                message = await reading.next_msg(timeout=CHECK_SECONDS)
            except TimeoutError:
                # A heartbeat of the server, counted as pending but never delivered, may have followed the last message.
                checks += 1
                if checks % CHECKS_WITHOUT_MESSAGES == 0:
                    await reading.consumer_info()
                yield None
            else:
                yield message
                if not reading.pending_msgs:
                    yield None
    finally:
        # Its error would take the place of a cancellation, and who is cancelled would go on.
        with suppress(Error):
            await reading.unsubscribe()


async def _stored_messages(reading: JetStreamContext.PushSubscription) -> AsyncIterator[Msg]:
    """Yield the messages that the stream holds when the reading begins."""
    left = await _count_left(reading, received=0)
    while left:
        message = await reading.next_msg(timeout=NEXT_MESSAGE_SECONDS)
        yield message
        # A message may say that none is left although one is: while others are erased, the server miscounts.
        left = message.metadata.num_pending or await _count_left(reading, message.metadata.sequence.consumer)


async def _count_left(reading: JetStreamContext.PushSubscription, received: int) -> int:
    """Return how many messages are still to come, with those on their way. `received`: by their number."""
    info = await reading.consumer_info()
    sent = info.delivered.consumer_seq if info.delivered else 0
    return (info.num_pending or 0) + max(0, sent - received)
