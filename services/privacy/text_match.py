"""Whether a text holds what somebody wrote, however prompts may have indented, cut into turns or marked it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from services.llm import clean

LEAST_CHARS = 16
"""Letters and digits, at the least, that tell one person's text from everybody's: "yes, thanks" is in every prompt."""

_WORDS = re.compile(r"\w+")
_PLACEHOLDER = re.compile(r"\[(?:image|file): [^\]\n]*\]")


class TextMatch:
    """Texts to look for. One counts as found where each of its lines is, in any order."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._lines: set[tuple[str, ...]] = set()
        self.too_short = 0
        """Texts that are not looked for."""
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        # What is said of an image differs from prompt to archive.
        lines = [words for line in _PLACEHOLDER.sub("\n", clean(text)).split("\n") if (words := _words(line))]
        if sum(len(line) for line in lines) < LEAST_CHARS:
            self.too_short += 1
        else:
            self._lines.add(tuple(f" {line} " for line in lines))

    def found_in(self, text: str) -> bool:
        words = f" {_words(clean(text))} "
        return any(all(line in words for line in lines) for lines in self._lines)


def _words(text: str) -> str:
    return " ".join(_WORDS.findall(text.casefold()))
