"""Decides which files are taken, by ending and size, and says why others are not (docs/documents.md)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from services.conversations import phrases
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

_BINARY = {
    "program": ".exe .dll .so .dylib .msi .apk .class .jar .pyc .wasm",
    "archive": ".zip .gz .tgz .bz2 .xz .7z .rar .tar .zst .evtx",
    "picture": ".png .jpg .jpeg .gif .webp .bmp .tiff .svg .heic .ico",
    "pages": ".pdf .doc .docx .odt .rtf .xls .xlsx .ods .ppt .pptx",
    "data": ".bin .dat .db .sqlite .sqlite3 .pcap .dmp .core .mp3 .mp4 .mov .wav .parquet .pickle .pkl",
}
BINARY = {ending: reason for reason, endings in _BINARY.items() for ending in endings.split()}
"""Endings of files that are never text, and the sentence that says so."""

_ROTATED = re.compile(r"\.log(?:[.-][0-9][0-9_.-]*)$")
_ENVIRONMENT = re.compile(r"(?:^|[/\\])\.env(?:\.[a-z]+)?$")

_KIB = 1024
_MIB = 1024 * 1024
_LONGEST_NAME = 80


class FileRefused(Exception):
    """What is too much or cannot be read, and what to do about it: one line for people, in English as `str`."""

    def __init__(self, *sentences: str, **values: object) -> None:
        """`sentences`: their names in the phrase book, one after another. `values`: what they show."""
        self.sentences, self.values = sentences, values
        super().__init__(self.told("en"))

    def __reduce__(self) -> tuple[Callable[..., FileRefused], tuple[object, ...]]:
        """It is raised in another process than the one that tells it."""
        return _refused, (self.sentences, self.values)

    def told(self, language: str) -> str:
        """The line in a language (ISO 639-1)."""
        said = phrases(language)
        return " ".join(said.say(sentence, **self.values) for sentence in self.sentences)


def _refused(sentences: tuple[str, ...], values: dict[str, object]) -> FileRefused:
    return FileRefused(*sentences, **values)


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
        raise FileRefused("too_many_files", "delete_one", name=shown(filename), count=files, most=limits.max_files)
    if total_bytes + size > limits.max_total_bytes:
        told = "too_large_together", "remedy", "delete_one"
        most = amount(limits.max_total_bytes)
        raise FileRefused(*told, name=shown(filename), size=amount(size), most=most)


def check_name(filename: str) -> None:
    """Raises FileRefused: files with this extension are not taken."""
    if accepted(filename):
        return
    ending = extension(filename)
    if reason := BINARY.get(ending):
        raise FileRefused(reason, name=shown(filename))
    raise FileRefused("ending" if ending else "no_ending", name=shown(filename), ending=one_line(ending))


def check_size(filename: str, size: int, most: int) -> None:
    """Raises FileRefused: the file is too large, or empty."""
    if size == 0:
        raise FileRefused("empty", name=shown(filename))
    if size > most:
        raise FileRefused("too_large", "remedy", name=shown(filename), size=amount(size), most=amount(most))


def check_lines(filename: str, lines: int, most: int) -> None:
    """Raises FileRefused: the file has too many lines."""
    if lines > most:
        raise FileRefused("too_many_lines", "remedy", name=shown(filename), count=f"{lines:,}", most=f"{most:,}")


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
