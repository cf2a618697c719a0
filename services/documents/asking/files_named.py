"""Which files a question names, and what is left of it (DOCUMENT_QA 5.1)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from services.documents.asking.grammar import FILE_NAME
from services.documents.store.protocol import Document

_FILE_LIKE = re.compile(FILE_NAME, re.IGNORECASE)
_WORDS_FOR_ALL = frozenset(
    "error errors warn warning info debug trace fatal critical log logs file config output text data message".split()  # noqa: SIM905 (a list of so many is twice as long)
)
_NAME_PARTS = re.compile(r"[^\W\d_]{3,}")
_STEM_NOUN = r"(?:\s+(?:logs?|file|config(?:uration)?|yaml|json|document|doc|output)\b)"
_MOST_DOTS = 2


class Files(NamedTuple):
    doc_ids: tuple[str, ...]
    named: tuple[str, ...]
    """As the question names them."""
    unknown: str | None
    """What looks like a file and is none of the documents."""
    rest: str
    """The question without the names; `:42` behind one has become `line 42`."""


def find(question: str, documents: Sequence[Document]) -> Files:
    """Every file named; of names in each other the longest wins."""
    names: dict[str, list[str]] = {}
    for doc in documents:
        for name in _names(doc):
            names.setdefault(name, []).append(doc.doc_id)
    doc_ids: dict[str, None] = {}
    named: dict[str, str] = {}
    rest = question
    for name in sorted(names, key=lambda name: (-len(name), name)):
        for found in reversed(list(_pattern(name).finditer(rest))):
            doc_ids |= dict.fromkeys(names[name])
            named[name] = found[0]
            rest = f"{rest[: found.start()]} {_kept_line(rest[found.end() :])}"
    # Beside a file that is there, another name may well be what is looked for in it.
    others = () if doc_ids else _FILE_LIKE.finditer(rest)
    unknown = next((found[0] for found in others if not _is_host(found[0])), None)
    if unknown:
        at = rest.index(unknown)
        rest = f"{rest[:at]} {_kept_line(rest[at + len(unknown) :])}"
    in_order = sorted(named.values(), key=question.find)
    return Files(tuple(doc_ids), tuple(in_order), unknown, rest)


def stem_words(documents: Sequence[Document]) -> frozenset[str]:
    """Of one file `runner.log`: who asks what errors the runner had speaks of this file. Of several it is a guess."""
    if len(documents) != 1:
        return frozenset()
    stem = documents[0].filename.rsplit("/", 1)[-1].rsplit(".", 1)[0].casefold()
    return frozenset({stem, *_NAME_PARTS.findall(stem)}) - _WORDS_FOR_ALL


def _pattern(name: str) -> re.Pattern[str]:
    # `db/app.yaml` is not named by `mydb/app.yaml`, nor `app.log` by `app.log.1`.
    if "." in name or "/" in name:
        text = rf"(?<![\w./-]){re.escape(name)}(?![\w-]|\.\w|/\w)"
    else:
        text = rf"(?<![\w./-]){re.escape(name)}(?![\w./-]\w){_STEM_NOUN}"
    return re.compile(text, re.IGNORECASE)


def _kept_line(rest: str) -> str:
    """`:42` behind a file's name is a line."""
    return re.sub(r"^:(\d+(?:-\d+)?)(?![\d:.])", r" line \1", rest)


def _names(doc: Document) -> list[str]:
    """How people call a file: by its whole name, its last part, or its stem."""
    whole = doc.filename.casefold()
    last = whole.rsplit("/", 1)[-1]
    stem = last.rsplit(".", 1)[0]
    titles = [doc.origin.extra[key].casefold() for key in ("title", "topic") if doc.origin.extra.get(key)]
    # "The ERROR log" speaks of a level, and "the log" of any file.
    stems = () if stem in _WORDS_FOR_ALL else (stem,)
    return [name for name in dict.fromkeys((whole, last, *stems, *titles)) if len(name) > 2]  # noqa: PLR2004 (shorter ones name nothing)


def _is_host(text: str) -> bool:
    """`example.py` is a file, `api.example.sh` rather a host; only what has one dot or a path is taken for a file."""
    return "/" not in text and text.count(".") > _MOST_DOTS
