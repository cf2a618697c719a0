"""The JetStream streams and buckets that the processes share: their names and configuration, created once and compared
at every start; how a stream is read and watched; the headers and error codes of the server that nats-py does not name.
"""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import NoRespondersError
from nats.js import JetStreamContext, api

from clock import rfc3339
from transport.connection import ANSWER_SECONDS, streams_of
from transport.errors import ServersUnusable

MESSAGE_ID = "Nats-Msg-Id"
ROLLUP, TTL = "Nats-Rollup", "Nats-TTL"
LAST, LAST_OF = "Nats-Expected-Last-Subject-Sequence", "Nats-Expected-Last-Subject-Sequence-Subject"
# Of a bucket: what became of a key, and why the server says so where nobody did it.
OPERATION, PURGE, REASON = "KV-Operation", "PURGE", "Nats-Marker-Reason"

NO_MESSAGE = 10037
"""None is kept of that subject."""
NO_STREAM = 10059
NOT_DELETED = 10057
"""The message is not in its stream, or no longer."""
NOT_UNIQUE = 10100
"""A work queue has a consumer for these subjects."""
WRONG_LAST = (10071, 10164)
"""Somebody else has written since."""
BEING_STORED, FULL = 10158, 10077


_OFFSET, _PRIME = 0x811C9DC5, 0x01000193


@lru_cache(maxsize=1 << 14)
def partition_of(channel_id: int, partitions: int) -> int:
    """FNV-1a of 32 bits, of the id as it is written, modulo the number of partitions."""
    hashed = _OFFSET
    for byte in str(channel_id).encode():
        hashed = (hashed ^ byte) * _PRIME & 0xFFFFFFFF
    return hashed % partitions


MESSAGES, PLACES, CAPTURES, ROLES, LOG = "MESSAGES", "PLACES", "CAPTURES", "ROLES", "LOG"
MEMBERS, LOCKS, SEEN, PEOPLE, BUDGETS = "members", "locks", "seen", "people", "budgets"
BLOBS, EVIDENCE = "blobs", "evidence"

DAY_SECONDS = 86_400
REPEATS_SECONDS = 300
"""How long a message that is published again is known: catch-up and a second gateway publish what another has."""
PAUSES = (0.1, 0.3, 1.0)
"""Between tries to make a stream: a server that has just deleted one of the name, or elects its leader, refuses it."""
MOST_BYTES = 4 * 1024**3
"""Of messages that wait; beyond it the server refuses, and gateways wait."""
NANOS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Layout:
    """The part of the configuration that streams and buckets are created with.

    Attributes:
        partitions: fixed once the stream of messages exists.
        lease_seconds: after so long a silence others take over.
        replicas: servers that keep each message.
    """

    partitions: int = 32
    lease_seconds: float = 3.0
    replicas: int = 1

    def scopes(self) -> list[str]:
        """Whose files are kept in the log: of each partition, and of the single writers."""
        return [*(scope(number) for number in range(self.partitions)), TEAM, KNOWLEDGE]


TEAM, KNOWLEDGE = "team", "knowledge"


def scope(partition: int) -> str:
    return f"p{partition:02}"


def stream_configs(layout: Layout) -> Iterator[Mapping[str, Any]]:
    """The configuration of each stream, in the words of the server."""
    common = {"storage": "file", "num_replicas": layout.replicas}
    queue = {**common, "retention": "workqueue", "discard": "new", "duplicate_window": REPEATS_SECONDS * NANOS}
    transform = {"src": "messages.*", "dest": f"messages.{{{{partition({layout.partitions},1)}}}}.{{{{wildcard(1)}}}}"}
    yield {
        **queue,
        "name": MESSAGES,
        "subjects": ["messages.*"],
        "subject_transform": transform,
        "max_age": DAY_SECONDS * NANOS,
        "max_bytes": MOST_BYTES,
        "allow_msg_ttl": True,
    }
    # What the team teaches waits for as long as it takes.
    yield {**queue, "name": CAPTURES, "subjects": ["captures.*"], "max_bytes": MOST_BYTES}
    # Holds nothing: its consumers are the locks of roles without a queue.
    yield {**queue, "name": ROLES, "subjects": ["roles.*"]}
    kept = {**common, "retention": "limits", "allow_rollup_hdrs": True, "allow_direct": True}
    yield {**kept, "name": PLACES, "subjects": ["places.*"], "max_msgs_per_subject": 20_000}
    yield {**kept, "name": LOG, "subjects": ["log.>"], "allow_msg_ttl": True}


