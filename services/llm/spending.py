"""Where the tokens of every call add up: the day's budget, and whoever measures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from clock import now
from services.llm.budget import Budget

TellTokens = Callable[[str, str, int], object]
"""Told the step, the kind (`prompt`, `completion`) and the number of tokens of a call."""


@dataclass(frozen=True, slots=True)
class Spending:
    """The end of the chain of `services.assistant.protocol.Usage`: hears of a call as soon as it was answered."""

    budget: Budget
    tell: TellTokens | None = None

    def add(self, step: str, *, prompt_tokens: int, completion_tokens: int) -> None:
        self.budget.used(prompt_tokens + completion_tokens, now())
        if self.tell is not None:
            self.tell(step, "prompt", prompt_tokens)
            self.tell(step, "completion", completion_tokens)
