"""Which lines a plan is about, how they are grouped by a value, and how they are counted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from services.documents.asking.passages import RECORDS, Retrieved, Scope, files_listed, ids_of, names_of
from services.documents.asking.plan import Aggregate, NameMention, Plan
from services.documents.asking.times import Period
from services.documents.store.protocol import Document, LineWhere, MatchingLines, StoredLine
from services.telemetry import number_of

STORED = {"level": "severity", "day": "day", "hour": "hour", "component": "component"}
"""What the store counts by, and how it calls that."""

PAGE = 10_000  # lines that are read at once

_OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_ADDRESS = re.compile(
    rf"(?<![\w.]){_OCTET}(?:\.{_OCTET}){{3}}(?![\w]|\.\d)"
    r"|(?<![\w:.])(?:[0-9a-f]{1,4}:){2,7}(?::?[0-9a-f]{1,4}){1,7}(?![\w:])",
    re.IGNORECASE,
)
_CLOCK = re.compile(r"[0-9]{1,2}(?::[0-9]{1,2}){1,2}")
_THREAD = re.compile(r"\bthread(?:[_.-]?(?:name|id))?[\"']?\s?[=:]\s?[\"']?([\w.#-]{1,60})", re.IGNORECASE)
_BRACKETS = re.compile(r"(?<!\S)\[([A-Za-z][^\[\]\n]{0,79})\]")
_LEVEL = re.compile(
    r"(?:fatal|critical|crit|error|err|warn|warning|notice|info|debug|trace|emerg|alert)", re.IGNORECASE
)
_RUN = re.compile(r"[\w.:/-]+")
_SHAPE_CHARS = 160
_REPEATED = re.compile(r"\bmessage repeated (\d{1,6}) times\b", re.IGNORECASE)

REPEATED = "message repeated"
_YEARLESS = re.compile(r"^000[01]-")

Values = Callable[[str], Iterable[str]]


def addresses(text: str) -> list[str]:
    """Return the IP addresses of a line, each once, without ports."""
    return list(dict.fromkeys(found[0] for found in _ADDRESS.finditer(text) if not _CLOCK.fullmatch(found[0])))


def threads(text: str) -> list[str]:
    """Return the thread that wrote a line: `thread=worker-3`, `[main]`."""
    if named := _THREAD.search(text):
        return [named[1]]
    return [found[1] for found in _BRACKETS.finditer(text) if not _LEVEL.fullmatch(found[1])][:1]


def values_of(key: str) -> Values:
    """Return a function that reads the values of `key=value`, `key: value`, `"key": "value"`."""
    spelt = re.compile(
        rf"(?<![\w.-]){re.escape(key)}[\"']?\s?[=:]\s?(?:\"([^\"\n]{{0,200}})\"|'([^'\n]{{0,200}})'|([^\s,;|()\[\]{{}}\"']{{1,200}}))",
        re.IGNORECASE,
    )
    return lambda text: dict.fromkeys(next(filter(None, found.groups()), "") for found in spelt.finditer(text))


def captured(pattern: re.Pattern[str], longest: int) -> Values:
    """Return a function that reads the pattern's first group; without a group, the whole match."""

    def read(text: str) -> list[str]:
        found = pattern.search(text[:longest])
        if found is None:
            return []
        return [next((group for group in found.groups() if group is not None), found[0])]

    return read


def messages(text: str) -> list[str]:
    """Return the message of a line with its numbers masked: lines of one shape are one message."""
    shape = " ".join(_RUN.sub(_masked, text[: 4 * _SHAPE_CHARS]).split()).lstrip("# ,.:-")
    return [shape[:_SHAPE_CHARS]] if shape else []


def _masked(run: re.Match[str]) -> str:
    return "#" if any(map(str.isdigit, run[0])) else run[0]


READ: Mapping[str, Values] = {"address": addresses, "thread": threads, "message": messages}
"""What is read from each line, by the name of the column."""


def times_said(text: str) -> int:
    """Return how many messages a line stands for: five, for `message repeated 5 times: […]`."""
    found = _REPEATED.search(text)
    return max(1, int(found[1])) if found else 1


