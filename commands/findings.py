"""The rows of the table that `--check` prints."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Verdict(StrEnum):
    """`WARNING`: the bot runs, with something missing; `MISSING`: it cannot do its work."""

    OK = "ok"
    SKIPPED = "skipped"
    WARNING = "warning"
    MISSING = "missing"


STYLES = {Verdict.OK: "green", Verdict.SKIPPED: "dim", Verdict.WARNING: "yellow", Verdict.MISSING: "bold red"}


@dataclass(frozen=True, slots=True)
class Finding:
    """`about`: a key of the configuration."""

    about: str
    verdict: Verdict
    says: str


def judged(about: str, trouble: str | None, otherwise: str, verdict: Verdict = Verdict.MISSING) -> Finding:
    """Make a finding: `verdict` with the trouble, or OK where there is none."""
    return Finding(about, Verdict.OK, otherwise) if trouble is None else Finding(about, verdict, trouble)


def unwritable_because(folder: Path) -> str | None:
    """Say why a folder cannot be used or created; None where it can."""
    existing = next((each for each in (folder, *folder.parents) if each.exists()), folder)
    if not existing.is_dir():
        return "is not a folder" if existing == folder else f"cannot be made: {existing} is not a folder"
    if not os.access(existing, os.W_OK | os.X_OK):
        return "cannot be written; check its permissions" if existing == folder else f"cannot be made in {existing}"
    return None
