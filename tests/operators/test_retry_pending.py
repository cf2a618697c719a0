from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from clock import now
from operators.capturing import retry_pending
from services.llm.endpoint import BadOutput, Unavailable
from services.team.archive import Pair, PairTurn, Speaker
from services.team.captures import Capture, CapturedMessage
from services.team.pending import PendingCapture, PendingFolder
from tests.team import pair

DAY = 86_400.0


def waiting(number: int, since: float = 0.0, *, asked: str = "Why?") -> PendingCapture:
    said = (
        CapturedMessage(number, 11, PairTurn(Speaker.USER, asked)),
        CapturedMessage(number + 1, 50, PairTurn(Speaker.TEAM, "So.")),
    )
    return PendingCapture(since, Capture(None, f"thread_{number}", said), ())


class Desk:
    """What a retry talks to."""

    def __init__(self, folder: Path, *there: PendingCapture) -> None:
        self.pending = PendingFolder(folder)
        for each in there:
            self.pending.keep(each)
        self.error_for: Callable[[PendingCapture], Exception | None] = lambda _: None
        self.tried: list[str] = []
        self.stored: list[Capture] = []
        self.gives: Pair | None = pair(1)
        self.withheld: Callable[[CapturedMessage], bool] = lambda _: False

    async def summarise(self, one: PendingCapture) -> Capture:
        self.tried.append(one.name)
        if error := self.error_for(one):
            raise error
        return one.capture

    async def store(self, capture: Capture) -> Pair | None:
        self.stored.append(capture)
        return self.gives

    def is_withheld(self, said: CapturedMessage) -> bool:
        return self.withheld(said)

    async def round(self) -> int:
        """How many pairs came of one round."""
        pairs = retry_pending(self.pending, self.summarise, self.store, self.is_withheld)
        return len([pair async for pair in pairs])

    @property
    def names(self) -> list[str]:
        return [each.name for each in self.pending.all()]


async def test_those_who_wait_are_stored_oldest_first_and_leave_the_folder(tmp_path: Path) -> None:
    one, two = waiting(1, 9.0), waiting(5, 4.0)
    desk = Desk(tmp_path, one, two)
    assert await desk.round() == 2
    assert desk.stored == [two.capture, one.capture]
    assert desk.names == []
    assert await desk.round() == 0


async def test_one_that_fails_again_waits_on_and_keeps_nobody_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    one, two = waiting(1, 1.0), waiting(5, 2.0)
    desk = Desk(tmp_path, one, two)
    desk.error_for = lambda each: BadOutput("prose") if each.name == one.name else None
    assert await desk.round() == 1
    assert desk.names == [one.name]
    assert f"{one.name} waits on: BadOutput: prose" in caplog.text


async def test_while_the_endpoint_is_down_the_rest_of_the_round_is_left(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    desk = Desk(tmp_path, waiting(1, 1.0), waiting(5, 2.0))
    desk.error_for = lambda _: Unavailable("down")
    assert await desk.round() == 0
    assert len(desk.tried) == 1
    assert len(desk.names) == 2
    assert f"{desk.tried[0]} waits on, with all that came later: down" in caplog.messages


async def test_what_was_captured_meanwhile_makes_it_needless(tmp_path: Path) -> None:
    desk = Desk(tmp_path, waiting(1))
    desk.gives = None
    assert await desk.round() == 0
    assert desk.names == []


async def test_it_is_given_up_at_no_time(tmp_path: Path) -> None:
    await asyncio.sleep(DAY)
    desk = Desk(tmp_path, waiting(1, now()))
    desk.error_for = lambda _: BadOutput("prose")
    await asyncio.sleep(30 * DAY)
    await desk.round()
    assert len(desk.names) == 1
    assert desk.stored == []


async def test_what_was_opted_out_of_meanwhile_goes_before_anybody_sees_it(tmp_path: Path) -> None:
    theirs, mixed = waiting(1, 1.0), waiting(5, 2.0)
    third = CapturedMessage(9, 12, PairTurn(Speaker.USER, "Me too."))
    longer = PendingCapture(2.0, Capture(None, "thread_5", (*mixed.capture.messages, third)), ())
    desk = Desk(tmp_path, theirs, longer)
    desk.error_for = lambda _: BadOutput("prose")
    desk.withheld = lambda said: said.author_id == 12 or (said.author_id == 11 and said.turn.text == "gone")
    assert await desk.round() == 0
    assert desk.names == [theirs.name, mixed.name]
    desk.withheld = lambda said: said.author_id in {11, 50}
    await desk.round()
    assert desk.names == []
    assert desk.stored == []


async def test_a_message_that_is_opted_out_of_by_its_text_goes_alone(tmp_path: Path) -> None:
    first, answer = waiting(1).capture.messages
    private = CapturedMessage(3, 11, PairTurn(Speaker.USER, "between us"))
    desk = Desk(tmp_path, PendingCapture(1.0, Capture(None, "thread_1", (first, answer, private)), ()))
    desk.withheld = lambda said: said.turn.text == "between us"
    assert await desk.round() == 1
    assert [capture.messages for capture in desk.stored] == [(first, answer)]


async def test_the_text_of_somebody_who_opted_out_leaves_a_file_that_keeps_its_name(tmp_path: Path) -> None:
    said = (*waiting(1).capture.messages, CapturedMessage(9, 50, PairTurn(Speaker.TEAM, "Yes.")))
    middle = PendingCapture(
        1.0,
        Capture(None, "thread_1", (said[0], CapturedMessage(1, 12, PairTurn(Speaker.USER, "secret")), *said[1:])),
        (),
    )
    desk = Desk(tmp_path, middle)
    desk.withheld = lambda said: said.author_id == 12
    desk.error_for = lambda _: Unavailable("down")
    await desk.round()
    assert b"secret" not in (tmp_path / middle.name).read_bytes()


async def test_a_bug_is_told_with_its_traceback(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    desk = Desk(tmp_path, waiting(1))
    desk.error_for = lambda _: ZeroDivisionError("oh")
    await desk.round()
    assert "Traceback" in caplog.text
    assert len(desk.names) == 1
