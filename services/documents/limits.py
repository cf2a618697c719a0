"""Which files are taken, by the endings of their names and sizes, and why others are not (DOCUMENT_QA 4.2, 4.3)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from services.documents.units import DocumentKind
from services.llm import one_line
from services.telemetry import number_of

_KINDS: dict[DocumentKind | None, str] = {
    DocumentKind.LOG: ".log",
    DocumentKind.CONFIG: ".json .yaml .yml .toml .ini .cfg .conf .env .properties .xml",
    DocumentKind.METRICS: ".csv .tsv",
    DocumentKind.MARKDOWN: ".md .rst .adoc",
    DocumentKind.CODE: ".py .js .ts .jsx .tsx .java .go .rs .c .cpp .h .rb .php .swift .kt .scala .sh .bash .sql",
    None: ".txt .out .err .jsonl",
}
KINDS = {ending: kind for kind, endings in _KINDS.items() for ending in endings.split()}  # None: see the content

_EXECUTABLE = "a program, and only text is read. Send its log or its configuration"
_ARCHIVE = "an archive, and those are not opened. Unpack it and send the text files in it"
_PICTURE = "a picture, and pictures are not read yet. Copy the text into a .txt file and send that"
_PAGES = "a formatted document, and those are not read yet. Save it as text (.txt or .md) and send that"
_DATA = "binary data, and only text is read. Send an export as text (.txt, .csv or .json)"

_BINARY = {
    _EXECUTABLE: ".exe .dll .so .dylib .msi .apk .class .jar .pyc .wasm",
    _ARCHIVE: ".zip .gz .tgz .bz2 .xz .7z .rar .tar .zst .evtx",
    _PICTURE: ".png .jpg .jpeg .gif .webp .bmp .tiff .svg .heic .ico",
    _PAGES: ".pdf .doc .docx .odt .rtf .xls .xlsx .ods .ppt .pptx",
    _DATA: ".bin .dat .db .sqlite .sqlite3 .pcap .dmp .core .mp3 .mp4 .mov .wav .parquet .pickle .pkl",
}
BINARY = {ending: reason for reason, endings in _BINARY.items() for ending in endings.split()}
"""Endings of files that are never text, and what users read about them."""

_ROTATED = re.compile(r"\.log(?:[.-][0-9][0-9_.-]*)$")
_ENVIRONMENT = re.compile(r"(?:^|[/\\])\.env(?:\.[a-z]+)?$")

REMEDY = "Cut the time range, filter to errors, send one component, or split it."
_KIB = 1024
_MIB = 1024 * 1024
_LONGEST_NAME = 80


class FileRefused(Exception):
    """One line for people: what is too much or cannot be read, and what to do about it."""


@dataclass(frozen=True, slots=True)
class FileLimits:
    """Of one file, and of all files of one place."""

    max_file_bytes: int = 10 * _MIB
    max_lines: int = 200_000
    max_line_chars: int = 4000
    max_files: int = 20
    max_total_bytes: int = 30 * _MIB


def check_file(filename: str, size: int, limits: FileLimits, *, files: int = 0, total_bytes: int = 0) -> None:
    """Check a file by its name and size. `files` and `total_bytes`: what the place that it is for holds already.
    Raises FileRefused: the kind of file is not taken, it is too large, or the place is full.
    """
    check_name(filename)
    check_size(filename, size, limits.max_file_bytes)
    if files >= limits.max_files:
        raise FileRefused(
            f"{shown(filename)} is one too many: this place has {number_of(files, 'file')}, and "
            f"{limits.max_files} is the most. Delete one that is no longer needed."
        )
    if total_bytes + size > limits.max_total_bytes:
        raise FileRefused(
            f"{shown(filename)} has {amount(size)}, and with it the files here would pass the limit of "
            f"{amount(limits.max_total_bytes)} together. {REMEDY} Or delete a file that is no longer needed."
        )


def check_name(filename: str) -> None:
    """Raises FileRefused: files with this extension are not taken."""
    if accepted(filename):
        return
    ending = extension(filename)
    if reason := BINARY.get(ending):
        raise FileRefused(f"{shown(filename)} is {reason}.")
    what = f"files ending in {ending} are" if ending else "a file without an extension is"
    raise FileRefused(
        f"{shown(filename)} is not taken: {what} none of the kinds known as text. "
        "If it is text, send it as .txt or .log."
    )


def check_size(filename: str, size: int, most: int) -> None:
    """Raises FileRefused: the file is too large, or empty."""
    if size == 0:
        raise FileRefused(f"{shown(filename)} is empty. Save it again and send it once more.")
    if size > most:
        raise FileRefused(f"{shown(filename)} has {amount(size)}, and {amount(most)} is the most. {REMEDY}")


def check_lines(filename: str, lines: int, most: int) -> None:
    """Raises FileRefused: the file has too many lines."""
    if lines > most:
        raise FileRefused(f"{shown(filename)} has {lines:,} lines, and {most:,} is the most. {REMEDY}")


def shown(filename: str) -> str:
    """A name from outside, fit for one line of a message."""
    name = one_line(filename).strip() or "The file"
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def amount(size: int) -> str:
    """`812 bytes`, `34 KiB`, `12.4 MiB`; rounded up, so that what is over a limit never looks as large as it."""
    if size < _KIB:
        return number_of(size, "byte")
    if size < _MIB:
        return f"{-(-size // _KIB)} KiB"
    tenths = -(-size * 10 // _MIB)
    return f"{tenths // 10} MiB" if tenths % 10 == 0 else f"{tenths / 10:.1f} MiB"


def extension(filename: str) -> str:
    """`.yaml` of `a/B.YAML`; of `.env.local` it is `.env`, of `app.log.1` `.log`; empty when there is none."""
    name = filename.strip().lower()
    if _ENVIRONMENT.search(name):
        return ".env"
    if _ROTATED.search(name):
        return ".log"
    base = re.split(r"[/\\]", name)[-1]
    stem, dot, ending = base.rpartition(".")
    return f".{ending}" if dot and stem else ""


def accepted(filename: str) -> bool:
    return extension(filename) in KINDS
