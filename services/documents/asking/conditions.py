"""What lines have to fit, for the store and in words; and what is dropped where nothing fits (DOCUMENT_QA 5.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from services.documents.asking.names import Names
from services.documents.asking.plan import Plan
from services.documents.asking.scope import Scope, files_listed, ids_of, listed
from services.documents.asking.times import Period
from services.documents.store.protocol import Document, LineWhere, MatchingLines


@dataclass(frozen=True, slots=True)
class Conditions:
    documents: tuple[Document, ...]
    where: LineWhere
    level: str = ""
    """As the question says it; nothing where the level is no condition."""
    time: str = ""
    names: tuple[str, ...] = ()

    @property
    def described(self) -> str:
        """What is counted or looked for, and in which files: exactly what `where` asks the store for."""
        where = self.where
        said = (
            ("/".join(where.severities), "{}"),
            ("entries" if self.level or self.time or self.names or where.components or where.words else "lines", "{}"),
            (listed(self.names), "mentioning {}"),
            (listed(where.components), "written by {}"),
            (listed(where.words), "with the words {}"),
            (self.time, "{}"),
            (files_listed(self.documents), "in {}"),
        )
        return " ".join(form.format(value) for value, form in said if value)

    def within(self, documents: Sequence[Document]) -> Conditions:
        return replace(self, documents=tuple(documents), where=replace(self.where, doc_ids=ids_of(documents)))

    def narrowed(self, words: tuple[str, ...]) -> Conditions:
        return replace(self, where=replace(self.where, words=words))


def at(period: Period, doc_ids: tuple[str, ...]) -> LineWhere:
    return LineWhere(doc_ids, clocks=period.clocks, days=period.days, instants=period.instants)


def of(plan: Plan, documents: Sequence[Document], names: Names, components: tuple[str, ...]) -> Conditions:
    doc_ids = ids_of(documents)
    level = plan.severity if plan.level_counts else None
    where = replace(
        at(plan.period, doc_ids) if plan.period else LineWhere(doc_ids),
        severities=level.levels if level else (),
        components=components,
        holding=names.found,
    )
    time = plan.period.text if plan.period else ""
    return Conditions(tuple(documents), where, level.text if level else "", time, names.asked)


@dataclass(frozen=True, slots=True)
class Fitting:
    """What fits, maybe with less asked for than the question does."""

    conditions: Conditions
    lines: MatchingLines
    """At most one of them, and how many there are."""
    notes: tuple[str, ...] = ()


async def fitting(scope: Scope, asked: Conditions, *, others: Sequence[Document], exactly: bool) -> Fitting:
    """What fits; unless `exactly`, else what fits with less asked: without the level, then without the time, then also
    in `others` than the files that were named. A name or a time has to be left of what was asked.
    """
    lines = await scope.store.lines(scope.name, asked.where, limit=1)
    if lines.total or exactly:
        return Fitting(asked, lines)
    notes: tuple[str, ...] = ()
    for less, note in _less_and_less(asked, others):
        notes = (*notes, note)
        lines = await scope.store.lines(scope.name, less.where, limit=1)
        if lines.total:
            return Fitting(less, lines, notes)
    return Fitting(asked, MatchingLines(0, ()))


def _less_and_less(asked: Conditions, others: Sequence[Document]) -> Iterator[tuple[Conditions, str]]:
    left = asked
    if left.level and (left.time or left.names):
        left = replace(left, level="", where=replace(left.where, severities=()))
        yield left, f"no entry matched {asked.level}"
    if left.time and left.names:
        left = replace(left, time="", where=replace(left.where, clocks=None, days=None, instants=None))
        yield left, f"no entry matched {asked.time}"
    if others and (left.time or left.names):
        yield left.within(others), f"no entry of {files_listed(asked.documents)} matched; other files were searched"
