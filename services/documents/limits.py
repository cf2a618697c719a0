"""Decides which files are taken, by their names and sizes, and says why one is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from model.words import number_of, one_line
from services.documents.prepared import DocumentKind

_KINDS: dict[DocumentKind | None, str] = {
    DocumentKind.LOG: ".log",
    DocumentKind.CONFIG: ".json .yaml .yml .toml .ini .cfg .conf .env .properties .xml",
    DocumentKind.METRICS: ".csv .tsv",
    DocumentKind.MARKDOWN: ".md .rst .adoc",
    DocumentKind.CODE: ".py .js .ts .jsx .tsx .java .go .rs .c .cpp .h .rb .php .swift .kt .scala .sh .bash .sql",
    None: ".txt .out .err .jsonl",
}
KINDS = {ending: kind for kind, endings in _KINDS.items() for ending in endings.split()}  # None: see the content

_BINARY = {
    "program": ".exe .dll .so .dylib .msi .apk .class .jar .pyc .wasm",
    "archive": ".zip .gz .tgz .bz2 .xz .7z .rar .tar .zst .evtx",
    "picture": ".png .jpg .jpeg .gif .webp .bmp .tiff .svg .heic .ico",
    "pages": ".pdf .doc .docx .odt .rtf .xls .xlsx .ods .ppt .pptx",
    "data": ".bin .dat .db .sqlite .sqlite3 .pcap .dmp .core .mp3 .mp4 .mov .wav .parquet .pickle .pkl",
}
BINARY = {ending: reason for reason, endings in _BINARY.items() for ending in endings.split()}
"""Endings of files that are never text, and the name of the sentence of refusal."""

_ROTATED = re.compile(r"\.log(?:[.-][0-9][0-9_.-]*)$")
_ENVIRONMENT = re.compile(r"(?:^|[/\\])\.env(?:\.[a-z]+)?$")

_KIB = 1024
_MIB = 1024 * 1024
_LONGEST_NAME = 80


class FileRefused(Exception):
    """Raised for a file that is too large or cannot be read.

    Attributes:
        sentences: names of the sentences that say why and what to do, in order; `values`: the values in them.
    """

    def __init__(self, *sentences: str, **values: object) -> None:
        self.sentences, self.values = sentences, values
        super().__init__(f"{', '.join(sentences)} ({', '.join(f'{name}: {value}' for name, value in values.items())})")

    def __reduce__(self) -> tuple[Callable[..., FileRefused], tuple[str, ...]]:
        """Make it picklable: it is raised in another process than the one that reports it."""
        return partial(FileRefused, **self.values), self.sentences


@dataclass(frozen=True, slots=True)
class FileLimits:
    """Limits for one file, and for all files of one place."""

    max_file_bytes: int = 10 * _MIB
    max_lines: int = 200_000
    max_line_chars: int = 4000
    max_files: int = 20
    max_total_bytes: int = 30 * _MIB


def check_file(filename: str, size: int, limits: FileLimits, *, files: int = 0, total_bytes: int = 0) -> None:
    """Check a file by its name and size. `files`, `total_bytes`: number and size of the earlier files in its place.

    Raises FileRefused: the kind of file is not accepted, it is too large, or the place is full.
    """
    check_name(filename)
    check_size(filename, size, limits.max_file_bytes)
    if files >= limits.max_files:
        raise FileRefused(
            "too_many_files", "delete_one", name=display_name(filename), count=files, most=limits.max_files
        )
    if total_bytes + size > limits.max_total_bytes:
        told = "too_large_together", "remedy", "delete_one"
        most = format_size(limits.max_total_bytes)
        raise FileRefused(*told, name=display_name(filename), size=format_size(size), most=most)


def check_share(filename: str, size: int, limits: FileLimits, *, files: int, total_bytes: int) -> None:
    """Check that a guest's files leave half of the room to others. `files`, `total_bytes`: number and size of the
    guest's earlier files in the place.

    Raises FileRefused: with this file they would not.
    """
    most, most_bytes = max(1, limits.max_files // 2), limits.max_total_bytes // 2
    if files >= most or total_bytes + size > most_bytes:
        told = "guest_part_is_full", "delete_one"
        raise FileRefused(*told, name=display_name(filename), most=most, size=format_size(most_bytes))


def check_name(filename: str) -> None:
    """Raises FileRefused: files with this extension are not taken."""
    ending = extension(filename)
    if ending in KINDS:
        return
    if reason := BINARY.get(ending):
        raise FileRefused(reason, name=display_name(filename))
    raise FileRefused("ending" if ending else "no_ending", name=display_name(filename), ending=one_line(ending))


def check_size(filename: str, size: int, most: int) -> None:
    """Raises FileRefused: the file is too large, or empty."""
    if size == 0:
        raise FileRefused("empty", name=display_name(filename))
    if size > most:
        raise FileRefused(
            "too_large", "remedy", name=display_name(filename), size=format_size(size), most=format_size(most)
        )


def lines_of(text: str) -> list[str]:
    """Split at line feeds only. An empty last line does not count."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def check_lines(filename: str, lines: int, most: int) -> None:
    """Raises FileRefused: the file has too many lines."""
    if lines > most:
        raise FileRefused("too_many_lines", "remedy", name=display_name(filename), count=f"{lines:,}", most=f"{most:,}")


def display_name(filename: str) -> str:
    """Put a file name from outside into a form for one line of a message."""
    name = one_line(filename).strip() or "The file"
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def format_size(size: int) -> str:
    """Format a size, rounded up so that one over a limit never looks equal to it: `812 bytes`, `34 KiB`, `12.4 MiB`."""
    if size < _KIB:
        return number_of(size, "byte")
    if size < _MIB:
        return f"{-(-size // _KIB)} KiB"
    tenths = -(-size * 10 // _MIB)
    return f"{tenths // 10} MiB" if tenths % 10 == 0 else f"{tenths / 10:.1f} MiB"


def extension(filename: str) -> str:
    """Return the ending of a name, empty for none: `.yaml` of `B.YAML`, `.env` of `.env.local`, `.log` of `a.log.1`."""
    name = filename.strip().lower()
    if _ENVIRONMENT.search(name):
        return ".env"
    if _ROTATED.search(name):
        return ".log"
    base = re.split(r"[/\\]", name)[-1]
    stem, dot, ending = base.rpartition(".")
    return f".{ending}" if dot and stem else ""
