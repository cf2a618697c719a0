"""Async functions that take their time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def takes(seconds: float) -> Callable[[T], Coroutine[Any, Any, T]]:
    """A function that gives what it was given, after so many seconds."""

    async def give_back(item: T) -> T:
        await asyncio.sleep(seconds)
        return item

    return give_back


async def as_long_as_it_says(item: str) -> str:
    """`2` takes two seconds."""
    await asyncio.sleep(int(item))
    return item


def lost(item: object, error: Exception) -> str:
    """A failure in a diagram, where nobody is to have failed."""
    raise AssertionError(f"{item!r} failed") from error


def named(item: object, error: Exception) -> str:
    return f"{item}:{type(error).__name__}"