async def repetitions(scope: Scope, where: LineWhere) -> tuple[StoredLine, ...]:
    """Return the lines that fit and stand for several messages."""
    there = replace(where, holding=(*where.holding, REPEATED))
    return (await scope.lines(there, PAGE)).lines


async def pages(scope: Scope, where: LineWhere) -> AsyncIterator[Sequence[StoredLine]]:
    """Yield all lines that fit, file by file in their order, a limited number at a time."""
    for doc_id in where.doc_ids:
        end = min(where.last or scope.document(doc_id).n_lines, scope.document(doc_id).n_lines)
        for first in range(where.first or 1, end + 1, PAGE):
            some = replace(where, doc_ids=(doc_id,), first=first, last=min(first + PAGE - 1, end))
            if lines := (await scope.lines(some, PAGE)).lines:
                yield lines


async def counted_by(scope: Scope, where: LineWhere, values: Values) -> tuple[Counter[str], int]:
    """Count the messages of each value, and those that have none. A line with two values counts for both."""
    counts = Counter[str]()
    without = 0
    async for lines in pages(scope, where):
        without += add(counts, lines, values)
    return counts, without


def add(counts: Counter[str], lines: Iterable[StoredLine], values: Values) -> int:
    """Add the values of lines to `counts`. Returns how many messages have none."""
    without = 0
    for line in lines:
        weight = times_said(line.text)
        named = [value for value in values(line.text) if value]
        for value in named:
            counts[value] += weight
        without += 0 if named else weight
    return without


def yearless(text: str) -> str:
    """Remove the placeholder year of a log that leaves the year out: `06-14`."""
    return _YEARLESS.sub("", text)


RARE_COUNT, RARE_SHARE = 2, 0.02  # a name in more chunks than this is a common word


