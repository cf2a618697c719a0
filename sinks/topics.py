"""Where decisions end: tier 2 of team knowledge, the topics and their index (SPEC 6, "Decisions")."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from services.archive import Pair
from services.decisions import Decision
from services.files import in_thread
from services.team_library import TeamLibrary
from services.topics import Topic

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Topics:
    """Not to be called twice at once: decisions follow each other."""

    library: TeamLibrary

    async def keep(self, decision: Decision, pair: Pair) -> None:
        """Write a decision about `pair`, and what follows from it. A call that is cancelled is finished all the same.

        Raises:
            LibraryUnwritable: a file cannot be written; the library knows what is left to do.
        """
        for topic in sorted(await in_thread(self.library.decide, decision, pair)):
            log.info("topic_file_updated %s by %s", topic, decision.qa_id)

    async def describe(self, topic: Topic, summary: str, key: str) -> None:
        """Write a topic's description, `key` being that of its describer.

        Raises:
            LibraryUnwritable: a file cannot be written.
        """
        await in_thread(self.library.describe, topic, summary, key)
