"""What was decided about each captured pair; together with the archive, all of tier 2 (SPEC 6, "Decisions").

    {"qa_id": "qa_20260201_031057.000000", "at": "2026-02-01T03:12:00.000Z", "action": "added", "topic": "gpu",
     "remove_ids": [], "replaces": [], "by": "llm", "reason": ""}

One such object a line, only ever appended to. A line counts when its line feed is there.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from clock import from_rfc3339
from services.knowledge import is_topic_name
from services.storage import files, tail_repair
from services.team import qa_ids

log = logging.getLogger(__name__)


class Action(StrEnum):
    ADDED = "added"
    SKIPPED = "skipped"
    FAILED = "failed"
    REMOVED = "removed"
    RESTORED = "restored"


class By(StrEnum):
    LLM = "llm"
    OPERATOR = "operator"
    EXTRACTIVE = "extractive"


@dataclass(frozen=True, slots=True)
class Decision:
    """One step taken on a pair."""

    qa_id: str
    at: str
    """RFC 3339, UTC."""
    action: Action
    by: By
    topic: str | None = None
    """The safe name of the topic that the pair went into, or came out of; None where there is none."""
    remove_ids: tuple[str, ...] = ()
    """Pairs of the topic that this one makes obsolete."""
    replaces: tuple[str, ...] = ()
    """Earlier captures of the same conversation that this one stands for."""
    reason: str = ""


_DECISION = TypeAdapter(Decision)


def render(decision: Decision) -> str:
    """One line, with the line feed that ends it."""
    fields = {
        "qa_id": decision.qa_id,
        "at": decision.at,
        "action": decision.action,
        "topic": decision.topic,
        "remove_ids": decision.remove_ids,
        "replaces": decision.replaces,
        "by": decision.by,
        "reason": decision.reason,
    }
    text = json.dumps(fields, ensure_ascii=False)
    # Half of a surrogate pair, which UTF-8 cannot hold, becomes U+FFFD.
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace") + "\n"


def parse(data: bytes, file: str = "decisions", first_line: int = 1) -> list[Decision]:
    """The decisions in `data`, in order. Lines that are damaged or torn are reported with file and line, and skipped.

    `first_line` is the number of the first line in `data`, where reading goes on in the middle of a file.
    """
    found: list[Decision] = []
    *lines, rest = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for number, line in enumerate(lines, first_line):
        if not line.strip():
            continue
        try:
            decision = _DECISION.validate_json(line, strict=True)
            _check(decision)
        except ValueError as error:
            log.warning("%s:%d: %s; line skipped", file, number, _why(error))
        else:
            found.append(decision)
    if rest.strip():
        log.warning("%s:%d: a line without its end, torn by a crash; skipped", file, first_line + len(lines))
    return found


def sound_length(data: bytes) -> int:
    """How many bytes of a file of decisions are whole lines; what follows is torn, the trace of a crash."""
    return data.rfind(b"\n") + 1


def corrections(decisions: Iterable[Decision]) -> list[Decision]:
    """What operators have last said of each pair, in the order in which they said it: what a rebuild keeps."""
    last: dict[Decimal, Decision] = {}
    for each in decisions:
        if each.by is By.OPERATOR:
            last.pop(key := qa_ids.instant(each.qa_id), None)
            last[key] = each
    return list(last.values())


class DecisionLog:
    """The file of decisions, for its one writer. Blocking. Raises OSError, as the system reported it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._sound = False
        """Whether the file is known to end with a whole line."""

    @property
    def length(self) -> int:
        """In bytes; 0 where there is no file."""
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def read(self) -> list[Decision]:
        """What was decided so far. A missing file holds nothing."""
        try:
            return parse(self.path.read_bytes(), str(self.path))
        except FileNotFoundError:
            return []

    def mend(self) -> None:
        """Move a torn last line aside."""
        tail_repair.cut_off(self.path, sound_length, "line")
        self._sound = True

    def append(self, decision: Decision) -> None:
        """When this returns, the decision is on the disk."""
        if not self._sound:
            self.mend()
        self._sound = False  # until the write has succeeded
        files.append(self.path, render(decision).encode())
        self._sound = True


def _check(decision: Decision) -> None:
    for pair_id in (decision.qa_id, *decision.remove_ids, *decision.replaces):
        qa_ids.instant(pair_id)
    from_rfc3339(decision.at)
    if decision.topic is not None and not is_topic_name(decision.topic):
        raise ValueError(f"{decision.topic[:80]!r} is no safe name of a topic")


def _why(error: ValueError) -> str:
    """In one line, without repeating what the line holds."""
    if isinstance(error, ValidationError):
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        return f"{where}: {first['msg']}" if where else str(first["msg"])
    return str(error)
