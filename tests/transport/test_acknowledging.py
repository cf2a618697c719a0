"""Acknowledgements that a server has lost."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from typing import cast

import pytest
from nats.aio.client import Client

from clock import cancel_and_wait
from transport.connection import StrictClient
from transport.partition import AckSender


@dataclass
class Line:
    """A connection, and a server behind it that loses the first so many acknowledgements."""

    loses: int = 0
    sent: list[str] = field(default_factory=list[str])
    arrived: set[str] = field(default_factory=set[str])

    async def publish(self, subject: str, _data: bytes) -> None:
        self.sent.append(subject)
        if len(self.sent) > self.loses:
            self.arrived.add(subject)

    async def flush(self) -> None:
        await asyncio.sleep(0)


def acknowledging(line: Line, delivered: int, held: int = 0) -> AckSender:
    async def unacknowledged() -> int:
        return delivered - len(line.arrived)

    return AckSender(cast("Client", line), unacknowledged, lambda: held)


async def test_those_that_have_arrived_are_sent_once() -> None:
    line = Line()
    acks = acknowledging(line, delivered=3, held=1)
    await acks.send(["a", "b"])
    assert await acks.confirm()
    assert await acks.confirm()
    assert line.sent == ["a", "b"]


async def test_those_that_were_lost_are_sent_again_until_they_have_arrived() -> None:
    line = Line(loses=3)
    acks = acknowledging(line, delivered=2)
    await acks.send(["a", "b"])
    assert not await acks.confirm()
    assert not await acks.confirm()
    assert await acks.confirm()
    assert line.arrived == {"a", "b"}


async def test_those_of_several_times_are_sent_again_together() -> None:
    line = Line(loses=2)
    acks = acknowledging(line, delivered=2)
    await acks.send(["a"])
    await acks.send(["b"])
    assert not await acks.confirm()
    assert line.arrived == {"a", "b"}


async def test_the_server_is_asked_soon_after_new_ones_and_now_and_then_without() -> None:
    line = Line(loses=1)
    acks = acknowledging(line, delivered=1)
    checking = asyncio.create_task(acks.check())
    await asyncio.sleep(11)
    await acks.send(["a"])
    await asyncio.sleep(2)
    assert line.arrived == {"a"}
    await asyncio.sleep(2)  # that they have arrived is known now
    line.arrived.remove("a")  # by a new leader
    await asyncio.sleep(7)
    assert line.arrived == set()
    await asyncio.sleep(14)
    assert line.arrived == {"a"}
    await cancel_and_wait(checking)


async def test_those_that_a_new_leader_does_not_know_are_sent_again() -> None:
    line = Line()
    acks = acknowledging(line, delivered=2)
    await acks.send(["a", "b"])
    assert await acks.confirm()
    line.arrived.remove("a")
    assert not await acks.confirm()
    assert not await acks.confirm()
    assert await acks.confirm()
    assert line.arrived == {"a", "b"}


async def test_while_the_server_does_not_answer_nothing_counts_as_arrived() -> None:
    answers = [TimeoutError(), 1, 0]

    async def unacknowledged() -> int:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    line = Line()
    acks = AckSender(cast("Client", line), unacknowledged, lambda: 0)
    await acks.send(["a"])
    assert [await acks.confirm() for _ in range(3)] == [False, False, True]
    assert line.sent == ["a", "a"]


async def test_waiting_for_those_that_never_arrive_ends(caplog: pytest.LogCaptureFixture) -> None:
    acks = acknowledging(Line(loses=1_000), delivered=1)
    await acks.send(["a"])
    await acks.wait_confirmed(0.1)
    assert "some messages will come again" in caplog.text


async def test_a_request_that_is_cancelled_together_with_its_answer_does_not_return(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def answers_all_the_same(_client: Client, _subject: str) -> str:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return "the answer"

    monkeypatch.setattr(Client, "request", answers_all_the_same)
    task = asyncio.create_task(StrictClient().request("a"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_two_that_ask_at_the_same_time_count_each_once() -> None:
    line = Line()
    acks = acknowledging(line, delivered=2)
    await acks.send(["a", "b"])
    assert await asyncio.gather(acks.confirm(), acks.confirm()) == [True, True]
