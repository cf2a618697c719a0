"""The end of a run: waiting batches, work in hand, and what catch-up finds."""

from __future__ import annotations

from pathlib import Path

from tests.world import ANNA, BEN, HELP, TESS, Noticeboard, Script, World


async def test_waiting_batches_are_emitted_at_once_and_answered(tmp_path: Path) -> None:
    """Pitfall 8."""
    world = await World.begin(tmp_path)
    message = world.says(ANNA, "How?")
    assert await world.close(20)
    assert world.story == ["replied"]
    assert world.outcomes[0].at == message.at


async def test_work_in_hand_has_the_grace_period(tmp_path: Path) -> None:
    """Pitfall 8."""
    world = await World.begin(tmp_path, script=Script(seconds={"gate": 19}))
    world.says(ANNA, "How?")
    assert await world.close(20)
    assert world.story == ["replied"]


async def test_what_is_not_finished_in_time_is_cancelled_and_left_for_catch_up(tmp_path: Path) -> None:
    """Pitfall 8: also what only waited for its turn."""
    world = await World.begin(
        tmp_path, script=Script(seconds={"slow": 1000}), discord={"message_batch_wait_seconds": 5}
    )
    before = world.says(BEN, "Quick?")
    await world.wait(6)
    world.says(ANNA, "This is slow?")
    await world.wait(6)
    world.says(ANNA, "Another?")
    assert not await world.close(20)
    assert world.story == ["replied", "cancelled: shutdown", "cancelled: shutdown"]
    assert world.parts.services.watermarks.by_place() == {HELP: before.id}
    assert world.tally.has_failures
    assert world.tally.adds_up


async def test_a_reply_that_is_being_posted_may_finish_after_the_grace_period(tmp_path: Path) -> None:
    """Pitfall 8: the last piece comes within the five seconds that follow."""
    board = Noticeboard(seconds=11)
    world = await World.begin(tmp_path, board=board)
    message = world.says(ANNA, "How?")
    assert not await world.close(20)
    assert world.story == ["replied"]
    assert world.parts.services.watermarks.by_place() == {HELP: message.id}


async def test_captures_are_kept_although_the_grace_period_is_over(tmp_path: Path) -> None:
    """Pitfall 8: knowledge is never dropped."""
    world = await World.begin(tmp_path, script=Script(seconds={"slow": 1000}))
    world.says(BEN, "slow?")
    world.says(TESS, "So.", to=world.says(ANNA, "How?"))
    assert not await world.close(1)
    assert sorted(world.story) == ["cancelled: shutdown", "cancelled: team answered", "captured"]
