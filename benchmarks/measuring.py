"""What one run says of itself, on its last line."""

from __future__ import annotations

import hashlib
import json
import resource
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Protocol


class Hash(Protocol):
    def update(self, data: bytes, /) -> None: ...

    def hexdigest(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Figures:
    """One replay of one bot, in a process of its own."""

    cpu_seconds: float
    """User and system time, without interpreter start and imports."""
    peak_mb: float
    """Resident, everything included."""
    digest: str
    """Of every line that it put out."""
    counts: dict[str, int]
    longest_seconds: float = 0.0
    """CPU of the longest callback; 0: not measured."""


@dataclass(slots=True)
class Digest:
    """Takes lines, and counts what they are about."""

    counts: Counter[str] = field(default_factory=Counter[str])
    begun: float = field(default_factory=time.process_time)
    _hash: Hash = field(default_factory=hashlib.sha256)

    def add(self, kind: str, line: str) -> None:
        self.counts[kind] += 1
        self._hash.update(line.encode())
        self._hash.update(b"\n")

    def figures(self) -> Figures:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return Figures(
            time.process_time() - self.begun, peak, self._hash.hexdigest(), dict(sorted(self.counts.items()))
        )


def say(figures: Figures) -> None:
    print(json.dumps(asdict(figures)))


def hear(line: str) -> Figures:
    return Figures(**json.loads(line))
