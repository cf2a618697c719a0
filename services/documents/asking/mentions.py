"""Finds names in a question that files hold letter by letter: ids, addresses, codes, quoted strings."""

from __future__ import annotations

import re
from dataclasses import dataclass

from services.documents.asking.grammar import Phrase
from services.documents.asking.vocabulary import any_of

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
_COLUMN = frozenset({"id", "code", "status", "error", "exit", "errno", "event", "eventid", "http", "https", "response"})
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
# "Message DEADBEEF", "job j-fffff": what has such a name, and looks like one, is an id without digits.
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
    """A name that a question holds.

    Attributes:
        forms: What else to look for when it is not there letter by letter: of "port 8080", `:8080`. All parts of one.
    """

    text: str  # as the question writes it
    hard: bool  # whether nothing else will do: when it is nowhere, there is no answer
    path: bool = False  # whether it may be the path of a key: `server.pool.size`, which no configuration holds as it is
    forms: tuple[tuple[str, ...], ...] = ()


def read(piece: Phrase) -> NameMention | None:
    """The name that a piece is, if it is one."""
    if piece.kind == "quoted":
        return NameMention(piece.text[1:-1].strip(), hard=True)
    if piece.kind == "name":
        return NameMention(piece.text, hard=True)
    if piece.kind == "numbered":
        return _numbered(piece)
    return _name(piece) if piece.kind in {"word", "file"} else None


def _numbered(piece: Phrase) -> NameMention:
    """As it is written, or as programs write it: `[4711]`, `:8080`, `job-4711`, the label elsewhere in the line."""
    label, number = (piece.match["label"] or piece.match["capitals"]).split()[0], piece.match["number"]
    forms = [(f"[{number}]",), (f":{number}",), (f"{label}-{number}",), (f"{label}_{number}",), (label, number)]
    # A long number is hardly there by chance; one that was filled up with zeros may be.
    alone = len(number) >= _LONG or (label.lower() in _COLUMN and len(number) >= _TELLING_DIGITS)
    forms += [(number,)] if alone and not number.startswith("0") else []
    return NameMention(" ".join(piece.text.split()), hard=len(number) >= _TELLING_DIGITS, forms=tuple(forms))


def _name(piece: Phrase) -> NameMention | None:
    text = piece.text.strip(_EDGE)
    plain = text.isalpha() and not (_CAMEL.search(text) or _ID_OF_LETTERS.fullmatch(text))
    if plain or len(text) < _SHORTEST or not (_LETTER.search(text) or _DIGIT.search(text)):
        return None
    before, behind = piece.match.string[: piece.start], piece.match.string[piece.end :]
    asked_for = bool(_ASKED_FOR.search(before) or _ASKED_ABOUT.match(behind))
    # "When did the 502s start?"
    plural = _PLURAL.match(text)
    text = plural[0] if plural else text
    if text.isdigit():
        exact = asked_for and len(text) > _TELLING_DIGITS
        return NameMention(text, hard=exact) if asked_for or len(text) >= _TELLING_DIGITS else None
    if _looks_exact(text) or (_ID_OF_LETTERS.fullmatch(text) and _CALLED.search(before)):
        return NameMention(text, hard=True)
    # A block's number may be negative: `blk_-1608` keeps its sign, `word -` does not.
    inner = text.strip("/@#$+-")
    camel, joined = bool(_CAMEL.search(inner)), asked_for and "-" in inner.strip("-")
    spelt = camel or joined or any(mark in inner for mark in ("_", ".", "::", "/")) or _DIGIT.search(inner)
    if not spelt or _ORDINAL.fullmatch(inner):
        return None
    path = "." in inner
    sure = path or "_" in inner or camel
    return NameMention(text, hard=(asked_for and sure) or (path and bool(_HOST.fullmatch(text))), path=path)


def _looks_exact(text: str) -> bool:
    """Whether a word can only be meant letter by letter: an id, an address, a code."""
    digits = len(_DIGIT.findall(text))
    if digits and _LETTER.search(text):
        return bool(_EXACT.fullmatch(text)) or (not _AMOUNT.fullmatch(text) and digits >= _SHORTEST)
    return bool(_EXACT.fullmatch(text)) or (digits > 0 and len(text) > _TELLING_DIGITS)
