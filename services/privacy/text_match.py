"""Finds a person's words in other texts, even where prompts have indented, cut or quoted them, and in all files of the
data folder after the person was forgotten; and tells them from words that the person repeated.
"""

from __future__ import annotations

import os
import re
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from model.messages import snowflake_at
from services.llm import clean
from services.privacy.unknown_files import ConfiguredFiles, report_lines, unknown_files
from services.storage import DataFolder
from services.team import REMOVED, Pair, archive

MIN_CHARS = 16
"""The fewest letters and digits that identify a text as one person's: "yes, thanks" is in every prompt."""
LONG_CHARS = 32
"""The fewest letters and digits of a single line that identifies its text."""

WINDOW_WORDS = 6
"""Words in a row that identify the person who wrote them; a shorter line does so if it has `MIN_CHARS`."""
_WORDS = re.compile(r"\w+")
_LABEL = re.compile(r"^[\s¦]*(?:User|Team)(?: \w+)?(?: \([^)]*\))?: ")
"""The label before a message in a prompt, such as `User A: `."""
_PLACEHOLDER = re.compile(r"\[(?:image|file): [^\]\n]{0,1000}\]")


class TextMatch:
    """Searches for texts. A text is found if all its words are, in order, or all its lines, in any order, or one long
    line: prompts show parts of texts. Lines of a few letters, and repeated ones, identify nothing: everybody writes
    "how do I".

    Texts are looked up by the first words of one of their lines, so that a search takes hardly longer for a thousand
    texts than for one.

    `min_chars`: shorter texts are not searched for. For texts of other people pass `LONG_CHARS`: they may
    ask "how do I install the" as well. `too_short`: how many texts are not searched for.
    """

    def __init__(self, texts: Iterable[str], min_chars: int = MIN_CHARS) -> None:
        self._single_words: defaultdict[str, set[tuple[str, ...]]] = defaultdict(set)
        # A first word → a number of words → so many first words of a line → the lines of the texts that have that line.
        self._by_start: defaultdict[str, dict[int, dict[tuple[str, ...], set[tuple[str, ...]]]]] = defaultdict(dict)
        self.too_short = 0
        for text in texts:
            segments = _segments(text)
            lines = _distinct_lines(_lines(text))
            forms = [_distinct_lines(segments), lines, *([line] for line in lines if len(line) >= LONG_CHARS)]
            identifying = [each for each in forms if _identifying_chars(each) >= min_chars]
            self.too_short += not identifying
            for each in identifying:
                self._add(tuple(each))

    def _add(self, lines: tuple[str, ...]) -> None:
        words = max(lines, key=len).split(" ")
        padded = tuple(f" {line} " for line in lines)
        if len(words) == 1:
            self._single_words[words[0]].add(padded)
            return
        start = tuple(words[:WINDOW_WORDS])
        self._by_start[words[0]].setdefault(len(start), {}).setdefault(start, set()).add(padded)

    def found_in(self, text: str) -> bool:
        return any(True for _ in self.find_lines(text))

    def lines_in(self, text: str) -> set[str]:
        """Return all lines by which texts are found in `text`: words in lower case, with a blank around each."""
        return {line for lines in self.find_lines(text) for line in lines}

    def find_lines(self, text: str) -> Iterator[tuple[str, ...]]:
        """For each text that is found in `text`, yield the lines by which it is: as `lines_in` gives them."""
        if not self._single_words and not self._by_start:
            return
        joined = _as_words(clean(text))
        words, padded = joined.split(" "), f" {joined} "
        yield from (lines for lines in self._candidates_in(words) if all(line in padded for line in lines))

    def whole_lines_in(self, text: str) -> frozenset[str]:
        """Return the lines by which texts are found in `text`, without those that run over a line end or label."""
        found = [*self.find_lines(text)]
        shown = [_padded(_LABEL.sub("", line)) for line in text.split("\n")] if found else []
        whole = [lines for lines in found if all(any(line in each for each in shown) for line in lines)]
        return frozenset(line for lines in whole for line in lines)

    def redacted(self, text: str) -> str:
        """Return `text` with `[removed]` for the lines by which texts are found in it (`whole_lines_in`)."""
        found = [line for line in self.whole_lines_in(text) if len(line.strip()) >= MIN_CHARS]
        if not found:
            return text
        return "\n".join(
            f"{line[: len(line) - len(line.lstrip())]}{REMOVED}"
            if any(each in _padded(line) for each in found)
            else line
            for line in text.split("\n")
        )

    def _candidates_in(self, words: list[str]) -> Iterator[tuple[str, ...]]:
        seen: set[tuple[str, ...]] = set()
        for at, word in enumerate(words):
            if word in self._single_words:
                yield from self._single_words[word]
            for length, starts in self._by_start.get(word, {}).items():
                start = tuple(words[at : at + length])
                if start in starts and start not in seen:
                    seen.add(start)
                    yield from starts[start]


