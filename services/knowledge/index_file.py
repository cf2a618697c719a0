"""The grammar of an index file, read and written side by side.

    kb:guides/setup.md
    How to set up a node: drivers, Docker, ports.

    kb:https://example.org/faq
    Common questions about accounts.

An entry is a line with the identifier and the lines of its description; a blank line separates entries. Descriptions
come from a model and may hold anything, so `harmless` makes sure that none can add an entry. It is applied in both
directions: `parse(render(entries))` gives the entries back with harmless descriptions.
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
"""Most lines; the others take the slow path."""


@dataclass(frozen=True, slots=True)
class IndexEntry:
    id: str
    """With its namespace: `kb:guides/setup.md`, `kb:https://…`, `team:tokens.txt`."""
    description: str


def is_id(line: str, namespace: str = "") -> bool:
    """Return whether `line` is an identifier, `kb:…` or `team:…` (or only of `namespace`), on one visible line."""
    start, colon, rest = line.partition(":")
    known = start == namespace if namespace else start in {"kb", "team"}
    return known and colon == ":" and bool(rest) and line.isprintable() and line == line.rstrip()


def harmless(description: str) -> str:
    """Return `description` without blank lines and without lines that look like an identifier.

    Every kind of line break counts, as a model sees them all. Invisible characters at the start of a line are dropped;
    if it then begins like an identifier, it becomes a list item: `- kb:other.md`. Idempotent.
    """
    return "\n".join(line for line in map(_harmless_line, description.splitlines()) if line)


def _harmless_line(line: str) -> str:
    if not _PLAIN.fullmatch(line):
        # Half a surrogate pair, which JSON allows, cannot be written as UTF-8.
        line = line.encode("utf-8", "replace").decode().rstrip()
        start = next((at for at, letter in enumerate(line) if unicodedata.category(letter)[0] not in "CZ"), len(line))
        line = line[start:]
    return f"- {line}" if _LOOKS_LIKE_ID.match(unicodedata.normalize("NFKC", line[:16])) else line


def render(entries: Iterable[IndexEntry]) -> str:
    """The text of an index file with `entries`, in their order.

    Entries without a description are left out, as the format cannot hold them; so are identifiers that do not fit on
    one visible line (a file name with a line break), which is logged.
    """
    blocks: list[str] = []
    for entry in entries:
        text = _texts.of(entry)
        if text is None:
            log.warning("%r cannot be an identifier in an index; the source is left out, rename it", entry.id)
        elif text:
            blocks.append(f"{entry.id}\n{text}\n")
    return "\n".join(blocks)


def _text(entry: IndexEntry) -> str | None:
    """The description as it is written; empty without one, None where the identifier is none."""
    if not is_id(entry.id):
        return None
    text = harmless(entry.description)
    return entry.description if text == entry.description else text  # mostly one string instead of two


class _Texts:
    """The newest text of each entry, since most entries are written repeatedly; an earlier one is not asked for again.

    Indexes are written in threads.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._made: dict[str, tuple[IndexEntry, str | None]] = {}
        self._lock = threading.Lock()

    def of(self, entry: IndexEntry) -> str | None:
        made = self._made.get(entry.id)
        if made is not None and made[0] == entry:
            return made[1]
        text = _text(entry)
        with self._lock:
            if len(self._made) >= self._most and entry.id not in self._made:
                del self._made[next(iter(self._made))]
            self._made[entry.id] = entry, text
        return text


_texts = _Texts(most=4096)


def parse(text: str, file: str = "index", namespace: str = "") -> list[IndexEntry]:
    """The entries in `text`, in order.

    Errors are logged with `file` and line, and cost their paragraph at most. Skipped are paragraphs that do not begin
    with an identifier (of `namespace`, when that is given), have no description, or repeat an identifier; and what
    follows an identifier in the middle of a paragraph.
    """
    entries: dict[str, IndexEntry] = {}
    for number, lines in _paragraphs(text):
        source_id = lines[0]
        body = lines[1:]
        stray = next((at for at, line in enumerate(body) if is_id(line)), len(body))
        description = harmless("\n".join(body[:stray]))
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
    """Runs of lines that are not blank, each with the number of its first line, from 1."""
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