@dataclass(frozen=True, slots=True)
class Names:
    """The names of a question, and which of them documents hold."""

    asked: tuple[str, ...] = ()  # those that are conditions, as the question writes them
    found: tuple[str, ...] = ()  # the same as they are written in the documents
    absent: tuple[str, ...] = ()  # names without which there is no answer, when none of them is there
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Conditions:
    """A filter for lines, and how the question words it. `level` and `time` are empty if they are no conditions."""

    documents: tuple[Document, ...]
    where: LineWhere
    level: str = ""
    time: str = ""
    names: tuple[str, ...] = ()

    @property
    def described(self) -> str:
        """Describe the filter in words, with its files: exactly what the store is asked for."""
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
        """Return the conditions with the words of the question added."""
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
    """Find conditions that some lines fit: all of them; else without the level; then without the time; then also in
    `others` than the named files. A name or a time always stays.

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
    """Tell how many lines hold each of several texts, if no line holds all of them; empty if there is only one."""
    texts = asked.where.holding
    if len(texts) < 2:  # noqa: PLR2004 (several)
        return ""
    where = LineWhere(asked.where.doc_ids)
    return ", ".join([f'"{text}" alone: {await scope.total(replace(where, holding=(text,)))}' for text in texts])


async def names_in(scope: Scope, plan: Plan, documents: Sequence[Document]) -> Names:
    """Find which names of the question the documents hold, and in which spelling."""
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
    """Look in the other documents for names that `documents` do not hold. None: no document holds them."""
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
    """Return notes that say which names of the question are in no log, shown with the closest lines."""
    documents = scope.chosen(plan)
    if any(doc.kind not in RECORDS for doc in documents):
        return ()
    absent = [name.text for name in plan.mentions if await _form(scope, name, documents) is None]
    return (f"no entry mentions {', '.join(absent)}",) if absent else ()


async def telling(scope: Scope, plan: Plan) -> tuple[str, ...]:
    """Return the names that are selective: ids and codes, and other names that few chunks hold."""
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
    """Whether a question about logs asks for this name and nothing else: "look up pay_ff", "how often does E_LOST show
    up".
    """
    if plan.words or any(doc.kind not in RECORDS for doc in documents):
        return False
    return not mention.text.isalpha() and (plan.aggregate is not None or not (plan.period or plan.severity))


async def _form(scope: Scope, mention: NameMention, documents: Sequence[Document]) -> tuple[str, ...] | None:
    for form in ((mention.text,), *mention.forms):
        if await scope.total(LineWhere(ids_of(documents), holding=form)):
            return form
    return None


EXAMPLES = 5
MOST_GROUPS = 50

_STORED_COLUMNS = frozenset({"severity", "component", "day", "hour", "minute"})
_ASKS_TO_SEE = re.compile(r"\b(?:which|what|where|when|who|why|show|list|print|give|quote|example)\b", re.IGNORECASE)


async def count(scope: Scope, plan: Plan, asked: Conditions, notes: tuple[str, ...], k: int) -> Retrieved | None:
    """How many lines fit, by what the question wants them counted by: over whole files, never over the passages that
    happen to be shown. None: its words are not about lines.
    """
    counted = plan.aggregate is Aggregate.COUNT
    if plan.words:
        narrower = asked.narrowed(plan)
        if await scope.total(narrower.where):
            asked = narrower
        elif not counted or plan.level_counts or plan.mentions or plan.grouped_by or plan.counted_by:
            notes = (*notes, f"counted without regard to: {', '.join(plan.words)}")
        elif len(plan.words) > 1 or not plan.counts_mentions:
            return None
        else:
            return Retrieved(missing=f"there are no {narrower.described}", count=0, notes=notes)
    examples = min(k, EXAMPLES)
    lines = await scope.rare_first(asked.where, examples, examples)
    repeats = await repetitions(scope, asked.where)
    more = sum(times_said(line.text) - 1 for line in repeats)
    facts = [f"{asked.described}: {lines.total + more}"]
    if more:
        said = number_of(len(repeats), "line says", "lines say")
        notes = (*notes, f'{said} "message repeated n times", and counts n times: {lines.total} lines')
    facts += _per_file(asked, lines)
    total = lines.total + more
    usual = ("severity", "component") if not counted else ("severity",) if len(asked.where.severities) > 1 else ()
    for column in plan.grouped_by or usual:
        groups = await _groups(scope, asked, column)
        facts.append(f"by {column}: {_listed(groups, lines.total if column not in READ else None)}")
        if plan.distinct:
            total = len(groups)
            facts.insert(0, f"different values of {column}: {total}{'+' if total > MOST_GROUPS else ''}")
    for key in plan.counted_by:
        groups = await _groups(scope, asked, key)
        facts += [f"by {key}: {_listed(groups, None)}"] if groups else []
        notes = notes if groups else (*notes, f"asked and not computed: numbers by {key}")
    if counted and _asks_for_a_number_alone(plan):
        names = names_of(asked.documents)
        return Retrieved(facts="\n".join(facts), count=total, notes=notes, exact=True, searched=names)
    return replace(await scope.shown(lines.lines, examples, notes), facts="\n".join(facts), count=total)


def _per_file(asked: Conditions, lines: MatchingLines) -> list[str]:
    if len(asked.documents) == 1:
        return []
    return [f"{doc.filename}: {lines.per_document.get(doc.doc_id, 0)}" for doc in asked.documents]


def _asks_for_a_number_alone(plan: Plan) -> bool:
    """Whether a question asks for a number only, and wants to see no lines."""
    by_groups = plan.grouped_by or plan.distinct or plan.counted_by
    return not (by_groups or plan.position or _ASKS_TO_SEE.search(plan.text))


async def _groups(scope: Scope, asked: Conditions, column: str) -> list[tuple[str, int]]:
    """Count by a column of the store, or by what is read from each line, the most frequent first."""
    if column in _STORED_COLUMNS:
        groups = await scope.store.distinct(scope.name, asked.where, column, limit=MOST_GROUPS + 1)
        return [(yearless(value), number) for value, number in groups]
    values = READ.get(column) or values_of(column)
    counts, _ = await counted_by(scope, asked.where, values)
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[: MOST_GROUPS + 1]


def _listed(groups: list[tuple[str, int]], total: int | None) -> str:
    """Write groups in one line. `total`: the number of all lines; None: a line may have several values."""
    said = [f"{value} {number}" for value, number in groups[:MOST_GROUPS]]
    if total is None:
        return ", ".join(said) if groups else "no line names one"
    without = total - sum(number for _, number in groups[:MOST_GROUPS])
    if len(groups) > MOST_GROUPS:
        said.append(f"others or none {without}")
    elif without:
        said.append(f"without one {without}")
    return ", ".join(said) if groups else "no line names one"
