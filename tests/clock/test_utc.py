import asyncio
import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clock import VirtualLoop, from_rfc3339, now, rfc3339, utc, utc_clock

MOMENT = 1_769_915_456.228


async def test_on_a_virtual_loop_now_is_the_loops_time() -> None:
    await asyncio.sleep(12.5)
    assert now() == 12.5


def test_on_an_ordinary_loop_now_is_the_computers_clock() -> None:
    async def ask() -> float:
        return now()

    before = time.time()
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        assert before <= runner.run(ask()) <= time.time()


def test_off_any_loop_there_is_no_now() -> None:
    with pytest.raises(RuntimeError):
        now()


class Wall:
    """In place of the module `time`."""

    wall, running = 1_000_000.0, 50.0

    def time(self) -> float:
        return self.wall

    def monotonic(self) -> float:
        return self.running

    def set(self, wall: float, running: float) -> None:
        self.wall, self.running = wall, running


def test_time_goes_on_when_the_wall_clock_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    wall, steady = Wall(), utc.SteadyClock()
    monkeypatch.setattr(utc, "time", wall)
    assert steady() == 1_000_000
    wall.set(996_410, 60)  # an hour back, ten seconds later
    assert steady() == 1_000_010
    wall.set(996_470, 120)
    assert steady() == 1_000_070
    wall.set(1_000_090, 130)  # set right again
    assert steady() == 1_000_090


def test_small_corrections_and_jumps_ahead_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    wall, steady = Wall(), utc.SteadyClock()
    monkeypatch.setattr(utc, "time", wall)
    steady()
    wall.set(1_000_009, 60)
    assert steady() == 1_000_009
    wall.set(1_003_600, 61)  # the machine slept
    assert steady() == 1_003_600


def test_a_clock_can_be_kept() -> None:
    loop = VirtualLoop(MOMENT)
    assert utc_clock(loop)() == MOMENT
    loop.close()


@pytest.mark.parametrize(
    ("seconds", "digits", "text"),
    [
        (1567637086.0, 3, "2019-09-04T22:44:46.000Z"),
        (MOMENT, 3, "2026-02-01T03:10:56.228Z"),
        (MOMENT, 6, "2026-02-01T03:10:56.228000Z"),
        (0.123, 3, "1970-01-01T00:00:00.123Z"),
        (0.9999, 3, "1970-01-01T00:00:00.999Z"),
        (-0.5, 3, "1969-12-31T23:59:59.500Z"),
    ],
)
def test_a_time_is_written_in_utc_with_its_fraction_cut(seconds: float, digits: int, text: str) -> None:
    assert rfc3339(seconds, digits=digits) == text


@pytest.mark.parametrize(
    "text",
    ["2026-02-01T03:10:56.228Z", "2026-02-01T03:10:56.228000+00:00", "2026-02-01T05:10:56.228+02:00"],
)
def test_a_time_stamp_is_read_in_any_zone(text: str) -> None:
    assert from_rfc3339(text) == MOMENT


@pytest.mark.parametrize("text", ["2026-02-01T03:10:56", "2026-02-01"])
def test_a_time_stamp_without_a_zone_says_what_is_missing(text: str) -> None:
    with pytest.raises(ValueError, match="names no time zone"):
        from_rfc3339(text)


@pytest.mark.parametrize("text", ["", "yesterday", "2026-02-30T00:00:00Z"])
def test_what_is_no_time_stamp_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        from_rfc3339(text)


@given(st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2100, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001 (Hypothesis adds the zone)
def test_what_is_written_with_six_digits_reads_back_to_the_microsecond(moment: datetime) -> None:
    text = rfc3339(moment.timestamp(), digits=6)
    assert datetime.fromisoformat(text) == moment
    assert rfc3339(from_rfc3339(text), digits=6) == text
