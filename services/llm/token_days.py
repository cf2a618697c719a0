"""Answered model calls and their tokens by UTC day and step, for reports of the cost."""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from pydantic import NonNegativeInt, TypeAdapter, ValidationError

from clock import rfc3339
from services.storage import read_object

log = logging.getLogger(__name__)

DAY = 86_400.0
KEPT_DAYS = 400
"""A year, and the month to compare it with."""


class StepTokens(NamedTuple):
    """Of one step on one day."""

    calls: NonNegativeInt = 0
    prompt: NonNegativeInt = 0
    completion: NonNegativeInt = 0


_DAYS = TypeAdapter(dict[str, dict[str, StepTokens]])


class TokenDays:
    """Counts answered calls."""

    def __init__(self, days: Mapping[str, Mapping[str, StepTokens]] | None = None) -> None:
        self._days = {day: dict(steps) for day, steps in (days or {}).items()}

    @property
    def days(self) -> Mapping[str, Mapping[str, StepTokens]]:
        """By day, such as `2026-11-22`, then by step."""
        return self._days

    def add(self, step: str, at: float, *, prompt_tokens: int, completion_tokens: int) -> None:
        day = _day_of(int(at // DAY))
        steps = self._days.setdefault(day, {})
        before = steps.get(step, StepTokens())
        steps[step] = StepTokens(before.calls + 1, before.prompt + prompt_tokens, before.completion + completion_tokens)


@lru_cache(maxsize=4)
def _day_of(number: int) -> str:
    """The days since 1970 as a date. Nearly all calls are of the same day."""
    return rfc3339(number * DAY)[:10]


def read_token_days(path: Path) -> TokenDays:
    """`{"2026-11-22": {"gate": [calls, prompt, completion], …}, …}`; none where it is damaged or missing."""
    try:
        return TokenDays(_DAYS.validate_python(read_object(path)))
    except ValidationError:
        log.warning("%s is damaged: what was spent before today is missing in reports", path)
        return TokenDays()


def parse_token_days(data: bytes) -> TokenDays:
    """Read such a file from its bytes; empty if it is damaged."""
    try:
        return TokenDays(_DAYS.validate_json(data))
    except ValidationError:
        return TokenDays()


def summed_token_days(parts: Iterable[TokenDays]) -> TokenDays:
    """Add the counts of several processes."""
    total: dict[str, dict[str, StepTokens]] = defaultdict(dict)
    for part in parts:
        for day, steps in part.days.items():
            for step, tokens in steps.items():
                before = total[day].get(step, StepTokens())
                total[day][step] = StepTokens(*map(sum, zip(before, tokens, strict=True)))
    return TokenDays(total)


def render_token_days(kept: TokenDays) -> bytes:
    newest = sorted(kept.days.items())[-KEPT_DAYS:]
    days = {day: {step: list(steps[step]) for step in sorted(steps)} for day, steps in newest}
    return json.dumps(days, indent=0).encode() + b"\n"
