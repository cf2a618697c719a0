"""What calls to a model cost: how many there were, and their tokens, by step."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Protocol


class Counting(Protocol):
    """Whoever wants to hear of each call that was answered."""

    def add(self, step: str, *, prompt_tokens: int, completion_tokens: int) -> None: ...


@dataclass(slots=True)
class Usage:
    """Counts the calls to a model, and their tokens, of one part; and tells its parent, such as that of the run."""

    parent: Counting | None = None
    calls: Counter[str] = field(default_factory=Counter[str])
    """By step."""
    tokens: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """By step and kind (`prompt`, `completion`)."""

    def add(self, step: str, *, prompt_tokens: int, completion_tokens: int) -> None:
        calls, tokens = self.calls, self.tokens
        prompt, completion = (step, "prompt"), (step, "completion")
        # A part meets each step once: to look first is faster than to have the Counter find out that it is new.
        calls[step] = calls.get(step, 0) + 1
        tokens[prompt] = tokens.get(prompt, 0) + prompt_tokens
        tokens[completion] = tokens.get(completion, 0) + completion_tokens
        if self.parent is not None:
            self.parent.add(step, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens)
