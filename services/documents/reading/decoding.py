r"""Bytes → text with `\n` line ends, whose line n is line n of the file."""

from __future__ import annotations

import codecs
import re

from services.documents.limits import FileRefused, shown

MOST_UNDECODABLE = 0.05  # the share of undecodable bytes beyond which a file is taken for binary

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
        raise FileRefused("nul_bytes", name=shown(filename))
    replaced = text.count("\ufffd") - given
    if replaced > MOST_UNDECODABLE * len(data):
        raise FileRefused("undecodable", name=shown(filename), share=f"{replaced / len(data):.0%}")
    flags = [REPLACED] if replaced > 0 else []
    if "\x1b[" in text:
        text, coloured = _COLOUR.subn("", text)
        flags += [COLOURS] * (coloured > 0)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text, flags


def lines_of(text: str) -> list[str]:
    """Split at line feeds only. An empty last line does not count."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def cut_lines(text: str, most: int) -> tuple[str, int]:
    """Cut lines longer than `most` characters. Returns the text and how many lines were cut."""
    too_long = re.compile(rf"^([^\n]{{{most}}})[^\n]+", re.MULTILINE)
    return too_long.subn(r"\1", text)
