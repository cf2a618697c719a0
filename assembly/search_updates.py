"""Keeps search current, beside the graph."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from dataflow import Overflow, map_async, supervised
from services.knowledge import LibrarySearch
from streams.ticks import ticks

log = logging.getLogger(__name__)


@asynccontextmanager
async def search_kept_current(searches: Sequence[LibrarySearch], tick_seconds: float) -> AsyncGenerator[None]:
    """Keep the passages of sources and their vectors up to date for as long as the block runs: at once, and at each
    tick.
    """

    async def up_to_date(_: object) -> None:
        for search in searches:
            await search.refresh()
            await search.embed()

    subscription = (
        ticks(tick_seconds)
        .pipe(map_async(up_to_date, on_failure=failed, max_concurrent=1, max_waiting=1), supervised("searchable"))
        .subscribe(on_error=lambda error: log.critical("knowledge is searchable as it is now", exc_info=error))
    )
    try:
        yield
    finally:
        subscription.dispose()


def failed(_: object, error: Exception) -> None:
    if not isinstance(error, Overflow):  # the last update still runs, and sees what this one would have seen
        log.error("search was not brought up to date", exc_info=error)
