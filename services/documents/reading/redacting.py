"""Secrets and personal details become labels before a document is cut up, stored or embedded (DOCUMENT_QA 4.5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from services.documents.reading.outlines import Leaf, Outline
from services.documents.units import DocumentKind
from services.redaction import (
    CODE_SHAPES,
    MARKUP_SHAPES,
    PERSONAL_SHAPES,
    SHAPES,
    Path,
    Redactor,
    is_placeholder,
    label,
    leads_to_secret,
)

SECRET = label("secret")

_LONG_LINES = 20_000
"""In longer lines no single value is looked for: that would take time with each of them."""


@dataclass(frozen=True, slots=True)
class DocumentRedactors:
    """One for documents, and one for program code, where `token: str` is no secret."""

    documents: Redactor
    code: Redactor

    def of(self, kind: DocumentKind) -> Redactor:
        return self.code if kind is DocumentKind.CODE else self.documents


def document_redactors(known: Iterable[str] = ()) -> DocumentRedactors:
    """`known`: the values of the configured secrets."""
    known = tuple(known)
    return DocumentRedactors(
        Redactor(known, (*SHAPES, *MARKUP_SHAPES, *PERSONAL_SHAPES)),
        Redactor(known, (*CODE_SHAPES, *PERSONAL_SHAPES)),
    )


def redact_values(text: str, outline: Outline) -> tuple[str, int]:
    """`text` with a label for each value whose key says that it is secret, and how many there were.

    What has the shape of a secret is left to the redactor: this sees what no shape shows, a value on the next line,
    in a block of lines, or in a list.
    """
    parts: list[str] = []
    at = count = 0
    for start, end in sorted(_spans(outline)):
        if start < at:
            continue
        parts += [text[at:start], "\n".join(SECRET if line.strip() else line for line in text[start:end].split("\n"))]
        at = end
        count += 1
    return "".join([*parts, text[at:]]), count


class Values:
    """What may be shown of the values of a configuration file, each for itself."""

    def __init__(self, raw: str, redacted: str, outline: Outline, redactor: Redactor) -> None:
        """`redacted`: what became of `raw`, line for line."""
        self._raw = raw.split("\n")
        self._redacted = redacted.split("\n")
        self._outline = outline
        self.text = redactor.text
        hidden = {(leaf.path[:-1], leaf.value) for leaf in outline.leaves if _names_and_is_secret(leaf, outline)}
        self.names = {path: name for path, name in outline.names.items() if (path, name) not in hidden}
        """What parts of a list, or elements, may be called."""

    def shown(self, leaf: Leaf) -> str:
        """The value of `leaf`, or what is left of it."""
        if _is_secret(leaf, self._outline):
            return SECRET
        lines = slice(leaf.line_start - 1, leaf.line_end)
        before, after = self._raw[lines], "\n".join(self._redacted[lines])
        value = self.text(leaf.value)
        if len(after) > _LONG_LINES or after == "\n".join(before) or value in " ".join(after.split()) or value in after:
            return value
        # Together with other lines it was a secret, as a line of a private key is.
        return SECRET


def _spans(outline: Outline) -> Iterator[tuple[int, int]]:
    return ((leaf.start, leaf.end) for leaf in outline.leaves if leaf.start < leaf.end and _is_secret(leaf, outline))


def _names_and_is_secret(leaf: Leaf, outline: Outline) -> bool:
    return outline.names.get(leaf.path[:-1]) == leaf.value and _is_secret(leaf, outline)


def _is_secret(leaf: Leaf, outline: Outline) -> bool:
    if not leaf.value or is_placeholder(leaf.value):
        return False
    path = leaf.path
    if path[-1:] == ("value",) and (name := leaf.called or outline.names.get(path[:-1])):
        path = (*path[:-1], name)
    return leads_to_secret(path, leaf.value) or _in_kubernetes_secret(leaf.path, outline)


def _in_kubernetes_secret(path: Path, outline: Outline) -> bool:
    """The values of a manifest of the kind Secret have names of their own."""
    at = next((at for at, name in enumerate(path) if name in ("data", "stringData")), -1)
    return at >= 0 and path[:at] in outline.secret_objects
