"""The conditions of a question on lines, for the store and in words; and what is dropped where nothing fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from services.documents.asking.mentions import NameMention
from services.documents.asking.passages import RECORDS, Scope, files_listed, ids_of
from services.documents.asking.plan import Aggregate, Plan
from services.documents.asking.times import Period
from services.documents.store.protocol import Document, LineWhere

RARE_COUNT, RARE_SHARE = 2, 0.02  # a name in more chunks than this is a common word


@dataclass(frozen=True, slots=True)
class Names:
    """The names of a question."""

    asked: tuple[str, ...] = ()  # those that are conditions, as the question writes them
    found: tuple[str, ...] = ()  # the same as they are written in the documents
    absent: tuple[str, ...] = ()  # names without which there is no answer, when none of them is there
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Conditions:
    """`where`, and how the question says it: `level` and `time` are empty where they are no conditions."""

    documents: tuple[Document, ...]
    where: LineWhere
    level: str = ""
    time: str = ""
    names: tuple[str, ...] = ()

    @property
    def described(self) -> str:
        """What is counted or looked for, and in which files: exactly what `where` asks the store for."""
        where = self.where
        some = self.level or self.time or self.names or where.components or where.words or where.words_any
        said = (
            ("/".join(where.severities), "{}"),
            ("entries" if some else "lines", "{}"),
            ((" or " if where.holding_any else ", ").join(self.names), "mentioning {}"),
            (", ".join(where.components), "written by {}"),
            (", ".join(where.words), "with the words {}"),
            (" or ".join(where.words_any), "with the words {}"),
            (self.time, "{}"),
            (files_listed(self.documents), "in {}"),
        )
        return " ".join(form.format(value) for value, form in said if value)

    def narrowed(self, plan: Plan) -> Conditions:
        """To the lines with the words of a question."""
        either = plan.either and not plan.mentions
        words = {"words_any": plan.words} if either else {"words": plan.words}
        return replace(self, where=replace(self.where, **words))


def at(period: Period, doc_ids: tuple[str, ...]) -> LineWhere:
    return LineWhere(doc_ids, clocks=period.clocks, days=period.days, instants=period.instants)


def conditions_of(plan: Plan, documents: Sequence[Document], names: Names, components: tuple[str, ...]) -> Conditions:
    doc_ids = ids_of(documents)
    level = plan.severity if plan.level_counts else None
    where = replace(
        at(plan.period, doc_ids) if plan.period else LineWhere(doc_ids),
        severities=level.levels if level else (),
        components=components,
        holding=() if plan.either else names.found,
        holding_any=names.found if plan.either else (),
    )
    time = plan.period.text if plan.period else ""
    return Conditions(tuple(documents), where, level.text if level else "", time, names.asked)


async def relaxed(
    scope: Scope, asked: Conditions, others: Sequence[Document]
) -> tuple[Conditions, int, tuple[str, ...]]:
    """What fits with all that is asked; else without the level, then without the time, then also in `others` than the
    files that were named. A name or a time has to be left of what was asked.

    Returns:
        The conditions, how many lines fit, and notes about what was dropped.
    """
    notes: tuple[str, ...] = ()
    for less, note in ((asked, ""), *_less_and_less(asked, others)):
        notes = (*notes, note) if note else notes
        if total := await scope.total(less.where):
            return less, total, notes
    return asked, 0, ()


def _less_and_less(asked: Conditions, others: Sequence[Document]) -> Iterator[tuple[Conditions, str]]:
    left = asked
    if left.level and (left.time or left.names):
        left = replace(left, level="", where=replace(left.where, severities=()))
        yield left, f"no entry matched {asked.level}"
    if left.time and left.names:
        left = replace(left, time="", where=replace(left.where, clocks=None, days=None, instants=None))
        yield left, f"no entry matched {asked.time}"
    if others and (left.time or left.names):
        elsewhere = replace(left, documents=tuple(others), where=replace(left.where, doc_ids=ids_of(others)))
        yield elsewhere, f"no entry of {files_listed(asked.documents)} matched; other files were searched"


async def alone(scope: Scope, asked: Conditions) -> str:
    """How many lines hold each of several texts, where none holds all of them; empty where there is but one."""
    texts = asked.where.holding
    if len(texts) < 2:  # noqa: PLR2004 (several)
        return ""
    where = LineWhere(asked.where.doc_ids)
    return ", ".join([f'"{text}" alone: {await scope.total(replace(where, holding=(text,)))}' for text in texts])


async def names_in(scope: Scope, plan: Plan, documents: Sequence[Document]) -> Names:
    """Which of the names of a question the documents hold, and as what."""
    asked: list[str] = []
    found: list[str] = []
    missing: list[NameMention] = []
    telling_names = await telling(scope, plan)
    counted = plan.aggregate is Aggregate.COUNT
    for mention in plan.mentions:
        form = await _form(scope, mention, documents)
        if form is None:
            missing.append(mention)
        # A name that is everywhere is a condition only where nothing else is asked for, or where entries are counted or
        # put in order: then it says which of them.
        elif mention.text in telling_names or not plan.words or counted or plan.asks_for_end:
            asked.append(mention.text)
            found += form
    needed = [mention for mention in missing if mention.hard or _is_all_that_is_asked(plan, mention, documents)]
    lacking = tuple([mention.text for mention in needed if not await _is_path(scope, mention, documents)])
    if lacking and not found:
        return Names(absent=lacking)
    if counted:
        lacking = tuple(mention.text for mention in missing)
    notes = (f"no entry mentions {', '.join(lacking)}",) if lacking else ()
    return Names(tuple(asked), tuple(found), notes=notes)


async def names_elsewhere(
    scope: Scope, plan: Plan, documents: Sequence[Document]
) -> tuple[Names, tuple[Document, ...]] | None:
    """Names that none of `documents` holds, in the other ones; None: they are nowhere."""
    others = tuple(doc for doc in scope.documents if doc not in documents)
    names = await names_in(scope, plan, others) if others else Names()
    if not names.found:
        return None
    holding = await scope.lines(LineWhere(ids_of(others), holding=names.found), 1)
    where = tuple(doc for doc in others if doc.doc_id in holding.per_document)
    if not where:
        return None
    said = f"mentions {', '.join(names.asked)}, but {files_listed(where)} has some"
    return replace(names, notes=(f"no entry of {files_listed(documents)} {said}", *names.notes)), where


async def unmentioned(scope: Scope, plan: Plan) -> tuple[str, ...]:
    """Notes for those who are shown the closest lines of logs: which names of the question are in none."""
    documents = scope.chosen(plan)
    if any(doc.kind not in RECORDS for doc in documents):
        return ()
    absent = [name.text for name in plan.mentions if await _form(scope, name, documents) is None]
    return (f"no entry mentions {', '.join(absent)}",) if absent else ()


async def telling(scope: Scope, plan: Plan) -> tuple[str, ...]:
    """The names that tell one passage from another: ids and codes, and other names where few chunks hold them."""
    logs = any(doc.kind in RECORDS for doc in scope.documents)
    certain = {mention.text for mention in plan.mentions if mention.hard and logs}
    counts, whole = await scope.store.holders(scope.name, [name for name in plan.identifiers if name not in certain])
    few = max(RARE_COUNT, RARE_SHARE * whole)
    return tuple(name for name in plan.identifiers if name in certain or counts.get(name, 0) <= few)


async def is_held(scope: Scope, text: str, documents: Sequence[Document]) -> bool:
    """Whether any of the documents holds `text` literally."""
    return bool(await scope.total(LineWhere(ids_of(documents), holding=(text,))))


async def _is_path(scope: Scope, mention: NameMention, documents: Sequence[Document]) -> bool:
    """Whether a dotted name may be the path of a key: one of the files that are no logs holds all its parts."""
    others = [doc for doc in documents if mention.path and doc.kind not in RECORDS]
    return any([all([await is_held(scope, part, [doc]) for part in mention.text.split(".")]) for doc in others])


def _is_all_that_is_asked(plan: Plan, mention: NameMention, documents: Sequence[Document]) -> bool:
    """Whether logs are asked for this name and for nothing else: "look up pay_ff", "how often does E_LOST show up"."""
    if plan.words or any(doc.kind not in RECORDS for doc in documents):
        return False
    return not mention.text.isalpha() and (plan.aggregate is not None or not (plan.period or plan.severity))


async def _form(scope: Scope, mention: NameMention, documents: Sequence[Document]) -> tuple[str, ...] | None:
    for form in ((mention.text,), *mention.forms):
        if await scope.total(LineWhere(ids_of(documents), holding=form)):
            return form
    return None
