"""The weights by which confidence is told from signals: logistic regression over the rows of `signals`.

Its figures are those of projects that were left out: each is judged by the weights that the others give.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.evaluation.conversations import share
from benchmarks.evaluation.signals import About, Row, read_rows

Floats = npt.NDArray[np.float64]

NAMES = {
    "meaning": ("best_cosine", "mean_cosine", "absent", "agreement", "coverage", "size", "length"),
    "words": ("keywords", "absent", "coverage", "size"),
}
"""The signals that each of the two is told from."""
WORTH = {About.OWN: 1.0, About.SILENT: 1.0, About.FOREIGN: 0.1, About.CHAT: 0.02}
"""What a row counts. There are many of the last two, and to be silent at most of them is easy; in chats, other rules
keep quiet as well.
"""
_RIDGE = 1.0
_MAX_STEPS = 50
_CLOSE = 1e-6
THRESHOLDS = (0.5, 0.12)
"""From which probability on something is shown, for the figures: `answer` and `point`."""


class Weights(NamedTuple):
    """`each`: of the signals, in their order."""

    each: Floats
    offset: float

    def probability(self, values: Floats) -> Floats:
        return 1 / (1 + np.exp(-(values @ self.each + self.offset)))


def main(file: Path) -> int:
    """Print the weights that `--signals` gives, and what they are worth. Gives the exit code."""
    rows = read_rows(file)
    for by, names in NAMES.items():
        mine = [row for row in rows if row.by == by]
        if not any(row.right for row in mine):
            print(f"by {by}: no row with a right page")
            continue
        weights = fit(mine, names)
        shown = ", ".join(f"{name} {weight:.2f}" for name, weight in zip(names, weights.each, strict=True))
        print(f"by {by}: {shown}; offset {weights.offset:.2f}")
        projects = sorted({row.project for row in mine})
        if len(projects) > 1:
            likely = left_out(mine, names, projects)
            usual = np.array([not row.apart for row in mine])
            for threshold in THRESHOLDS:
                print(f"      {figures([row for row in mine if not row.apart], likely[usual], threshold)}")
                print(f"      in other words: {figures([row for row in mine if row.apart], likely[~usual], threshold)}")
    return 0


def fit(rows: Sequence[Row], names: Sequence[str]) -> Weights:
    """The weights under which what is right in `rows` is most probable, for signals as they are measured."""
    right = np.array([row.right for row in rows], dtype=np.float64)
    return regression(values_of(rows, names), right, np.array([WORTH[row.about] for row in rows]))


def regression(values: Floats, right: Floats, worth: Floats) -> Weights:
    """Logistic regression: a row of `values` is right or not (1 or 0), and counts what it is worth."""
    # In units of their own spread, so that the penalty is the same for all of them.
    mean, spread = values.mean(axis=0), values.std(axis=0) + 1e-9
    inputs = np.column_stack([(values - mean) / spread, np.ones(len(values))])
    penalty = np.append(np.full(values.shape[1], _RIDGE), 0.0)
    found = np.zeros(values.shape[1] + 1)
    for _ in range(_MAX_STEPS):
        likely = 1 / (1 + np.exp(-(inputs @ found)))
        slope = inputs.T @ (worth * (likely - right)) + penalty * found
        curve = (inputs.T * (worth * likely * (1 - likely))) @ inputs + np.diag(penalty + 1e-9)
        step = np.linalg.solve(curve, slope)
        found -= step
        if np.abs(step).max() < _CLOSE:
            break
    each = found[:-1] / spread
    return Weights(each, float(found[-1] - each @ mean))


def values_of(rows: Sequence[Row], names: Sequence[str]) -> Floats:
    return np.array([[float(row.signals[name] or 0.0) for name in names] for row in rows])


def left_out(rows: Sequence[Row], names: Sequence[str], projects: Sequence[str]) -> Floats:
    """The probability of each row, by the weights that the other projects give."""
    found = np.zeros(len(rows))
    for project in projects:
        places = np.array([row.project == project for row in rows])
        weights = fit([row for row in rows if row.project != project], names)
        found[places] = weights.probability(values_of([row for row in rows if row.project == project], names))
    return found


def figures(rows: Sequence[Row], probabilities: Floats, threshold: float) -> str:
    """What is shown at a threshold, in words."""
    sure = zip(rows, probabilities, strict=True)
    shown = [row for row, likely in sure if likely >= threshold and not row.signals.get("stranger")]
    right = sum(row.right for row in shown)
    about = {each: sum(row.about is each for row in rows) for each in About}
    false = {each: sum(row.about is each for row in shown) for each in About}
    of_project = false[About.OWN] + false[About.SILENT]
    return (
        f"from {threshold:.2f} on, left out: right page shown {float(share(right, about[About.OWN])):.2f}, "
        f"right of what is shown {float(share(right, of_project)):.2f}; shown without an answer "
        f"{false[About.SILENT]} of {about[About.SILENT]}, to questions about others {false[About.FOREIGN]} of "
        f"{about[About.FOREIGN]}, to chat {false[About.CHAT]} of {about[About.CHAT]}"
    )
