from __future__ import annotations

import asyncio
from typing import Any

from reactivex.subject import Subject

from dataflow import unfold
from dataflow.triggering import coalesce
from tests.marbles import play


def asking(*items: Any, seconds: float = 2.0) -> Any:
    """A function that gives these, one a call, each after a while; then None."""
    left = list(items)

    async def ask() -> Any:
        if not left:
            return None
        await asyncio.sleep(seconds)
        item = left.pop(0)
        if isinstance(item, Exception):
            raise item
        return item

    return ask


async def test_items_come_one_after_another_until_there_are_none() -> None:
    assert await play("a--------|", coalesce(lambda _: unfold(asking(1, 2)))) == "--1-2----|"


async def test_what_is_raised_ends_the_stream() -> None:
    assert await play("a--------|", coalesce(lambda _: unfold(asking(1, ValueError())))) == "--1-#"


async def test_a_source_without_items_completes() -> None:
    assert await play("a|", coalesce(lambda _: unfold(asking()))) == "-|"


async def test_nothing_is_asked_before_the_last_item_was_heard_of() -> None:
    order: list[str] = []
    left = [1, 2]
    done = asyncio.Event()

    async def ask() -> int | None:
        order.append("asked")
        return left.pop(0) if left else None

    unfold(ask).subscribe(lambda item: order.append(f"heard {item}"), on_completed=done.set)
    await done.wait()
    assert order == ["asked", "heard 1", "asked", "heard 2", "asked"]


async def test_disposing_cancels_the_call_under_way() -> None:
    cancelled = asyncio.Event()

    async def ask() -> int:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return 1

    heard: Subject[int] = Subject()
    subscription = unfold(ask).subscribe(heard)
    await asyncio.sleep(1)
    subscription.dispose()
    await cancelled.wait()
