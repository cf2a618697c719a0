"""Prepares a file for a store: decodes it, so that line n of its text is line n of the file, finds out its kind (by the
user's choice, else its name, else its beginning), redacts it and cuts it. Pure, and slow for a large one: seconds.
"""

from __future__ import annotations

import codecs
import csv
import hashlib
import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from services.documents.limits import (
    KINDS,
    FileLimits,
    FileRefused,
    check_lines,
    check_name,
    check_size,
    display_name,
    extension,
    lines_of,
)
from services.documents.prepared import DocumentKind, LineRecord, Prepared
from services.documents.reading.configs import MAX_LEAVES, config_chunks, outline_of
from services.documents.reading.logs import level_field, read_log, read_log_lines
from services.documents.reading.outlines import Outline, Unreadable, read_toml, read_yaml
from services.documents.reading.prose import markdown_chunks, prose_chunks
from services.documents.reading.redacting import DocumentRedactors, Redacted
from services.documents.reading.source_code import code_chunks
from services.documents.reading.tables import table_chunks, table_records
from services.documents.reading.times import TimeReader
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
    kind = kind or classify(filename, raw)
    outline = outline_of(filename, raw) if kind is DocumentKind.CONFIG else Outline()
    redacted = Redacted(raw, outline, redactors.of(kind))
    text, cut = cut_lines(redacted.text, limits.max_line_chars)
    if cut:
        flags.append(f"{cut} line{'s were' if cut > 1 else ' was'} cut at {limits.max_line_chars} characters")
    if outline.n_values > MAX_LEAVES:
        flags.append(f"of {outline.n_values} values the first {MAX_LEAVES} can be asked for one by one")
    lines, ending = lines_of(text), extension(filename)
    records: Sequence[LineRecord] = ()
    match kind:
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
        kind=kind,
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


MAX_UNDECODABLE = 0.05  # a file with a larger share of undecodable bytes counts as binary

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
    if replaced > MAX_UNDECODABLE * len(data):
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


# The kind of a document

SAMPLE_CHARS = 5000

_FEW_SIGNS = 2
_LEAST_SHARE = 0.2  # of the lines of a log that look like those of one

_TRACE = re.compile(
    r"^(?:Traceback \(most recent call last\)|[^\S\n]+(?:at [\w$.<>]+[ (]|File \"[^\"\n]{1,200}\", line [0-9]+)"
    r"|Caused by: |goroutine [0-9]+ \[|thread '[^'\n]{1,100}' panicked at|Exception in thread |Unhandled exception)",
    re.MULTILINE,
)
# What programs print while they build or install something: steps, their tools, and what those complain about.
_PRINTED = re.compile(
    r"#[0-9]{1,4} (?:[0-9]{1,6}\.[0-9]{1,3} |\[|DONE |CACHED|ERROR)|Step [0-9]+/[0-9]+ ?:|npm (?:ERR!|WARN|error|warn) "
    r"|g?make(?:\[[0-9]+\])?: |(?:[EW]|Err|Get|Hit):[0-9 ]|\[ {0,2}[0-9]{1,3}%\] |\[[0-9]+/[0-9]+\] "
    r"|::(?:error|warning|group)|(?:Collecting|Downloading|Setting up) \S"
    r"|[\w./\\-]{1,200}:[0-9]{1,7}(?::[0-9]{1,5})?: (?:fatal |note|error|warning)"
)
_PRINTED_BY_NAME = (".out", ".err")
_JSON_KEYS = re.compile(r"[\"'](?:level|severity|timestamp|ts|time|@timestamp)[\"']\s?:")
_JSON_BEGINS = re.compile(r"\s*[{\[]\s*(?:\"[^\"\n]{0,200}\"\s*:|[{\[\"0-9])")
_PROMETHEUS = re.compile(
    r"(?:# (?:HELP|TYPE) [\w:]+ |[a-zA-Z_:][\w:]*(?:\{[^{}\n]{0,500}\})? [-+]?[0-9.eE+-]+(?: [0-9]+)?$)"
)
_CODE = re.compile(
    r"^[^\S\n]*+(?:def \w+\(|class \w+[(:{ ]|import [\w.{*\"']+|from [\w.]+ import |#include [<\"]|package [\w.]+;?$"
    r"|func \w*[( ]"
    r"|(?:public|private|protected|static|export|async) [\w<>\[\] ]+|function \w*\(|(?:const|let|var) \w+ =|fn \w+[(<]"
    r"|#!/|use [\w:]+;|(?:if|for|while) ?\(.{1,200}\) ?\{|SELECT\s|CREATE TABLE\s"
    r"|return\b.{0,200};|\}$)",
    re.MULTILINE,
)
_INI_SECTION = re.compile(r"^\[[\w .:-]{1,80}\]\s*$", re.MULTILINE)
_INI_PAIR = re.compile(r"^[ \t]*(?:export )?[\w.-]{1,80}[ \t]{0,9}=[ \t]{0,9}\S?.{0,2000}$", re.MULTILINE)
_NUMBER = re.compile(r"\s*[-+]?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?%?\s*")
_KEY = re.compile(r"[\w.$/@-]{1,80}")


