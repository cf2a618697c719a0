"""The one redactor: secrets become fixed labels in logs, captures, evidence and prompts (SPEC 5, "Secrets").

Known values, given at start-up, go first, then everything that has the shape of a secret. The number of lines stays, so
that line numbers in evidence and captures keep their meaning.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from urllib.parse import quote

from services.redaction.shapes import DOCUMENTATION_SHAPES, LABELS, SHAPES, Shape, label

MIN_KNOWN_CHARS = 6
"""Shorter values ("none", "test") are no secrets, and hiding them would hide ordinary words."""
KNOWN = label("known secret")


class Redactor:
    """Takes secrets out of text. Idempotent; safe to share between threads."""

    def __init__(self, known: Iterable[str] = (), shapes: Sequence[Shape] = SHAPES) -> None:
        """`known`: the values of the configured secrets. Each line of a value counts as one."""
        self._shapes = tuple(shapes)
        values = {form for value in known for line in value.splitlines() for form in _forms(line.strip())}
        # A secret that is part of a label could never be taken out. Longest first: one may begin with another.
        usable = {value for value in values if not any(value in fixed for fixed in (KNOWN, *LABELS))}
        self._values = sorted(usable, key=lambda value: (-len(value), value))
        self._known = re.compile("|".join(map(re.escape, self._values)))

    def text(self, text: str) -> str:
        """Return the text with each secret replaced by a label such as `[redacted: api key]`."""
        return self.counted(text)[0]

    def documentation_text(self, text: str) -> str:
        """Redact what an operator has published as documentation: only known secrets, and what has the form of a
        working token. Sample passwords, placeholders, links and shell syntax stay as they are.
        """
        return self._counted(text, DOCUMENTATION_SHAPES)[0]

    def counted(self, text: str) -> tuple[str, dict[str, int]]:
        """Redact a text, and count how often each label was put in."""
        return self._counted(text, self._shapes)

    def _counted(self, text: str, shapes: Sequence[Shape]) -> tuple[str, dict[str, int]]:
        counts: dict[str, int] = {}
        if any(value in text for value in self._values):
            text, counts[KNOWN] = self._known.subn(KNOWN, text)
        # Most texts hold no secret: finding that out must be cheap.
        lowered = text.lower()
        for shape in shapes:
            if shape.possible(lowered):
                text, count = shape.replaced(text)
                if count:
                    counts[shape.label] = counts.get(shape.label, 0) + count
        return text, counts


def _forms(value: str) -> set[str]:
    """Return the ways in which a value can be written in a text: as it is, in a URL, in JSON."""
    if len(value) < MIN_KNOWN_CHARS:
        return set()
    return {
        value,
        quote(value, safe="", errors="replace"),
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
    }
