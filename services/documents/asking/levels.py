"""Reads the levels that a question names as a set: "ERROR or FATAL", "WARN and above", "not INFO"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from services.documents.asking.grammar import ONE_LEVEL, Phrase, Reading
from services.documents.asking.vocabulary import LEVELS

_ORDER = ("FATAL", "CRITICAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE")
_BY_LETTER = {"E": "error", "W": "warn", "F": "fatal", "I": "info", "D": "debug", "V": "trace"}  # as klog and logcat do
_PLAIN = frozenset({"error", "warn", "warning", "fatal", "critical", "crit", "emerg"})


@dataclass(frozen=True, slots=True)
class Severity:
    """Levels that a question names.

    Attributes:
        levels: The worst first; of FATAL and CRITICAL, which may mean the same, first the one that was said.
        hard: Whether a level is named. A plain "errors" counts only where entries are counted, listed or put in order.
    """

    levels: tuple[str, ...]
    hard: bool
    text: str  # as the question says it


def read(reading: Reading) -> tuple[Severity | None, list[Phrase]]:
    """What is meant by the levels of a question, and the pieces that say it."""
    lists = {piece.start: (piece, list(_items(reading.text, piece))) for piece in reading.of("levels")}
    named = {at: pair for at, pair in lists.items() if any(map(_is_named, pair[1]))}
    plain = {at: (piece, [item for item in items if _word(item) in _PLAIN]) for at, (piece, items) in lists.items()}
    chosen = [pair for pair in (named or plain).values() if pair[1]]
    if not chosen:
        return None, []
    wanted: set[str] = set()
    unwanted: set[str] = set()
    for _, items in chosen:
        refused = False
        for item in items:
            refused = refused or bool(item["not"])
            (unwanted if refused else wanted).update(_meant(item, hard=bool(named)))
    said = [item for _, items in chosen for item in items]
    text = " or ".join(dict.fromkeys(_core(item) for item in said))
    if unwanted:
        text = "levels other than " + ", ".join(level for level in _ORDER if level in unwanted)
    levels = (wanted or set(_ORDER)) - unwanted
    first = LEVELS[_word(said[0])]
    in_order = first if set(first) == levels else tuple(level for level in _ORDER if level in levels)
    return Severity(in_order, bool(named), text), [piece for piece, _ in chosen]


def _items(text: str, piece: Phrase) -> Iterator[re.Match[str]]:
    for item in ONE_LEVEL.finditer(text, piece.start):
        if item.start() >= piece.end:
            return
        yield item


def _core(item: re.Match[str]) -> str:
    word = item["word"].strip("[]\"'`“”")
    return word[:-1] if word[:-1].lower() in LEVELS else word


def _word(item: re.Match[str]) -> str:
    core = _core(item)
    return _BY_LETTER.get(core, core.lower())


def _is_named(item: re.Match[str]) -> bool:
    return _core(item).isupper() or item["named"] is not None or item["entry"] is not None


def _meant(item: re.Match[str], *, hard: bool) -> tuple[str, ...]:
    levels = LEVELS[_word(item)]
    places = [_ORDER.index(level) for level in levels]
    if item["above"] or item["least"] or (levels == ("ERROR",) and not hard):
        return _ORDER[: max(places) + 1]
    if item["below"] or item["most"]:
        return _ORDER[min(places) :]
    return _ORDER[: min(places)] if item["beyond"] else levels
