"""What a step says of the time it took."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import pytest

import operators.step
from clock import now
from model.batches import Part
from model.messages import Author, AuthorType, Message, Place, PlaceKind
from operators.step import in_flight, step, watched
from services.assistant import Inquiry
from services.llm import Usage
from tests.marbles import play


@pytest.mark.parametrize(
    ("level", "lines", "looks"), [(logging.DEBUG, ["gate took 2000 ms"], 2), (logging.INFO, [], 0)]
)
async def test_the_clock_is_asked_only_where_the_time_is_logged(
    level: int, lines: list[str], looks: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[float] = []

    def looked_at() -> float:
        asked.append(now())
        return asked[-1]

    async def gate(inquiry: Inquiry) -> Inquiry:
        await asyncio.sleep(2)
        return inquiry

    monkeypatch.setattr(operators.step, "now", looked_at)
    message = Message(10, 11, Author(1, "ada"), "How?", 1.0)
    part = Part(1, (message,), AuthorType.COMMUNITY_USER, Place(11, PlaceKind.CHANNEL), 1.0)
    with caplog.at_level(level, "operators.step"):
        inquiry = Inquiry(part, addressed=True, usage=Usage(), decisions={})
        assert await play("q---|", step("gate", gate, 1), values={"q": inquiry}, show=lambda _: "q") == "--q-|"
    assert [record.getMessage() for record in caplog.records if record.name == "operators.step"] == lines
    assert len(asked) == looks


class Heard:
    """A meter that writes down what it hears."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, operator: str, count: int) -> None:
        self.lines.append(f"{operator} works on {count}")

    def waits(self, operator: str, count: int) -> None:
        self.lines.append(f"{operator} lets {count} wait")

    def begins(self, operator: str) -> Callable[[Exception | None], object]:
        self.lines.append(f"{operator} begins")
        return lambda error: self.lines.append(f"{operator} ends with {error}")


async def test_a_meter_hears_of_each_item_of_a_step() -> None:
    heard = Heard()

    async def gate(inquiry: Inquiry) -> Inquiry:
        return inquiry

    message = Message(10, 11, Author(1, "ada"), "How?", 1.0)
    part = Part(1, (message,), AuthorType.COMMUNITY_USER, Place(11, PlaceKind.CHANNEL), 1.0)
    inquiry = Inquiry(part, addressed=True, usage=Usage(), decisions={})
    await play("q---|", step("gate", gate, 1, heard), values={"q": inquiry}, show=lambda _: "q")
    began = ["gate works on 1", "gate lets 0 wait", "gate begins", "gate ends with None", "gate works on 0"]
    assert heard.lines == [*began, "gate lets 0 wait", "gate lets 0 wait"]


def test_a_meter_hears_of_work_in_a_block_and_what_it_failed_of() -> None:
    heard = Heard()
    with in_flight(heard, "classify"):
        pass
    with pytest.raises(ValueError, match="no"), in_flight(heard, "classify"):
        raise ValueError("no")
    one = ["classify begins", "classify works on 1", "classify works on 0"]
    assert heard.lines == [*one, "classify ends with None", *one, "classify ends with no"]


def test_a_gauge_that_only_counts_is_not_asked_for_more() -> None:
    counts: list[tuple[str, int]] = []

    def gauge(operator: str, count: int) -> None:
        counts.append((operator, count))

    assert watched(gauge, "gate") is None
    assert watched(None, "gate") is None
    with in_flight(gauge, "classify"):
        assert counts == [("classify", 1)]
    with in_flight(None, "classify"):
        pass
