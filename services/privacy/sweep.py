"""After somebody is forgotten: which files still hold words of theirs. Blocking."""

from __future__ import annotations

import re
import time
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

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
    """Rows of words that somebody wrote, by their first one."""

    _rows: defaultdict[str, set[tuple[str, ...]]] = field(default_factory=lambda: defaultdict(set), init=False)
    _longest: int = field(default=0, init=False)

    def add(self, texts: Iterable[str]) -> None:
        for line in (line for text in texts for line in clean(text).split("\n")):
            words = tuple(_WORDS.findall(line.casefold()))
            size = min(len(words), WINDOW)
            if sum(map(len, words)) >= LEAST_CHARS:
                for start in range(len(words) - size + 1):
                    self._rows[words[start]].add(words[start : start + size])
                self._longest = max(self._longest, size)

    def found_in(self, words: Iterable[str]) -> bool:
        """Whether a file of these words holds one of the rows."""
        if not self._rows:
            return False
        row: deque[str] = deque(maxlen=self._longest)
        for word in words:
            row.append(word)
            if len(row) == self._longest and self._begins(row):
                return True
        while row:
            if self._begins(row):
                return True
            row.popleft()
        return False

    def _begins(self, row: Sequence[str]) -> bool:
        rows = self._rows.get(row[0])
        return rows is not None and any(tuple(row)[: len(each)] == each for each in rows)


def still_held(root: Path, texts: Iterable[str], but: Collection[Path], said: Iterable[str]) -> list[str]:
    """A line for each file below `root` that holds such texts, in the clear or as JSON escapes them. Files and folders
    of `but` are not looked into; nor is what `said` names already, a line each. Raises OSError.
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


def _words_of(path: Path) -> Iterator[str]:
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
            yield from _in(data[:end] if end else data)
            time.sleep(BREATH_SECONDS)
    yield from _in(rest)


def _in(data: bytes) -> list[str]:
    text = data.decode("utf-8", "replace")
    if "\\" in text:
        text = _ESCAPE.sub(_unescaped, text)
    return _WORDS.findall(text.casefold())


def _unescaped(escape: re.Match[str]) -> str:
    code = escape.group(1)
    return chr(int(code, 16)) if code else _PAUSE
