"""Reads what a question calls by name: files, and the names in them, such as ids, addresses and settings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from services.documents.asking.grammar import FILE_NAME, Phrase, Reading
from services.documents.asking.vocabulary import any_of
from services.documents.store.protocol import Document

# Files

_COMMON_WORDS = frozenset(
    "error errors warn warning info debug trace fatal critical log logs file config output text data message".split()  # noqa: SIM905 (a list of so many is twice as long)
)
_NAME_PARTS = re.compile(r"[^\W\d_]{3,}")
_NOUN = r"\s+(?:logs?|file|config(?:uration)?|yaml|json|document|doc|output)\b"
_LINE = r"(?::(?P<line>\d+(?:-\d+)?)(?![\d:.]))?"  # `:42` behind a file's name
_FILE_LIKE = re.compile(f"(?P<said>{FILE_NAME}){_LINE}", re.IGNORECASE)
_MAX_DOTS = 2


class Files(NamedTuple):
    """The documents that a question names. `unknown`: a name that looks like a file, but is not a document.

    `rest`: the question without the names; `:42` behind a name becomes `line 42`.
    """

    doc_ids: tuple[str, ...]
    named: tuple[str, ...]
    unknown: str | None
    rest: str


def find_files(question: str, documents: Sequence[Document]) -> Files:
    """Find the files that a question names. Of names that contain each other, the longest wins."""
    names: dict[str, list[str]] = {}
    for doc in documents:
        for name in _names_of(doc):
            names.setdefault(name, []).append(doc.doc_id)
    found = list(_pattern([name for name in names if name in question.casefold()]).finditer(question))
    # If a document is named, another file name may be a text to search in it.
    others = () if found else _FILE_LIKE.finditer(question)
    unknown = next((like for like in others if not _is_host(like["said"])), None)
    rest = question
    for match in reversed(found or ([unknown] if unknown else [])):
        line = f"line {match['line']}" if match["line"] else ""
        rest = f"{rest[: match.start()]} {line}{rest[match.end() :]}"
    ids = (doc_id for match in found for doc_id in names.get((match["name"] or match["stem"]).casefold(), ()))
    said = dict.fromkeys(match["said"] for match in found)
    return Files(tuple(dict.fromkeys(ids)), tuple(said), unknown["said"] if unknown else None, rest)


def stem_words(documents: Sequence[Document]) -> frozenset[str]:
    """Return the words of the name of a single file: "errors of the runner" means the file `runner.log`. Empty for
    several files, among which it would be a guess.
    """
    if len(documents) != 1:
        return frozenset()
    stem = documents[0].filename.rsplit("/", 1)[-1].rsplit(".", 1)[0].casefold()
    return frozenset({stem, *_NAME_PARTS.findall(stem)}) - _COMMON_WORDS


def _pattern(names: list[str]) -> re.Pattern[str]:
    """Match names as whole names: `mydb/app.yaml` does not name `db/app.yaml`, nor `app.log.1` `app.log`. A name
    without an ending needs a noun.
    """
    ordered = sorted(names, key=len, reverse=True)
    dotted, bare = (
        "|".join(re.escape(name) for name in ordered if bool({".", "/"} & set(name)) is marked) or "(?!)"
        for marked in (True, False)
    )
    return re.compile(
        rf"(?<![\w./-])(?P<said>(?P<name>{dotted})(?![\w-]|\.\w|/\w)|(?P<stem>{bare})(?![\w./-]\w){_NOUN}){_LINE}",
        re.IGNORECASE,
    )


def _names_of(doc: Document) -> list[str]:
    """Return the names that people use for a file: its whole name, its last part, its title, or its stem unless that is
    a common word ("the ERROR log" means a level).
    """
    whole = doc.filename.casefold()
    last = whole.rsplit("/", 1)[-1]
    stem = last.rsplit(".", 1)[0]
    titles = [title.casefold() for title in [doc.origin.extra.get("title")] if title]
    stems = () if stem in _COMMON_WORDS else (stem,)
    return [name for name in dict.fromkeys((whole, last, *stems, *titles)) if len(name) > 2]  # noqa: PLR2004 (shorter ones name nothing)


def _is_host(text: str) -> bool:
    """Return True for a host (`api.example.sh`) rather than a file (`example.py`): it has several dots and no path."""
    return "/" not in text and text.count(".") > _MAX_DOTS


# Names in files

_JOINING = frozenset({"and", "or", "nor"})
LIST = re.compile(
    r"\s*+(?:,\s*+(?:\b(?:and|or|nor)\b)?|\b(?:and|or|nor)\b)\s*+(?:(?:the|an?|about|with|from)\s++){0,6}",
    re.IGNORECASE,
)
"""The words and commas between the items of a list."""

_EDGE = ".,:;!?-/"
_EXACT = re.compile(
    r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
    r"|/?\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?(?:/\d{1,2})?|(?:[0-9a-f]{0,4}:){3,7}[0-9a-f]{0,4}",
    re.IGNORECASE,
)
_DIGIT, _LETTER, _CAMEL = re.compile(r"\d"), re.compile(r"[^\W\d_]"), re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]{2}")
_AMOUNT = re.compile(r"\d+(?:st|nd|rd|th|s|ms|kb|mb|gb|k|m|h|min|x|%)?", re.IGNORECASE)
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th)", re.IGNORECASE)
# A host, a package, a class with its package: two dots are no slip of the keys.
_HOST = re.compile(r"[A-Za-z][\w-]*(?:\.[A-Za-z][\w-]*){2,}")
# Columns of a table of events, or of an access log: the number is there without its label.
_COLUMN_WORDS = frozenset(
    {"id", "code", "status", "error", "exit", "errno", "event", "eventid", "http", "https", "response"}
)
_PLURAL = re.compile(r"\d{3,}(?='?s$)")
# "How many entries mention X", "what happened to X": X is meant letter by letter, however it looks.
_ASKED_FOR = re.compile(
    r"\b(?:mention(?:s|ed|ing)?|contain(?:s|ed|ing)?|refer(?:s|red|ring)? to|reference[sd]?|involv(?:es|ed|ing)"
    r"|happen(?:s|ed|ing)? (?:to|with)|occurrences? of|status of|(?:tell me|know) about|search(?:ed)? for"
    rf"|(?:{any_of('THING', 'THINGS')}|anything|something|hits?)"
    r" (?:about|for|on|with|from|regarding|concerning|matching)|look(?:ed|ing)? (?:for|up|at)|find|check(?: for)?"
    r"|locate|pull up|grep(?: for)?|(?:is|are|was|were) there|did an?|any)\s+(?:(?:the|an?|any)\s+)?"
    r"(?:string|text|word|term|identifier|id|ip|address|host|block|request|port|process|session)?\s*$",
    re.IGNORECASE,
)
# "Was TimeoutException ever logged?"
_ASKED_ABOUT = re.compile(
    r"\W*(?:(?:is|was|are|were|been|ever|also|still|anywhere)\s+)*"
    r"(?:mentioned|logged|reported|seen|raised|thrown|recorded|referenced|appear|occur|(?:show|turn)(?:s|ed)? up)",
    re.IGNORECASE,
)
# "Message DEADBEEF", "job j-fffff": after such a noun, a word of this form is an id without digits.
_CALLED = re.compile(
    r"\b(?:job|message|transaction|request|session|block|task|order|ticket|container|pod|trace|span|batch|id)"
    r"(?:\s+(?:id|no\.?|number|named|called))?\s+$",
    re.IGNORECASE,
)
_ID_OF_LETTERS = re.compile(r"[A-Z]{6,}|[a-z]{1,2}-[a-f]{4,}")
_SHORTEST = 2
_LONG = 7
_TELLING_DIGITS = 3  # smaller numbers are counts


@dataclass(frozen=True, slots=True)
class NameMention:
    """A name in a question.

    Attributes:
        forms: other spellings to search if no document has the name literally: for "port 8080", `:8080`. Each is a
            group of texts that must be in one line.
    """

    text: str  # as the question writes it
    required: bool  # True if there is no answer without it
    path: bool = False  # True if it may be the path of a key: `server.pool.size`, which no file has literally
    forms: tuple[tuple[str, ...], ...] = ()


def read_mention(phrase: Phrase) -> NameMention | None:
    """Read a phrase as a name; None: it is no name."""
    if phrase.kind == "quoted":
        return NameMention(phrase.text[1:-1].strip(), required=True)
    if phrase.kind == "name":
        return NameMention(phrase.text, required=True)
    if phrase.kind == "numbered":
        return _read_labelled(phrase)
    return _read_word(phrase) if phrase.kind in {"word", "file"} else None


def _read_labelled(phrase: Phrase, number: str | None = None) -> NameMention:
    """Return a labelled number as programs write it: `[4711]`, `:8080`, `job-4711`, the label elsewhere in the line; a
    labelled letter as the value of a key. `number`: another one with the same label.
    """
    label, own = (phrase.match["label"] or phrase.match["capitals"]).split()[0], str(phrase.match["number"])
    text = " ".join(phrase.text.split()) if number is None else f"{label} {number}"
    if own.isalpha():
        keys = [f'"{label}":"{own}"', f'"{label}": "{own}"', f'{label}="{own}"']
        values = [f"{label}{mark}{own}" for mark in ("=", ": ", "-", "_")]
        return NameMention(text, required=False, forms=tuple((form,) for form in (*values, *keys)))
    number = number or own
    forms = [(f"[{number}]",), (f":{number}",), (f"{label}-{number}",), (f"{label}_{number}",)]
    forms += [(f"{label}={number}",), (label, number)]
    # A long number is hardly there by chance; one that was filled up with zeros may be.
    alone = len(number) >= _LONG or (label.lower() in _COLUMN_WORDS and len(number) >= _TELLING_DIGITS)
    forms += [(number,)] if alone and not number.startswith("0") else []
    return NameMention(text, required=len(number) >= _TELLING_DIGITS, forms=tuple(forms))


def share_labels(reading: Reading, names: dict[int, NameMention]) -> None:
    """Give a number that is listed behind a labelled one its label: `404` in "status 500 or 404"."""
    listed = [phrase for phrase in reading.phrases if phrase.text.lower() not in _JOINING]
    labelled: Phrase | None = None
    for before, phrase in pairwise(listed):
        labelled = before if before.kind == "numbered" else labelled
        joined = LIST.fullmatch(reading.text, before.end, phrase.start)
        if labelled and phrase.kind == "word" and phrase.text.isdigit() and joined:
            names[phrase.start] = _read_labelled(labelled, phrase.text)
        else:
            labelled = None


def _read_word(phrase: Phrase) -> NameMention | None:
    """Return a word as a name if it looks like one, or if the question asks for it; None: it is an ordinary word."""
    text = phrase.text.strip(_EDGE)
    plain = text.isalpha() and not (_CAMEL.search(text) or _ID_OF_LETTERS.fullmatch(text))
    if plain or len(text) < _SHORTEST or not (_LETTER.search(text) or _DIGIT.search(text)):
        return None
    before, behind = phrase.match.string[: phrase.start], phrase.match.string[phrase.end :]
    asked_for = bool(_ASKED_FOR.search(before) or _ASKED_ABOUT.match(behind))
    # "When did the 502s start?"
    plural = _PLURAL.match(text)
    text = plural[0] if plural else text
    if text.isdigit():
        exact = asked_for and len(text) > _TELLING_DIGITS
        return NameMention(text, required=exact) if asked_for or len(text) >= _TELLING_DIGITS else None
    if _looks_exact(text) or (_ID_OF_LETTERS.fullmatch(text) and _CALLED.search(before)):
        return NameMention(text, required=True)
    # A block's number may be negative: `blk_-1608` keeps its sign, `word -` does not.
    inner = text.strip("/@#$+-")
    camel, joined = bool(_CAMEL.search(inner)), asked_for and "-" in inner.strip("-")
    marked = camel or joined or any(mark in inner for mark in ("_", ".", "::", "/")) or _DIGIT.search(inner)
    if not marked or _ORDINAL.fullmatch(inner):
        return None
    path = "." in inner
    sure = path or "_" in inner or camel
    return NameMention(text, required=(asked_for and sure) or (path and bool(_HOST.fullmatch(text))), path=path)


def _looks_exact(text: str) -> bool:
    """Return True if a word can only be meant literally: an id, an address, a code."""
    digits = len(_DIGIT.findall(text))
    if digits and _LETTER.search(text):
        return bool(_EXACT.fullmatch(text)) or (not _AMOUNT.fullmatch(text) and digits >= _SHORTEST)
    return bool(_EXACT.fullmatch(text)) or (digits > 0 and len(text) > _TELLING_DIGITS)
