from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest
from pydantic import BaseModel

from clock import now
from services.llm import structured
from services.llm.endpoint import BadOutput, TimedOut, Unavailable
from services.llm.prompting import Prompt
from services.llm.structured import PrefetchingAsker
from services.llm.usage import Usage

M = TypeVar("M", bound=BaseModel)


class Answer(BaseModel):
    number: int


@dataclass
class Numbering:
    """Answers each call with its number, after a second; or raises what `fails` says."""

    fails: Callable[[int], Exception | None] = lambda _number: None
    calls: list[str] = field(default_factory=list[str])
    busy: int = 0
    most: int = 0

    async def ask(self, step: str, prompt: Prompt, model: type[M], usage: Usage, **_: Any) -> M:
        self.calls.append(prompt.user)
        number = len(self.calls)
        self.busy += 1
        self.most = max(self.most, self.busy)
        try:
            await asyncio.sleep(1)
        finally:
            self.busy -= 1
        usage.add(step, prompt_tokens=1, completion_tokens=1)
        if (error := self.fails(number)) is not None:
            raise error
        return model.model_validate({"number": number})


async def ask(asker: Any, user: str, usage: Usage | None = None) -> int:
    answer: Answer = await asker.ask("step", Prompt("system", user), Answer, usage or Usage())
    return answer.number


async def test_what_was_asked_ahead_word_for_word_is_not_asked_again() -> None:
    model, usage = Numbering(), Usage()
    asker = PrefetchingAsker(model, 8)
    assert await ask(asker.prefetcher, "one", usage) == 1
    began = now()
    assert await ask(asker, "one", usage) == 1
    assert now() == began
    assert await ask(asker, "another", usage) == 2
    assert usage.calls == {"step": 2}
    assert (asker.prefetched, asker.asked, asker.used) == (1, 2, 1)


async def test_what_is_under_way_is_waited_for() -> None:
    model = Numbering()
    asker = PrefetchingAsker(model, 8)
    guess = asyncio.create_task(ask(asker.prefetcher, "one"))
    await asyncio.sleep(0.5)
    assert await asyncio.gather(ask(asker, "one"), guess) == [1, 1]
    assert model.calls == ["one"]


async def test_who_guesses_the_same_twice_asks_once() -> None:
    model = Numbering()
    asker = PrefetchingAsker(model, 8)
    assert await asyncio.gather(ask(asker.prefetcher, "one"), ask(asker.prefetcher, "one")) == [1, 1]
    assert model.calls == ["one"]


async def test_an_answer_counts_once() -> None:
    asker = PrefetchingAsker(Numbering(), 8)
    await ask(asker.prefetcher, "one")
    assert [await ask(asker, "one") for _ in range(3)] == [1, 2, 3]


async def test_so_does_one_that_could_not_be_used() -> None:
    asker = PrefetchingAsker(Numbering(lambda number: BadOutput("prose") if number == 1 else None), 8)
    with pytest.raises(BadOutput):
        await ask(asker.prefetcher, "one")
    with pytest.raises(BadOutput):
        await ask(asker, "one")
    assert await ask(asker, "one") == 2


@pytest.mark.parametrize("error", [Unavailable("down"), TimedOut("slow")])
async def test_an_endpoint_that_was_not_there_is_asked_when_the_answer_is_needed(error: Exception) -> None:
    asker = PrefetchingAsker(Numbering(lambda number: error if number == 1 else None), 8)
    with pytest.raises(type(error)):
        await ask(asker.prefetcher, "one")
    assert await ask(asker, "one") == 2


async def test_a_guess_that_is_cancelled_is_not_asked_on() -> None:
    model = Numbering()
    asker = PrefetchingAsker(model, 8)
    guess = asyncio.create_task(ask(asker.prefetcher, "one"))
    await asyncio.sleep(0.5)
    guess.cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert model.busy == 0
    assert await ask(asker, "one") == 2


async def test_unless_somebody_needs_the_answer_by_now() -> None:
    model = Numbering()
    asker = PrefetchingAsker(model, 8)
    guess = asyncio.create_task(ask(asker.prefetcher, "one"))
    await asyncio.sleep(0.5)
    needed = asyncio.create_task(ask(asker, "one"))
    await asyncio.sleep(0.1)
    guess.cancel()
    assert await needed == 1
    assert model.calls == ["one"]


async def test_no_more_are_under_way_than_may_be() -> None:
    model = Numbering()
    asker = PrefetchingAsker(model, 3)
    guesses = [ask(asker.prefetcher, f"guess {number}") for number in range(5)]
    began = now()
    await asyncio.gather(*guesses, ask(asker, "one"))
    assert (model.most, now() - began) == (3, 2)


async def test_answers_that_nobody_asks_for_are_dropped_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structured, "KEPT", 2)
    model = Numbering()
    asker = PrefetchingAsker(model, 8)
    for number in range(4):
        await ask(asker.prefetcher, f"guess {number}")
    assert await ask(asker, "guess 3") == 4
    assert await ask(asker, "guess 0") == 5