def classify(filename: str, text: str) -> DocumentKind:
    """Return the kind of a document by its name, else by how it begins."""
    ending = extension(filename)
    if named := KINDS.get(ending):
        return named
    sample = text[:SAMPLE_CHARS]
    if len(text) > SAMPLE_CHARS and "\n" in sample:
        sample = sample[: sample.rindex("\n")]
    found = _kind_of_content(sample)
    if found is DocumentKind.TEXT and ending in _PRINTED_BY_NAME:
        return DocumentKind.LOG
    return found or DocumentKind.TEXT


def _kind_of_content(sample: str) -> DocumentKind | None:
    """Guess the kind from the beginning of a file. None: too few of its lines look like those of a log."""
    lines = [line for line in lines_of(sample) if line.strip()]
    if not lines:
        return DocumentKind.TEXT
    reader = TimeReader()
    if _TRACE.search(sample) and not any(reader.read(line) for line in lines):
        return DocumentKind.ERROR_REPORT
    if (signs := _log_signs(lines)) >= _FEW_SIGNS:
        return DocumentKind.LOG if signs / len(lines) >= _LEAST_SHARE else None
    if _is_table(lines) or _all_match(_PROMETHEUS, lines):
        return DocumentKind.METRICS
    if _is_config(sample, lines):
        return DocumentKind.CONFIG
    code = len(_CODE.findall(sample))
    return DocumentKind.CODE if code > _FEW_SIGNS and code > len(lines) / 10 else DocumentKind.TEXT


def _log_signs(lines: list[str]) -> int:
    """Count the lines with a level word or a time where logs have them, and those that continue such a line."""
    signs = 0
    for text, line in zip(lines, read_log_lines(lines), strict=True):
        if text.startswith("{"):
            signs += _JSON_KEYS.search(text, 0, 500) is not None
        else:
            start, end = (line.stamp.start, line.stamp.end) if line.stamp else (0, 0)
            signs += line.stamp is not None or (not line.continues and level_field(text, start, end) is not None)
            signs += line.continues and signs >= _FEW_SIGNS
    printed = sum(_PRINTED.match(text) is not None for text in lines)
    # A note may quote a line or two of what was printed.
    signs += printed if printed > len(lines) / 3 else 0
    return signs


def _is_table(lines: list[str]) -> bool:
    """Return True if the lines are a row of names and rows of the same width that hold numbers."""
    for separator in (",", "\t", ";"):
        try:
            rows = list(csv.reader(lines[:20], delimiter=separator))
        except csv.Error:
            continue
        header, body = rows[0], rows[1:]
        wide = len(header) > 1 and bool(body) and all(len(row) == len(header) for row in body)
        if wide and not any(map(_NUMBER.fullmatch, header)):
            return any(map(_NUMBER.fullmatch, body[0]))
    return False


def _all_match(pattern: re.Pattern[str], lines: list[str]) -> bool:
    return len(lines) >= _FEW_SIGNS and all(pattern.match(line) for line in lines)


def _is_config(sample: str, lines: list[str]) -> bool:
    if sample.lstrip()[:1] in ("{", "["):
        if _JSON_BEGINS.match(sample):
            return True
        with suppress(ValueError, RecursionError):
            json.loads(sample)
            return True
    bare = [line for line in lines if not line.lstrip().startswith(("#", ";"))]
    if (_INI_SECTION.search(sample) and _INI_PAIR.search(sample)) or _all_match(_INI_PAIR, bare):
        return True
    return any(_has_keys(read, sample) for read in (read_toml, read_yaml))


def _has_keys(read: Callable[[str], Outline], sample: str) -> bool:
    try:
        outline = read(sample)
    except Unreadable:
        return False
    names = [key.path[-1] for key in outline.keys if not key.path[-1].startswith("[")]
    return len(names) >= _FEW_SIGNS and sum(_KEY.fullmatch(name) is not None for name in names) > 0.9 * len(names)
