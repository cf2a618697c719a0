"""How often, and for how long, one answer may call tools (DOCUMENT_QA 8.4)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import clock
from services.documents.tools.cache import normalised

MAX_CALLS = 6
MAX_REPEATS = 3
SECONDS = 60.0


@dataclass(slots=True)
class LoopGuard:
    """One for each answer; it begins to count time when it is made."""

    max_calls: int = MAX_CALLS
    max_repeats: int = MAX_REPEATS
    seconds: float = SECONDS
    calls: int = 0
    _asked: Counter[str] = field(default_factory=Counter[str])
    _until: float = 0.0

    def __post_init__(self) -> None:
        self._until = clock.now() + self.seconds

    @property
    def seconds_left(self) -> float:
        return max(0.0, self._until - clock.now())

    @property
    def spent(self) -> bool:
        """Whether no further call is allowed at all."""
        return self.calls >= self.max_calls or self.seconds_left <= 0

    def refusal(self, question: str) -> str | None:
        """Count one call, and say why it must not be made; None: go on."""
        if self.seconds_left <= 0:
            return "The time for tools is used up; answer with what you have."
        if self.calls >= self.max_calls:
            return f"{self.max_calls} tool calls are the most for one answer; answer with what you have."
        asked = normalised(question)
        if self._asked[asked] >= self.max_repeats:
            return f"This was asked {self.max_repeats} times already; ask something else, or answer with what you have."
        self.calls += 1
        self._asked[asked] += 1
        return None
