"""The accounting: every message in one column, every part in one row."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from model.outcomes import End, Ignored, Outcome, Removed, Result


@dataclass(slots=True)
class Tally:
    """Adds up ends. `messages = removed + messages_in_parts + Σ ignored` by construction of what it is told."""

    messages: int = 0
    """Told by the source, so that the sum above can fail."""
    removed: int = 0
    ignored: Counter[str] = field(default_factory=Counter[str])
    parts: Counter[Result] = field(default_factory=Counter[Result])
    reasons: dict[Result, Counter[str]] = field(default_factory=dict[Result, Counter[str]])
    messages_in_parts: int = 0

    def add(self, end: End) -> None:
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
        return bool(self.parts[Result.FAILED]) or bool(self.reasons.get(Result.CANCELLED, Counter())["shutdown"])

    def summary(self) -> dict[str, object]:
        """The form of the last line of `--json`."""
        return {
            "messages": self.messages,
            "removed": self.removed,
            "ignored": _sorted(self.ignored),
            "parts": self.parts.total(),
            "replied": self.parts[Result.REPLIED],
            "captured": self.parts[Result.CAPTURED],
            "skipped": _sorted(self.reasons.get(Result.SKIPPED, Counter())),
            "cancelled": _sorted(self.reasons.get(Result.CANCELLED, Counter())),
            "failed": _sorted(self.reasons.get(Result.FAILED, Counter())),
            "messages_in_parts": self.messages_in_parts,
        }


def _sorted(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items()))
