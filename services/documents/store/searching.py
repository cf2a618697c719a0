"""Searches one collection by words, vectors and lines, in SQLite."""

from __future__ import annotations

import re
import sqlite3
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from services.documents.prepared import ChunkType
from services.documents.store import schema
from services.documents.store.protocol import (
    ChunkHit,
    ChunkSearch,
    LineWhere,
    MatchingLines,
    SearchMode,
    StoredChunk,
    StoredLine,
    Weights,
    newest_revisions,
)
from services.search import Floats, Positions, Postings, scoring, tokenizer
from services.search.embedding import Vectors

Mask = NDArray[np.bool_]

VERBATIM_KEPT = 200  # the most chunks with an identifier that are considered

KINDS = tuple(ChunkType)
_CODE = {kind.value: code for code, kind in enumerate(KINDS)}

POSTINGS_KEPT = 4000
MANY, MOST = 1000, 0.4


@dataclass(slots=True)
class ChunkFrame:
    """All chunks of one version of a collection as arrays, in order of their row numbers."""

    version: int
    rows: NDArray[np.int64]
    documents: NDArray[np.int64]  # the number of the document each belongs to
    kinds: NDArray[np.int8]  # positions in `KINDS`
    lengths: NDArray[np.float32]  # in tokens
    vectors: Vectors  # of those that have one
    embedded: NDArray[np.int64]  # the positions of the chunks whose vectors these are
    postings: OrderedDict[str, Postings] = field(default_factory=OrderedDict[str, Postings])
    """The postings of the words of earlier searches."""

    @property
    def n_bytes(self) -> int:
        return int(self.vectors.nbytes + self.rows.nbytes * 4)

    def positions(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.searchsorted(self.rows, rows)

    def is_too_common(self, connection: sqlite3.Connection, word: str) -> bool:
        """Return True if a word is too common to search for: most of many chunks hold it."""
        if len(self.rows) < MANY or word in self.postings:
            return False
        row = connection.execute("SELECT doc FROM words_held WHERE term = ?", (word,)).fetchone()
        return row is not None and row[0] > MOST * len(self.rows)

    def holders(self, connection: sqlite3.Connection, word: str) -> Postings:
        """Return the positions of the chunks with a word, and its count in each."""
        known = self.postings.get(word)
        if known is not None:
            self.postings.move_to_end(word)
            return known
        held = self.postings[word] = scoring.stored_postings(connection, word, self.rows)
        if len(self.postings) > POSTINGS_KEPT:
            self.postings.popitem(last=False)
        return held


def load(connection: sqlite3.Connection, version: int, embedder_id: str) -> ChunkFrame:
    """Read a collection's chunks from the database. Vectors of other embedders than `embedder_id` are left out."""
    table = connection.execute("SELECT chunk_no, doc_no, chunk_type, n_tokens FROM chunks ORDER BY chunk_no").fetchall()
    rows = np.array([row[0] for row in table], dtype=np.int64)
    blobs = connection.execute(
        "SELECT c.chunk_no, c.embedding FROM chunks c JOIN documents d USING (doc_no) "
        "WHERE c.embedding IS NOT NULL AND d.embedder = ? ORDER BY c.chunk_no",
        (embedder_id,),
    ).fetchall()
    embedded = np.searchsorted(rows, np.array([row for row, _ in blobs], dtype=np.int64))
    return ChunkFrame(
        version,
        rows,
        np.array([row[1] for row in table], dtype=np.int64),
        np.array([_CODE[row[2]] for row in table], dtype=np.int8),
        np.array([row[3] for row in table], dtype=np.float32),
        scoring.stored_vectors([blob for _, blob in blobs]),
        embedded,
    )


def search(connection: sqlite3.Connection, frame: ChunkFrame, asked: ChunkSearch) -> list[ChunkHit]:
    """Return hits, best first: the union of the best by meaning, the best by words, and chunks that hold an identifier.

    Keyword and vector search under the same filter each give their best. Over their union both scores are scaled to
    between 0 and 1 and added up with a weight for each kind of chunk. What holds an identifier of the question
    literally comes before all else.
    """
    allowed = _allowed(connection, frame, asked.doc_ids)
    if not len(allowed):
        return []
    words = tokenizer.query_tokens(asked.text)
    telling = [word for word in words if not frame.is_too_common(connection, word)]
    held = [frame.holders(connection, word) for word in telling or words]
    weights = asked.weights
    keywords, coverage = scoring.bm25(held, frame.lengths, k1=weights.bm25_k1, b=weights.bm25_b)
    cosines = _cosines(frame, asked)
    share = _verbatim(connection, frame, asked.identifiers, allowed)
    by_meaning = asked.mode is SearchMode.VECTOR and cosines is not None
    by_words = allowed[_unembedded(frame, allowed)] if by_meaning else allowed
    chosen = [scoring.best_positions(keywords, by_words, asked.depth, positive=True)]
    if cosines is not None:
        chosen.append(
            scoring.best_positions(cosines, allowed[~np.isnan(cosines[allowed])], asked.depth, positive=False)
        )
    literal = scoring.best_positions(share, allowed, max(asked.depth, VERBATIM_KEPT), positive=True)
    if len(literal) > asked.depth:
        # Too many: those that fit the rest of the question best.
        literal = scoring.best_positions(share * 1000 + keywords, literal, asked.depth, positive=True)
    union: Positions = np.unique(np.concatenate([*chosen, literal]))
    found = share[union]
    weight = (~_unembedded(frame, union)).astype(np.float32) if by_meaning else weights_of(frame, union, weights, found)
    vector_scores = None if cosines is None else cosines[union]
    ranks = fuse(vector_scores, keywords[union], found, weight, weights.identifier_bonus)
    # On a tie the newer document, then the earlier chunk.
    order = np.lexsort((union, -frame.documents[union], -ranks.round(6)))
    chunks = _chunks(connection, frame, union)
    hits: list[ChunkHit] = []
    for at in order:
        position = int(union[at])
        cosine = None if vector_scores is None or np.isnan(vector_scores[at]) else float(vector_scores[at])
        hits.append(ChunkHit(chunks[position], cosine, float(ranks[at]), float(found[at]), float(coverage[position])))
    return hits


@lru_cache(maxsize=1024)
def literally(needle: str) -> re.Pattern[str]:
    """Return a pattern for `needle` as a whole word: not 10.0.0.1 in 10.0.0.12, nor 503 in 2.503 or job-503."""
    words = r"\s+".join(re.escape(word) for word in needle.split())
    if needle.isdigit():
        return re.compile(rf"(?<![^\W_])(?<![0-9][.,])(?<![A-Za-z]-){words}(?![^\W_])(?![.,][0-9])")
    before = r"(?<![^\W_])" if needle[:1].isalnum() else ""
    after = r"(?![^\W_])" if needle[-1:].isalnum() else ""
    return re.compile(before + words + after, re.IGNORECASE)


def match_of(words: Sequence[str]) -> str:
    """Return an FTS5 query for all of `words`. Each is quoted, and no token holds a quote."""
    return " AND ".join(f'"{word}"' for word in dict.fromkeys(words))


def _allowed(connection: sqlite3.Connection, frame: ChunkFrame, doc_ids: frozenset[str] | None) -> Positions:
    if doc_ids is None:
        rows = connection.execute(f"SELECT {schema.DOCUMENT_COLUMNS} FROM documents ORDER BY doc_no")
        doc_ids = frozenset(newest_revisions(map(schema.document_of, rows)).values())
    known = connection.execute("SELECT doc_no, doc_id FROM documents").fetchall()
    numbers = [number for number, doc_id in known if doc_id in doc_ids]
    return np.flatnonzero(np.isin(frame.documents, np.array(sorted(numbers), dtype=np.int64)))


def _cosines(frame: ChunkFrame, asked: ChunkSearch) -> Floats | None:
    if asked.vector is None or not len(frame.embedded):
        return None
    cosines = np.full(len(frame.rows), np.nan, dtype=np.float32)
    cosines[frame.embedded] = frame.vectors @ asked.vector.reshape(-1)
    return cosines


def _unembedded(frame: ChunkFrame, positions: Positions) -> Mask:
    """Return a mask of the chunks whose documents have no vectors yet."""
    return ~np.isin(frame.documents[positions], frame.documents[frame.embedded])


def _verbatim(
    connection: sqlite3.Connection, frame: ChunkFrame, identifiers: tuple[str, ...], allowed: Positions
) -> Floats:
    share = np.zeros(len(frame.rows), dtype=np.float32)
    ok = np.zeros(len(frame.rows), dtype=bool)
    ok[allowed] = True
    for identifier in identifiers:
        words = tokenizer.smallest_tokens(identifier)
        if not words:
            continue
        pattern = literally(identifier)
        rows = connection.execute(
            "SELECT w.rowid, c.text FROM words w JOIN chunks c ON c.chunk_no = w.rowid WHERE words MATCH ? LIMIT 5000",
            (match_of(words),),
        )
        for row, text in rows:
            position = int(frame.positions(np.array([row]))[0])
            if ok[position] and pattern.search(text):
                share[position] += 1 / len(identifiers)
    return share


def _chunks(connection: sqlite3.Connection, frame: ChunkFrame, union: Positions) -> dict[int, StoredChunk]:
    wanted = [int(row) for row in frame.rows[union]]
    rows = connection.execute(
        f"SELECT c.chunk_no, {schema.CHUNK_COLUMNS} FROM chunks c JOIN documents d USING (doc_no) "
        f"WHERE c.chunk_no IN ({schema.placeholders(len(wanted))})",
        wanted,
    ).fetchall()
    by_row = {row[0]: schema.chunk_of(row[1:]) for row in rows}
    return {int(position): by_row[int(row)] for position, row in zip(union, frame.rows[union], strict=True)}


def weights_of(frame: ChunkFrame, positions: Positions, weights: Weights, verbatim: Floats) -> Floats:
    """Return the weight of the vector score for each chunk."""
    by_kind = {ChunkType.WINDOW: weights.window, ChunkType.PATTERN: weights.pattern, ChunkType.LEAF: weights.leaf}
    table = np.array([by_kind.get(kind, weights.prose) for kind in KINDS], dtype=np.float32)
    return np.where(verbatim.max(initial=0.0) > 0, weights.identifier, table[frame.kinds[positions]]).astype(np.float32)


def fuse(cosines: Floats | None, keywords: Floats, share: Floats, weight: Floats, bonus: float) -> Floats:
    """Return rank scores over the union. `cosines`: None when there are no vectors; NaN for a chunk without one."""
    if cosines is None:
        return (scoring.scaled_to_one(keywords) + bonus * share).astype(np.float32)
    return (
        weight * scoring.scaled_to_one(cosines) + (1 - weight) * scoring.scaled_to_one(keywords) + bonus * share
    ).astype(np.float32)


_COLUMNS = {
    "severity": "l.severity",
    "component": "l.component",
    "day": "l.day",
    "hour": "l.day || ' ' || substr(l.clock, 1, 2) || 'h'",
    "minute": "l.day || ' ' || substr(l.clock, 1, 5)",
    # The minutes east of UTC, of a time with a zone.
    "zone": "CASE WHEN l.ts_utc LIKE '%Z' THEN "
    "round((julianday(l.day || 'T' || l.clock) - julianday(rtrim(l.ts_utc, 'Z'))) * 1440) END",
}
_OF_TIME = frozenset({"day", "hour", "minute"})


def prepare(connection: sqlite3.Connection) -> None:
    """Register the SQL function `holds`, which the queries below call."""
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
    at = f"l.ts_utc IS NULL, rtrim(l.ts_utc, 'Z') {direction}, " if by_time else ""
    rows = connection.execute(
        f"SELECT {schema.LINE_COLUMNS} {source} ORDER BY {at}d.doc_no {direction}, l.line_no {direction} LIMIT ?",
        [*values, limit],
    ).fetchall()
    per_document: dict[str, int] = dict(counts)
    return MatchingLines(sum(per_document.values()), tuple(StoredLine(*row) for row in rows), per_document)


def distinct(connection: sqlite3.Connection, where: LineWhere, column: str, limit: int) -> list[tuple[str, int]]:
    condition, values = _condition(where)
    name = _in_zone(_COLUMNS[column], where)
    order = "1" if column in _OF_TIME else "count(*) DESC, 1"
    return connection.execute(
        f"SELECT {name}, count(*) FROM lines l JOIN documents d USING (doc_no) "
        f"WHERE {condition} AND {name} IS NOT NULL GROUP BY 1 ORDER BY {order} LIMIT ?",
        [*values, limit],
    ).fetchall()


def _condition(where: LineWhere) -> tuple[str, list[object]]:
    parts = list(_conditions(where))
    return " AND ".join(part for part, _ in parts), [value for _, values in parts for value in values]


def _conditions(where: LineWhere) -> Iterator[tuple[str, Sequence[object]]]:
    """Yield the conditions, each with its values."""
    yield f"d.doc_id IN ({schema.placeholders(len(where.doc_ids))})", where.doc_ids
    if where.first is not None:
        yield "l.line_no >= ?", (where.first,)
    if where.last is not None:
        yield "l.line_no <= ?", (where.last,)
    yield from _time_conditions(where)
    if where.severities:
        yield f"l.severity IN ({schema.placeholders(len(where.severities))})", where.severities
    if where.components:
        any_of = " OR ".join(["lower(l.component) = ? OR holds(l.component, ?)"] * len(where.components))
        yield f"({any_of})", [value for component in where.components for value in (component.casefold(), component)]
    # The word index is faster than reading the lines.
    for words in _word_queries(where):
        yield "l.line_row IN (SELECT rowid FROM line_words WHERE line_words MATCH ?)", (words,)
    if words := _one_of(where.words_none):
        yield "l.line_row NOT IN (SELECT rowid FROM line_words WHERE line_words MATCH ?)", (words,)
    for needle in where.holding:
        yield "holds(l.text, ?)", (needle,)
    if where.holding_any:
        groups = (" AND ".join(["holds(l.text, ?)"] * len(group)) for group in where.holding_any)
        yield (
            f"({' OR '.join(f'({group})' for group in groups)})",
            [text for group in where.holding_any for text in group],
        )
    for needle in where.lacking:
        yield "NOT holds(l.text, ?)", (needle,)


def _time_conditions(where: LineWhere) -> Iterator[tuple[str, Sequence[object]]]:
    if where.zone is not None:
        yield "l.ts_utc LIKE '%Z'", ()
    if where.zoneless:
        yield "l.ts_utc NOT LIKE '%Z'", ()
    for span, text in ((where.clocks, "l.clock"), (where.instants, f"{_day(where.instants)} || 'T' || l.clock")):
        if span is not None:
            text = _in_zone(text, where)  # noqa: PLW2901
            # A span over midnight is two.
            joined = "AND" if span[0] <= span[1] else "OR"
            yield f"({text} >= ? {joined} {text} < ?)", span
    if where.days is not None:
        yield _in_zone(f"{_day(where.days)} BETWEEN ? AND ?", where), where.days


def _in_zone(expression: str, where: LineWhere) -> str:
    """Return an SQL expression with day and time of day in the zone of the filter. Zones do not change seconds."""
    if where.zone is None:
        return expression
    at = f"rtrim(l.ts_utc, 'Z'), '{where.zone:+d} minutes'"
    return expression.replace("l.day", f"date({at})").replace(
        "l.clock", f"(strftime('%H:%M', {at}) || substr(l.clock, 6))"
    )


def _word_queries(where: LineWhere) -> Iterator[str]:
    """Yield queries of the word index."""
    if words := [word for text in (*where.holding, *where.words) for word in tokenizer.smallest_tokens(text)]:
        yield match_of(words)
    if words := _one_of(where.words_any):
        yield words
    either = [[word for text in group for word in tokenizer.smallest_tokens(text)] for group in where.holding_any]
    if either and all(either):
        yield " OR ".join(f"({match_of(words)})" for words in either)


def _one_of(words: Sequence[str]) -> str:
    """Return a query of the word index for lines with one of the words; empty if they have no letters."""
    forms = [found for word in words if (found := tokenizer.smallest_tokens(word))]
    return " OR ".join(f"({match_of(found)})" for found in forms)


def _day(span: tuple[str, str] | None) -> str:
    """Return the SQL expression to compare such days with: `MM-DD` leaves the year out."""
    return "substr(l.day, 6)" if span is not None and span[0][2:3] == "-" else "l.day"


def _holds(text: str | None, needle: str) -> bool:
    return text is not None and literally(needle).search(text) is not None
