"""The format of an index file.

    kb:guides/setup.md
    How to set up a node: drivers, Docker, ports.

    kb:https://example.org/faq
    Common questions about accounts.

An entry is a line with the identifier, followed by the lines of its description; a blank line separates entries.
Descriptions come from a model and may hold anything, so `make_harmless` makes sure that none can add an entry. It is
applied on reading and on writing: `parse(render(entries))` returns the entries with harmless descriptions.
"""

from __future__ import annotations

import logging
import re
import threading
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

log = logging.getLogger(__name__)

_LOOKS_LIKE_ID = re.compile(r"(?:kb|team)\s*:", re.IGNORECASE)
_PLAIN = re.compile(r"[A-Za-z0-9(][\x20-\x7e]*[\x21-\x7e]")
"""Lines that need no clean-up, which most are."""


@dataclass(frozen=True, slots=True)
class IndexEntry:
    id: str
    """The id of the source with its namespace: `kb:guides/setup.md`, `kb:https://…`, `team:tokens.txt`."""
    description: str


def is_id(line: str, namespace: str = "") -> bool:
    """Return True if `line` is an identifier, `kb:…` or `team:…` (or only of `namespace`), on one visible line."""
    start, colon, rest = line.partition(":")
    known = start == namespace if namespace else start in {"kb", "team"}
    return known and colon == ":" and bool(rest) and line.isprintable() and line == line.rstrip()


def make_harmless(description: str) -> str:
    """Return `description` without blank lines and without lines that look like an identifier.

    Every kind of line break counts, as a model sees them all. Invisible characters at the start of a line are removed.
    If the line then begins like an identifier, it becomes a list item: `- kb:other.md`. Idempotent.
    """
    return "\n".join(line for line in map(_make_line_harmless, description.splitlines()) if line)


def _make_line_harmless(line: str) -> str:
    if not _PLAIN.fullmatch(line):
        # Half a surrogate pair, which JSON allows, cannot be written as UTF-8.
        line = line.encode("utf-8", "replace").decode().rstrip()
        start = next((at for at, letter in enumerate(line) if unicodedata.category(letter)[0] not in "CZ"), len(line))
        line = line[start:]
    return f"- {line}" if _LOOKS_LIKE_ID.match(unicodedata.normalize("NFKC", line[:16])) else line


def render(entries: Iterable[IndexEntry]) -> str:
    """Render the text of an index file with `entries`, in their order.

    Entries without a description are left out. So are identifiers that do not fit on one visible line (a file name with
    a line break), which is logged.
    """
    blocks: list[str] = []
    for entry in entries:
        text = _text_cache.of(entry)
        if text is None:
            log.warning("%r cannot be an identifier in an index; the source is left out, rename it", entry.id)
        elif text:
            blocks.append(f"{entry.id}\n{text}\n")
    return "\n".join(blocks)


def _harmless_text(entry: IndexEntry) -> str | None:
    """Return the harmless description, which may be empty; None if the id is not a valid identifier."""
    if not is_id(entry.id):
        return None
    text = make_harmless(entry.description)
    return entry.description if text == entry.description else text  # mostly one string instead of two


class _TextCache:
    """Caches the harmless text of each entry, as most entries are written repeatedly. Used from several threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._made: dict[str, tuple[IndexEntry, str | None]] = {}
        self._lock = threading.Lock()

    def of(self, entry: IndexEntry) -> str | None:
        made = self._made.get(entry.id)
        if made is not None and made[0] == entry:
            return made[1]
        text = _harmless_text(entry)
        with self._lock:
            if len(self._made) >= self._most and entry.id not in self._made:
                del self._made[next(iter(self._made))]
            self._made[entry.id] = entry, text
        return text


_text_cache = _TextCache(most=4096)


def parse(text: str, file: str = "index", namespace: str = "") -> list[IndexEntry]:
    """Parse the entries in `text`, in order.

    Errors are logged with `file` and line, and cost at most their paragraph. A paragraph is skipped if it does not
    begin with an identifier (of `namespace`, if given), has no description, or repeats an identifier. The lines after
    an identifier in the middle of a paragraph are skipped as well.
    """
    entries: dict[str, IndexEntry] = {}
    for number, lines in _paragraphs(text):
        source_id = lines[0]
        body = lines[1:]
        stray = next((at for at, line in enumerate(body) if is_id(line)), len(body))
        description = make_harmless("\n".join(body[:stray]))
        if stray < len(body):
            log.warning(
                "%s:%d: an identifier inside a description; skipped to the next blank line", file, number + 1 + stray
            )
        if not is_id(source_id, namespace):
            log.warning("%s:%d: %r is no identifier; paragraph skipped", file, number, source_id)
        elif source_id in entries:
            log.warning("%s:%d: %s is listed a second time; paragraph skipped", file, number, source_id)
        elif not description:
            log.warning("%s:%d: %s has no description; skipped", file, number, source_id)
        else:
            entries[source_id] = IndexEntry(source_id, description)
    return list(entries.values())


def _paragraphs(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the runs of lines that are not blank, each with the number of its first line, from 1."""
    lines: list[str] = []
    number = 0
    for number, raw in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        if line := raw.rstrip():
            lines.append(line)
        elif lines:
            yield number - len(lines), lines
            lines = []
    if lines:
        yield number + 1 - len(lines), lines
