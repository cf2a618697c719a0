"""A run as JSON Lines, which `--json` prints, `--save` keeps and `--baseline` reads: a line a question, and a summary.

No line holds a time, so that two runs over the same knowledge give the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assembly import Unusable
from commands.evaluating.judging import EvalMetrics, QuestionResult, grade
from commands.evaluating.questions import EvalQuestion, Share
from model.outcomes import OutcomeKind


@dataclass(frozen=True, slots=True)
class SavedRun:
    """What a file holds of a run.

    Attributes:
        got: by `EvalQuestion.key`; keys: of each, what the reply depended on.
        finished: it ends with its summary.
    """

    got: Mapping[tuple[str, bool], QuestionResult] = field(default_factory=dict[tuple[str, bool], QuestionResult])
    keys: Mapping[tuple[str, bool], str] = field(default_factory=dict[tuple[str, bool], str])
    finished: bool = False


def render_got(question: EvalQuestion, got: QuestionResult, key: str) -> str:
    """One line, without its end. `key`: changes with everything that the reply depends on."""
    expected: dict[str, object] = {"source": list(question.sources), "words": list(question.words)}
    return _line(
        {
            "question": question.text,
            "addressed": question.addressed,
            "expected": {"silence": True} if question.silent else {k: v for k, v in expected.items() if v},
            "grade": grade(question, got),
            "outcome": got.outcome,
            "level": got.level,
            "reason": got.reason,
            "step": got.step,
            "why": got.why,
            "sources": list(got.sources),
            "reply_text": got.reply or None,
            "llm_calls": got.llm_calls,
            "tokens": {step: list(counts) for step, counts in got.tokens.items()},
            "key": key,
        }
    )


def render_summary(
    found: EvalMetrics, least: Mapping[Share, float], spent: Mapping[str, object], more: Mapping[str, object]
) -> str:
    """The last line, without its end. `spent`: calls, tokens and cost."""
    shares = {name: None if (share := found.share(name)) is None else round(share, 4) for name in Share}
    counts = {
        "questions": found.questions,
        **found.grades,
        "answerable": found.answerable,
        "answered": found.answered,
        "right_answers": found.right_answers,
        "silence_kept": found.kept,
    }
    return _line({"summary": {**counts, **shares, "below": found.below(least), **spent, **more}})


def read_run(path: Path, option: str, *, torn: bool = False) -> SavedRun:
    """Read a saved run. `option` names the file in errors; `torn`: the last line may be cut off.

    Raises:
        Unusable: it cannot be read, or is no run.
    """
    try:
        lines = path.read_bytes().decode("utf-8").split("\n")
    except OSError as error:
        raise Unusable(f"{option}: {path} cannot be read ({error.strerror}); name a file of --save") from None
    except UnicodeDecodeError:
        raise Unusable(f"{option}: {path} is no run; name a file of --save") from None
    got: dict[tuple[str, bool], QuestionResult] = {}
    keys: dict[tuple[str, bool], str] = {}
    finished = False
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row: Any = json.loads(line)
            finished = "summary" in row
            if not finished:
                key = (_text(row["question"]), bool(row["addressed"]))
                got[key], keys[key] = _got(row), _text(row["key"])
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            if torn and number == len(lines) and line[: len(_BEGINS)] == _BEGINS[: len(line)]:
                break
            raise Unusable(f"{option}: {path}:{number}: this is no line of a run; name a file of --save") from None
    return SavedRun(got, keys, finished)


_BEGINS = '{"question": '
"""So begins each line but the last, which is written with all others."""


def _got(row: Mapping[str, Any]) -> QuestionResult:
    return QuestionResult(
        outcome=OutcomeKind(row["outcome"]),
        level=_text_or_none(row["level"]),
        reason=_text_or_none(row["reason"]),
        step=_text_or_none(row["step"]),
        why=_text(row["why"]),
        sources=tuple(_text(each) for each in row["sources"]),
        reply=_text_or_none(row["reply_text"]) or "",
        llm_calls=int(row["llm_calls"]),
        tokens={_text(step): (int(asked), int(said)) for step, (asked, said) in row["tokens"].items()},
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _text_or_none(value: object) -> str | None:
    return None if value is None else _text(value)


def _line(fields: Mapping[str, object]) -> str:
    # Half a surrogate pair, which a model may write, fits into no file.
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace").decode()
