"""Marble diagrams on the virtual loop: one character is one second.

    --a-(bc)-b--|      `a` at 2, `b` and `c` at 4, `b` at 6, the end at 9
    --(12 c)--#        a group with blanks in it has marks of several letters; `#` is an error

A group lasts one second, however many letters it takes to write. So does a mark of several letters that stands alone,
which is why it is written as a group.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from itertools import groupby
from typing import Any

from reactivex import Observable
from reactivex.subject import Subject

Operator = Callable[[Observable[Any]], Observable[Any]]
Seen = list[tuple[float, Any]]
"""What came when, in seconds from the start."""


class Broken(Exception):
    """The `#` of a source."""


async def play(
    source: str, *operators: Operator, values: Mapping[str, Any] | None = None, show: Callable[[Any], str] = str
) -> str:
    """What comes of `source` when it is piped through `operators`, as a diagram.

    A mark pushes `values[mark]`, or itself; `show` gives the mark of what comes out.
    """
    return draw([(at, shown(item, show)) for at, item in await watch(source, *operators, values=values)])


async def watch(source: str, *operators: Operator, values: Mapping[str, Any] | None = None) -> Seen:
    """As `play`, but gives what came out itself; last `|`, or the error."""
    loop = asyncio.get_running_loop()
    start, subject, seen = loop.time(), Subject[Any](), Seen()
    done = asyncio.Event()

    def see(item: Any) -> None:
        seen.append((loop.time() - start, item))

    def end(item: Any) -> None:
        see(item)
        done.set()

    subject.pipe(*operators).subscribe(see, end, lambda: end("|"))
    pushes = [
        loop.call_at(start + second, *push(subject, each, values or {}))
        for second, marks in enumerate(parse(source))
        for each in marks
    ]
    await done.wait()
    for each in pushes:
        each.cancel()  # those after an error
    return seen


def push(subject: Subject[Any], mark: str, values: Mapping[str, Any]) -> tuple[Callable[..., None], *tuple[Any, ...]]:
    if mark == "|":
        return (subject.on_completed,)
    if mark == "#":
        return subject.on_error, Broken()
    return subject.on_next, values.get(mark, mark)


def parse(diagram: str) -> list[list[str]]:
    """The marks of each second."""
    seconds: list[list[str]] = []
    for group, single in re.findall(r"\(([^)]*)\)|(.)", diagram):
        seconds.append(group.split() if " " in group else list(group or single.strip("-")))
    return seconds


def draw(marks: list[tuple[float, str]]) -> str:
    """The reverse of `parse`; what came between two seconds counts for the nearer one."""
    diagram = ""
    second = 0
    for at, group in groupby(marks, key=lambda entry: round(entry[0])):
        together = [each for _, each in group]
        diagram += "-" * (at - second)
        alone = len(together) == 1 and len(together[0]) == 1
        diagram += together[0] if alone else f"({' '.join(together)})"
        second = at + 1
    return diagram


def shown(item: Any, show: Callable[[Any], str]) -> str:
    if isinstance(item, Exception):
        return "#"
    return item if item == "|" else show(item)
