import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from model.messages import DISCORD_EPOCH_MS, Author
from services.discord.protocols import PAGE_SIZE, LookupFailed
from streams.gateway import CatchUpPlace, catch_up, ids_to_read_after

HOUR = 3600.0
NOW = 1_700_000_000.0


def snowflake(at: float, serial: int = 0) -> int:
    return (int(at * 1000) - DISCORD_EPOCH_MS << 22) + serial


class FakeHistory:
    def __init__(self, written: Mapping[int, Sequence[int]], *, is_passing: bool = True) -> None:
        self.written = written
        self.is_passing = is_passing
        self.asked: list[tuple[int, int | None]] = []

    async def payloads(self, channel_id: int, *, after: int | None = None) -> Sequence[Mapping[str, Any]]:
        self.asked.append((channel_id, after))
        if channel_id not in self.written:
            raise LookupFailed(f"{channel_id}: no", is_passing=self.is_passing)
        later = [each for each in sorted(self.written[channel_id]) if each > (after or 0)]
        return [{"id": str(each), "channel_id": str(channel_id), "content": "hello"} for each in later[:PAGE_SIZE]]


class StuckHistory(FakeHistory):
    async def payloads(self, channel_id: int, *, after: int | None = None) -> Sequence[Mapping[str, Any]]:
        if channel_id == 2:
            await asyncio.Event().wait()
        return await super().payloads(channel_id, after=after)


async def test_what_was_missed_comes_in_order_of_id_over_all_places() -> None:
    """Pitfall 25."""
    history = FakeHistory({1: [10 << 22, 30 << 22], 2: [20 << 22]})
    missed, _ = await catch_up({1: 5, 2: 5}, guild_id=7, history=history)
    assert [dispatch.d["id"] for dispatch in missed] == [str(n << 22) for n in (10, 20, 30)]
    assert {dispatch.t for dispatch in missed} == {"MESSAGE_CREATE"}


@pytest.mark.real_time
async def test_each_carries_the_time_it_was_written_and_its_guild() -> None:
    history = FakeHistory({1: [snowflake(NOW)]})
    (missed,), _ = await catch_up({1: 5}, guild_id=7, history=history)
    assert missed.at == NOW
    assert missed.d["guild_id"] == "7"


async def test_it_goes_on_page_by_page() -> None:
    history = FakeHistory({1: range(1, 251)})
    assert len((await catch_up({1: 0}, guild_id=7, history=history)).missed) == 250
    assert history.asked == [(1, 0), (1, 100), (1, 200)]


@pytest.mark.parametrize(("is_passing", "said"), [(True, "tried again"), (False, "left out")])
async def test_a_place_that_cannot_be_read_has_failed_if_it_may_be_later(
    caplog: pytest.LogCaptureFixture, is_passing: bool, said: str
) -> None:
    """Pitfall 25."""
    history = FakeHistory({1: [10]}, is_passing=is_passing)
    with caplog.at_level(logging.WARNING):
        missed, failed = await catch_up({1: 5, 2: 5}, guild_id=7, history=history)
    assert [dispatch.d["id"] for dispatch in missed] == ["10"]
    assert failed == ({2} if is_passing else set())
    assert f"place 2 is {said}: 2: no" in caplog.text


async def test_a_place_that_takes_too_long_does_not_hold_up_the_others(caplog: pytest.LogCaptureFixture) -> None:
    history = StuckHistory({1: [10], 2: [11]})
    missed, failed = await catch_up({1: 5, 2: 5}, guild_id=7, history=history, seconds=0.05)
    assert ([dispatch.d["id"] for dispatch in missed], failed) == (["10"], {2})
    assert "1 place could not be read" in caplog.text


async def test_without_marks_nothing_is_asked() -> None:
    history = FakeHistory({})
    assert await catch_up({}, guild_id=7, history=history) == ([], set())
    assert history.asked == []


