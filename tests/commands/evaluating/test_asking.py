"""What is kept of an answer and its path."""

from __future__ import annotations

from typing import Any

import pytest

from commands.evaluating import steps
from commands.evaluating.runs import QuestionResult
from commands.evaluating.steps import question_result
from model.outcomes import OutcomeKind
from model.steps import DECISIONS, DecisionInfo
from streams.answerer import AIResult

GATE = {"question": True, "answerable": True, "reason": "It asks."}
SELECT = {"offered": 3, "ranked": [("kb:a", 1.0), ("kb:b", 0.5)], "selected": ["kb:b"]}
POINT = {"confidence": 0.512, "level": "point"}
VERIFY = {"good_enough": False, "issues": ["no port", "no host"]}


def ended(result: str, reason: str, **path: Any) -> AIResult:
    return AIResult(False, None, ("kb:b",), {**path, "result": result, "reason": reason, "llm_calls": 0, "tokens": {}})


@pytest.mark.parametrize(
    ("path", "step", "why"),
    [
        ({"gate": GATE}, "gate", "It asks."),
        ({"gate": GATE, "select": SELECT, "point": POINT}, "select", "the search finds kb:a (0.51)"),
        ({"gate": GATE, "select": {**SELECT, "ranked": []}, "point": POINT}, "select", ""),
        ({"gate": GATE, "select": SELECT, "load": {}, "generate": {}}, "generate", ""),
        (
            {"gate": GATE, "select": SELECT, "generate": {}, "point": POINT, "verify": VERIFY},
            "verify",
            "no port; no host",
        ),
        ({}, None, ""),
    ],
)
def test_the_step_at_which_it_ended_says_why(path: dict[str, Any], step: str | None, why: str) -> None:
    got = question_result(ended("skipped", "rejected", **path))
    assert (got.step, got.why, got.reason, got.sources) == (step, why, "rejected", ("kb:b",))


def test_an_answer_says_what_steps_have_changed_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def says(decided: dict[str, int]) -> str:
        return f"{decided['characters']} characters more"

    sign = DecisionInfo(name="sign", is_recorded=True, alters_answer=True, describe=says)
    monkeypatch.setattr(steps, "DECISIONS", {**DECISIONS, "sign": sign})
    for path, why in (({"sign": {"characters": 9}}, "sign: 9 characters more"), ({}, "")):
        debug = ended("replied", "", gate=GATE, **path).debug
        got = question_result(AIResult(True, "So.", ("kb:a",), debug))
        assert (got.step, got.why) == (None, why)


def test_a_failure_says_what_failed() -> None:
    got = question_result(ended("failed", "Unavailable at select", gate=GATE))
    assert (got.failed, got.reason, got.why) == (True, "Unavailable at select", "")


def test_tokens_are_kept_by_step() -> None:
    tokens = {"gate.prompt": 10, "gate.completion": 2, "select.completion": 1}
    debug = {"gate": GATE, "result": "replied", "reason": None, "level": "answer", "llm_calls": 2, "tokens": tokens}
    assert question_result(AIResult(True, "So.", ("kb:a",), debug)) == QuestionResult(
        outcome=OutcomeKind.REPLIED,
        level="answer",
        sources=("kb:a",),
        reply="So.",
        llm_calls=2,
        tokens={"gate": (10, 2), "select": (0, 1)},
    )
