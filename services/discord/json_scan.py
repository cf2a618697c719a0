"""Reads one large JSON document piece by piece, so that it need not fit into memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TextIO, TypeVar

T = TypeVar("T")

CHUNK = 1 << 16
LARGEST_VALUE = 1 << 24
"""Characters in one value. A message has a few thousand: what is larger is not the document that we take it for."""

WHITE_SPACE = " \t\n\r"


class Scanner:
    """Stands somewhere in a document, and moves forward only.

    Every method raises ValueError where the document is no JSON or a value is too large. Its text names what was
    expected, and shows nothing of the document.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._text = ""
        self._at = 0
        self._ended = False
        self._decoder = json.JSONDecoder()

    def members(self) -> Iterator[str]:
        """The keys of the object that begins here. After each, whoever iterates must read its value."""
        yield from self._separated("{", "}", self._key)

    def elements(self) -> Iterator[object]:
        """The elements of the array that begins here."""
        yield from self._separated("[", "]", self.value)

    def value(self) -> object:
        """The value that begins here, whole."""
        self._peek()
        wanted = CHUNK
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except json.JSONDecodeError:
                value, end = None, len(self._text)
            except RecursionError:
                raise ValueError("a value is nested too deeply") from None
            else:
                # A number that ends with the text read so far may go on after it.
                if end < len(self._text) or self._ended:
                    self._at = end
                    return value
            if self._ended:
                raise ValueError("a value is cut off or malformed")
            if len(self._text) - self._at > LARGEST_VALUE:
                raise ValueError("a value is too large or malformed")
            self._read_on(wanted)
            wanted *= 2

    def _key(self) -> str:
        key = self.value()
        self._take(":")
        if not isinstance(key, str):
            raise ValueError("a key is no text")  # noqa: TRY004 (the document is wrong, not the caller)
        return key

    def _separated(self, opening: str, closing: str, member: Callable[[], T]) -> Iterator[T]:
        self._take(opening)
        if self._peek() == closing:
            self._take(closing)
            return
        while True:
            yield member()
            if self._peek() != ",":
                self._take(closing)
                return
            self._take(",")

    def _take(self, expected: str) -> None:
        if self._peek() != expected:
            raise ValueError(f"expected {expected}")
        self._at += 1

    def _peek(self) -> str:
        """The next character that is not white space; empty at the end."""
        while True:
            while self._at < len(self._text):
                character = self._text[self._at]
                if character not in WHITE_SPACE:
                    return character
                self._at += 1
            if self._ended:
                return ""
            self._read_on(CHUNK)

    def _read_on(self, characters: int) -> None:
        more = self._file.read(characters)
        self._ended = not more
        self._text = self._text[self._at :] + more
        self._at = 0
