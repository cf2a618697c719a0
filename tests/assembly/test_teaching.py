"""What a teacher is told about the decision on a lesson."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assembly.teaching import describe_filing
from services.team import Action, Decision
from tests.services.team.pairs import added, captured

PAIR = captured(1)
ADDED = added(PAIR, "gpu", remove_ids=("qa_20260101_000000.000000",))


@pytest.mark.parametrize(
    ("decision", "told"),
    [
        (None, "Stored as `{}`, and filed as soon as the model that chooses the topic answers."),
        (
            replace(ADDED, replaces=("qa_20260101_000000.000000", "qa_20260102_000000.000000")),
            (
                "Stored as `{}` and filed under `gpu`: who asks this next gets the answer. "
                "It replaces `qa_20260101_000000.000000`, `qa_20260102_000000.000000`."
            ),
        ),
        (replace(ADDED, action=Action.FAILED), "Stored as `{}`, but it could not be filed; `--regen` tries again."),
        (
            replace(ADDED, action=Action.SKIPPED, remove_ids=(), reason="the topic says the same"),
            "Stored as `{}`, but not filed, so that nobody is answered from it: the topic says the same.",
        ),
    ],
)
def test_the_teacher_is_told_what_was_decided(decision: Decision | None, told: str) -> None:
    assert " ".join(describe_filing(PAIR, decision)) == told.format(PAIR.id)
