"""One captured conversation in, one decision about it out (SPEC 6, "Classify and integrate")."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

from clock import now, rfc3339
from operators.classify import Classified, classify
from operators.integrate import integrate
from operators.step import Gauge, expected
from services.assistant import Curator
from services.llm import LLMError, TimedOut, Unavailable, UnknownRequest, Usage
from services.team import Action, Decision, LibraryUnwritable, Pair, TeamLibrary

TRIES = 3
"""Of one pair (SPEC 6)."""

REASON_CHARS = 300

NOT_NOW = (Unavailable, TimedOut, UnknownRequest, OSError, LibraryUnwritable)
"""The endpoint, its recording or the disk is to blame, not the pair: it stays undecided, and whoever works through
pairs stops.
"""

log = logging.getLogger(__name__)


def study(
    library: TeamLibrary, curator: Curator, usage: Usage, gauge: Gauge | None = None
) -> Callable[[Pair], Coroutine[Any, Any, Decision]]:
    """Classify a pair and integrate it into its topic; `library` is only read, so that it is up to the caller to keep
    the decision, before the next pair is studied.

    An answer that cannot be used, and a request that is refused, cost the pair a try, also over several calls: after
    three of them the decision is `failed`. Pairs may come in any order.

    Raises:
        LLMError, OSError, LibraryUnwritable: it is not the pair's fault and costs no try (those of `NOT_NOW`).
    """
    classified = classify(library, curator, usage, gauge)
    integrated = integrate(library, curator, usage, gauge)
    tries: Counter[str] = Counter()

    async def attempt(pair: Pair) -> Decision:
        found = await classified(pair)
        return await integrated(found) if isinstance(found, Classified) else found

    async def studied(pair: Pair) -> Decision:
        while True:
            try:
                decision = await attempt(pair)
            except NOT_NOW:
                raise
            except Exception as error:
                tries[pair.id] += 1
                if not expected(error):  # a bug of ours; the pair must not hold up the others for it
                    log.exception("%s could not be studied", pair.id)
                if tries[pair.id] < TRIES:
                    continue
                reason = _reason(error)[:REASON_CHARS]
                log.error("%s failed %d times and is left for --regen: %s", pair.id, TRIES, reason)  # noqa: TRY400 (for the operator)
                decision = Decision(pair.id, rfc3339(now()), Action.FAILED, curator.by, reason=reason)
            del tries[pair.id]
            return decision

    return studied


def _reason(error: Exception) -> str:
    """Only what cannot quote anybody, since decisions are kept when people are forgotten (Pitfall 49)."""
    kind = type(error).__name__
    return f"{kind}: {error}" if isinstance(error, LLMError) else kind
