"""The tables of one collection's file, and how a document becomes rows of them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence

from services.documents.prepared import Chunk, ChunkType, DocumentKind, Prepared
from services.documents.store.protocol import Document, Origin, Row, Rows, State, StoredChunk, slice_pickled
from services.search import tokenizer

FORMAT = 1

TABLES = """
CREATE TABLE collections (
    name TEXT PRIMARY KEY, kb_type TEXT NOT NULL, scope_id TEXT, guild_id INTEGER,
    created_at TEXT NOT NULL, version INTEGER NOT NULL, state TEXT NOT NULL
);
CREATE TABLE documents (
    doc_no INTEGER PRIMARY KEY, doc_id TEXT NOT NULL UNIQUE, collection TEXT NOT NULL, filename TEXT NOT NULL,
    sha256 TEXT, size INTEGER NOT NULL, file_type TEXT NOT NULL, uploader_id INTEGER, message_id INTEGER,
    attachment_id INTEGER, uploaded_at TEXT NOT NULL, state TEXT NOT NULL, error TEXT NOT NULL,
    n_lines INTEGER NOT NULL, n_chunks INTEGER NOT NULL, redactions TEXT NOT NULL, flags TEXT NOT NULL,
    extra TEXT NOT NULL, revision INTEGER NOT NULL, embedder TEXT NOT NULL,
    UNIQUE (collection, sha256, filename)
);
CREATE TABLE chunks (
    chunk_no INTEGER PRIMARY KEY, doc_no INTEGER NOT NULL, chunk_index INTEGER NOT NULL, text TEXT NOT NULL,
    line_start INTEGER NOT NULL, line_end INTEGER NOT NULL, ts_min TEXT, ts_max TEXT, severities TEXT NOT NULL,
    chunk_type TEXT NOT NULL, section_path TEXT, key_path TEXT, symbol TEXT, shown_by INTEGER, components TEXT NOT NULL,
    pattern_lines TEXT NOT NULL, extra TEXT NOT NULL, n_tokens INTEGER NOT NULL, embedded INTEGER NOT NULL,
    embedding BLOB
);
CREATE UNIQUE INDEX chunks_by_document ON chunks (doc_no, chunk_index);
CREATE TABLE lines (
    line_row INTEGER PRIMARY KEY, doc_no INTEGER NOT NULL, line_no INTEGER NOT NULL, text TEXT NOT NULL,
    text_offset INTEGER, ts TEXT, ts_utc TEXT, day TEXT, clock TEXT, severity TEXT, component TEXT
);
CREATE UNIQUE INDEX lines_by_number ON lines (doc_no, line_no);
CREATE VIRTUAL TABLE words USING fts5(tokens, tokenize="unicode61 remove_diacritics 0 tokenchars '_./:-'");
CREATE VIRTUAL TABLE words_found USING fts5vocab(words, instance);
CREATE VIRTUAL TABLE words_held USING fts5vocab(words, row);
CREATE VIRTUAL TABLE line_words USING fts5(
    tokens, detail=none, tokenize="unicode61 remove_diacritics 0 tokenchars '_./:-'"
);
"""

DOCUMENT_COLUMNS = (
    "doc_id, filename, sha256, size, file_type, uploader_id, message_id, attachment_id, uploaded_at, state, error, "
    "n_lines, n_chunks, redactions, flags, extra, revision, embedder"
)
CHUNK_COLUMNS = (
    "d.doc_id, c.chunk_index, c.text, c.line_start, c.line_end, c.ts_min, c.ts_max, c.severities, c.chunk_type, "
    "c.section_path, c.key_path, c.symbol, c.shown_by, c.components, c.pattern_lines, c.extra, d.extra, d.filename"
)
LINE_COLUMNS = "d.doc_id, l.line_no, l.text, l.ts, l.ts_utc, l.severity, l.component, l.day || 'T' || l.clock"


_MAX_EMBEDDED = 1000  # characters of a log line
_STAMP = re.compile(
    r"""^\W*(?:\S+\.log\S*\s+)?\W*
    (?:(?:\d{4}[-/.]\d\d[-/.]\d\d|\d\d/\d\d/\d\d|\d{6}|(?:[A-Z][a-z]{2}\s)?[A-Z][a-z]{2}\s+\d{1,2})[T ]?\s*)?
    (?:\d{2}:\d{2}:\d{2}(?:[.,]\d+)?|\d{6})?(?:Z|[+-]\d{2}:?\d{2})?(?:\s\d{4})?\W*""",
    re.VERBOSE,
)
_SEAM = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NUMBERED = re.compile(r"\b(?=\w*\d)[\w.:/-]+\b")

_OTHERS = "also_posted"  # the key of a document's other origins in its metadata; no chunk inherits them


def document_id(collection: str, origin: Origin, sha256: str) -> str:
    """Make an id from the content, so that two runs over the same messages give the same ids."""
    known = f"attachment {origin.attachment_id}" if origin.attachment_id is not None else sha256
    return hashlib.sha256(f"{collection}\n{origin.filename}\n{known}".encode()).hexdigest()[:16]


def rows_of(origin: Origin, prepared: Prepared) -> Rows:
    """Convert a document to rows. Tokenises everything: the slow part of adding a document (about 0.5 s a MiB)."""
    chunk_tokens = [tokenizer.tokens(_searched(origin, chunk)) for chunk in prepared.chunks]
    embedded = {chunk.index for chunk in to_embed(prepared)}
    texts = prepared.text.split("\n")[: prepared.n_lines]
    records = {record.line_no: record for record in prepared.lines}
    lines: list[Row] = []
    for number, text in enumerate(texts, start=1):
        record = records.get(number)
        if record is None:
            lines.append((number, text, None, None, None, None, None, None, None))
        else:
            day, _, clock = record.local_time.partition("T") if record.local_time else (None, None, None)
            stamps = (record.text_offset, record.ts, record.ts_utc, day, clock)
            lines.append((number, text, *stamps, record.severity, record.component))
    chunks = [
        _chunk_row(chunk, len(found), chunk.index in embedded)
        for chunk, found in zip(prepared.chunks, chunk_tokens, strict=True)
    ]
    line_tokens = [tokenizer.fts5_text(list(dict.fromkeys(tokenizer.tokens(text)))) for text in texts]
    return Rows(
        chunks=slice_pickled(chunks),
        chunk_tokens=slice_pickled([tokenizer.fts5_text(found) for found in chunk_tokens]),
        lines=slice_pickled(lines),
        line_tokens=slice_pickled(line_tokens),
    )


def to_embed(prepared: Prepared) -> list[Chunk]:
    """Return the chunks that get a vector, in their order.

    Windows of lines do not if there are line patterns: embedding both costs five times as much and finds nothing more
    (see `python -m benchmarks.documents`).
    """
    patterned = any(chunk.type is ChunkType.PATTERN for chunk in prepared.chunks)
    kept = [chunk for chunk in prepared.chunks if chunk.embedded]
    return [chunk for chunk in kept if not (patterned and chunk.type is ChunkType.WINDOW)]


def embedded_text(origin: Origin, chunk: Chunk) -> str:
    """Return the text to embed: `filename › heading or key path` and the text of the chunk.

    A line pattern goes without a name: names of files say nothing about what happened.
    """
    if chunk.type in {ChunkType.PATTERN, ChunkType.WINDOW}:
        return normalised(chunk.text)
    title = origin.extra.get("title")
    if chunk.type is ChunkType.LEAF:
        return chunk.text
    path = " › ".join(part for part in (title, chunk.heading or chunk.key_path or chunk.symbol) if part)
    return f"{path}\n{chunk.text}" if path else chunk.text


def normalised(line: str) -> str:
    """Return a log line in people's words: without times, numbers and ids, and with run-together names taken apart.

    Measured on 30 paraphrased questions about eight logs, a line pattern embedded in this form is found among the first
    five for 0.80 of them; as written in the file, for 0.73.

    `2024-05-01 10:00:00 INFO dfs.DataNode: Received blk_17 of size 9` → `INFO dfs. Data Node: Received  of size`.
    """
    text = _STAMP.sub("", line[: _MAX_EMBEDDED * 2], count=1)
    text = _NUMBERED.sub("", _SEAM.sub(" ", text).replace("_", " "))
    kept = " ".join(text.split())[:_MAX_EMBEDDED]
    # A line of nothing but numbers is embedded as it is.
    return kept if any(char.isalpha() for char in kept) else line[:_MAX_EMBEDDED]


def _searched(origin: Origin, chunk: Chunk) -> str:
    if chunk.type in {ChunkType.PATTERN, ChunkType.WINDOW, ChunkType.LEAF}:
        return chunk.text
    title = origin.extra.get("title", "")
    return "\n".join(part for part in (title, chunk.heading, chunk.text) if part)


def document_of(row: Row) -> Document:
    (doc_id, filename, sha256, size, kind, uploader, message, attachment, at, state, error, *rest) = row
    n_lines, n_chunks, redactions, flags, extra, revision, embedder = rest
    facts: dict[str, str] = json.loads(extra)
    others: list[Row] = json.loads(facts.pop(_OTHERS, "[]"))
    return Document(
        doc_id=doc_id,
        origin=Origin(filename, uploader, message, attachment, at, facts),
        state=State(state),
        kind=DocumentKind(kind),
        sha256=sha256 or "",
        size=size,
        revision=revision,
        error=error,
        embedder_id=embedder,
        n_lines=n_lines,
        n_chunks=n_chunks,
        redactions=json.loads(redactions),
        flags=tuple(json.loads(flags)),
        others=tuple(Origin(filename, *other) for other in others),
    )


def origins_text(first: Origin, others: Sequence[Origin]) -> str:
    """Return a document's metadata as JSON, with its other origins among them."""
    if not others:
        return mapping_text(first.extra)
    rows = [
        (each.uploader_id, each.message_id, each.attachment_id, each.uploaded_at, dict(each.extra)) for each in others
    ]
    return mapping_text({**first.extra, _OTHERS: json.dumps(rows, ensure_ascii=False)})


