"""Where the annotated material lies. None of it is part of the project."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

VARIABLE = "EVAL_DATA"
DOCUMENTS = "EVAL_DOCUMENTS"
OWN = Path(__file__).with_name("asked")
"""Questions of our own; each folder's `source.json` names the documentation that they are about."""
FURTHER = "-more"
"""Ends the name of a folder with further questions about a documentation."""
OTHER_WORDS = "-other-words"
"""Ends the name of a folder with questions that share hardly a word with what answers them. They count apart."""
BESIDE = Path(__file__).parents[2].parent / "shared"


def folder() -> Path:
    """The folder that `EVAL_DATA` names, else `shared` beside the project's; it need not be there."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else BESIDE


def gold_of(recording: Path) -> Path:
    """The annotations of a recording: `day.jsonl` has `day.gold.json` beside it."""
    return recording.with_suffix(".gold.json")


def unusable(files: Iterable[Path], command: str) -> bool:
    """Whether one of these recordings is not there or not annotated; says which."""
    absent = [path for path in files if not path.is_file() or not gold_of(path).is_file()]
    for path in absent:
        print(f"{command}: {path}: there is no such recording, or no {gold_of(path).name} beside it")
    return bool(absent)


def recordings() -> list[Path]:
    """The annotated recordings in that folder."""
    return [path for path in sorted((folder() / "recordings").glob("*.jsonl")) if gold_of(path).is_file()]


def answers() -> dict[str, Path]:
    """The folders with a `questions.jsonl`, by name: ours, and those in `eval/answers`, else in the folder itself."""
    own = {path.parent.name: path.parent for path in sorted(OWN.glob("*/questions.jsonl"))}
    for within in (folder() / "eval" / "answers", folder()):
        found = {path.parent.name: path.parent for path in sorted(within.glob("*/questions.jsonl"))}
        if found:
            return {**found, **own}
    return own


def documents_of(project: Path) -> Path | None:
    """What the questions of a project are about: its folder in the one that `EVAL_DOCUMENTS` names, else `docs` beside
    the questions; None where there is neither.
    """
    named = os.environ.get(DOCUMENTS)
    name = project.name.removesuffix(FURTHER).removesuffix(OTHER_WORDS)
    places = [*([Path(named) / name] if named else []), project / "docs"]
    return next((place for place in places if place.is_dir()), None)


def of_one_documentation(projects: Mapping[Path, Path]) -> dict[Path, list[Path]]:
    """The sets of questions about each documentation."""
    found: dict[Path, list[Path]] = {}
    for folder, documents in projects.items():
        found.setdefault(documents, []).append(folder)
    return found
