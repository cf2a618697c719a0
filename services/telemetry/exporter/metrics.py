"""What Prometheus is shown. Imported only where `metrics.port` is set: the rest of the program hands in functions."""

from __future__ import annotations

from typing import cast

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from model.batches import Destination
from model.messages import AuthorType
from model.outcomes import Ignored, Outcome, Reason, Result

CONTENT_TYPE = CONTENT_TYPE_LATEST

CALL_SECONDS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 60, 120, 240)
"""Bounds for a call to an LLM, between a cache hit nearby and a job that waits for its turn."""
SOURCE_COUNTS = (0, 1, 2, 3, 4, 5, 7, 10)

OPEN_BATCHES = "quiet_window"
"""The operator whose items in flight are the open batches."""

_LEFT_ALONE = frozenset({Reason.REPLY_MODE, Reason.TEAM_IS_ANSWERING})
"""Why routing keeps the bot out of what it would otherwise answer."""


class Metrics:
    """A registry of its own, so that two runs in one process never meet."""

    def __init__(self) -> None:
        self._registry = all_ = CollectorRegistry()
        self._requests = Counter("ai_requests", "Questions by what became of them", ["result"], registry=all_)
        self._gate = Counter("ai_gate", "Decisions of the gate", ["answerable"], registry=all_)
        self._verification = Counter("ai_verification", "Verified drafts", ["good_enough"], registry=all_)
        self._selected = Histogram(
            "ai_selected_sources", "Sources selected for a question", buckets=SOURCE_COUNTS, registry=all_
        )
        self._routing = Counter("adapter_routing", "Parts by where routing sent them", ["handler"], registry=all_)
        self._captures = Counter("qa_capture", "Captures by what became of them", ["result"], registry=all_)
        self._fetches = Counter("kb_web_fetch", "Web pages asked for, by the answer", ["result"], registry=all_)
        self._call = Histogram(
            "llm_call_seconds", "Calls to an LLM, retries included", ["step"], buckets=CALL_SECONDS, registry=all_
        )
        self._tokens = Counter("llm_tokens", "Tokens as counted by the endpoint", ["step", "kind"], registry=all_)
        self._in_flight = Gauge("operator_in_flight", "Items that an operator works on", ["operator"], registry=all_)
        self._open = Gauge("open_batches", "Batches that wait for their author to fall quiet", registry=all_)

    def end(self, end: Result) -> None:
        """Count one end of the outcome stream."""
        if isinstance(end, Outcome):
            self._outcome(end)
        elif isinstance(end, Ignored) and end.part_number is not None:
            self._routing.labels(Destination.NOTHING).inc()

    def gauge(self, operator: str, count: int) -> None:
        """Take note of how many items an operator has in hand (`operators.step.Gauge`)."""
        if operator == OPEN_BATCHES:
            self._open.set(count)
        else:
            self._in_flight.labels(operator).set(count)

    def observe(self, step: str, seconds: float) -> None:
        """Count a call to an LLM (`services.llm.structured.StructuredLLM`)."""
        self._call.labels(step).observe(seconds)

    def fetched(self, result: str) -> None:
        """Count a web page that was asked for (`operators.fetch`)."""
        self._fetches.labels(result).inc()

    def tokens(self, step: str, kind: str, count: int) -> None:
        """Count tokens (`services.llm.ObserveTokens`)."""
        self._tokens.labels(step, kind).inc(count)

    def render(self) -> bytes:
        """Everything, in the text format that `CONTENT_TYPE` names."""
        return generate_latest(self._registry)

    def _outcome(self, end: Outcome) -> None:
        if end.part.author_type is AuthorType.TEAM_MEMBER:
            self._routing.labels(Destination.CAPTURE).inc()
            self._captures.labels(end.result).inc()
            return
        kept_out = end.reason in _LEFT_ALONE
        self._routing.labels(Destination.NOTHING if kept_out else Destination.ANSWER).inc()
        self._requests.labels(end.result).inc()
        self._decisions(end.decisions)

    def _decisions(self, decisions: dict[str, object]) -> None:
        gate, select, verify = (_found(decisions, step) for step in ("gate", "select", "verify"))
        if "answerable" in gate:
            self._gate.labels(_label(gate["answerable"])).inc()
        if "selected" in select:
            self._selected.observe(len(cast("list[str]", select["selected"])))
        if "good_enough" in verify:
            self._verification.labels(_label(verify["good_enough"])).inc()


def _found(decisions: dict[str, object], step: str) -> dict[str, object]:
    """What a step decided; nothing if it was not reached."""
    return cast("dict[str, object]", decisions.get(step, {}))


def _label(yes: object) -> str:
    return "true" if yes else "false"