def bucket_configs(layout: Layout) -> Iterator[Mapping[str, Any]]:
    """The configuration of the stream of each bucket, of values and of objects."""
    # In memory they would be gone after a restart of a single server, and nobody could tell who is alive.
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
    # The marks of deleted objects expire: there is one for each thread that had files.
    yield {**of_objects(EVIDENCE), "allow_msg_ttl": True}
    yield of_objects(BLOBS)


async def prepare(client: Client, layout: Layout) -> None:
    """Create the streams and buckets that are missing.

    Raises:
        ServersUnusable: what is there is not as the configuration says.
    """
    for stream in stream_configs(layout):
        found = await _configured(client, stream["name"])
        if found is None:
            await _made(client, stream)
            found = await _configured(client, stream["name"]) or {}
        compare(stream, found)
    for bucket in bucket_configs(layout):
        if await _configured(client, bucket["name"]) is None:
            await _made(client, bucket)
    _compare_lease(layout, await _configured(client, f"KV_{MEMBERS}") or {})


async def differences(client: Client, layout: Layout) -> tuple[list[str], list[ServersUnusable]]:
    """The names of existing streams, and how they differ from the configuration (what `prepare` would raise). Creates
    nothing.

    Raises:
        ServersUnusable: the server does not tell.
    """
    there, wrong = list[str](), list[ServersUnusable]()
    for stream in stream_configs(layout):
        name = stream["name"]
        answer = await _asked(client, f"STREAM.INFO.{name}", {})
        if answer.get("error", {}).get("err_code") == NO_STREAM:
            continue
        if "error" in answer:
            raise ServersUnusable(f"nats: the stream {name} cannot be looked at: {answer['error'].get('description')}")
        there.append(name)
        try:
            compare(stream, answer["config"])
        except ServersUnusable as error:
            wrong.append(error)
    members = await _configured(client, f"KV_{MEMBERS}")
    if members is not None:
        try:
            _compare_lease(layout, members)
        except ServersUnusable as error:
            wrong.append(error)
    return there, wrong


