from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from clock import now
from services.llm.endpoint import BadOutput, LLMError, Rejected, Reply, Request, TimedOut, Unavailable
from services.llm.resilience import FAILURES, LONGEST_PAUSE_SECONDS, OPEN_SECONDS, ResilientEndpoint
from tests.services.llm.asking import ScriptedEndpoint, Sleeper, patient, reply_of, request_of, settings_of


class Retries:
    def __init__(self, *, max_retries: int = 2, retry_timeouts: bool = False, jitter: float = 0.5) -> None:
        self.inner, sleeper = ScriptedEndpoint(), Sleeper()
        self.pauses = sleeper.pauses
        self.endpoint = patient(
            self.inner, sleeper, jitter=jitter, max_retries=max_retries, retry_timeouts=retry_timeouts
        )


async def test_an_unavailable_endpoint_is_asked_again_with_doubling_pauses() -> None:
    retries = Retries(max_retries=3)
    retries.inner.then(*[Unavailable("busy")] * 3)
    assert await retries.endpoint.complete(request_of()) == reply_of()
    assert retries.pauses == [0.5, 1.0, 2.0]


@pytest.mark.parametrize(("jitter", "pause"), [(0.0, 0.25), (1.0, 0.75)])
async def test_pauses_are_jittered(jitter: float, pause: float) -> None:
    retries = Retries(jitter=jitter)
    retries.inner.then(Unavailable("busy"))
    await retries.endpoint.complete(request_of())
    assert retries.pauses == [pause]


@pytest.mark.parametrize(("asked", "pause"), [(7.0, 7.0), (0.1, 0.5), (3600.0, LONGEST_PAUSE_SECONDS), (None, 0.5)])
async def test_a_server_may_ask_for_a_longer_pause_up_to_a_limit(asked: float | None, pause: float) -> None:
    retries = Retries()
    retries.inner.then(Unavailable("busy", retry_after=asked))
    await retries.endpoint.complete(request_of())
    assert retries.pauses == [pause]


async def test_the_last_failure_is_the_one_raised() -> None:
    retries = Retries()
    retries.inner.then(Unavailable("one"), Unavailable("two"), Unavailable("three"))
    with pytest.raises(Unavailable, match="three"):
        await retries.endpoint.complete(request_of())
    assert len(retries.inner.asked) == 3


@pytest.mark.parametrize("error", [TimedOut("late"), Rejected("no"), BadOutput("what")], ids=lambda e: type(e).__name__)
async def test_what_would_be_billed_again_or_fail_again_is_not_retried(error: LLMError) -> None:
    retries = Retries()
    retries.inner.then(error)
    with pytest.raises(type(error)):
        await retries.endpoint.complete(request_of())
    assert len(retries.inner.asked) == 1


async def test_time_outs_are_retried_where_that_is_wanted() -> None:
    retries = Retries(retry_timeouts=True)
    retries.inner.then(TimedOut("late"))
    assert await retries.endpoint.complete(request_of()) == reply_of()


async def test_closing_closes_the_client() -> None:
    retries = Retries()
    await retries.endpoint.aclose()
    assert retries.inner.closed == 1


class Timed(ScriptedEndpoint):
    """Notes when it was asked, and takes a second."""

    def __init__(self) -> None:
        super().__init__()
        self.at: list[float] = []

    async def complete(self, request: Request) -> Reply:
        self.at.append(now())
        await asyncio.sleep(1)
        return await super().complete(request)


@pytest.mark.parametrize(
    ("asked", "held"), [(20.0, 21.0), (3600.0, 1 + LONGEST_PAUSE_SECONDS), (None, 6.0), (0.0, 6.0)]
)
async def test_what_one_call_was_told_to_wait_holds_for_all_of_them(asked: float | None, held: float) -> None:
    inner, begun = Timed(), now()
    endpoint = ResilientEndpoint(inner, settings_of(""))
    inner.then(Unavailable("busy", retry_after=asked))
    with pytest.raises(Unavailable):
        await endpoint.ask(request_of())
    await asyncio.sleep(5)
    await asyncio.gather(endpoint.ask(request_of()), endpoint.ask(request_of()))
    assert [at - begun for at in inner.at] == [0, held, held]


async def test_a_later_word_of_less_does_not_shorten_the_wait() -> None:
    inner, begun = Timed(), now()
    endpoint = ResilientEndpoint(inner, settings_of(""))
    inner.then(Unavailable("busy", retry_after=30), Unavailable("busy", retry_after=10))
    told = await asyncio.gather(*(endpoint.ask(request_of()) for _ in range(2)), return_exceptions=True)
    assert [type(each) for each in told] == [Unavailable, Unavailable]
    await endpoint.ask(request_of())
    assert [at - begun for at in inner.at] == [0, 0, 31]
    await endpoint.aclose()
    assert inner.closed == 1


class Breaker:
    def __init__(self) -> None:
        self.inner, self.clock = ScriptedEndpoint(), Sleeper()
        self.endpoint = patient(self.inner, self.clock, max_retries=1)

    async def fail(self, times: int = FAILURES) -> None:
        for _ in range(times):
            self.inner.then(TimedOut("late"))
            with pytest.raises(LLMError):
                await self.endpoint.ask(request_of())

    async def refused(self) -> str:
        before = len(self.inner.asked)
        with pytest.raises(Unavailable) as caught:
            await self.endpoint.ask(request_of())
        assert len(self.inner.asked) == before
        return str(caught.value)


