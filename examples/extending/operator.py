"""Worked examples of docs/extending.md: a generic operator, and a step of the answer chain."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Mapping
from typing import Any, TypeVar

from reactivex import Observable, abc

from dataflow.basics import Handlers, make_operator
from model.steps import DecisionInfo, Lane, StepInfo
from model.words import number_of
from services.assistant import Inquiry

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


def slow_mode(key: Callable[[T], K], seconds: float) -> Callable[[Observable[T]], Observable[T]]:
    """Let through an item of each key at most every `seconds` seconds; drop the others.

        --a-a-b----a--|
        [ slow_mode(letter, 6) ]
        --a---b----a--|

    `throttle_first` does it for one key; a `group_by` around it would keep a subject for each key ever seen.
    """

    def make_handlers(observer: abc.ObserverBase[T]) -> Handlers[T]:
        loop = asyncio.get_running_loop()
        last: dict[K, float] = {}

        def on_next(item: T) -> None:
            try:
                name = key(item)
            except Exception as error:  # noqa: BLE001 (Rx's rule: a raising selector ends the stream)
                observer.on_error(error)
                return
            now = loop.time()
            for old in [each for each, at in last.items() if now - at >= seconds]:
                del last[old]  # memory is proportional to the keys of the last seconds
            if name not in last:
                last[name] = now
                observer.on_next(item)

        return Handlers(on_next)

    return make_operator(make_handlers)


def sign(signature: str) -> Callable[[Inquiry], Coroutine[Any, Any, Inquiry]]:
    """A step after `generate`: add a line of the operator below every draft."""

    async def signed(inquiry: Inquiry) -> Inquiry:
        draft = f"{inquiry.draft}\n\n{signature}"
        inquiry.decisions["sign"] = {"characters": len(draft)}
        return inquiry._replace(draft=draft)

    return signed


def _signed(decided: Mapping[str, Any]) -> str:
    return f"{number_of(decided['characters'], 'character')} with the signature"


SIGN = StepInfo(
    name="sign",
    lane=Lane.ANSWERS,
    title="sign",
    subtitle="a line below the draft",
    handles_parts=True,
    decision=DecisionInfo(name="sign", is_recorded=True, alters_answer=True, describe=_signed),
)
"""Its row of `model.steps.STEPS`."""