def compare(stream: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Raises ServersUnusable: the server keeps a stream otherwise than is wanted."""
    for key, value in stream.items():
        there = found.get(key)
        if there != value:
            if key == "subject_transform" and isinstance(there, dict):
                shown = cast("dict[str, str]", there).get("dest", "")
                raise ServersUnusable(
                    f"nats.partitions: the stream {MESSAGES} was made as {shown}; set the number that it says, "
                    "or begin with another server (--export, --adopt)"
                )
            name = "nats.replicas" if key == "num_replicas" else f"nats: the stream {stream['name']}: {key}"
            raise ServersUnusable(
                f"{name}: the server has {there}, wanted is {value}; edit it with `nats stream edit`, or set it so"
            )


def _compare_lease(layout: Layout, members: Mapping[str, Any]) -> None:
    """Raises ServersUnusable: who is silent would be missed sooner or later than leases end."""
    kept = members.get("max_age", 0) / NANOS
    if kept != layout.lease_seconds:
        raise ServersUnusable(
            f"nats.lease_seconds: the bucket {MEMBERS} was made for {kept:g} s, wanted are {layout.lease_seconds:g} s; "
            f"end all processes and edit it with `nats stream edit KV_{MEMBERS} --max-age`, or set it so"
        )


async def clear(client: Client) -> None:
    """Delete everything of it, for tests and the drill."""
    listed = await _asked(client, "STREAM.NAMES", {})
    for name in listed.get("streams") or ():
        await _asked(client, f"STREAM.DELETE.{name}", {})


async def _configured(client: Client, name: str) -> dict[str, Any] | None:
    answer = await _asked(client, f"STREAM.INFO.{name}", {})
    return answer.get("config")


async def _made(client: Client, stream: Mapping[str, Any]) -> None:
    """Raises ServersUnusable: the server refuses. Another process that makes the same at this moment is no refusal."""
    for pause in (*PAUSES, None):
        answer = await _asked(client, f"STREAM.CREATE.{stream['name']}", stream)
        if "error" not in answer or await _configured(client, stream["name"]) is not None:
            return
        if pause is None:
            why = answer["error"].get("description")
            raise ServersUnusable(f"nats: the stream {stream['name']} cannot be made: {why}")
        await asyncio.sleep(pause)


async def _asked(client: Client, what: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Raises ServersUnusable: nobody is there to keep streams. Raises as the client."""
    # In the words of the server: the client does not know all of these settings, and would leave them out.
    try:
        answer = await client.request(f"$JS.API.{what}", json.dumps(body).encode(), timeout=ANSWER_SECONDS)
    except NoRespondersError:
        raise ServersUnusable(
            "transport: the NATS server keeps no streams: start it with JetStream (jetstream { store_dir: … }); a "
            "cluster does so once most of its servers are there"
        ) from None
    return cast("dict[str, Any]", json.loads(answer.data))


# Reading and watching

READ_SECONDS = 10.0
"""How long the next message of those that are there may take."""
LOOK_SECONDS = 0.25
"""How often it is seen whether the connection was lost: a restarted server does not know who reads from it."""
LOOKS = 20
"""After so many without a message the server is asked whether it knows."""


async def read_stream(
    streams: JetStreamContext, stream: str, subject: str, since: float | None = None, *, headers_only: bool = False
) -> AsyncIterator[Msg]:
    """What a stream holds of a subject now, oldest first. `since`: seconds since 1970. Raises as the client."""
    config = api.ConsumerConfig(deliver_policy=api.DeliverPolicy.ALL)
    if since is not None:
        start = rfc3339(since, digits=6)
        config = api.ConsumerConfig(deliver_policy=api.DeliverPolicy.BY_START_TIME, opt_start_time=start)  # pyright: ignore[reportArgumentType]
    reading = await streams.subscribe(
        subject, stream=stream, ordered_consumer=True, config=config, headers_only=headers_only
    )
    try:
        async for message in _held(reading):
            yield message
    finally:
        await reading.unsubscribe()


async def watch(client: Client, stream: str, subject: str, config: api.ConsumerConfig) -> AsyncGenerator[Msg | None]:
    """What a stream holds of a subject, then None, then what comes; and None whenever nothing more has come. `config`:
    where to begin.

    Ends once the server may have forgotten who reads: watch again. To be closed (`contextlib.aclosing`). Raises as the
    client.
    """
    connects = client.stats["reconnects"]
    reading = await streams_of(client).subscribe(subject, stream=stream, ordered_consumer=True, config=config)
    try:
        async for message in _held(reading):
            yield message
        yield None
        looks = 0
        while client.stats["reconnects"] == connects:
            try:
                message = await reading.next_msg(timeout=LOOK_SECONDS)
            except TimeoutError:
                # What seemed to follow the last message was a beat of the server, which no one is given.
                looks += 1
                if looks % LOOKS == 0:
                    await reading.consumer_info()
                yield None
            else:
                yield message
                if not reading.pending_msgs:
                    yield None
    finally:
        await reading.unsubscribe()


async def _held(reading: JetStreamContext.PushSubscription) -> AsyncIterator[Msg]:
    """What there is when the reading begins."""
    info = await reading.consumer_info()
    left = (info.num_pending or 0) + (info.delivered.consumer_seq if info.delivered else 0)
    while left:
        message = await reading.next_msg(timeout=READ_SECONDS)
        left = message.metadata.num_pending
        yield message
