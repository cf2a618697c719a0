"""Replaces secrets and personal details by labels before a document is cut, stored or embedded."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from services.documents.prepared import DocumentKind
from services.documents.reading.outlines import Leaf, Outline
from services.redaction import (
    CODE_SHAPES,
    MARKUP_SHAPES,
    PERSONAL_SHAPES,
    SHAPES,
    Redactor,
    is_placeholder,
    label,
    leads_to_secret,
)

SECRET = label("secret")
_LONG_LINES = 20_000  # in longer lines no single value is searched for: each search would take time


class DocumentRedactors:
    """A redactor for documents, and another for program code, where `token: str` is no secret."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        """`known`: values of the configured secrets."""
        self._known = tuple(known)
        self._documents = Redactor(self._known, (*SHAPES, *MARKUP_SHAPES, *PERSONAL_SHAPES))
        self._code = Redactor(self._known, (*CODE_SHAPES, *PERSONAL_SHAPES))

    def __reduce__(self) -> tuple[Callable[[tuple[str, ...]], DocumentRedactors], tuple[tuple[str, ...]]]:
        """Make it picklable, for use in another process."""
        return _redactors, (self._known,)

    def of(self, kind: DocumentKind) -> Redactor:
        return self._code if kind is DocumentKind.CODE else self._documents


@cache
def _redactors(known: tuple[str, ...]) -> DocumentRedactors:
    return DocumentRedactors(known)


class Redacted:
    """A document without its secrets, and each value of a configuration file by itself.

    Attributes:
        text: the text; its line n is line n of the file.
        counts: how often each label was put in.
        part: redacts a part of the document.
        names: as in the outline, without secret ones.
    """

    def __init__(self, raw: str, outline: Outline, redactor: Redactor) -> None:
        self._secrets = frozenset(leaf for leaf in outline.leaves if _is_secret(leaf, outline))
        hidden = {(leaf.path[:-1], leaf.value) for leaf in self._secrets}
        self.names = {path: name for path, name in outline.names.items() if (path, name) not in hidden}
        self.part = redactor.text
        # Keys show secrets that no pattern finds: a value on the next line, in a block of lines, or in a list.
        parts: list[str] = []
        at = count = 0
        for start, end in sorted((leaf.start, leaf.end) for leaf in self._secrets if leaf.start < leaf.end):
            if start >= at:
                label_lines = (SECRET if line.strip() else line for line in raw[start:end].split("\n"))
                parts += [raw[at:start], "\n".join(label_lines)]
                at, count = end, count + 1
        self.text, self.counts = redactor.redact_and_count("".join([*parts, raw[at:]]))
        if count:
            self.counts[SECRET] = self.counts.get(SECRET, 0) + count
        self._raw, self._lines = (raw.split("\n"), self.text.split("\n")) if outline.leaves else ([], [])

    def value_of(self, leaf: Leaf) -> str:
        """Return the redacted value of `leaf`."""
        if leaf in self._secrets:
            return SECRET
        lines = slice(leaf.line_start - 1, leaf.line_end)
        before, after = "\n".join(self._raw[lines]), "\n".join(self._lines[lines])
        value = self.part(leaf.value)
        if len(after) > _LONG_LINES or after == before or value in " ".join(after.split()) or value in after:
            return value
        # It was a secret together with other lines, such as a line of a private key.
        return SECRET


def _is_secret(leaf: Leaf, outline: Outline) -> bool:
    if not leaf.value or is_placeholder(leaf.value):
        return False
    path = leaf.path
    # The values of a Kubernetes manifest of the kind Secret have names of their own.
    at = next((at for at, name in enumerate(path) if name in ("data", "stringData")), -1)
    if at >= 0 and path[:at] in outline.secret_objects:
        return True
    if path[-1:] == ("value",) and (name := leaf.element_name or outline.names.get(path[:-1])):
        path = (*path[:-1], name)
    return leads_to_secret(path, leaf.value)