async def test_after_some_failures_in_a_row_calls_fail_at_once() -> None:
    breaker = Breaker()
    await breaker.fail()
    breaker.clock.now += 10.5
    assert "not asked again for 20 s" in await breaker.refused()


async def test_calls_that_end_unavailable_after_their_retries_count_as_failures() -> None:
    breaker = Breaker()
    breaker.inner.then(*[Unavailable("gone")] * 2 * FAILURES)
    for _ in range(FAILURES):
        with pytest.raises(Unavailable):
            await breaker.endpoint.ask(request_of())
    assert len(breaker.inner.asked) == 2 * FAILURES
    await breaker.refused()


async def test_failures_that_are_not_in_a_row_do_not_count() -> None:
    breaker = Breaker()
    await breaker.fail(FAILURES - 1)
    await breaker.endpoint.ask(request_of())
    await breaker.fail(FAILURES - 1)
    breaker.inner.then(Rejected("no"))
    with pytest.raises(Rejected):
        await breaker.endpoint.ask(request_of())
    await breaker.fail(FAILURES - 1)
    assert await breaker.endpoint.ask(request_of())


async def test_then_one_call_probes_and_success_ends_the_pause() -> None:
    breaker = Breaker()
    await breaker.fail()
    breaker.clock.now += OPEN_SECONDS
    assert await breaker.endpoint.ask(request_of())
    assert await breaker.endpoint.ask(request_of())


async def test_a_probe_is_not_retried_and_begins_another_pause_if_it_fails() -> None:
    breaker = Breaker()
    await breaker.fail()
    breaker.clock.now += OPEN_SECONDS
    breaker.inner.then(Unavailable("gone"))
    with pytest.raises(Unavailable, match="gone"):
        await breaker.endpoint.ask(request_of())
    assert len(breaker.inner.asked) == FAILURES + 1
    assert "for 30 s" in await breaker.refused()


class Held(ScriptedEndpoint):
    """Once told to, it answers as scripted only when it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()
        self.go.set()

    async def complete(self, request: Request) -> Reply:
        go = self.go
        await go.wait()
        return await super().complete(request)


async def test_while_a_probe_is_under_way_nobody_else_asks() -> None:
    breaker = Breaker()
    breaker.inner = held = Held()
    breaker.endpoint = patient(held, breaker.clock)
    await breaker.fail()
    breaker.clock.now += OPEN_SECONDS
    held.go.clear()
    probe = asyncio.create_task(breaker.endpoint.ask(request_of()))
    await asyncio.sleep(0)
    assert "until the call that probes it has ended" in await breaker.refused()
    held.go.set()
    assert await probe


async def test_a_call_from_before_the_pause_does_not_lengthen_it_while_a_probe_is_under_way() -> None:
    breaker = Breaker()
    breaker.inner = held = Held()
    breaker.endpoint = patient(held, breaker.clock)
    held.go.clear()
    before = asyncio.create_task(breaker.endpoint.ask(request_of()))
    await asyncio.sleep(0)
    gate, held.go = held.go, asyncio.Event()
    held.go.set()
    await breaker.fail()
    breaker.clock.now += OPEN_SECONDS
    held.go.clear()
    probe = asyncio.create_task(breaker.endpoint.ask(request_of()))
    await asyncio.sleep(0)
    held.then(Unavailable("late"))
    gate.set()
    with pytest.raises(Unavailable, match="late"):
        await before
    assert "until the call that probes it has ended" in await breaker.refused()
    held.go.set()
    assert await probe


async def test_a_call_from_before_the_pause_does_not_lengthen_it_and_its_success_ends_it() -> None:
    breaker = Breaker()
    breaker.inner = held = Held()
    breaker.endpoint = patient(held, breaker.clock)
    before = list[asyncio.Task[Reply]]()
    gates = asyncio.Event(), asyncio.Event()
    for gate in gates:
        held.go = gate
        before.append(asyncio.create_task(breaker.endpoint.ask(request_of())))
        await asyncio.sleep(0)
    held.go = asyncio.Event()
    held.go.set()
    await breaker.fail()
    breaker.clock.now += 20
    held.then(Unavailable("gone"))
    gates[0].set()
    with pytest.raises(Unavailable):
        await before[0]
    assert "for 10 s" in await breaker.refused()
    gates[1].set()
    assert await before[1]
    assert await breaker.endpoint.ask(request_of())


async def test_each_call_is_reported_once_with_its_error_and_those_that_an_open_circuit_refuses_are_not() -> None:
    inner, sleeper, heard = ScriptedEndpoint(), Sleeper(), list[tuple[str, str]]()
    endpoint = ResilientEndpoint(
        inner,
        settings_of("", max_retries=1),
        sleep=sleeper.sleep,
        now=lambda: sleeper.now,
        on_call=lambda name, error: heard.append((name, type(error).__name__)),
    )
    failing = [Unavailable("busy")] * 2
    inner.then(reply_of(), *failing, Rejected("no"), Unavailable("busy"), reply_of(), *failing * FAILURES)
    for _ in range(4 + FAILURES + 3):
        with suppress(LLMError):
            await endpoint.complete(request_of())
    assert {name for name, _ in heard} == {settings_of("").name}
    first = ["NoneType", "Unavailable", "Rejected", "NoneType"]
    assert [error for _, error in heard] == first + ["Unavailable"] * FAILURES
