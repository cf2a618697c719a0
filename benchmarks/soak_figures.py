"""What one soak showed, and how it is looked at from inside the process."""

from __future__ import annotations

import gc
import json
import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from prometheus_client.parser import text_string_to_metric_families

from services.telemetry.exporter import Metrics

KINDS = ("replied", "captured", "skipped", "cancelled", "failed")


@dataclass(slots=True)
class Soaked:
    """What one run showed.

    Attributes:
        rss_mb: after collecting garbage, at the end of each day and at the end of the run.
        summary: the last line of the JSON; `lines`: outcomes in the lines before it, by kind; `metrics`: in Prometheus.
        left: what was still there after the end, in words.
    """

    rss_mb: list[float] = field(default_factory=list[float])
    summary: dict[str, object] = field(default_factory=dict[str, object])
    lines: Counter[str] = field(default_factory=Counter[str])
    metrics: Counter[str] = field(default_factory=Counter[str])
    adds_up: bool = False
    finished: bool = False
    files: int = 0
    left: list[str] = field(default_factory=list[str])

    @property
    def summed(self) -> Counter[str]:
        """The summary's counts by kind of outcome, without zeros."""
        found = Counter[str]()
        for kind in KINDS:
            value = self.summary.get(kind, 0)
            found[kind] = value if isinstance(value, int) else sum(cast("dict[str, int]", value).values())
        return +found


def by_kind(counts: Counter[str]) -> str:
    return " ".join(f"{kind} {counts[kind]}" for kind in KINDS)


def read_lines(path: Path) -> tuple[Counter[str], dict[str, object]]:
    """Outcomes by kind, and the summary."""
    found, summary = Counter[str](), dict[str, object]()
    with path.open(encoding="utf-8") as file:
        for line in file:
            read = json.loads(line)
            if "summary" in read:
                summary = read["summary"]
            else:
                found[read["outcome"]] += 1
    return found, summary


def outcomes_in(metrics: Metrics) -> Counter[str]:
    """Questions and captures by what became of them."""
    found = Counter[str]()
    for family in text_string_to_metric_families(metrics.render().decode()):
        for sample in family.samples:
            if sample.name in {"ai_requests_total", "qa_capture_total"}:
                found[sample.labels["result"]] += int(sample.value)
    return found


def resident_mb() -> float:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 1e6


def open_files() -> Counter[str]:
    """What this process has open, by name; a pipe or socket by its kind."""
    found = Counter[str]()
    for each in Path("/proc/self/fd").iterdir():
        try:
            found[str(each.readlink()).partition(":[")[0]] += 1
        except OSError:
            continue  # the folder's own
    return found


def children() -> set[int]:
    """The processes that this one has started."""
    return {int(pid) for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()}
