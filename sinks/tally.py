"""The accounting: every message in one column, every part in one row."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from model.events import Event, Posted
from model.outcomes import Ignored, Outcome, OutcomeKind, Removed, Result


@dataclass(slots=True)
class Tally:
    """Adds up ends; `messages = removed + messages_in_parts + Σ ignored` when none was lost."""

    messages: int = 0
    """Heard from the source, so that the sum can be checked."""
    removed: int = 0
    ignored: Counter[str] = field(default_factory=Counter[str])
    parts: Counter[OutcomeKind] = field(default_factory=Counter[OutcomeKind])
    reasons: dict[OutcomeKind, Counter[str]] = field(default_factory=dict[OutcomeKind, Counter[str]])
    messages_in_parts: int = 0

    def hear(self, event: Event) -> None:
        """Count a message that the source has brought."""
        if isinstance(event, Posted):
            self.messages += 1

    def add(self, end: Result) -> None:
        match end:
            case Removed():
                self.removed += 1
            case Ignored(reason=reason, message_ids=message_ids):
                self.ignored[reason] += len(message_ids)
            case Outcome(result=result, reason=reason, part=part):
                self.parts[result] += 1
                self.messages_in_parts += len(part.messages)
                if reason is not None:
                    self.reasons.setdefault(result, Counter())[reason] += 1

    @property
    def adds_up(self) -> bool:
        return self.messages == self.removed + self.messages_in_parts + self.ignored.total()

    @property
    def failed(self) -> bool:
        """Whether anything went wrong or was cut off."""
        return bool(self.parts[OutcomeKind.FAILED]) or bool(
            self.reasons.get(OutcomeKind.CANCELLED, Counter())["shutdown"]
        )

    def summary(self) -> dict[str, object]:
        """The form of the last line of `--json`."""
        return {
            "messages": self.messages,
            "removed": self.removed,
            "ignored": _sorted(self.ignored),
            "parts": self.parts.total(),
            "replied": self.parts[OutcomeKind.REPLIED],
            "captured": self.parts[OutcomeKind.CAPTURED],
            "skipped": _sorted(self.reasons.get(OutcomeKind.SKIPPED, Counter())),
            "cancelled": _sorted(self.reasons.get(OutcomeKind.CANCELLED, Counter())),
            "failed": _sorted(self.reasons.get(OutcomeKind.FAILED, Counter())),
            "messages_in_parts": self.messages_in_parts,
        }


def _sorted(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items()))
