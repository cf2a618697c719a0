"""Large contents that are nobody's any more."""

from __future__ import annotations

import pytest
from nats.aio.client import Client

from clock import DAY
from services.storage import FileChange
from tests.transport.connected import client
from transport import folder_log
from transport.connection import streams_of
from transport.fenced_log import FencedLog
from transport.folder_log import OrphanedBlobs, Writer
from transport.object_store import ObjectBucket
from transport.streams import BLOBS

__all__ = ["client"]

pytestmark = pytest.mark.real_time

LARGE = b"x" * (folder_log.LARGE_BYTES + 1)


@pytest.fixture
def two_days_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written now is two days old for who sweeps, and for who writes."""
    now = folder_log.now
    monkeypatch.setattr(folder_log, "now", lambda: now() + 2 * DAY)


async def names(connected: Client) -> list[str]:
    return [head.name for head in await ObjectBucket(streams_of(connected), BLOBS).heads()]


async def kept(connected: Client, scope: str, path: str) -> None:
    fenced = FencedLog(streams_of(connected), scope)
    await fenced.open("one", 0)
    await Writer(fenced).write(FileChange("replace", path, LARGE))


async def test_what_no_entry_names_goes_at_the_second_look(client: Client, two_days_on: None) -> None:
    streams = streams_of(client)
    await kept(client, "p00", "kept.txt")
    await kept(client, "team", "kept.txt")
    orphan = await folder_log.put_blob_if_large(streams, "p01", FileChange("replace", "lost.txt", LARGE))
    sweeping = OrphanedBlobs(streams)
    assert await sweeping.sweep() == 0
    assert orphan in await names(client)
    assert await sweeping.sweep() == 1
    left = await names(client)
    assert orphan not in left
    assert len(left) == 2
    assert await sweeping.sweep() == 0
    assert len(await names(client)) == 2


async def test_what_is_younger_than_a_day_stays(client: Client) -> None:
    streams = streams_of(client)
    orphan = await folder_log.put_blob_if_large(streams, "p01", FileChange("replace", "lost.txt", LARGE))
    sweeping = OrphanedBlobs(streams)
    assert [await sweeping.sweep() for _ in range(3)] == [0, 0, 0]
    assert await names(client) == [orphan]


async def test_one_that_is_being_written_again_stays(client: Client, two_days_on: None) -> None:
    """Its writer has stored it, and the entry that names it is on its way."""
    streams, change = streams_of(client), FileChange("replace", "again.txt", LARGE)
    orphan = await folder_log.put_blob_if_large(streams, "p01", change)
    sweeping, bucket = OrphanedBlobs(streams), ObjectBucket(streams, BLOBS)
    await sweeping.sweep()
    [seen] = await bucket.heads()
    assert await folder_log.put_blob_if_large(streams, "p01", change) == orphan
    assert await sweeping.sweep() == 0
    assert not await bucket.delete_if_unchanged(seen), "it is another by now"
    assert await names(client) == [orphan]
    assert (await (await streams.object_store(BLOBS)).get(orphan)).data == LARGE


async def test_pieces_without_a_head_go_too(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    streams, stream = streams_of(client), f"OBJ_{BLOBS}"
    await streams.publish(f"$O.{BLOBS}.C.half", b"x" * 1000)
    sweeping = OrphanedBlobs(streams)
    await sweeping.sweep()
    assert (await streams.stream_info(stream)).state.messages == 1
    monkeypatch.setattr(folder_log, "DAY", 0)
    await sweeping.sweep()
    assert (await streams.stream_info(stream)).state.messages == 0
