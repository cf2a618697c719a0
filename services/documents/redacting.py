"""Secrets and personal details become labels before a document is cut up, stored or embedded (DOCUMENT_QA 4.5)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from services.documents.outlines import Leaf, Outline, Path
from services.documents.units import DocumentKind
from services.redaction import Redactor
from services.secret_shapes import CODE_SHAPES, MARKUP_SHAPES, PERSONAL_SHAPES, SHAPES, is_placeholder, label

SECRET = label("secret")

_SECRET = re.compile(
    r"(?:pass(?:word|wd|phrase)|pwd|credential|secret|token|connection[._ -]?string"
    r"|(?:api|access|private|secret|account|signing|encryption|shared|license|client|master|session)[._ -]?key)"
    r"(?:[._ -]?(?:value|base64|b64|hash))?$",
    re.IGNORECASE,
)
_SECRETS = re.compile(
    r"passwords|passwds|credentials|(?:api|access|secret)[._-]?keys|(?:auth|access)[._-]?tokens", re.IGNORECASE
)
_PERHAPS_SECRETS = re.compile(r"(?:secrets|tokens)$", re.IGNORECASE)
_COUNTED = re.compile(r"max|min|num|total|limit|count", re.IGNORECASE)
_RANDOM = re.compile(r"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])[\w+=.-]+")
_RANDOM_CHARS = 16
_SWITCHES = frozenset({"", "true", "false", "yes", "no", "on", "off", "none", "null", "~"})


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


def redacted_value(leaf: Leaf, outline: Outline) -> str:
    return SECRET if _is_secret(leaf, outline) else leaf.value


def _spans(outline: Outline) -> Iterator[tuple[int, int]]:
    return ((leaf.start, leaf.end) for leaf in outline.leaves if leaf.start < leaf.end and _is_secret(leaf, outline))


def _is_secret(leaf: Leaf, outline: Outline) -> bool:
    if is_placeholder(leaf.value) or leaf.value.lower() in _SWITCHES:
        return False
    path = leaf.path
    if path[-1:] == ("value",) and (name := outline.names.get(path[:-1])):
        path = (name,)
    return _names_secret(path, leaf.value) or _in_kubernetes_secret(leaf.path, outline)


def _names_secret(path: Path, value: str) -> bool:
    name = next((part for part in reversed(path) if not part.startswith("[")), "")
    if _COUNTED.match(name):
        return False
    if _SECRETS.fullmatch(name):
        return True
    if _PERHAPS_SECRETS.search(name):  # of a list of secrets or tokens, it may be their names
        return len(value) >= _RANDOM_CHARS and _RANDOM.fullmatch(value) is not None
    return bool(path) and not path[-1].startswith("[") and _SECRET.search(name) is not None


def _in_kubernetes_secret(path: Path, outline: Outline) -> bool:
    """The values of a manifest of the kind Secret have names of their own."""
    at = next((at for at, name in enumerate(path) if name in ("data", "stringData")), -1)
    return at >= 0 and path[:at] in outline.secret_objects
