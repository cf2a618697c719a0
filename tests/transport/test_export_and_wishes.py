"""What somebody wished to be forgotten does not come back with an export."""

from __future__ import annotations

from pathlib import Path

import pytest
from nats.aio.client import Client

from tests.transport.connected import client
from transport import migration
from transport.address import ServersUnusable
from transport.connection import streams_of
from transport.key_value import KeyBucket
from transport.migration import MigrationProgress, export
from transport.people import ForgetReport, ForgetRequests
from transport.streams import PEOPLE, Layout

__all__ = ["client"]

pytestmark = pytest.mark.real_time

SOMEBODY = 42
FEW = Layout(partitions=1)


def left_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def wishes_of(connected: Client) -> ForgetRequests:
    return ForgetRequests(KeyBucket(streams_of(connected), PEOPLE))


async def test_an_open_wish_refuses_the_export_until_it_is_carried_out(client: Client, tmp_path: Path) -> None:
    """Pitfall 67: words would remain in a folder that nobody names."""
    streams, forget_requests = streams_of(client), wishes_of(client)
    request = await forget_requests.make(SOMEBODY, ["team", "p00"])
    with pytest.raises(
        ServersUnusable, match=r"--export: a wish to be forgotten is not carried out yet \(p00, team\): let"
    ):
        await export(streams, FEW, tmp_path / "out", MigrationProgress())
    assert left_in(tmp_path) == []
    await forget_requests.complete(request, ForgetReport("one", ("p00", "team"), {}))
    await export(streams, FEW, tmp_path / "out", MigrationProgress())
    assert left_in(tmp_path) == ["out"]


async def test_a_wish_that_comes_while_it_is_read_refuses_it_though_it_is_carried_out_by_then(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pitfall 67: what was read before is in the folder."""
    forget_requests, build = wishes_of(client), migration._build  # pyright: ignore[reportPrivateUsage]

    async def wished_meanwhile(*arguments: object) -> None:
        await build(*arguments)  # pyright: ignore[reportArgumentType] (as they came)
        request = await forget_requests.make(SOMEBODY, ["p00"])
        await forget_requests.complete(request, ForgetReport("one", ("p00",), {}))

    monkeypatch.setattr(migration, "_build", wished_meanwhile)
    with pytest.raises(ServersUnusable, match="somebody has wished to be forgotten meanwhile: export again"):
        await export(streams_of(client), FEW, tmp_path / "out", MigrationProgress())
    assert left_in(tmp_path) == []


async def test_a_wish_that_cannot_be_read_is_an_open_one(client: Client, tmp_path: Path) -> None:
    await KeyBucket(streams_of(client), PEOPLE).put(f"forget.{SOMEBODY}", b"{}")
    with pytest.raises(ServersUnusable, match=r"forget\.42 is damaged"):
        await export(streams_of(client), FEW, tmp_path / "out", MigrationProgress())
