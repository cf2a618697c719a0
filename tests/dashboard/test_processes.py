"""The page of processes: who does what, and what nobody does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dashboard.views import fleet_view, spans
from model.processes import Fleet, ProcessStatus
from tests.dashboard.made import NASTY, Box, page, served

ROLES = ("gateway", "worker", "team", "knowledge")
WORKER = ProcessStatus(
    name="host-17-ab12cd",
    roles=("worker",),
    version="0.1.0",
    uptime_seconds=90.0,
    partitions={0: 2, 1: 0, 3: 1},
    results={"replied": 1200, "skipped": 3400, "failed": 2},
    failures=2,
    memory_mb=181.6,
    connection="127.0.0.1:4222",
)
REST = ProcessStatus(
    name="host-18-ef34ab",
    roles=("gateway", "team", "knowledge"),
    version="0.1.0",
    uptime_seconds=200_000.0,
    partitions={2: 0},
)


def test_a_process_is_one_line() -> None:
    shown = fleet_view(Fleet((WORKER, REST), ROLES, 4))
    assert shown.missing == []
    assert not shown.versions_differ
    first, second = shown.rows
    assert (first.roles, first.partitions, first.owned, first.in_flight) == ("worker", "0–1, 3", 3, 3)
    assert first.results == "3,400 skipped, 1,200 replied, 2 failed"
    assert (first.memory, first.up, first.failures) == ("182 MiB", "1.5 min", 2)
    assert (second.memory, second.up, second.results) == ("–", "2.3 d", "")
    assert fleet_view(Fleet((replace(REST, uptime_seconds=7200.0),), ROLES, 0)).rows[0].up == "2.0 h"


def test_what_nobody_does_is_said() -> None:
    assert fleet_view(Fleet((WORKER,), ROLES, 6)).missing == [
        "Nobody plays the role gateway.",
        "Nobody plays the role team.",
        "Nobody plays the role knowledge.",
        "Nobody owns partitions 2, 4–5: their messages wait.",
    ]
    assert fleet_view(Fleet((WORKER,), ("worker",), 4)).missing == ["Nobody owns partition 2: its messages wait."]
    assert fleet_view(Fleet((), ("worker",), 1)).missing[0] == "Nobody plays the role worker."


def test_a_partition_with_two_owners_and_versions_that_differ_are_said() -> None:
    other = replace(REST, partitions={0: 0, 2: 0}, version="0.2.0")
    shown = fleet_view(Fleet((WORKER, other), ROLES, 4))
    assert shown.missing == [
        "Two processes say that they own partition 0: one of them has lost it and does not know yet."
    ]
    assert shown.versions_differ


def test_neighbours_are_put_together() -> None:
    assert spans([]) == ""
    assert spans([5, 3, 4, 9]) == "3–5, 9"


@pytest.mark.real_time
async def test_the_page_is_there_where_several_processes_do_the_work() -> None:
    """What a process says of itself is text, and no markup."""
    fleet = Fleet((WORKER, replace(REST, name=NASTY)), ROLES, 8)
    async with served(Box(fleet=fleet)) as client:
        shown = await page(client, "/processes")
        assert "3: 0–1, 3" in shown
        assert "Nobody owns partitions 4–7: their messages wait." in shown
        assert NASTY not in shown
        assert 'href="/processes"' in await page(client, "/cost")
    async with served(Box(fleet=Fleet((), ROLES, 8))) as client:
        assert "No process has answered." in await page(client, "/processes")


@pytest.mark.real_time
async def test_one_process_has_no_such_page() -> None:
    async with served(Box()) as client:
        assert 'href="/processes"' not in await page(client, "/cost")
        async with client.get("/processes") as response:
            assert response.status == 404
