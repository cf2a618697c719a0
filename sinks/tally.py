"""The accounting: every message in one column, every part in one row."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from model.events import Event, Posted
from model.outcomes import Ignored, Outcome, OutcomeKind, Reason, Removed, Result


@dataclass(slots=True)
class Tally:
    """Adds up results; `messages = removed + messages_in_parts + Σ ignored` when none was lost.

    `messages` is counted at the source, so that the sum can be checked.
    """

    messages: int = 0
    removed: int = 0
    ignored: Counter[str] = field(default_factory=Counter[str])
    parts: Counter[OutcomeKind] = field(default_factory=Counter[OutcomeKind])
    reasons: defaultdict[OutcomeKind, Counter[str]] = field(default_factory=lambda: defaultdict(Counter[str]))
    messages_in_parts: int = 0

    def observe(self, event: Event) -> None:
        """Count a message that the source has emitted."""
        if isinstance(event, Posted):
            self.messages += 1

    def add(self, result: Result) -> None:
        match result:
            case Removed():
                self.removed += 1
            case Ignored(reason=reason, message_ids=message_ids):
                self.ignored[reason] += len(message_ids)
            case Outcome(result=kind, reason=reason, part=part):
                self.parts[kind] += 1
                self.messages_in_parts += len(part.messages)
                if reason is not None:
                    self.reasons[kind][reason] += 1

    @property
    def adds_up(self) -> bool:
        return self.messages == self.removed + self.messages_in_parts + self.ignored.total()

    @property
    def failed(self) -> bool:
        """Whether a part failed or was cut off."""
        return bool(self.parts[OutcomeKind.FAILED] or self.reasons[OutcomeKind.CANCELLED][Reason.SHUTDOWN])

    def summary(self) -> dict[str, object]:
        """The form of the last line of `--json`."""
        return {
            "messages": self.messages,
            "removed": self.removed,
            "ignored": dict(sorted(self.ignored.items())),
            "parts": self.parts.total(),
            "replied": self.parts[OutcomeKind.REPLIED],
            "captured": self.parts[OutcomeKind.CAPTURED],
            **{
                kind.value: dict(sorted(self.reasons[kind].items()))
                for kind in (OutcomeKind.SKIPPED, OutcomeKind.CANCELLED, OutcomeKind.FAILED)
            },
            "messages_in_parts": self.messages_in_parts,
        }
