"""What a run leaves in the data folder."""

from __future__ import annotations

import asyncio
import threading
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from assembly import data_folder as module
from assembly.data_folder import autosave, read_state
from clock import HOUR, now
from model.messages import DISCORD_EPOCH_MS, Author, Message
from model.outcomes import Removed
from services.conversations import read_watermarks, render_watermarks
from services.llm import Budget, BudgetLimits, Limiter
from services.llm.usage import read_spent, render_spent
from services.privacy import limits_pseudonym
from services.storage import files
from settings import load
from streams.gateway import CatchUpPlace, ids_to_read_after
from tests.services.storage.power import Machine
from tests.world import run


async def test_who_has_asked_is_in_no_file_after_an_hour(config: Path) -> None:
    """Pitfall 49: also where nothing else happens meanwhile."""
    state = read_state(load(config))
    async with autosave(state):
        await state.budgets.default.begin_chain(1, now())
        state.changed.set()
        await asyncio.sleep(60)
        assert len(read_spent(state.folder.usage).chains) == 1
        await asyncio.sleep(2 * HOUR)
        assert read_spent(state.folder.usage).chains == {}


async def test_a_save_that_the_end_cuts_off_is_over_before_the_last_one(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it could put older marks into the place of newer ones."""
    loop, began, go_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
    written: list[Path] = []
    at_once: list[Path] = []
    replace = files.replace

    def slowly(path: Path, data: bytes) -> None:
        written.append(path)
        if len(written) == 1:
            loop.call_soon_threadsafe(began.set)
            go_on.wait(10)
        elif not go_on.is_set():
            at_once.append(path)
        replace(path, data)

    async def go_on_soon() -> None:
        for _ in range(100):
            await asyncio.sleep(0)
        go_on.set()

    state = read_state(load(config))
    monkeypatch.setattr(files, "replace", slowly)
    monkeypatch.setattr(module, "SAVE_SECONDS", 0.0)
    async with autosave(state):
        state.watermarks.note_guild(1, 1_500_000_000.0)
        await began.wait()
        state.watermarks.note_guild(2, 1_500_000_000.0)
        going_on = asyncio.ensure_future(go_on_soon())
    await going_on
    assert at_once == []
    assert set(read_watermarks(state.folder.watermarks)) == {-1, -2}


@pytest.mark.parametrize(("catch_up_minutes", "kept"), [(60, {2}), (60 * 24 * 365, {1, 2})])
async def test_the_marks_of_quiet_places_are_kept_no_longer_than_catch_up_may_look_back(
    config: Path, catch_up_minutes: int, kept: set[int]
) -> None:
    """Threads are many: the file is written anew with every change, and would only grow. What the clock says is no
    matter.
    """
    settings = load(config)
    discord = settings.discord.model_copy(update={"catch_up_minutes": catch_up_minutes})
    state = read_state(settings.model_copy(update={"discord": discord}))
    for message in (said(1, 1_480_000_000), said(2, 1_499_999_000)):
        state.watermarks.note_arrival(message.channel_id, message.id)
        state.watermarks.note_result(Removed(message.channel_id, message.id))
    await asyncio.sleep(1_600_000_000)
    await state.save()
    assert set(read_watermarks(state.folder.watermarks)) == kept


def test_a_crash_at_any_write_leaves_marks_and_usage_as_they_were_or_as_they_are(
    config: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Pitfalls 7 and 40: neither is half-written, and the next start reads both."""

    async def saves(number: int) -> None:
        state = read_state(load(config))
        state.watermarks.note_guild(number, 1_500_000_000.0)
        await state.budgets.default.begin_chain(number, now())
        await state.save()

    run(lambda: saves(1))
    folder, calls = read_state(load(config)).folder, set[str]()
    before = read_watermarks(folder.watermarks), read_spent(folder.usage)
    for last in count():
        machine = Machine(last)
        whole = machine.run(lambda: run(lambda: saves(2)))
        marks, kept = set(read_watermarks(folder.watermarks)), read_spent(folder.usage).chains
        spent = {number for number in (1, 2) if limits_pseudonym(folder.feedback_key.read_bytes(), number) in kept}
        assert len(kept) == len(spent)
        assert marks in ({-1}, {-1, -2})
        assert spent in ({1}, {1, 2})
        assert not spent > {-place for place in marks}, "marks are written first"
        calls |= set(machine.calls)
        if whole:
            assert (marks, spent) == ({-1, -2}, {1, 2})
            break
        files.replace(folder.watermarks, render_watermarks(before[0]))
        files.replace(folder.usage, render_spent(before[1]))
    assert {"open", "write", "fsync", "rename"} <= calls
    assert caplog.messages == []


async def test_budgets_that_are_kept_elsewhere_are_asked_for_by_group_and_not_written(config: Path) -> None:
    with config.open("a") as end:
        end.write('guilds: {"41": {limits: {answers_per_day: 3}}, "42": {discord: {team_member_ids: [5]}}}\n')
    settings = load(config)
    asked: list[tuple[str, BudgetLimits, str]] = []

    def elsewhere(*known: Any) -> Limiter:
        asked.append(known)
        return Budget(BudgetLimits())

    state = read_state(settings, make_limiter=elsewhere)
    await state.save()
    assert asked == [
        ("shared", BudgetLimits(), "limits"),
        ("41", BudgetLimits(answers_per_day=3), "guilds.41.limits"),
    ]
    assert state.budgets[42] is state.budgets.default is not state.budgets[41]
    assert not state.folder.usage.exists()


async def test_after_the_clock_was_set_back_marks_go_by_discords_ids_and_a_limit_ends_within_two_hours(
    config: Path,
) -> None:
    """Between two runs, by an hour: what had its outcome is not taken up again, and what comes is."""
    ahead, hour = 1_500_000_000.0, 3600.0
    await asyncio.sleep(ahead)
    state = read_state(load(config))
    state.watermarks.note_guild(7, ahead)
    before = said(1, ahead - hour)
    state.watermarks.note_arrival(before.channel_id, before.id)
    state.watermarks.note_result(Removed(1, before.id))
    while await state.budgets.default.begin_chain(5, ahead) is None:
        pass
    await state.save()
    again = read_state(load(config))
    again.watermarks.note_guild(7, ahead - hour)
    assert again.watermarks_at_start.has_outcome(1, before.id)
    assert not again.watermarks_at_start.has_outcome(1, said(1, ahead - hour + 60).id)
    starting = ids_to_read_after(
        again.watermarks.by_place(),
        [CatchUpPlace(1)],
        since=ahead - 2 * hour,
        guild_mark=again.watermarks.by_place()[-7],
    )
    assert starting == {1: before.id}
    assert await again.budgets.default.begin_chain(5, ahead - hour) is not None
    assert await again.budgets.default.begin_chain(5, ahead + hour) is None


def said(place_id: int, at: float) -> Message:
    return Message(round(at * 1000 - DISCORD_EPOCH_MS) << 22, place_id, Author(1, "ann"), "…", at)


@pytest.mark.parametrize(
    ("text", "opts_out"),
    [
        ("hi !nobot", True),
        ("hi !NoBot", True),
        ("!NOBOT", True),
        ("\uff01nobot", True),
        ("!no\u200bbot", True),
        ("!\uff2e\U0001d428\u00ad\u200dBot", True),
        ("nobot", False),
        ("!no bot", False),
    ],
)
async def test_the_marker_opts_out_in_any_case(config: Path, text: str, opts_out: bool) -> None:
    assert read_state(await asyncio.to_thread(load, config)).is_opted_out(311, text) is opts_out
