"""Exact questions about lines: numbers, times, severities, words. Blocking; to be run off the loop."""

from __future__ import annotations

import sqlite3
from typing import cast

from services.documents.store import schema, tokens
from services.documents.store.protocol import Lines, LineWhere
from services.documents.store.searching import literally, match_of

_COLUMNS = {"severity": "severity", "component": "component"}


def prepare(connection: sqlite3.Connection) -> None:
    """Give a connection the function that the queries below call."""
    connection.create_function("holds", 2, _holds, deterministic=True)


def find(connection: sqlite3.Connection, where: LineWhere, limit: int, *, newest_first: bool, by_time: bool) -> Lines:
    condition, values = _condition(where)
    source = f"FROM lines l JOIN documents d USING (doc_no) WHERE {condition}"
    counts = connection.execute(
        f"SELECT d.doc_id, count(*) {source} GROUP BY d.doc_no ORDER BY d.doc_no", values
    ).fetchall()
    direction = "DESC" if newest_first else "ASC"
    # Lines without a time belong to the one before; between files only the time tells what came first.
    at = f"CASE WHEN l.day IS NULL THEN '' ELSE l.day || coalesce(l.clock, '') END {direction}, " if by_time else ""
    rows = connection.execute(
        f"SELECT {schema.LINE_COLUMNS} {source} ORDER BY {at}d.doc_no {direction}, l.line_no {direction} LIMIT ?",
        [*values, limit],
    ).fetchall()
    per_document = {cast("str", doc_id): cast("int", count) for doc_id, count in counts}
    return Lines(sum(per_document.values()), tuple(schema.line_of(row) for row in rows), per_document)


def distinct(connection: sqlite3.Connection, where: LineWhere, column: str, limit: int) -> list[tuple[str, int]]:
    condition, values = _condition(where)
    name = _COLUMNS[column]
    return connection.execute(
        f"SELECT l.{name}, count(*) FROM lines l JOIN documents d USING (doc_no) "
        f"WHERE {condition} AND l.{name} IS NOT NULL GROUP BY l.{name} ORDER BY count(*) DESC, l.{name} LIMIT ?",
        [*values, limit],
    ).fetchall()


def _condition(where: LineWhere) -> tuple[str, list[object]]:
    parts: list[str] = [f"d.doc_id IN ({_marks(where.doc_ids)})"]
    values: list[object] = list(where.doc_ids)
    if where.first is not None:
        parts.append("l.line_no >= ?")
        values.append(where.first)
    if where.last is not None:
        parts.append("l.line_no <= ?")
        values.append(where.last)
    for span, text in ((where.clocks, "l.clock"), (where.instants, "l.day || 'T' || l.clock")):
        if span is not None:
            # A span over midnight is two.
            joined = "AND" if span[0] <= span[1] else "OR"
            parts.append(f"({text} >= ? {joined} {text} < ?)")
            values += span
    if where.days is not None:
        text = "l.day" if len(where.days[0]) > len("MM-DD") else "substr(l.day, 6)"
        parts.append(f"{text} BETWEEN ? AND ?")
        values += where.days
    if where.severities:
        parts.append(f"l.severity IN ({_marks(where.severities)})")
        values += where.severities
    if where.components:
        parts.append(
            "(" + " OR ".join(["(lower(l.component) = ? OR holds(l.component, ?))"] * len(where.components)) + ")"
        )
        values += [value for component in where.components for value in (component.casefold(), component)]
    words = [word for text in (*where.holding, *where.words) for word in tokens.parts(text)]
    if words:
        parts.append("l.line_row IN (SELECT rowid FROM line_words WHERE line_words MATCH ?)")
        values.append(match_of(list(dict.fromkeys(words))))
    for needle in where.holding:
        parts.append("holds(l.text, ?)")
        values.append(needle)
    return " AND ".join(parts), values


def _marks(items: tuple[str, ...]) -> str:
    return ",".join("?" * len(items))


def _holds(text: str | None, needle: str) -> bool:
    return text is not None and literally(needle).search(text) is not None
