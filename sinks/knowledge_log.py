"""What an update has to report to people, once and not at every tick."""

from __future__ import annotations

import logging
from collections import Counter

from services.knowledge import HIDDEN, How, LeftOut, Trouble, UpdateEvent, UpdateReport

NAMED = 5
"""Troubles of one phase that are named by default; the rest is counted, so that an outage does not flood the log."""
NAMED_LEFT_OUT = 20
"""The same for what is left out: there may be photographs in the folder, or in the list."""

log = logging.getLogger(__name__)


class KnowledgeLog:
    """Logs troubles and what is left out when they are new, and each update's counts when anything happened."""

    def __init__(self, named: int = NAMED) -> None:
        self._most_named = named
        self._reported: set[tuple[str, str]] = set()
        """In the update before."""
        self._present: set[tuple[str, str]] = set()
        self._named: Counter[str] = Counter()
        self._left_out = 0

    def report(self, event: UpdateEvent | UpdateReport) -> None:
        match event:
            case LeftOut(name=name, reason=reason) if self._is_new(name, reason):
                self._left_out += reason != HIDDEN
                level = logging.WARNING if self._left_out <= NAMED_LEFT_OUT else logging.DEBUG
                log.log(logging.INFO if reason == HIDDEN else level, "%s is left out: %s", name, reason)
            case Trouble(about=about, phase=phase, message=message) if self._is_new(about, message):
                self._named[phase] += 1
                level = logging.WARNING if self._named[phase] <= self._most_named else logging.DEBUG
                log.log(logging.ERROR if event.fatal else level, "%s: %s: %s", phase, about, message)
            case UpdateReport():
                self._finish(event)
            case _:
                pass

    def _is_new(self, name: str, message: str) -> bool:
        key = (name, message)
        new = key not in self._reported and key not in self._present
        self._present.add(key)
        return new

    def _finish(self, report: UpdateReport) -> None:
        for phase, count in self._named.items():
            if count > self._most_named:
                log.warning("%s: %d further failures", phase, count - self._most_named)
        if self._left_out > NAMED_LEFT_OUT:
            log.warning("%d more are left out; the level DEBUG names them", self._left_out - NAMED_LEFT_OUT)
        happened = any(report.settled[how] for how in How) or self._present != self._reported
        log.log(logging.INFO if happened else logging.DEBUG, "knowledge base: %s", report.text)
        self._reported, self._present, self._named = self._present, set(), Counter()
        self._left_out = 0
