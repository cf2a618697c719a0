from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from reactivex.subject import Subject

import streams.ticks
from streams.ticks import Tick, changes, file_changes, from_generator, identity, ticks


async def test_the_first_tick_comes_at_once_and_the_others_by_the_clock() -> None:
    loop = asyncio.get_running_loop()
    start, seen = loop.time(), list[tuple[float, Tick]]()
    subscription = ticks(300).subscribe(lambda tick: seen.append((loop.time() - start, tick)))
    assert seen == []
    await asyncio.sleep(700)
    subscription.dispose()
    await asyncio.sleep(700)
    assert seen == [(0, Tick.START), (300, Tick.TIMER), (600, Tick.TIMER)]


YEAR = 365 * 86_400.0


async def test_on_a_virtual_clock_idle_ticks_are_left_out_and_later_ones_come_at_their_times() -> None:
    """Pitfall 69: a silence of a thousand years is as short as one of an hour."""
    loop = asyncio.get_running_loop()
    start, seen = loop.time(), list[tuple[float, Tick]]()
    wake: Subject[None] = Subject()
    asked: list[float] = []
    busy = True

    def idle() -> bool:
        asked.append(loop.time() - start)
        return not busy

    subscription = ticks(300, idle=idle, wake=wake).subscribe(lambda tick: seen.append((loop.time() - start, tick)))
    await asyncio.sleep(400)
    busy = False
    await asyncio.sleep(1000 * YEAR)
    assert seen == [(0, Tick.START), (300, Tick.TIMER)]
    assert asked == [300, 600]
    busy = True
    wake.on_next(None)
    wake.on_next(None)
    await asyncio.sleep(600)
    assert [when - 1000 * YEAR for when, _ in seen[2:]] == [600, 900]
    subscription.dispose()
    wake.on_next(None)
    await asyncio.sleep(700)
    assert len(seen) == 4


async def test_what_stirs_may_fail_or_end() -> None:
    seen: list[Tick] = []
    wake: Subject[None] = Subject()
    subscription = ticks(300, idle=lambda: False, wake=wake).subscribe(seen.append)
    wake.on_error(ValueError())
    await asyncio.sleep(301)
    subscription.dispose()
    assert seen == [Tick.START, Tick.TIMER]


def test_on_an_ordinary_clock_no_tick_is_left_out() -> None:
    """Live, files change without a word in the stream."""

    async def main() -> None:
        seen: list[Tick] = []
        third = asyncio.Event()

        def heard(tick: Tick) -> None:
            seen.append(tick)
            if len(seen) == 3:
                third.set()

        subscription = ticks(0.001, idle=lambda: True).subscribe(heard)
        await third.wait()
        subscription.dispose()
        assert seen[:3] == [Tick.START, Tick.TIMER, Tick.TIMER]

    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        runner.run(main())


async def until(seen: list[Tick], count: int, seconds: float = 20) -> None:
    async with asyncio.timeout(seconds):
        while len(seen) < count:  # noqa: ASYNC110 (of a list)
            await asyncio.sleep(0.02)


@pytest.mark.real_time
async def test_changed_files_and_links_tick_once_they_are_quiet(tmp_path: Path) -> None:
    sources, links = tmp_path / "sources", tmp_path / "links.txt"
    (sources / "deep").mkdir(parents=True)
    seen: list[Tick] = []
    subscription = file_changes([sources], links, 0.3).subscribe(seen.append)
    await asyncio.sleep(1)
    for number in range(5):
        (sources / "deep" / f"{number}.md").write_text("x")
        await asyncio.sleep(0.05)
    await until(seen, 1)
    (tmp_path / "index.txt").write_text("ours: no reason to look again")
    await asyncio.sleep(0.8)
    assert seen == [Tick.FILES]
    links.write_text("https://a.example\n")
    await until(seen, 2)
    subscription.dispose()
    await asyncio.sleep(0.3)
    assert seen == [Tick.FILES, Tick.FILES]


@pytest.mark.real_time
async def test_a_folder_that_comes_back_or_is_another_ticks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams.ticks, "LOOK_SECONDS", 0.2)
    sources = tmp_path / "sources"
    seen: list[Tick] = []
    subscription = from_generator(lambda: changes(sources, recursive=True)).subscribe(seen.append)
    await asyncio.sleep(0.5)
    assert seen == []
    sources.mkdir()
    await until(seen, 1)
    sources.rename(tmp_path / "old")
    sources.mkdir()
    await until(seen, 2)
    subscription.dispose()
    await asyncio.sleep(0.3)


@pytest.mark.real_time
async def test_where_nothing_can_be_watched_it_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refusing(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("watchfiles.awatch", refusing)
    monkeypatch.setattr(streams.ticks, "LOOK_SECONDS", 0.05)
    subscription = from_generator(lambda: changes(tmp_path, recursive=True)).subscribe()
    await asyncio.sleep(0.5)
    subscription.dispose()
    await asyncio.sleep(0)
    assert caplog.text.count("cannot be watched") == 1


async def test_a_bug_in_watching_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> AsyncGenerator[Tick]:
        raise KeyError("oops")

    from_generator(broken).subscribe()
    await asyncio.sleep(1)
    assert "files are no longer watched" in caplog.text


def test_a_folder_is_told_from_another_of_its_name(tmp_path: Path) -> None:
    assert identity(tmp_path / "nothing") is None
    assert identity(tmp_path) == identity(tmp_path)
