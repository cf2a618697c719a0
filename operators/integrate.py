"""How a captured conversation goes into its topic."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any

from clock import now, rfc3339
from operators.classify import Classified
from operators.in_flight import in_flight
from operators.step import Gauge
from services.assistant import Curator, IntegrationResult
from services.llm import LLMError, Usage
from services.team import Action, Decision, TeamLibrary, allowed_removals, replaced_by

log = logging.getLogger(__name__)

ALONE = IntegrationResult(skip=False, remove_ids=[])
"""Nothing in the topic to compare with."""


def integrate(
    library: TeamLibrary, curator: Curator, usage: Usage, gauge: Gauge | None = None
) -> Callable[[Classified], Coroutine[Any, Any, Decision]]:
    """Decide whether a pair is added to its topic, and what of the topic it makes obsolete.

    Earlier captures of the same conversation are not shown to the curator, and go only when the pair is added (those
    in other topics, too: the library sees to that). What else goes is kept within bounds, whatever the curator says.

    Raises:
        LLMError: the curator has no usable result.
    """

    async def integrated(classified: Classified) -> Decision:
        pair, topic = classified.pair, classified.topic
        held = library.held(topic)
        others = [each for each in held if each.conversation_id != pair.conversation_id]
        try:
            with in_flight(gauge, "integrate"):
                result = await curator.integrate(pair, topic, others, usage) if others else ALONE
        except LLMError as error:
            log.warning("llm_integration_failed %s: %s: %s", pair.id, type(error).__name__, error)
            raise
        removed = allowed_removals(pair, held, result.remove_ids)
        at = rfc3339(now())
        if result.skip:
            reason = "the topic says the same"
            return Decision(pair.id, at, Action.SKIPPED, curator.by, topic, remove_ids=removed, reason=reason)
        replaced = replaced_by(pair, held)
        return Decision(pair.id, at, Action.ADDED, curator.by, topic, remove_ids=removed, replaces=replaced)

    return integrated
