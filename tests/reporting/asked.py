"""Made-up ends of questions."""

from __future__ import annotations

from dataclasses import replace

from model.messages import AuthorType
from model.outcomes import OutcomeKind, Reason
from services.telemetry import PartOutcome

DAY = 86_400.0
MONDAY = 20_000 * DAY  # 2024-10-04


def asked(
    question: str, *, at: float = MONDAY, reason: str | None = Reason.NO_SOURCES, **fields: object
) -> PartOutcome:
    """`reason` None: answered."""
    ended = PartOutcome(
        at=at,
        result=OutcomeKind.REPLIED if reason is None else OutcomeKind.SKIPPED,
        reason=reason,
        guild_id=1,
        channel_id=7,
        channel="help",
        place_id=7,
        message_ids=(int(at),),
        author_id=311,
        author_type=AuthorType.COMMUNITY_USER,
        question=question,
        seconds=2.0,
    )
    return replace(ended, **fields)