class Spoken(FakeHistory):
    """Everybody's message has the id of its author, times ten, plus a number."""

    async def payloads(self, channel_id: int, *, after: int | None = None) -> Sequence[Mapping[str, Any]]:
        page = await super().payloads(channel_id, after=after)
        return [{**each, "author": {"id": str(int(each["id"]) // 10), "username": "somebody"}} for each in page]


async def test_everybody_is_introduced_once_before_their_messages_come() -> None:
    met: list[tuple[int, int]] = []

    async def look_up(author: Author, guild_id: int) -> None:
        met.append((author.id, guild_id))

    history = Spoken({1: [10, 11, 20], 2: [12]})
    missed, _ = await catch_up({1: 5, 2: 5}, guild_id=7, history=history, look_up=look_up)
    assert [dispatch.d["id"] for dispatch in missed] == ["10", "11", "12", "20"]
    assert met == [(1, 7), (2, 7)]


@pytest.mark.parametrize(("is_passing", "ids"), [(True, ["30"]), (False, ["10", "20", "30"])])
async def test_the_messages_of_somebody_who_cannot_be_looked_up_now_wait(is_passing: bool, ids: list[str]) -> None:
    """Pitfall 28: a look-up that failed is never taken for somebody of the community. One that always fails is left to
    routing, which gives the message its outcome.
    """

    async def look_up(author: Author, guild_id: int) -> None:
        if author.id == 1:
            raise LookupFailed(f"{guild_id}: Discord answered 500", is_passing=is_passing)

    history = Spoken({1: [10, 20], 2: [30]})
    missed, failed = await catch_up({1: 5, 2: 5}, guild_id=7, history=history, look_up=look_up)
    assert [dispatch.d["id"] for dispatch in missed] == ids
    assert failed == ({1} if is_passing else set())


def test_a_first_start_begins_now() -> None:
    assert ids_to_read_after({}, [CatchUpPlace(1), CatchUpPlace(2, parent_id=1)], since=0) == {}


def test_reading_goes_on_behind_the_mark() -> None:
    mark = snowflake(NOW)
    assert ids_to_read_after({1: mark}, [CatchUpPlace(1)], since=NOW - HOUR) == {1: mark}


def test_nothing_older_than_the_limit_is_read() -> None:
    floor = snowflake(NOW - HOUR)
    assert ids_to_read_after({1: snowflake(NOW - 9 * HOUR)}, [CatchUpPlace(1)], since=NOW - HOUR) == {1: floor - 1}


def test_a_place_without_anything_newer_is_not_asked() -> None:
    mark = snowflake(NOW)
    assert ids_to_read_after(
        {1: mark, 2: mark}, [CatchUpPlace(1, newest_id=mark), CatchUpPlace(2, newest_id=mark + 1)], since=0
    ) == {2: mark}


def test_a_new_channel_is_left_to_the_live_stream() -> None:
    assert ids_to_read_after({1: snowflake(NOW)}, [CatchUpPlace(snowflake(NOW + 9))], since=0) == {}


def test_a_thread_opened_behind_the_mark_of_its_channel_is_read_from_its_start() -> None:
    new, old = snowflake(NOW + 9), snowflake(NOW - 9)
    marks = {1: snowflake(NOW)}
    assert ids_to_read_after(
        marks, [CatchUpPlace(1, newest_id=5), CatchUpPlace(new, 1), CatchUpPlace(old, 1)], since=0
    ) == {new: new - 1}


def test_a_new_forum_post_is_read_although_its_forum_has_no_mark() -> None:
    new = snowflake(NOW + 9)
    marks = {1: snowflake(NOW)}
    forum = CatchUpPlace(5, is_forum=True)
    assert ids_to_read_after(marks, [forum, CatchUpPlace(new, 5)], since=0) == {new: new - 1}
    assert ids_to_read_after({}, [forum, CatchUpPlace(new, 5)], since=0) == {}


def test_a_new_thread_in_a_channel_without_a_mark_is_left_to_the_live_stream() -> None:
    assert ids_to_read_after({1: snowflake(NOW)}, [CatchUpPlace(2), CatchUpPlace(snowflake(NOW + 9), 2)], since=0) == {}
