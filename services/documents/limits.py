"""Which files are refused, and why (DOCUMENT_QA 4.2)."""

from __future__ import annotations

from dataclasses import dataclass

from services.documents.extensions import BINARY, accepted, extension
from services.llm import one_line
from services.telemetry import number_of

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
