"""A collection's chunks as arrays: what search reads for every question, kept in memory between them."""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from services.documents.units import ChunkType
from services.search.embedding import Vectors

KINDS = tuple(ChunkType)
_CODE = {kind.value: code for code, kind in enumerate(KINDS)}

POSTINGS_KEPT = 4000
MANY, MOST = 1000, 0.4


@dataclass(slots=True)
class Frame:
    """Every chunk of one version of a collection, in order of its row number."""

    version: int
    rows: NDArray[np.int64]
    documents: NDArray[np.int64]  # the number of the document each belongs to
    kinds: NDArray[np.int8]  # places in `KINDS`
    lengths: NDArray[np.float32]  # in tokens
    vectors: Vectors  # of those that have one
    embedded: NDArray[np.int64]  # the places of the chunks whose vectors these are
    postings: OrderedDict[str, tuple[NDArray[np.int64], NDArray[np.float32]]] = field(
        default_factory=OrderedDict[str, tuple[NDArray[np.int64], NDArray[np.float32]]]
    )
    """For words asked for before: the places of the chunks that hold them, and how often."""

    @property
    def n_bytes(self) -> int:
        return int(self.vectors.nbytes + self.rows.nbytes * 4)

    def places(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.searchsorted(self.rows, rows)

    def says_nothing(self, connection: sqlite3.Connection, word: str) -> bool:
        """Whether a word is in most of many chunks: it tells them apart no more than "the" does, and costs most."""
        if len(self.rows) < MANY or word in self.postings:
            return False
        row = connection.execute("SELECT doc FROM words_held WHERE term = ?", (word,)).fetchone()
        return row is not None and row[0] > MOST * len(self.rows)

    def holders(self, connection: sqlite3.Connection, word: str) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The places that hold a word, and how often each does."""
        known = self.postings.get(word)
        if known is not None:
            self.postings.move_to_end(word)
            return known
        found = connection.execute(
            "SELECT doc, count(*) FROM words_found WHERE term = ? GROUP BY doc ORDER BY doc", (word,)
        ).fetchall()
        table = np.array(found, dtype=np.int64).reshape(-1, 2)
        held = self.places(table[:, 0]), table[:, 1].astype(np.float32)
        self.postings[word] = held
        if len(self.postings) > POSTINGS_KEPT:
            self.postings.popitem(last=False)
        return held


def load(connection: sqlite3.Connection, version: int, embedder_id: str) -> Frame:
    """Read from the database. Vectors of other embedders than `embedder_id` are left out."""
    table = connection.execute("SELECT chunk_no, doc_no, chunk_type, n_tokens FROM chunks ORDER BY chunk_no").fetchall()
    rows = np.array([row[0] for row in table], dtype=np.int64)
    blobs = connection.execute(
        "SELECT c.chunk_no, c.embedding FROM chunks c JOIN documents d USING (doc_no) "
        "WHERE c.embedding IS NOT NULL AND d.embedder = ? ORDER BY c.chunk_no",
        (embedder_id,),
    ).fetchall()
    vectors = np.frombuffer(b"".join(blob for _, blob in blobs), dtype=np.float32)
    embedded = np.searchsorted(rows, np.array([row for row, _ in blobs], dtype=np.int64))
    return Frame(
        version,
        rows,
        np.array([row[1] for row in table], dtype=np.int64),
        np.array([_CODE[row[2]] for row in table], dtype=np.int8),
        np.array([row[3] for row in table], dtype=np.float32),
        vectors.reshape(len(blobs), -1) if blobs else np.zeros((0, 0), dtype=np.float32),
        embedded,
    )
