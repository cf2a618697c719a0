"""Write decisions about captured conversations to the topics and their index (tier 2).

Calls must not overlap, as decisions follow each other. One that is cancelled is finished all the same.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from clock import run_blocking
from services.team import Decision, Pair, TeamLibrary, Topic

log = logging.getLogger(__name__)


async def keep(
    library: TeamLibrary,
    decision: Decision,
    pair: Pair,
    then: Callable[[], None] | None = None,
    *,
    put_off: bool = False,
) -> Sequence[str]:
    """Write a decision about `pair`, and what follows from it, unless that is `put_off` (`TeamLibrary.decide`); then
    call `then`, still off the event loop. Gives the names of the topics that changed.

    Raises LibraryUnwritable: a file cannot be written; the library knows what is left to do.
    """

    def decided() -> frozenset[str]:
        changed = library.decide(decision, pair, put_off=put_off)
        if then is not None:
            then()
        return changed

    changed = sorted(await run_blocking(decided))
    for topic in changed:
        log.info("topic_file_updated %s by %s", topic, decision.qa_id)
    return changed


async def describe(
    library: TeamLibrary,
    topic: Topic,
    summary: str,
    key: str,
    then: Callable[[], None] | None = None,
    *,
    put_off: bool = False,
) -> None:
    """Like `keep`, for the description of a topic. `key`: of its describer."""

    def described() -> None:
        library.describe(topic, summary, key, put_off=put_off)
        if then is not None:
            then()

    await run_blocking(described)