class Said(NamedTuple):
    """A text that somebody wrote. `message_id`: its message, which tells when; of an edited one, the id of a later
    moment. `author_id`: `archive.UNKNOWN` for bots, and if it is not known.
    """

    message_id: int
    author_id: int
    text: str


MAX_OTHER_WRITERS = 1
"""A line that more other people wrote is a common one, whoever was first."""


@dataclass(slots=True)
class OwnWords:
    """Decides which lines of a person's texts are theirs alone: not those that somebody else wrote before, that several
    others wrote as well (what begins with `>` is quoted, not written), or that anybody can read.

    `records`: each gives what people wrote, by all that is kept; `published`: gives the texts that anybody can read.
    They are called only if there is something to compare. A line of which no message of the person is known counts as
    written after those of others.
    """

    user_id: int
    records: Sequence[Callable[[], Iterable[Said]]] = ()
    published: Callable[[], Iterable[str]] = tuple
    _compared: set[str] = field(default_factory=set[str], init=False)
    _repeated: set[str] = field(default_factory=set[str], init=False)

    def of(self, texts: Iterable[str]) -> list[str]:
        """Return texts of the person without the lines that are not theirs. Blocking. Raises OSError."""
        texts = list(texts)
        if new := {*texts} - self._compared:
            match = TextMatch(line for text in new for line in _lines(text))
            self._repeated.update(line for text in self.published() for line in match.lines_in(text))
            self._repeated |= self._written_by_others(match)
            self._compared |= new
        return [_without_lines(text, self._repeated) for text in texts]

    def _written_by_others(self, match: TextMatch) -> set[str]:
        own, others = dict[str, int](), dict[str, int]()  # the first message with a line
        writers: defaultdict[str, set[int]] = defaultdict(set)
        for message_id, author_id, text in (said for read in self.records for said in read()):
            first = own if author_id == self.user_id else others
            lines = match.lines_in(text)
            for line in lines:
                first[line] = min(first.get(line, message_id), message_id)
            if lines and author_id not in {self.user_id, archive.UNKNOWN}:
                for line in match.lines_in(_without_quotes(text)):
                    writers[line].add(author_id)
        return {
            line for line, at in others.items() if at < own.get(line, inf) or len(writers[line]) > MAX_OTHER_WRITERS
        }


def said_in_archive(raw: Path) -> Iterator[Said]:
    """Yield the texts in an archive whose authors are known. Blocking. Raises OSError."""
    first = dict[int, str]()
    for pair in pairs_in(raw):
        for message_id, author_id, turn in zip(pair.message_ids, pair.author_ids, pair.turns, strict=True):
            is_edited = first.setdefault(message_id, turn.text) != turn.text
            if author_id != archive.UNKNOWN:
                at = max(message_id, snowflake_at(float(pair.key))) if is_edited else message_id
                yield Said(at, author_id, turn.text)


def pairs_in(raw: Path) -> Iterator[Pair]:
    """Yield the readable pairs of an archive."""
    for path in sorted(raw.glob("*.txt")):
        yield from (pair for _, pair in blocks_in(path) if isinstance(pair, Pair))


def blocks_in(path: Path) -> list[tuple[str, Pair | archive.Malformed]]:
    """Read the blocks of a file of an archive. Bytes that are not UTF-8 are kept as surrogates."""
    return archive.blocks(path.read_bytes().decode("utf-8", "surrogateescape"))


def _without_quotes(text: str) -> str:
    return "\n".join(line for line in text.split("\n") if not line.lstrip().startswith(">"))


def _without_lines(text: str, lines: Collection[str]) -> str:
    kept = [line for line in _lines(text) if _padded(line) not in lines]
    return text if len(kept) == len(_lines(text)) else "\n".join(kept)


def _segments(text: str) -> list[str]:
    """Split a text at images and files, as their descriptions differ between prompt and archive."""
    return _PLACEHOLDER.split(clean(text))


def _lines(text: str) -> list[str]:
    return [line for segment in _segments(text) for line in segment.split("\n")]


def _padded(line: str) -> str:
    return f" {_as_words(clean(line))} "


def _as_words(text: str) -> str:
    """Return the words of a text, in lower case, with a blank between them."""
    return " ".join(_WORDS.findall(text.casefold()))


