"""Where decisions end: tier 2 of team knowledge, the topics and their index (SPEC 6, "Decisions")."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from services.decisions import Decision
from services.files import in_thread
from services.team_library import TeamLibrary

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Topics:
    """Not to be called twice at once: decisions follow each other."""

    library: TeamLibrary

    async def keep(self, decision: Decision) -> None:
        """Write a decision, and what follows from it. A call that was cancelled is finished all the same.

        Raises:
            OSError: a file cannot be written.
        """
        for topic in sorted(await in_thread(self.library.decide, decision)):
            log.info("topic_file_updated %s by %s", topic, decision.qa_id)

    async def describe(self, topic: str, summary: str, key: str) -> None:
        """Write a topic's description, `key` being that of its describer.

        Raises:
            OSError: a file cannot be written.
        """
        await in_thread(self.library.describe, topic, summary, key)
