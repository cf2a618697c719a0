"""Finds a person's words in other texts, even where prompts have indented, cut or quoted them, and in all files of the
data folder after the person was forgotten.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from services.llm import clean
from services.privacy.unknown_files import named

LEAST_CHARS = 16
"""Letters and digits that identify a text as somebody's: "yes, thanks" is in every prompt."""
LONG_CHARS = 32
"""Of a single line that identifies the text which it is from."""

_WORDS = re.compile(r"\w+")
_PLACEHOLDER = re.compile(r"\[(?:image|file): [^\]\n]{0,1000}\]")


class TextMatch:
    """Searches for texts. A text is found if all its lines are, in any order, or if one long line is: prompts show
    parts of texts.

    `too_short`: texts it does not look for.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._lines: set[tuple[str, ...]] = set()
        self.too_short = 0
        for text in texts:
            # The description of an image differs from prompt to archive.
            lines = [
                words for line in _PLACEHOLDER.sub("\n", clean(text)).split("\n") if (words := _words_of_line(line))
            ]
            if sum(map(len, lines)) < LEAST_CHARS:
                self.too_short += 1
            else:
                self._lines.add(tuple(f" {line} " for line in lines))
                self._lines.update((f" {line} ",) for line in lines if len(line) >= LONG_CHARS)

    def found_in(self, text: str) -> bool:
        words = f" {_words_of_line(clean(text))} "
        return any(all(line in words for line in lines) for lines in self._lines)


def _words_of_line(text: str) -> str:
    return " ".join(_WORDS.findall(text.casefold()))


WINDOW = 6
"""Words in a row that tell whose they are; a shorter line does as a whole, if it has `LEAST_CHARS`."""
CHUNK_BYTES = 256 * 1024
PAUSE_SECONDS = 0.001
"""Between two pieces of a file, so that a running bot is not kept waiting."""

_FILE_WORDS = re.compile(r"\w+")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)")
_SEPARATOR = "\n"


@dataclass(slots=True)
class WordSequences:
    """Sequences of words that a person wrote: sets of those of one length, by their first two words. However many begin
    with the same words, a place in a file costs one look-up for each length.
    """

    _rows: dict[str, dict[str, dict[int, set[tuple[str, ...]]]]] = field(default_factory=dict[str, Any], init=False)
    _alone: set[str] = field(default_factory=set[str], init=False)

    def add(self, texts: Iterable[str]) -> None:
        for line in (line for text in texts for line in clean(text).split("\n")):
            words = tuple(_FILE_WORDS.findall(line.casefold()))
            if sum(map(len, words)) < LEAST_CHARS:
                continue
            if len(words) == 1:
                self._alone.add(words[0])
                continue
            size = min(len(words), WINDOW)
            for start in range(len(words) - size + 1):
                row = words[start : start + size]
                self._rows.setdefault(row[0], {}).setdefault(row[1], {}).setdefault(size, set()).add(row)

    def found_in(self, pieces: Iterable[list[str]]) -> bool:
        """True if a file, given piece by piece as words, contains one of the sequences."""
        if not self._rows and not self._alone:
            return False
        before: list[str] = []
        for piece in pieces:
            words = before + piece
            if not self._alone.isdisjoint(piece) or self._begin_in(words):
                return True
            before = words[-WINDOW + 1 :]
        return False

    def _begin_in(self, words: list[str]) -> bool:
        for at, (first, second) in enumerate(pairwise(words)):
            rows = self._rows.get(first)
            if rows is None or (by_length := rows.get(second)) is None:
                continue
            if any(tuple(words[at : at + length]) in those for length, those in by_length.items()):
                return True
        return False


def find_remaining_words(root: Path, texts: Iterable[str], but: Collection[Path], said: Iterable[str]) -> list[str]:
    """Return a line for each file below `root` that contains such texts, plain or escaped as in JSON. Files and folders
    in `but`, and those that a line of `said` names already, are not searched. Raises OSError.
    """
    traces = WordSequences()
    traces.add(texts)
    passed = {path.absolute() for path in but}
    known = tuple(said)
    found: list[Path] = []
    for path in sorted(root.rglob("*")):
        absolute = path.absolute()
        if not path.is_file() or path.is_symlink() or passed & {absolute, *absolute.parents}:
            continue
        if any(line.startswith((f"{path}: ", f"{path.parent}: ")) for line in known):
            continue
        with suppress(FileNotFoundError):  # it went meanwhile
            if traces.found_in(_words_in_file(path)):
                found.append(path)
    return list(named(found, "still has words as they wrote them, which others may have repeated; look at it"))


def _words_in_file(path: Path) -> Iterator[list[str]]:
    rest = b""
    with path.open("rb") as file:
        while data := file.read(CHUNK_BYTES):
            # A word is cut at no end of a piece: what follows the last blank waits for the next one.
            data = rest + data
            end = max(data.rfind(b" "), data.rfind(b"\n")) + 1
            if end == 0 and len(data) < 2 * CHUNK_BYTES:
                rest = data
                continue
            rest = data[end:] if end else b""
            yield _words_in(data[:end] if end else data)
            time.sleep(PAUSE_SECONDS)
    yield _words_in(rest)


def _words_in(data: bytes) -> list[str]:
    text = data.decode("utf-8", "replace")
    if "\\" in text:
        text = _ESCAPE.sub(_unescaped, text)
    return _FILE_WORDS.findall(text.casefold())


def _unescaped(escape: re.Match[str]) -> str:
    code = escape.group(1)
    return chr(int(code, 16)) if code else _SEPARATOR