def _distinct_lines(texts: Iterable[str]) -> list[str]:
    """Return each text as words, in one line, without empty and repeated ones."""
    return list(dict.fromkeys(words for text in texts if (words := _as_words(text))))


def _identifying_chars(lines: Sequence[str]) -> int:
    """Count the characters of the lines that have `MIN_CHARS`, without those that are part of another one."""
    joined = "\n".join(lines)
    return sum(len(line) for line in lines if len(line) >= MIN_CHARS and joined.count(line) == 1)


CHUNK_BYTES = 256 * 1024
PAUSE_SECONDS = 0.001
"""The pause between two pieces of a file, so that a running bot does not have to wait."""

_ESCAPE = re.compile(r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|.)")
_SEPARATOR = "\n"


@dataclass(slots=True)
class WordSequences:
    """Sequences of words that a person wrote, by their first two words and their length. However many begin with the
    same words, a position in a file costs one look-up for each length.
    """

    _rows: dict[str, dict[str, dict[int, set[tuple[str, ...]]]]] = field(default_factory=dict[str, Any], init=False)
    _single_words: set[str] = field(default_factory=set[str], init=False)

    def add(self, texts: Iterable[str]) -> None:
        for line in (line for text in texts for line in clean(text).split("\n")):
            words = tuple(_WORDS.findall(line.casefold()))
            if sum(map(len, words)) < MIN_CHARS:
                continue
            if len(words) == 1:
                self._single_words.add(words[0])
                continue
            size = min(len(words), WINDOW_WORDS)
            for start in range(len(words) - size + 1):
                row = words[start : start + size]
                self._rows.setdefault(row[0], {}).setdefault(row[1], {}).setdefault(size, set()).add(row)

    def found_in(self, pieces: Iterable[list[str]]) -> bool:
        """Return True if a file, given piece by piece as words, contains one of the sequences."""
        if not self._rows and not self._single_words:
            return False
        before: list[str] = []
        for piece in pieces:
            words = before + piece
            if not self._single_words.isdisjoint(piece) or self._any_begins_in(words):
                return True
            before = words[-WINDOW_WORDS + 1 :]
        return False

    def _any_begins_in(self, words: list[str]) -> bool:
        for at, (first, second) in enumerate(pairwise(words)):
            rows = self._rows.get(first)
            if rows is None or (by_length := rows.get(second)) is None:
                continue
            if any(tuple(words[at : at + length]) in sequences for length, sequences in by_length.items()):
                return True
        return False


def find_remaining_words(
    root: Path, texts: Iterable[str], configured: ConfiguredFiles, reported: Iterable[str]
) -> list[str]:
    """Return a line for each file below `root` that contains one of `texts`, plain or escaped as in JSON, and for each
    file and folder that cannot be read.

    The documents of `configured`, and files with a line in `reported`, are not searched. A line about a folder in
    `reported` covers its files that are not part of the layout.
    """
    sequences = WordSequences()
    sequences.add(texts)
    documents = {path.absolute() for path in configured.documents}
    known = tuple(reported)
    unknown = set(unknown_files(DataFolder(root), configured.ours))
    found: list[Path] = []
    unreadable: list[Path] = []

    def is_reported(path: Path) -> bool:
        return any(
            line.startswith(f"{path}: ") or (path in unknown and line.startswith(f"{path.parent}: ")) for line in known
        )

    def note_folder(error: OSError) -> None:
        unreadable.append(Path(error.filename))

    for folder, _, names in os.walk(root, onerror=note_folder):
        for path in (Path(folder, name) for name in names):
            absolute = path.absolute()
            if (
                not path.is_file()
                or path.is_symlink()
                or documents & {absolute, *absolute.parents}
                or is_reported(path)
            ):
                continue
            try:
                if sequences.found_in(_words_in_file(path)):
                    found.append(path)
            except FileNotFoundError:  # deleted meanwhile
                continue
            except PermissionError:
                unreadable.append(path)
    return [
        *report_lines(sorted(found), "still has words as they wrote them, which others may have repeated; look at it"),
        *(f"{path}: cannot be read, so nothing is known of what is in it" for path in sorted(unreadable)),
    ]


def _words_in_file(path: Path) -> Iterator[list[str]]:
    rest = b""
    with path.open("rb") as file:
        while data := file.read(CHUNK_BYTES):
            # No word is cut: the bytes after the last blank go to the next piece.
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
    return _WORDS.findall(text.casefold())


def _unescaped(escape: re.Match[str]) -> str:
    high, low, code = escape.groups()
    if high:  # one letter beyond the first plane, as JSON writes it
        return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00)
    return chr(int(code, 16)) if code else _SEPARATOR
