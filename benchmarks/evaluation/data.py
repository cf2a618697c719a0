"""Where the annotated material lies. None of it is part of the project."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "EVAL_DATA"
BESIDE = Path(__file__).parents[2].parent / "shared"


def folder() -> Path:
    """The folder that `EVAL_DATA` names, else `shared` beside the project's; it need not be there."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else BESIDE


def gold_of(recording: Path) -> Path:
    """The annotations of a recording: `day.jsonl` has `day.gold.json` beside it."""
    return recording.with_suffix(".gold.json")


def recordings() -> list[Path]:
    """The annotated recordings in that folder."""
    return [path for path in sorted((folder() / "recordings").glob("*.jsonl")) if gold_of(path).is_file()]
