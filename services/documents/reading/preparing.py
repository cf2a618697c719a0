"""Decodes a file, so that line n of its text is line n of the file, and prepares it for a store. Pure, and slow for a
large one: seconds.
"""

from __future__ import annotations

import codecs
import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace

from services.documents.limits import (
    DocumentKind,
    FileLimits,
    FileRefused,
    LineRecord,
    Prepared,
    check_lines,
    check_name,
    check_size,
    display_name,
    extension,
    lines_of,
)
from services.documents.reading.configs import MOST_LEAVES, config_chunks, outline_of
from services.documents.reading.kinds import classify
from services.documents.reading.logs import read_log
from services.documents.reading.outlines import Outline
from services.documents.reading.prose import markdown_chunks, prose_chunks
from services.documents.reading.redacting import DocumentRedactors, Redacted
from services.documents.reading.source_code import code_chunks
from services.documents.reading.tables import table_chunks, table_records
from services.documents.store.protocol import NewDocument, Origin
from services.documents.store.schema import rows_of

_NO_KNOWN_SECRETS = DocumentRedactors()


def prepare(
    filename: str,
    data: bytes,
    *,
    limits: FileLimits,
    kind: DocumentKind | None = None,
    title: str | None = None,
    redactors: DocumentRedactors = _NO_KNOWN_SECRETS,
) -> Prepared:
    """Decode, classify, redact and cut a file into chunks.

    `kind`: as the user says. `title`: of a runbook. `redactors`: those that know the program's secrets.
    Raises FileRefused: the file is too large, of a kind that is not accepted, or not text.
    """
    check_name(filename)
    check_size(filename, len(data), limits.max_file_bytes)
    raw, flags = decode(filename, data)
    check_size(filename, len(raw), limits.max_file_bytes)  # refuses a file of a byte order mark only
    n_lines = len(lines_of(raw))
    check_lines(filename, n_lines, limits.max_lines)
    found = classify(filename, raw, kind)
    outline = outline_of(filename, raw) if found.kind is DocumentKind.CONFIG else Outline()
    redacted = Redacted(raw, outline, redactors.of(found.kind), by_key=redactors.by_key)
    text, cut = cut_lines(redacted.text, limits.max_line_chars)
    if cut:
        flags.append(f"{cut} line{'s were' if cut > 1 else ' was'} cut at {limits.max_line_chars} characters")
    if outline.n_values > MOST_LEAVES:
        flags.append(f"of {outline.n_values} values the first {MOST_LEAVES} can be asked for one by one")
    lines, ending = lines_of(text), extension(filename)
    records: Sequence[LineRecord] = ()
    match found.kind:
        case DocumentKind.LOG | DocumentKind.ERROR_REPORT:
            chunks, records = read_log(lines)
        case DocumentKind.CONFIG:
            chunks = config_chunks(lines, outline, redacted)
        case DocumentKind.MARKDOWN:
            chunks = markdown_chunks(lines, ending, title)
        case DocumentKind.CODE:
            chunks = code_chunks(lines, raw if ending == ".py" else None)
        case DocumentKind.METRICS:
            chunks, records = table_chunks(lines, tabs=ending == ".tsv"), table_records(lines)
        case DocumentKind.TEXT:
            chunks = prose_chunks(lines)
    return Prepared(
        filename=filename,
        kind=found.kind,
        confidence=found.confidence,
        sha256=hashlib.sha256(data).hexdigest(),
        size=len(data),
        text=text,
        n_lines=n_lines,
        chunks=tuple(chunks),
        lines=tuple(records),
        redactions=redacted.counts,
        flags=tuple(flags),
    )


def prepare_document(
    origin: Origin, data: bytes, limits: FileLimits, title: str | None, redactors: DocumentRedactors
) -> NewDocument:
    """Read `data` into a document with its rows, to be run in a process of its own (`clock.worker`), which imports this
    module and what it needs. `prepared` has neither text nor chunks: two objects for each line of a log would block
    every thread of the bot's process for half a second while they are unpickled, and again during garbage collection.

    Raises FileRefused as `prepare`; the process also WorkStopped: it takes too long or too much memory.
    """
    prepared = prepare(origin.filename, data, limits=limits, title=title, redactors=redactors)
    return NewDocument(origin, replace(prepared, text="", chunks=(), lines=()), rows=rows_of(origin, prepared))


MOST_UNDECODABLE = 0.05  # a file with a larger share of undecodable bytes counts as binary

REPLACED = "undecodable bytes were replaced"
COLOURS = "terminal colour codes were taken out"

_COLOUR = re.compile("\x1b\\[[0-9;:?]{0,40}[A-Za-z]")


def decode(filename: str, data: bytes) -> tuple[str, list[str]]:
    """Decode UTF-8 or, with a byte order mark, UTF-16. Returns the text and flags for the reader.
    Raises FileRefused: it holds NUL bytes, or too many bytes that are no text.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text, given = data.decode("utf-16", "replace"), 0
    else:
        text, given = data.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace"), data.count("\ufffd".encode())
    if "\x00" in text:
        raise FileRefused("nul_bytes", name=display_name(filename))
    replaced = text.count("\ufffd") - given
    if replaced > MOST_UNDECODABLE * len(data):
        raise FileRefused("undecodable", name=display_name(filename), share=f"{replaced / len(data):.0%}")
    flags = [REPLACED] if replaced > 0 else []
    if "\x1b[" in text:
        text, coloured = _COLOUR.subn("", text)
        flags += [COLOURS] * (coloured > 0)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text, flags


def cut_lines(text: str, most: int) -> tuple[str, int]:
    """Cut lines longer than `most` characters. Returns the text and how many lines were cut."""
    too_long = re.compile(rf"^([^\n]{{{most}}})[^\n]+", re.MULTILINE)
    return too_long.subn(r"\1", text)
