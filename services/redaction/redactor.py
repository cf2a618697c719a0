"""The one redactor: secrets become fixed labels in logs, captures, evidence and prompts (SPEC 5, "Secrets").

Known values, given at start-up, go first; then whatever has the shape of a secret (services.redaction.shapes). The
number of lines stays, so that line numbers in evidence and captures keep their meaning.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from urllib.parse import quote

from services.redaction.labels import label
from services.redaction.shapes import LABELS, SHAPES, Kind

MIN_KNOWN_CHARS = 6
"""Shorter values ("none", "test") are no secrets, and would blot out ordinary words."""

KNOWN = label("known secret")


class Redactor:
    """Takes secrets out of text. Idempotent; safe to share between threads."""

    def __init__(self, known: Iterable[str] = (), shapes: Sequence[Kind] = SHAPES) -> None:
        """`known`: the values of the configured secrets. Of one with several lines, each line counts."""
        self._shapes = tuple(shapes)
        values = {form for value in known for line in value.splitlines() for form in _forms(line.strip())}
        # A secret that is part of a label could never be taken out.
        usable = {value for value in values if not any(value in fixed for fixed in (KNOWN, *LABELS))}
        self._values = sorted(usable, key=lambda value: (-len(value), value))
        # Longest first: one that begins with another goes whole.
        self._known = re.compile("|".join(map(re.escape, self._values)))

    def text(self, text: str) -> str:
        """`text` with a label, such as `[redacted: api key]`, in the place of each secret; as many lines as before."""
        return self.counted(text)[0]

    def counted(self, text: str) -> tuple[str, dict[str, int]]:
        """As `text`, with how often each label was put in."""
        counts: dict[str, int] = {}
        for value in self._values:
            if value in text:
                text, counts[KNOWN] = self._known.subn(KNOWN, text)
                break
        # Telling that there is nothing to do is the common case, and must be cheap.
        lowered = text.lower()
        for shape in self._shapes:
            if shape.possible(lowered):
                text, count = shape.replaced(text)
                if count:
                    counts[shape.label] = counts.get(shape.label, 0) + count
        return text, counts


def _forms(value: str) -> set[str]:
    """How a value may stand in a text: as it is, in a URL, in JSON."""
    if len(value) < MIN_KNOWN_CHARS:
        return set()
    return {
        value,
        quote(value, safe="", errors="replace"),
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
    }
