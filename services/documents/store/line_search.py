"""Exact questions about lines: numbers, times, severities, words. Blocking; to be run off the loop."""

from __future__ import annotations

import sqlite3

from services.documents.store import schema
from services.documents.store.protocol import LineWhere, MatchingLines, StoredLine
from services.documents.store.searching import literally, match_of
from services.search import tokenizer

_COLUMNS = {
    "severity": "l.severity",
    "component": "l.component",
    "day": "l.day",
    "hour": "l.day || ' ' || substr(l.clock, 1, 2) || 'h'",
    "minute": "l.day || ' ' || substr(l.clock, 1, 5)",
}
_OF_TIME = frozenset({"day", "hour", "minute"})


def prepare(connection: sqlite3.Connection) -> None:
    """Give a connection the function that the queries below call."""
    connection.create_function("holds", 2, _holds, deterministic=True)


def find(
    connection: sqlite3.Connection, where: LineWhere, limit: int, *, newest_first: bool, by_time: bool
) -> MatchingLines:
    condition, values = _condition(where)
    source = f"FROM lines l JOIN documents d USING (doc_no) WHERE {condition}"
    counts = connection.execute(
        f"SELECT d.doc_id, count(*) {source} GROUP BY d.doc_no ORDER BY d.doc_no", values
    ).fetchall()
    direction = "DESC" if newest_first else "ASC"
    # What has no time can be neither the earliest nor the latest.
    at = f"l.day IS NULL, l.day || coalesce(l.clock, '') {direction}, " if by_time else ""
    rows = connection.execute(
        f"SELECT {schema.LINE_COLUMNS} {source} ORDER BY {at}d.doc_no {direction}, l.line_no {direction} LIMIT ?",
        [*values, limit],
    ).fetchall()
    per_document: dict[str, int] = dict(counts)
    return MatchingLines(sum(per_document.values()), tuple(StoredLine(*row) for row in rows), per_document)


def distinct(connection: sqlite3.Connection, where: LineWhere, column: str, limit: int) -> list[tuple[str, int]]:
    condition, values = _condition(where)
    name = _COLUMNS[column]
    order = "1" if column in _OF_TIME else "count(*) DESC, 1"
    return connection.execute(
        f"SELECT {name}, count(*) FROM lines l JOIN documents d USING (doc_no) "
        f"WHERE {condition} AND {name} IS NOT NULL GROUP BY 1 ORDER BY {order} LIMIT ?",
        [*values, limit],
    ).fetchall()


def _condition(where: LineWhere) -> tuple[str, list[object]]:
    parts: list[str] = [f"d.doc_id IN ({schema.marks(len(where.doc_ids))})"]
    values: list[object] = list(where.doc_ids)
    for some, wanted in (_at_places(where), _of_kinds(where), _with_words(where), _with_texts(where)):
        parts += some
        values += wanted
    return " AND ".join(parts), values


def _at_places(where: LineWhere) -> tuple[list[str], list[object]]:
    """Line numbers and times."""
    parts: list[str] = []
    values: list[object] = []
    if where.first is not None:
        parts.append("l.line_no >= ?")
        values.append(where.first)
    if where.last is not None:
        parts.append("l.line_no <= ?")
        values.append(where.last)
    for span, text in ((where.clocks, "l.clock"), (where.instants, f"{_day(where.instants)} || 'T' || l.clock")):
        if span is not None:
            # A span over midnight is two.
            joined = "AND" if span[0] <= span[1] else "OR"
            parts.append(f"({text} >= ? {joined} {text} < ?)")
            values += span
    if where.days is not None:
        parts.append(f"{_day(where.days)} BETWEEN ? AND ?")
        values += where.days
    return parts, values


def _of_kinds(where: LineWhere) -> tuple[list[str], list[object]]:
    """Levels and components."""
    parts: list[str] = []
    values: list[object] = []
    if where.severities:
        parts.append(f"l.severity IN ({schema.marks(len(where.severities))})")
        values += where.severities
    if where.components:
        parts.append(
            "(" + " OR ".join(["(lower(l.component) = ? OR holds(l.component, ?))"] * len(where.components)) + ")"
        )
        values += [value for component in where.components for value in (component.casefold(), component)]
    return parts, values


def _with_words(where: LineWhere) -> tuple[list[str], list[object]]:
    """Whole words, found by the index of words, which is quicker than reading the lines."""
    wanted: list[str] = []
    words = [word for text in (*where.holding, *where.words) for word in tokenizer.parts(text)]
    if words:
        wanted.append(match_of(list(dict.fromkeys(words))))
    if forms := [found for word in where.words_any if (found := list(dict.fromkeys(tokenizer.parts(word))))]:
        wanted.append(" OR ".join(f"({match_of(found)})" for found in forms))
    either = [list(dict.fromkeys(tokenizer.parts(needle))) for needle in where.holding_any]
    if either and all(either):
        wanted.append(" OR ".join(f"({match_of(words)})" for words in either))
    return ["l.line_row IN (SELECT rowid FROM line_words WHERE line_words MATCH ?)"] * len(wanted), [*wanted]


def _with_texts(where: LineWhere) -> tuple[list[str], list[object]]:
    """Texts as they are written."""
    parts: list[str] = []
    values: list[object] = []
    for needle in where.holding:
        parts.append("holds(l.text, ?)")
        values.append(needle)
    if where.holding_any:
        parts.append(f"({' OR '.join(['holds(l.text, ?)'] * len(where.holding_any))})")
        values += where.holding_any
    for needle in where.lacking:
        parts.append("NOT holds(l.text, ?)")
        values.append(needle)
    return parts, values


def _day(span: tuple[str, str] | None) -> str:
    """The column that such days are compared with: of `MM-DD` the year does not count."""
    return "substr(l.day, 6)" if span is not None and span[0][2:3] == "-" else "l.day"


def _holds(text: str | None, needle: str) -> bool:
    return text is not None and literally(needle).search(text) is not None
