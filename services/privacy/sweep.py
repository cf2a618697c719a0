"""Finds the files that still hold words of a person after they were forgotten. Blocking."""

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
from services.privacy.strangers import named
from services.privacy.text_match import LEAST_CHARS

WINDOW = 6
"""Words in a row that tell whose they are; a shorter line does as a whole, if it has `LEAST_CHARS`."""
AT_ONCE = 256 * 1024
BREATH_SECONDS = 0.001
"""Between two pieces of a file, so that a running bot is not kept waiting."""

_WORDS = re.compile(r"\w+")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)")
_PAUSE = "\n"


@dataclass(slots=True)
class Traces:
    """Sequences of words that a person wrote, indexed by their first two words."""

    _rows: dict[str, dict[str, set[tuple[str, ...]]]] = field(default_factory=dict[str, Any], init=False)
    _alone: set[str] = field(default_factory=set[str], init=False)

    def add(self, texts: Iterable[str]) -> None:
        for line in (line for text in texts for line in clean(text).split("\n")):
            words = tuple(_WORDS.findall(line.casefold()))
            if sum(map(len, words)) < LEAST_CHARS:
                continue
            if len(words) == 1:
                self._alone.add(words[0])
                continue
            size = min(len(words), WINDOW)
            for start in range(len(words) - size + 1):
                row = words[start : start + size]
                self._rows.setdefault(row[0], {}).setdefault(row[1], set()).add(row)

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
            if rows is not None and any(tuple(words[at : at + len(row)]) == row for row in rows.get(second, ())):
                return True
        return False


def still_held(root: Path, texts: Iterable[str], but: Collection[Path], said: Iterable[str]) -> list[str]:
    """Return a line for each file below `root` that contains such texts, plain or escaped as in JSON. Files and folders
    in `but`, and those that a line of `said` names already, are not searched. Raises OSError.
    """
    traces = Traces()
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
            if traces.found_in(_words_of(path)):
                found.append(path)
    return list(named(found, "still has words as they wrote them, which others may have repeated; look at it"))


def _words_of(path: Path) -> Iterator[list[str]]:
    rest = b""
    with path.open("rb") as file:
        while data := file.read(AT_ONCE):
            # A word is cut at no end of a piece: what follows the last blank waits for the next one.
            data = rest + data
            end = max(data.rfind(b" "), data.rfind(b"\n")) + 1
            if end == 0 and len(data) < 2 * AT_ONCE:
                rest = data
                continue
            rest = data[end:] if end else b""
            yield _in(data[:end] if end else data)
            time.sleep(BREATH_SECONDS)
    yield _in(rest)


def _in(data: bytes) -> list[str]:
    text = data.decode("utf-8", "replace")
    if "\\" in text:
        text = _ESCAPE.sub(_unescaped, text)
    return _WORDS.findall(text.casefold())


def _unescaped(escape: re.Match[str]) -> str:
    code = escape.group(1)
    return chr(int(code, 16)) if code else _PAUSE
