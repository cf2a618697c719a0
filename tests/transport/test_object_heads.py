"""What the server's files hold of the heads of objects, which tell whose files are in them."""

from __future__ import annotations

import base64

import pytest
from nats.aio.client import Client

from tests.loopback.nats_server import NatsServer
from tests.transport.connected import client
from transport.connection import streams_of
from transport.object_store import ObjectBucket, ObjectInfo
from transport.streams import EVIDENCE

__all__ = ["client"]

pytestmark = pytest.mark.real_time

NAME = "evidence/case_55.sqlite"


def places_of(word: bytes, server: NatsServer) -> int:
    return sum(path.read_bytes().count(word) for path in server.root.rglob("*.blk"))


async def test_what_a_head_told_of_is_gone_once_another_has_replaced_it(
    client: Client, nats_server: NatsServer
) -> None:
    bucket = ObjectBucket(streams_of(client), EVIDENCE)
    head = ObjectInfo(NAME)
    for name in ("annas-letter.log", "annas-letter.log depot.log", "depot.log"):
        head = await bucket.put(head, b"rows", {"summary": name})
    assert places_of(b"annas-letter", nats_server) == 0
    assert places_of(b"depot.log", nats_server) == 1
    assert [each.notes["summary"] for each in await bucket.heads()] == ["depot.log"]
    assert await bucket.delete_if_unchanged(head)
    assert places_of(b"depot.log", nats_server) == 0


async def test_a_head_that_a_killed_writer_left_is_erased_with_the_orphans(
    client: Client, nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = ObjectBucket(streams_of(client), EVIDENCE)
    with monkeypatch.context() as killed:

        async def never(_revision: int) -> None:
            return

        killed.setattr(bucket, "_erase_head", never)
        head = await bucket.put(ObjectInfo(NAME), b"rows", {"summary": "annas-letter.log"})
        await bucket.put(head, b"rows", {"summary": "depot.log"})
    assert places_of(b"annas-letter", nats_server) == 1
    heads = await bucket.heads()
    assert [each.notes["summary"] for each in heads] == ["depot.log"]
    await bucket.clear_orphans(heads, 60.0)
    assert places_of(b"annas-letter", nats_server) == 0
    assert await bucket.read(NAME) == b"rows"


@pytest.mark.parametrize("garbage", [b"no json", b"[1]", b'{"chunks": "x"}', b"\xff"])
async def test_a_head_that_cannot_be_read_is_left_out_and_can_be_replaced(
    client: Client, garbage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    bucket = ObjectBucket(streams_of(client), EVIDENCE)
    await bucket.put(ObjectInfo("evidence/case_1.sqlite"), b"rows", {})
    await bucket.put(ObjectInfo(NAME), b"rows", {})
    key = base64.urlsafe_b64encode(NAME.encode()).decode()
    await streams_of(client).publish(f"$O.{EVIDENCE}.M.{key}", garbage)
    assert [each.name for each in await bucket.heads()] == ["evidence/case_1.sqlite"]
    assert "holds no head of an object" in caplog.text
    head = await bucket.find_head(NAME)
    assert not head.exists
    assert (await bucket.put(head, b"new", {})).exists
    assert await bucket.read(NAME) == b"new"
