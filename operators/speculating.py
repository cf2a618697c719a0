"""Run selection and loading while the gate decides (`ai_response.speculate`).

    in step        gate ────── select ────── load ── generate …
    speculating    gate ────── generate …
                   select ─ load

Before the gate has ruled, what is searched for is the request in the person's own words. When it has put the question
in other words, the guess counts if it holds the page that these words find first; else the selection is made anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any, TypeAlias

from model.outcomes import Outcome
from services.assistant import Inquiry, Unanswered
from services.knowledge import Search

Ask: TypeAlias = Callable[[Inquiry], Coroutine[Any, Any, Inquiry | Unanswered | Outcome]]

log = logging.getLogger(__name__)


def speculative_selection(selected: Ask, loaded: Ask) -> Callable[[Inquiry], Coroutine[Any, Any, Inquiry | None]]:
    """Run select and load on the question in the person's own words, without waiting for the gate. Returns the inquiry
    with its sources, or None if nothing was selected or a step ended it; that step then runs again in its turn and
    reports why.
    """

    async def guess(inquiry: Inquiry) -> Inquiry | None:
        # A path of its own: what the inquiry has been decided to be is up to its steps.
        found: Inquiry | Unanswered | Outcome = inquiry._replace(query=inquiry.request, decisions={})
        for ask in (selected, loaded):
            if isinstance(found, Inquiry):
                found = await ask(found)
        return found if isinstance(found, Inquiry) and found.selected else None

    return guess


@contextlib.asynccontextmanager
async def under_way(work: Coroutine[Any, Any, Inquiry | None]) -> AsyncGenerator[asyncio.Task[Inquiry | None]]:
    """Run `work` as a task while the block runs; at the end of the block the task is cancelled if it still runs, and
    has ended.
    """
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def guess_of(task: asyncio.Task[Inquiry | None]) -> Inquiry | None:
    """The inquiry that was speculated, or None if that failed."""
    try:
        return await task
    except Exception as error:  # noqa: BLE001 (the step itself will meet it, and tell)
        log.info("speculation: %s: %s; selected in turn", type(error).__name__, error)
        return None


def select_unless_guessed(selected: Ask, search: Search) -> Ask:
    """Select sources, unless the speculative selection fits the question as the gate has put it.

    inquiries   --g1----g2----g3--|      the words of g2 find another page first; g3 was not guessed
    out         --q1-----q2----q3-|
    """

    async def chosen(inquiry: Inquiry) -> Inquiry | Unanswered | Outcome:
        guess = inquiry.guess
        if guess is None:
            return await selected(inquiry)
        inquiry = inquiry._replace(guess=None)
        same = guess.query == inquiry.query
        if not same and not await _still_first(guess, inquiry.query):
            return await selected(inquiry)
        inquiry.decisions["select"] = {**guess.decisions["select"], "speculated": True}
        if not same:
            return inquiry._replace(selected=guess.selected)
        inquiry.decisions["load"] = guess.decisions["load"]
        return inquiry._replace(selected=guess.selected, sources=guess.sources)

    async def _still_first(guess: Inquiry, query: str) -> bool:
        pages = (await search.find(query)).pages
        return bool(pages) and pages[0].source_id in guess.selected

    return chosen


def load_unless_loaded(loaded: Ask) -> Ask:
    """Load the selected sources, unless the speculation has loaded them."""

    async def there(inquiry: Inquiry) -> Inquiry | Unanswered | Outcome:
        return inquiry if inquiry.sources else await loaded(inquiry)

    return there
