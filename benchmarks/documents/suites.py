"""Questions with what is right about them, from a folder of one layout.

    logs/*.log  log_questions.jsonl                      one case a log
    config_corpus.jsonl  config_questions.jsonl          one case for all of them
    docs_corpus.jsonl  docs_questions.jsonl              the documentation

What is not there is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

OWN = Path(__file__).parent / "own"

DOCS = "docs_faq"
CONFIG = "config_lookup"
FOLLOW_UP = "log_followup"
MARKUP = (".md", ".rst", ".adoc")


@dataclass(frozen=True, slots=True)
class Question:
    id: str
    suite: str
    text: str
    file: str = ""
    gold_lines: frozenset[int] = frozenset()
    gold_docs: frozenset[str] = frozenset()
    gold_number: int | None = None
    answers: tuple[str, ...] = ()
    absent: bool = False
    history: tuple[tuple[str, str], ...] = ()
    standalone: str = ""


@dataclass(frozen=True, slots=True)
class Suites:
    folder: Path
    logs: dict[str, bytes] = field(default_factory=dict[str, bytes])
    configs: dict[str, bytes] = field(default_factory=dict[str, bytes])
    articles: dict[str, bytes] = field(default_factory=dict[str, bytes])
    questions: tuple[Question, ...] = ()


def find(folder: Path) -> Path:
    """Where the questions lie in `folder`, or below it; our own where there are none."""
    places = (folder, folder / "document_qa", folder / "eval" / "document_qa")
    return next((place for place in places if any(place.glob("*_questions.jsonl"))), OWN)


def load(folder: Path) -> Suites:
    records = [record for name in ("log", "config", "docs") for record in _lines(folder / f"{name}_questions.jsonl")]
    return Suites(
        folder,
        {path.name: path.read_bytes() for path in sorted((folder / "logs").glob("*")) if path.is_file()},
        {record["file"]: record["text"].encode() for record in _lines(folder / "config_corpus.jsonl")},
        {_article(record): record["text"].encode() for record in _lines(folder / "docs_corpus.jsonl")},
        tuple(_question(record) for record in records),
    )


def _lines(path: Path) -> Iterable[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _article(record: dict[str, Any]) -> str:
    """Its id, with the ending that says how it is written."""
    ending = Path(record.get("source", "")).suffix
    return f"{record['id']}{ending if ending in MARKUP else '.rst'}"


def _question(record: dict[str, Any]) -> Question:
    said = [turn["content"] for turn in record.get("history", ())]
    return Question(
        id=record["id"],
        suite=record["suite"],
        text=record["question"],
        file=record.get("file", ""),
        gold_lines=frozenset(record.get("gold_lines") or ()),
        gold_docs=frozenset(record.get("gold_docs") or ()),
        gold_number=record.get("gold_number"),
        answers=tuple(record.get("answers", ())),
        absent=record.get("expect") == "not_found",
        history=tuple(zip(said[::2], said[1::2], strict=False)),
        standalone=record.get("standalone", ""),
    )
