"""The roles that one process plays at a time: what becomes of them when NATS fails while they are taken over."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest
from nats.errors import TimeoutError as NoAnswer

from assembly.distributed.roles import keep_while_held
from transport.fenced_log import Fenced


async def test_a_role_that_could_not_be_taken_over_is_taken_over_anew(caplog: pytest.LogCaptureFixture) -> None:
    released: list[int] = []
    kept: list[int] = []

    async def held() -> AsyncGenerator[int]:
        for number in range(3):
            yield number
            released.append(number)

    async def keep(number: int) -> None:
        if number == 0:
            raise NoAnswer
        if number == 1:
            raise Fenced("team")
        kept.append(number)

    await keep_while_held(held(), keep, "the archive")
    assert (released, kept) == ([0, 1, 2], [2])
    assert [record.getMessage() for record in caplog.records] == [
        "the archive: the server does not answer (nats: timeout); it will be taken over anew",
        "the archive is kept by another process now",
    ]


async def test_a_bug_ends_the_role_and_the_lease_is_released() -> None:
    released: list[int] = []

    async def held() -> AsyncGenerator[int]:
        try:
            yield 1
        finally:
            released.append(1)

    async def keep(_number: int) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await keep_while_held(held(), keep, "the archive")
    assert released == [1]
