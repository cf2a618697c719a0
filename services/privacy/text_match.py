"""Finds a person's texts in other texts, even where prompts have indented, cut or quoted them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from services.llm import clean

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
            lines = [words for line in _PLACEHOLDER.sub("\n", clean(text)).split("\n") if (words := _words(line))]
            if sum(map(len, lines)) < LEAST_CHARS:
                self.too_short += 1
            else:
                self._lines.add(tuple(f" {line} " for line in lines))
                self._lines.update((f" {line} ",) for line in lines if len(line) >= LONG_CHARS)

    def found_in(self, text: str) -> bool:
        words = f" {_words(clean(text))} "
        return any(all(line in words for line in lines) for lines in self._lines)


def _words(text: str) -> str:
    return " ".join(_WORDS.findall(text.casefold()))


def words_of(texts: Iterable[str], least_chars: int) -> set[str]:
    """Return the words with at least so many letters, casefolded."""
    found = {word for text in texts for word in _WORDS.findall(clean(text).casefold())}
    return {word for word in found if len(word) >= least_chars}
