"""What is asked of a server again, on a clock that jumps."""

from __future__ import annotations

import asyncio
import math

import nats.errors
import pytest
from nats.js.errors import NotFoundError, ObjectNotFoundError

from transport.connection import FILE_PATIENCE_SECONDS as FILE_PATIENCE
from transport.connection import PATIENCE_SECONDS, ServerAway, retry


class Server:
    """Fails as it is told, then answers; `asked`: when it was. None: it says nothing."""

    def __init__(self, *failures: Exception | None) -> None:
        self.failures = list(failures)
        self.asked: list[float] = []

    async def answer(self) -> str:
        self.asked.append(asyncio.get_running_loop().time())
        if self.failures:
            failure = self.failures.pop(0)
            if failure is None:
                await asyncio.Event().wait()
            else:
                raise failure
        return "answer"


@pytest.mark.parametrize(
    ("failures", "asked"),
    [
        ([], [0.0]),
        ([nats.errors.TimeoutError()], [0.0, 0.1]),
        ([NotFoundError(), ConnectionResetError(), TimeoutError()], [0.0, 0.1, 0.3, 0.7]),
        ([None, nats.errors.NoRespondersError()], [0.0, 2.1, 2.3]),
    ],
)
async def test_what_fails_is_tried_again_after_growing_pauses(
    failures: list[Exception | None], asked: list[float]
) -> None:
    server, said = Server(*failures), list[Exception]()
    assert await retry(server.answer, on_failure=said.append) == "answer"
    assert server.asked == pytest.approx(asked)
    assert len(said) == len(failures)


@pytest.mark.parametrize(("seconds", "within"), [(None, PATIENCE_SECONDS), (FILE_PATIENCE, FILE_PATIENCE), (0.0, 0.0)])
async def test_a_server_that_stays_away_is_an_error_of_the_system(seconds: float | None, within: float) -> None:
    server = Server(*([nats.errors.NoRespondersError()] * 100))
    with pytest.raises(ServerAway, match=r"^NATS does not serve \(.+\); start the server, or look into its log$"):
        await retry(server.answer, seconds)
    assert within <= server.asked[-1] <= within + 2
    assert issubclass(ServerAway, OSError)


async def test_some_ask_for_ever() -> None:
    server = Server(*([nats.errors.NoRespondersError()] * 500))
    assert await retry(server.answer, math.inf) == "answer"


@pytest.mark.parametrize(
    "error", [ObjectNotFoundError(), PermissionError("the disk"), ServerAway("tried enough"), ValueError()]
)
async def test_what_is_no_silence_is_raised_at_once(error: Exception) -> None:
    server = Server(error)
    with pytest.raises(type(error)):
        await retry(server.answer, unless=ObjectNotFoundError)
    assert len(server.asked) == 1
