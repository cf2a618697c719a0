"""Answers held against what is right."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.documents.shelves import Asked
from benchmarks.documents.suites import CONFIG, DOCS, Question
from services.documents.asking.passages import CitedPassage
from services.documents.tools.libraries import Status

EXACT_SUITES = ("log_line", "log_time", "log_identifier", "log_severity")


@dataclass(slots=True)
class Figures:
    """Of one suite. None: does not apply."""

    suite: str
    n: int = 0
    hits_at_1: int = 0
    hits_at_5: int = 0
    gains: float = 0.0
    exact: int | None = None
    refused: int | None = None
    invented: int = 0
    precise: list[float] = field(default_factory=list[float])
    cited: int = 0
    cited_right: int = 0
    unverified: int = 0
    seconds: list[float] = field(default_factory=list[float])
    retrieval_ms: list[float] = field(default_factory=list[float])
    missed: list[str] = field(default_factory=list[str])
    later: list[str] = field(default_factory=list[str])
    """Found, but not first."""

    def add(self, question: Question, asked: Asked) -> None:
        self.n += 1
        self.seconds.append(asked.seconds)
        if "retrieval" in asked.result.timings_ms:
            self.retrieval_ms.append(asked.result.timings_ms["retrieval"])
        self.unverified += asked.result.unverified
        if question.absent:
            self._add_absent(question, asked)
        elif question.gold_number is not None:
            self._add_counted(question, asked)
        else:
            self._add_found(question, asked)

    def record(self) -> dict[str, object]:
        """One line for machines."""
        ranked = self.refused is None and not self.suite.startswith("log_count")
        return {
            "suite": self.suite,
            "n": self.n,
            "hit_at_1": share(self.hits_at_1, self.n) if ranked else None,
            "hit_at_5": share(self.hits_at_5, self.n) if ranked else None,
            "ndcg_at_10": share(self.gains, self.n) if self.suite == DOCS else None,
            "exact": None if self.exact is None else share(self.exact, self.n),
            "refused": None if self.refused is None else share(self.refused, self.n),
            "p50_ms": round(quantile(self.seconds, 0.5) * 1000, 2),
        }

    def _add_absent(self, question: Question, asked: Asked) -> None:
        refused = asked.result.status is Status.NOT_FOUND
        self.refused = (self.refused or 0) + refused
        self.invented += len(asked.result.citations)
        if not refused:
            self.missed.append(question.id)

    def _add_counted(self, question: Question, asked: Asked) -> None:
        right = asked.result.plan.get("count") == question.gold_number
        right = right and str(question.gold_number) in asked.result.answer
        self.exact = (self.exact or 0) + right
        if not right:
            self.missed.append(question.id)

    def _add_found(self, question: Question, asked: Asked) -> None:
        hits = [holds(question, passage) for passage in asked.passages]
        self.hits_at_1 += hits[:1] == [True]
        self.hits_at_5 += any(hits[:5])
        if not any(hits[:5]):
            self.missed.append(question.id)
        elif not hits[0]:
            self.later.append(question.id)
        if True in hits[:10]:
            self.gains += 1 / math.log2(hits.index(True) + 2)
        if question.suite in EXACT_SUITES and hits:
            self.precise.append(sum(hits) / len(hits))
        if question.gold_lines:
            for citation in asked.result.citations[:1]:
                self.cited += 1
                lines = range(citation.line_start, citation.line_end + 1)
                self.cited_right += not question.gold_lines.isdisjoint(lines)
        if question.answers:
            folded = asked.result.answer.casefold()
            # Values of settings called secret are redacted before anything else happens.
            self.exact = (self.exact or 0) + any(_plain(answer) in _plain(folded) for answer in question.answers)


def holds(question: Question, passage: CitedPassage) -> bool:
    """Whether a passage is one of the right ones: patterns are judged by all their lines, windows by theirs."""
    if question.gold_docs:
        return passage.metadata.get("kb_article_id", "").rpartition(".")[0] in question.gold_docs
    if question.suite == CONFIG and passage.source != question.file:
        return False
    return not question.gold_lines.isdisjoint(passage.matched)


def share(part: float, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0


def quantile(values: Sequence[float], at: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * at))] if ordered else 0.0


def table(figures: Sequence[Figures]) -> str:
    head = (
        f"{'suite':<24}{'n':>4} {'hit@1':>6} {'hit@5':>6} {'nDCG':>6} {'exact':>6} {'refus.':>6} {'prec.':>6}"
        f" {'cited':>6} {'unver.':>6} {'p50 ms':>7} {'p95 ms':>7}"
    )
    return "\n".join([head, *(_row(each) for each in figures)])


def _row(figures: Figures) -> str:
    record = figures.record()
    precise = sum(figures.precise) / len(figures.precise) if figures.precise else None
    cited = figures.cited_right / figures.cited if figures.cited else None
    cells = [record["hit_at_1"], record["hit_at_5"], record["ndcg_at_10"], record["exact"], record["refused"]]
    shown = " ".join(_cell(cell) for cell in (*cells, precise, cited))
    times = f"{quantile(figures.seconds, 0.5) * 1000:>7.1f} {quantile(figures.seconds, 0.95) * 1000:>7.1f}"
    return f"{figures.suite:<24}{figures.n:>4} {shown} {figures.unverified:>6} {times}"


def _cell(value: object) -> str:
    return f"{value:>6.3f}" if isinstance(value, (int, float)) else f"{'':>6}"


def _plain(text: str) -> str:
    return " ".join(text.casefold().replace("'", "").replace('"', "").split())
