"""Where decisions end: tier 2 of team knowledge, the topics and their index (SPEC 6, "Decisions").

Calls must not overlap, as decisions follow each other. One that is cancelled is finished all the same.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from clock import run_blocking
from services.team import Decision, Pair, TeamLibrary, Topic

log = logging.getLogger(__name__)


async def keep(library: TeamLibrary, decision: Decision, pair: Pair, then: Callable[[], None] | None = None) -> None:
    """Write a decision about `pair`, and what follows from it; then call `then`, still off the event loop.

    Raises LibraryUnwritable: a file cannot be written; the library knows what is left to do.
    """

    def decided() -> frozenset[str]:
        changed = library.decide(decision, pair)
        if then is not None:
            then()
        return changed

    for topic in sorted(await run_blocking(decided)):
        log.info("topic_file_updated %s by %s", topic, decision.qa_id)


async def describe(library: TeamLibrary, topic: Topic, summary: str, key: str, then: Callable[[], None]) -> None:
    """As `keep`, for the description of a topic; `key` is its describer's."""

    def described() -> None:
        library.describe(topic, summary, key)
        then()

    await run_blocking(described)