def chunk_of(row: Row) -> StoredChunk:
    (doc_id, index, text, start, end, ts_min, ts_max, severities, kind, *rest) = row
    heading, key_path, symbol, section_index, components, lines, extra, doc_extra, filename = rest
    facts: dict[str, str] = {"filename": filename, **json.loads(doc_extra)}
    facts.pop(_OTHERS, None)
    return StoredChunk(
        doc_id=doc_id,
        index=index,
        type=ChunkType(kind),
        text=text,
        line_start=start,
        line_end=end,
        lines=tuple(json.loads(lines)),
        ts_min=ts_min,
        ts_max=ts_max,
        severities=tuple(severities.split()),
        components=tuple(json.loads(components)),
        heading=heading,
        key_path=key_path,
        symbol=symbol,
        section_index=section_index,
        extra={**facts, **json.loads(extra)},
    )


def mapping_text(mapping: Mapping[str, object]) -> str:
    return json.dumps(dict(mapping), ensure_ascii=False, sort_keys=True)


def list_text(items: Iterable[object]) -> str:
    return json.dumps(list(items), ensure_ascii=False)


def placeholders(count: int) -> str:
    """Return `count` SQL placeholders."""
    return ",".join("?" * count)


def statements() -> list[str]:
    """Return the statements that create the tables, one by one, so that they run inside a transaction."""
    return [statement.strip() for statement in TABLES.split(";") if statement.strip()]


def _chunk_row(chunk: Chunk, n_tokens: int, embedded: bool) -> Row:
    return (
        chunk.index,
        chunk.text,
        chunk.line_start,
        chunk.line_end,
        chunk.ts_min,
        chunk.ts_max,
        " ".join(chunk.severities),
        chunk.type.value,
        chunk.heading,
        chunk.key_path,
        chunk.symbol,
        chunk.section_index,
        list_text(chunk.components),
        list_text(chunk.lines),
        mapping_text(chunk.extra),
        n_tokens,
        int(embedded),
    )
