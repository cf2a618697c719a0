"""Names that a question holds and that stand in files letter by letter: ids, addresses, codes, quoted strings."""

from __future__ import annotations

import re
from dataclasses import dataclass

_QUOTED = re.compile(r"\"([^\"\n]{2,200})\"|“([^”\n]{2,200})”|`([^`\n]{2,200})`|(?<!\w)'([^'\n]{2,200})'(?!\w)")
_BRACKETED = re.compile(r"(?<![\w])[A-Za-z][\w.\-]*(?:\([\w.\-]+\))?\[\d+\]")
_ASSIGNED = re.compile(r"(?<![\w.=])[A-Za-z_][\w.-]*=[\w./:@-]*\w")
_RUN = re.compile(r"[A-Za-z0-9_/@$#+-][\w./:@$#%+~\-]*")
_EDGE = ".,:;!?-/"
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_ADDRESS = re.compile(
    r"/?\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?(?:/\d{1,2})?|(?:[0-9a-f]{0,4}:){3,7}[0-9a-f]{0,4}", re.IGNORECASE
)
_DIGIT, _LETTER = re.compile(r"\d"), re.compile(r"[^\W\d_]")
_CAMEL = re.compile(r"[a-z][A-Z]|[A-Z]{2,}[a-z]{2,}")
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th|s|ms|kb|mb|gb|k|m|h|min|x|%)?", re.IGNORECASE)
# A host, a package, a class with its package: two dots are no slip of the keys.
_HOST = re.compile(r"[A-Za-z][\w-]*(?:\.[A-Za-z][\w-]*){2,}")
_ORDINAL_WORD = re.compile(r"\d+(?:st|nd|rd|th)", re.IGNORECASE)
_NUMBERED = re.compile(
    r"\b((?:port|pid|tid|id|job|task|session|thread|status|code|error code|exit code|exit status|errno|user|uid|node"
    r"|block|request|transaction|order|ticket|child|process|slot|worker|attempt|stage|partition|container|executor|rdd"
    r"|broadcast|instance|event|eventid|http|https|response)"
    # `id-00005` and `job5` are names as they stand: a label is parted from its number.
    r"(?:\s*(?:#|\bno\.?|\bnumber|\bid\b|=|:)\s*|\s+))(-?\d+)(?![\w.:-]*\w)",
    re.IGNORECASE,
)
# Columns of a table of events, or of an access log: the number stands there without its label.
_COLUMN = frozenset({"id", "code", "status", "error", "exit", "errno", "event", "eventid", "http", "https", "response"})
_PLURAL = re.compile(r"\d{3,}(?='?s$)")
# "TID 179", "RFC 2616": a label in capitals and its number.
_LABELLED = re.compile(r"(?<![\w.-])([A-Z][A-Z_]{1,15}\s+#?)(-?\d+)(?![\w.:/-]*\w)")
# "How many entries mention X", "what happened to X": X is meant letter by letter, whatever it looks like.
_ASKED_FOR = re.compile(
    r"\b(?:mention(?:s|ed|ing)?|contain(?:s|ed|ing)?|refer(?:s|red|ring)? to|reference[sd]?|involv(?:es|ed|ing)"
    r"|happen(?:s|ed|ing)? (?:to|with)|occurrences? of|(?:ones?|entry|entries|lines?|records?|messages?|anything"
    r"|something|hits?|log) (?:about|for|on|with|from|regarding|concerning|matching)|search(?:ed)? for|look(?:ing)? for"
    r"|find|look(?:ed)? (?:up|at)|check(?: for)?|locate|pull up|grep(?: for)?|status of|tell me about|know about"
    r"|(?:is|are|was|were) there|did an?|any)\s+(?:the\s+|an?\s+|any\s+)?"
    r"(?:string|text|word|term|identifier|id|ip|address|host|block|request|port|process|session)?\s*$",
    re.IGNORECASE,
)
# "Was TimeoutException ever logged?"
_ASKED_ABOUT = re.compile(
    r"\W*(?:(?:is|was|are|were|been|ever|also|still|anywhere)\s+)*"
    r"(?:mentioned|logged|reported|seen|raised|thrown|recorded|referenced|appear|occur|(?:show|turn)(?:s|ed)? up)",
    re.IGNORECASE,
)
# "message DEADBEEF", "job j-fffff": what is called by such a name, and looks like one, is an id without digits.
_CALLED = re.compile(
    r"\b(?:job|message|transaction|request|session|block|task|order|ticket|container|pod|trace|span|batch|id)"
    r"(?:\s+(?:id|no\.?|number|named|called))?\s+$",
    re.IGNORECASE,
)
_ID_OF_LETTERS = re.compile(r"[A-Z]{6,}|[a-z]{1,2}-[a-f]{4,}")
_SHORTEST = 2
_LONG = 7
_TELLING_DIGITS = 3
"""Smaller numbers are counts."""


