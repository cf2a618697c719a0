"""Which topic a captured conversation belongs to."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from clock import now, rfc3339
from operators.in_flight import in_flight
from operators.step import Gauge
from services.assistant import Curator
from services.knowledge import topic_name
from services.llm import LLMError, Usage
from services.team import Action, Decision, Pair, TeamLibrary

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Classified:
    pair: Pair
    topic: str
    """A safe name, whatever the curator wrote."""


def classify(
    library: TeamLibrary, curator: Curator, usage: Usage, gauge: Gauge | None = None
) -> Callable[[Pair], Coroutine[Any, Any, Classified | Decision]]:
    """Find a pair's topic in the current team index, or a name for a new one; or decide that it is skipped.

    Raises:
        LLMError: the curator has no usable result.
    """

    async def classified(pair: Pair) -> Classified | Decision:
        index = library.index()
        try:
            with in_flight(gauge, "classify"):
                result = await curator.classify(pair, index, usage)
        except LLMError as error:
            log.warning("llm_classification_failed %s: %s: %s", pair.id, type(error).__name__, error)
            raise
        topic = "" if result.skip else topic_name(result.topic_name)
        log.info("topic_classified %s: %s", pair.id, topic or "skipped")
        if result.skip:
            return skipped(pair, "classified as not worth keeping")
        if not topic:
            log.warning("%s: neither a topic nor a reason to skip was given; it is left out", pair.id)
            return skipped(pair, "no topic was named")
        return Classified(pair, topic)

    def skipped(pair: Pair, reason: str) -> Decision:
        return Decision(pair.id, rfc3339(now()), Action.SKIPPED, curator.by, reason=reason)

    return classified
