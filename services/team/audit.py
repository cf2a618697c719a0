"""The audit log: what was decided by whom, one line each, without anybody's words.

    {"at": "2026-02-01T03:12:00.000Z", "by": "ana", "action": "discard draft", "about": "1458745245675032710"}

`by` is the name of an operator, `terminal`, the Discord id of a team member, or empty: somebody. `about` is the id of a
question, a conversation or a pair. A line is on the disk before what it tells is done, so that nothing is done without
one; what a crash, an error or news from Discord has then kept from being done has a line, too. The file is append-only
but for Discord ids of people who are forgotten.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from clock import from_rfc3339, rfc3339
from services.storage import Record, files, read_records


class AuditEntry(NamedTuple):
    """`at`: seconds since 1970; `action`: a verb and mostly a noun, such as `discard draft`."""

    at: float
    by: str
    action: str
    about: str


@dataclass(frozen=True, slots=True)
class AuditLog:
    """Appends to the log in `path`; None: nothing is kept. Blocking."""

    path: Path | None = None

    def note(self, at: float, by: str, action: str, about: object) -> None:
        """Note what is about to be done. Raises OSError: it must not be done."""
        if self.path is not None:
            line = {"at": rfc3339(at), "by": by, "action": action, "about": str(about)}
            files.append(self.path, json.dumps(line).encode() + b"\n", own_line=True)


def read_audit(path: Path) -> list[AuditEntry]:
    """Read a log, oldest first. Blocking. Raises OSError."""
    return audit_entries(read_records(path))


def audit_entries(records: Iterable[Record]) -> list[AuditEntry]:
    """Make entries of lines of the log, oldest first, without damaged ones."""
    found = list[AuditEntry]()
    for record in records:
        try:
            at, *texts = from_rfc3339(record["at"]), record["by"], record["action"], record["about"]
            found.append(AuditEntry(at, *map(str, texts)))
        except (KeyError, TypeError, ValueError):
            continue
    return sorted(found, key=lambda entry: entry.at)
