"""The example of the documentation, and made-up replies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from commands.evaluating.questions import EvalQuestion
from commands.evaluating.runs import QuestionResult
from model.outcomes import OutcomeKind

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "questions.yaml"


def question(text: str = "How?", **fields: Any) -> EvalQuestion:
    return EvalQuestion(text=text, **fields)


def answer(*sources: str, reply: str = "So.", level: str = "answer", **fields: Any) -> QuestionResult:
    return QuestionResult(outcome=OutcomeKind.REPLIED, level=level, sources=sources, reply=reply, **fields)


def pointer(*sources: str) -> QuestionResult:
    return answer(*sources, reply="This may help", level="point")


SILENCE = QuestionResult(outcome=OutcomeKind.SKIPPED, reason="no sources", step="select")
FAILURE = QuestionResult(outcome=OutcomeKind.FAILED, reason="Unavailable at gate", step="gate")
