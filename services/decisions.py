"""What was decided about each captured pair; together with the archive, all of tier 2 (SPEC 6, "Decisions")."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Action(StrEnum):
    ADDED = "added"
    SKIPPED = "skipped"
    FAILED = "failed"
    REMOVED = "removed"
    RESTORED = "restored"


class By(StrEnum):
    LLM = "llm"
    OPERATOR = "operator"
    EXTRACTIVE = "extractive"


@dataclass(frozen=True, slots=True)
class Decision:
    """One step taken on a pair."""

    qa_id: str
    at: str
    """RFC 3339, UTC."""
    action: Action
    by: By
    topic: str | None = None
    """The safe name of the topic that the pair went into, or came out of; None where there is none."""
    remove_ids: tuple[str, ...] = ()
    """Pairs of the topic that this one makes obsolete."""
    replaces: tuple[str, ...] = ()
    """Earlier captures of the same conversation that this one stands for."""
    reason: str = ""
