"""What a step says of the time it took."""

from __future__ import annotations

import asyncio
import logging

import pytest

import operators.step
from clock import now
from model.batches import Part
from model.messages import Author, AuthorType, Message, Place, PlaceKind
from operators.step import step
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