@dataclass(frozen=True, slots=True)
class NameMention:
    text: str
    hard: bool
    """Nothing else will do: when it is nowhere, there is no answer."""
    path: bool = False
    """Or the path of a key: `server.pool.size`, which stands in no configuration as it is."""
    forms: tuple[tuple[str, ...], ...] = ()
    """What else to look for when it is not there letter by letter: of "port 8080", `:8080`. All parts of a form."""


def find(question: str) -> tuple[tuple[NameMention, ...], str]:
    """The mentions, in order, each once; and the question without them."""
    found: list[tuple[int, NameMention]] = []
    rest = question
    for pattern, read in (
        (_QUOTED, _quoted),
        (_BRACKETED, _whole),
        (_ASSIGNED, _whole),
        (_NUMBERED, _numbered),
        (_LABELLED, _numbered),
    ):
        for match in pattern.finditer(rest):
            mention = read(match)
            if mention is not None:
                found.append((match.start(), mention))
                rest = rest[: match.start()] + " " * len(match[0]) + rest[match.end() :]
    for match in _RUN.finditer(rest):
        mention = _name(match, rest)
        if mention is not None:
            found.append((match.start(), mention))
            rest = rest[: match.start()] + " " * len(match[0]) + rest[match.end() :]
    unique = {mention.text.casefold(): mention for _, mention in sorted(found, key=lambda pair: pair[0])}
    return tuple(unique.values()), rest


def looks_exact(text: str) -> bool:
    """Whether a word can only be meant letter by letter: an id, an address, a code."""
    if _UUID.fullmatch(text) or _ADDRESS.fullmatch(text):
        return True
    has_digit, has_letter = bool(_DIGIT.search(text)), bool(_LETTER.search(text))
    if has_digit and has_letter:
        return not _ORDINAL.fullmatch(text) and len(re.findall(r"\d", text)) >= _SHORTEST
    return has_digit and len(text) >= 4  # noqa: PLR2004 (years, ports, process ids)


def _quoted(match: re.Match[str]) -> NameMention | None:
    text = next(group for group in match.groups() if group is not None).strip()
    return NameMention(text, hard=True) if text else None


def _whole(match: re.Match[str]) -> NameMention:
    return NameMention(match[0], hard=True)


def _numbered(match: re.Match[str]) -> NameMention | None:
    """As it is written, or as programs write it: `[4711]`, `:8080`, `job-4711`, the label elsewhere in the line."""
    label, number = match[1].strip(" #=:").split()[0], match[2]
    forms = [(f"[{number}]",), (f":{number}",), (f"{label}-{number}",), (f"{label}_{number}",), (label, number)]
    # A long number is hardly there by chance; one that was filled up with zeros may be.
    alone = len(number) >= _LONG or (label.lower() in _COLUMN and len(number) >= _TELLING_DIGITS)
    forms += [(number,)] if alone and not number.startswith("0") else []
    return NameMention(" ".join(match[0].split()), hard=len(number) >= _TELLING_DIGITS, forms=tuple(forms))


def _name(match: re.Match[str], question: str) -> NameMention | None:
    text = match[0].strip(_EDGE)
    # A block's number may be negative: `blk_-1608` keeps its sign, `word -` does not.
    if len(text) < _SHORTEST or not (_LETTER.search(text) or _DIGIT.search(text)):
        return None
    before = question[: match.start()]
    asked_for = bool(_ASKED_FOR.search(before) or _ASKED_ABOUT.match(question, match.end()))
    # "When did the 502s start?"
    plural = _PLURAL.match(text)
    text = plural[0] if plural else text
    called = _ID_OF_LETTERS.fullmatch(text) and _CALLED.search(before)
    if called or (looks_exact(text) and (not text.isdigit() or asked_for)):
        return NameMention(text, hard=True)
    if text.isdigit():
        return NameMention(text, hard=False) if asked_for or len(text) >= _TELLING_DIGITS else None
    inner = text.strip("/@#$+-")
    spelt = bool(_CAMEL.search(inner)) or "_" in inner or "." in inner or "::" in inner or "/" in inner
    joined = asked_for and "-" in inner.strip("-")
    counted = _ORDINAL_WORD.fullmatch(inner)
    if counted or not (spelt or joined or bool(_DIGIT.search(inner))):
        return None
    if "." in inner:
        return NameMention(text, hard=asked_for or _HOST.fullmatch(text) is not None, path=True)
    return NameMention(text, hard=asked_for and ("_" in inner or bool(_CAMEL.search(inner))))
