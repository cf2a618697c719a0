"""What calls to a model cost: their number and tokens by step, added up to the day's budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from clock import now
from services.llm.budget import Budget

ObserveTokens = Callable[[str, str, int], object]
"""Called with the step, the kind (`prompt`, `completion`) and the number of tokens of each answered call."""


@dataclass(slots=True)
class Usage:
    """Counts the answered calls of one part and passes each on to its parent, such as the usage of the run.

    Attributes:
        calls: by step.
        tokens: by step and kind (`prompt`, `completion`).
    """

    parent: Usage | Spending | None = None
    calls: Counter[str] = field(default_factory=Counter[str])
    tokens: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])

    def add(self, step: str, *, prompt_tokens: int, completion_tokens: int) -> None:
        calls, tokens = self.calls, self.tokens
        prompt, completion = (step, "prompt"), (step, "completion")
        # A part meets each step once: `get` is faster than letting the Counter find out that it is new.
        calls[step] = calls.get(step, 0) + 1
        tokens[prompt] = tokens.get(prompt, 0) + prompt_tokens
        tokens[completion] = tokens.get(completion, 0) + completion_tokens
        if self.parent is not None:
            self.parent.add(step, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens)


@dataclass(frozen=True, slots=True)
class Spending:
    """The last parent: charges the budget as soon as a call was answered."""

    budget: Budget
    observe: ObserveTokens | None = None

    def add(self, step: str, *, prompt_tokens: int, completion_tokens: int) -> None:
        self.budget.used(prompt_tokens + completion_tokens, now())
        if self.observe is not None:
            self.observe(step, "prompt", prompt_tokens)
            self.observe(step, "completion", completion_tokens)
