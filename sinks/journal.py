"""Ends of parts in the log: what became of it, how long it took, what it cost."""

from __future__ import annotations

import logging

from model.outcomes import Ignored, Outcome, Result
from services.telemetry import about, number_of

log = logging.getLogger(__name__)


def journal(end: Result) -> None:
    """One line for each part that a branch had taken on, at INFO; for what was ignored, at DEBUG."""
    if isinstance(end, Outcome):
        if log.isEnabledFor(logging.INFO):
            _note(end)
    elif isinstance(end, Ignored):
        log.debug("ignored %s in %d: %s", number_of(len(end.message_ids), "message"), end.channel_id, end.reason)


def _note(end: Outcome) -> None:
    token = about.set(end.part)
    try:
        reason = "" if end.reason is None else f" ({end.reason})"
        seconds = end.at - end.part.closed_at
        log.info("%s%s after %.1f s, %d LLM calls", end.result, reason, seconds, end.llm_calls)
    finally:
        about.reset(token)
