from __future__ import annotations

import logging

import pytest

from model.outcomes import Ignored, Outcome, OutcomeKind, Reason, Removed
from services.telemetry.logs import current_part
from sinks.results import journal
from tests.services.telemetry.exporter.test_metrics import part


def test_each_part_ends_in_one_line_with_its_time_and_cost(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "sinks.results"):
        journal(Outcome(part(), 67.5, OutcomeKind.REPLIED, llm_calls=3))
        journal(Outcome(part(), 65.0, OutcomeKind.SKIPPED, Reason.NOT_ANSWERABLE))
        journal(Ignored(Reason.BOT, 1, (10,)))
        journal(Removed(1, 10))
    assert caplog.messages == ["replied after 2.5 s, 3 LLM calls", "skipped (not answerable) after 0.0 s, 0 LLM calls"]
    assert current_part.get() is None


def test_what_was_ignored_is_a_detail_and_where_nobody_reads_nothing_is_made(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "sinks.results"):
        journal(Ignored(Reason.BOT, 1, (10,)))
    with caplog.at_level(logging.WARNING, "sinks.results"):
        journal(Outcome(part(), 67.5, OutcomeKind.REPLIED))
    assert caplog.messages == ["ignored 1 message in 1: bot"]
