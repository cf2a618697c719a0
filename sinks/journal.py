"""Results in the log: what became of each part, how long it took, what it cost."""

from __future__ import annotations

import logging

from model.outcomes import Ignored, Outcome, Result
from services.telemetry import about, number_of

log = logging.getLogger(__name__)


def journal(result: Result) -> None:
    """One line for each outcome, at INFO; for what was ignored, at DEBUG."""
    if isinstance(result, Outcome) and log.isEnabledFor(logging.INFO):
        token = about.set(result.part)
        try:
            reason = "" if result.reason is None else f" ({result.reason})"
            seconds = result.at - result.part.closed_at
            log.info("%s%s after %.1f s, %d LLM calls", result.result, reason, seconds, result.llm_calls)
        finally:
            about.reset(token)
    elif isinstance(result, Ignored):
        messages = number_of(len(result.message_ids), "message")
        log.debug("ignored %s in %d: %s", messages, result.channel_id, result.reason)
