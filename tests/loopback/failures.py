"""Failures ordered by a test: which requests go wrong next, and how."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Failure:
    """What happens to matching requests, `times` times."""

    method: str
    path: re.Pattern[str]
    """Searched for in the path below `/api/v10`; the gateway's own path is `/`."""
    status: int | None = None
    """None: no failure, only the delay."""
    times: int = 1
    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    after_effect: bool = False
    """Do what was asked, then wait or fail: the caller cannot know that it was done."""
    delay: float = 0.0
    """Seconds before anything happens, `after_effect` before the answer; infinite for a server that never answers."""
    drop: bool = False
    """Cut the connection instead of answering."""

    @property
    def only_delays(self) -> bool:
        return self.status is None and not self.drop


class Script:
    """The failures still to come, in the order in which they were asked for."""

    def __init__(self) -> None:
        self._waiting: list[Failure] = []

    def add(self, failure: Failure) -> None:
        self._waiting.append(failure)

    def take(self, method: str, path: str) -> Failure | None:
        """The failure due for this request, if any; used up by this."""
        for failure in self._waiting:
            if failure.method in {method, "*"} and failure.path.search(path):
                failure.times -= 1
                if failure.times <= 0:
                    self._waiting.remove(failure)
                return failure
        return None

    def clear(self) -> None:
        self._waiting.clear()

    @property
    def pending(self) -> int:
        """How many have not been met yet, so that a test can assert that all were."""
        return sum(failure.times for failure in self._waiting)
