"""Where decisions end: tier 2 of team knowledge, the topics and their index (SPEC 6, "Decisions")."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from clock import run_blocking
from services.team import Decision, Pair, TeamLibrary, Topic

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Topics:
    """Not to be called twice at once: decisions follow each other."""

    library: TeamLibrary

    async def keep(self, decision: Decision, pair: Pair, then: Callable[[], None] | None = None) -> None:
        """Write a decision about `pair`, and what follows from it. A call that is cancelled is finished all the same.

        `then` is called off the event loop, once all is written.

        Raises:
            LibraryUnwritable: a file cannot be written; the library knows what is left to do.
        """

        def decided() -> frozenset[str]:
            changed = self.library.decide(decision, pair)
            if then is not None:
                then()
            return changed

        for topic in sorted(await run_blocking(decided)):
            log.info("topic_file_updated %s by %s", topic, decision.qa_id)

    async def describe(self, topic: Topic, summary: str, key: str, then: Callable[[], None] | None = None) -> None:
        """Write a topic's description, `key` being that of its describer; `then` as in `keep`.

        Raises:
            LibraryUnwritable: a file cannot be written.
        """

        def described() -> None:
            self.library.describe(topic, summary, key)
            if then is not None:
                then()

        await run_blocking(described)
