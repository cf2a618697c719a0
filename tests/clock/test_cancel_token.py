import asyncio

import pytest

from dataflow import CancelToken

WHY, LATER = ValueError("deleted"), ValueError("too late")


def test_a_new_token_knows_no_error() -> None:
    assert CancelToken().error is None


def test_the_first_error_stays() -> None:
    token = CancelToken()
    token.cancel(WHY)
    token.cancel(LATER)
    assert token.error is WHY


def test_the_step_at_work_is_stopped_once() -> None:
    token, stops = CancelToken(), list[str]()
    token.attach(lambda: stops.append("stopped"))
    token.cancel(WHY)
    token.cancel(LATER)
    assert stops == ["stopped"]


def test_only_the_step_now_at_work_is_stopped() -> None:
    token, stops = CancelToken(), list[str]()
    token.attach(lambda: stops.append("first"))
    token.attach(lambda: stops.append("second"))
    token.cancel(WHY)
    assert stops == ["second"]


def test_no_step_begins_on_an_item_that_was_called_off() -> None:
    token = CancelToken()
    token.cancel(WHY)
    with pytest.raises(ValueError, match="deleted"):
        token.attach(pytest.fail)


def test_a_step_that_has_detached_is_left_alone() -> None:
    token = CancelToken()
    token.attach(pytest.fail)
    token.detach()
    token.cancel(WHY)
    assert token.error is WHY


async def test_what_is_committed_is_neither_cancelled_nor_late() -> None:
    token = CancelToken()
    token.attach(pytest.fail)
    token.expire_in(5, WHY)
    token.commit()
    await asyncio.sleep(10)
    token.cancel(WHY)
    assert token.error is None


def test_who_is_stopped_sees_why() -> None:
    token, seen = CancelToken(), list[Exception | None]()
    token.attach(lambda: seen.append(token.error))
    token.cancel(WHY)
    assert seen == [WHY]


async def test_its_time_does_not_pass_while_it_is_paused() -> None:
    token = CancelToken()
    token.expire_in(10, LATER)
    await asyncio.sleep(4)
    with token.pause_expiry():
        await asyncio.sleep(100)
    await asyncio.sleep(5.9)
    assert token.error is None
    await asyncio.sleep(0.2)
    assert token.error is LATER


async def test_what_has_ended_while_it_was_paused_expires_no_more() -> None:
    closed, cancelled = CancelToken(), CancelToken()
    for token, finish in ((closed, closed.close), (cancelled, lambda: cancelled.cancel(WHY))):
        token.expire_in(10, LATER)
        with token.pause_expiry():
            finish()
        await asyncio.sleep(20)
    assert (closed.error, cancelled.error) == (None, WHY)


async def test_what_never_expires_can_be_paused() -> None:
    token = CancelToken()
    with token.pause_expiry():
        await asyncio.sleep(1)
    assert token.error is None


async def test_it_expires_in_its_time() -> None:
    token, stopped = CancelToken(), asyncio.Event()
    token.attach(stopped.set)
    token.expire_in(5, LATER)
    await asyncio.sleep(4.9)
    assert token.error is None
    await stopped.wait()
    assert asyncio.get_running_loop().time() == 5
    assert token.error is LATER


async def test_the_first_expiry_counts() -> None:
    token = CancelToken()
    token.expire_in(5, LATER)
    token.expire_in(1, WHY)
    await asyncio.sleep(2)
    assert token.error is None
    await asyncio.sleep(4)
    assert token.error is LATER


async def test_what_is_closed_does_not_expire() -> None:
    token = CancelToken()
    token.expire_in(5, LATER)
    token.close()
    token.close()
    await asyncio.sleep(6)
    assert token.error is None


async def test_what_is_called_off_does_not_expire_any_more() -> None:
    token = CancelToken()
    token.expire_in(5, LATER)
    token.cancel(WHY)
    token.expire_in(1, LATER)
    await asyncio.sleep(6)
    assert token.error is WHY
