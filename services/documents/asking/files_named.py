"""Finds the files that a question names, and returns the question without their names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from services.documents.asking.grammar import FILE_NAME
from services.documents.store.protocol import Document

_WORDS_FOR_ALL = frozenset(
    "error errors warn warning info debug trace fatal critical log logs file config output text data message".split()  # noqa: SIM905 (a list of so many is twice as long)
)
_NAME_PARTS = re.compile(r"[^\W\d_]{3,}")
_NOUN = r"\s+(?:logs?|file|config(?:uration)?|yaml|json|document|doc|output)\b"
_LINE = r"(?::(?P<line>\d+(?:-\d+)?)(?![\d:.]))?"  # `:42` behind a file's name
_FILE_LIKE = re.compile(f"(?P<said>{FILE_NAME}){_LINE}", re.IGNORECASE)
_MOST_DOTS = 2


class Files(NamedTuple):
    """Documents, as the question names them; `unknown` looks like a file and is none of them.

    `rest` is the question without the names; `:42` behind one has become `line 42`.
    """

    doc_ids: tuple[str, ...]
    named: tuple[str, ...]
    unknown: str | None
    rest: str


def find(question: str, documents: Sequence[Document]) -> Files:
    """Every file named; of names in each other the longest wins."""
    names: dict[str, list[str]] = {}
    for doc in documents:
        for name in _names(doc):
            names.setdefault(name, []).append(doc.doc_id)
    found = list(_pattern([name for name in names if name in question.casefold()]).finditer(question))
    # Beside a file that is there, another name may well be what is looked for in it.
    others = () if found else _FILE_LIKE.finditer(question)
    unknown = next((like for like in others if not _is_host(like["said"])), None)
    rest = question
    for place in reversed(found or ([unknown] if unknown else [])):
        line = f"line {place['line']}" if place["line"] else ""
        rest = f"{rest[: place.start()]} {line}{rest[place.end() :]}"
    ids = (doc_id for place in found for doc_id in names.get((place["name"] or place["stem"]).casefold(), ()))
    said = dict.fromkeys(place["said"] for place in found)
    return Files(tuple(dict.fromkeys(ids)), tuple(said), unknown["said"] if unknown else None, rest)


def stem_words(documents: Sequence[Document]) -> frozenset[str]:
    """Of one file `runner.log`: who asks what errors the runner had speaks of this file. Of several it is a guess."""
    if len(documents) != 1:
        return frozenset()
    stem = documents[0].filename.rsplit("/", 1)[-1].rsplit(".", 1)[0].casefold()
    return frozenset({stem, *_NAME_PARTS.findall(stem)}) - _WORDS_FOR_ALL


def _pattern(names: list[str]) -> re.Pattern[str]:
    """`db/app.yaml` is not named by `mydb/app.yaml`, nor `app.log` by `app.log.1`; what has no ending needs a noun."""
    ordered = sorted(names, key=len, reverse=True)
    spelt, bare = (
        "|".join(re.escape(name) for name in ordered if bool({".", "/"} & set(name)) is marked) or "(?!)"
        for marked in (True, False)
    )
    return re.compile(
        rf"(?<![\w./-])(?P<said>(?P<name>{spelt})(?![\w-]|\.\w|/\w)|(?P<stem>{bare})(?![\w./-]\w){_NOUN}){_LINE}",
        re.IGNORECASE,
    )


def _names(doc: Document) -> list[str]:
    """How people call a file: by its whole name, its last part, its title, or its stem ("the ERROR log" is a level)."""
    whole = doc.filename.casefold()
    last = whole.rsplit("/", 1)[-1]
    stem = last.rsplit(".", 1)[0]
    titles = [doc.origin.extra[key].casefold() for key in ("title", "topic") if doc.origin.extra.get(key)]
    stems = () if stem in _WORDS_FOR_ALL else (stem,)
    return [name for name in dict.fromkeys((whole, last, *stems, *titles)) if len(name) > 2]  # noqa: PLR2004 (shorter ones name nothing)


def _is_host(text: str) -> bool:
    """`example.py` is a file, `api.example.sh` rather a host; only what has one dot or a path is taken for a file."""
    return "/" not in text and text.count(".") > _MOST_DOTS
