"""How people ask about logs: levels, first and last, how many, what came next (DOCUMENT_QA 5.1)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

_ENTRY = r"(?:entr(?:y|ies)|lines?|messages?|records?|events?|logs?|level|lvl|severity|statements?|output)"
_LEVELS = {
    "fatal": ("FATAL", "CRITICAL"),
    "critical": ("CRITICAL", "FATAL"),
    "panic": ("FATAL", "CRITICAL"),
    "emerg": ("FATAL", "CRITICAL"),
    "emergency": ("FATAL", "CRITICAL"),
    "alert": ("CRITICAL", "FATAL"),
    "crit": ("CRITICAL", "FATAL"),
    "error": ("ERROR",),
    "err": ("ERROR",),
    "severe": ("ERROR",),
    "warn": ("WARN",),
    "warning": ("WARN",),
    "info": ("INFO",),
    "notice": ("INFO",),
    "debug": ("DEBUG",),
    "trace": ("TRACE",),
}
_WORD = r"(?:fatal|critical|crit|panic|emerg(?:ency)?|alert|error|err|severe|warn(?:ing)?|info|notice|debug|trace)"
_UPPER = re.compile(
    r"(?<![\w.:/-])\[?(FATAL|CRIT(?:ICAL)?|PANIC|EMERG(?:ENCY)?|ALERT|ERR(?:OR)?|SEVERE|WARN(?:ING)?|INFO|NOTICE|DEBUG|TRACE)"
    r"\]?(?:s\b|S\b)?(?![\w/-])"
)
_NAMED = re.compile(
    rf"\b(?P<before>{_WORD})[- ](?:or (?:above|worse|higher) )?{_ENTRY}\b|\b(?:level|severity|logged as|logged at"
    rf"|of (?:the )?(?:type|kind|class|category|priority))"
    rf"\s*(?:of|is|=|:)?\s*[\"'`]?(?P<after>{_WORD})\b",
    re.IGNORECASE,
)
_PLAIN = re.compile(r"\b(errors?|warn(?:ing)?s?|fatals?|criticals?|crits?|emergs?)\b", re.IGNORECASE)
# As klog and logcat write levels.
_LETTER = re.compile(rf"(?<![\w.:/-])(?P<letter>[EWFIDV])[- ]{_ENTRY}\b")
_BY_LETTER = {"E": "error", "W": "warn", "F": "fatal", "I": "info", "D": "debug", "V": "trace"}
_ABOVE = re.compile(r"\b(?:or|and) (?:above|worse|higher|more severe)\b", re.IGNORECASE)
_WORSE = {"ERROR": ("ERROR", "CRITICAL", "FATAL"), "WARN": ("WARN", "ERROR", "CRITICAL", "FATAL")}

_FIRST = re.compile(r"\b(?:first|1st|earliest|initial(?:ly)?|oldest|(?:start|begin(?:s|ning)?) of)\b", re.IGNORECASE)
_LAST = re.compile(r"\b(?:last|latest|most recent(?:ly)?|newest|final(?:ly)?|end of)\b", re.IGNORECASE)
_HOW_IT_ENDS = re.compile(
    r"^\W*how (?:does|do|did)\b.{0,40}?\b(?P<end>ends?|finish(?:es)?|starts?|begins?)\W*$", re.IGNORECASE
)
# What starts or stops has been taken out of the question already: a level, or a name.
_WHEN_IT_BEGAN = re.compile(
    r"\b(?:when|where|at what time|since when) (?:did|do|does|have)\s+(?:(?:the|all|these|those|our|my|this)\s+)*"
    r"(?:(?P<first>start|begin|set in|started)|(?P<last>stop|end|cease))\b",
    re.IGNORECASE,
)
_NOT_LAST = re.compile(
    r"\b(?:at last|last(?:ed|s|ing)|how long did .{0,40}\blast\b|at first|first of all|first name)\b", re.IGNORECASE
)
_ONE = r"(?:entry|line|message|one|record|log|row|event|thing)"
_IT = rf"(?:it|that|this|there|them|those|line|{_ONE})"
_CLOSELY = r"(?:right|just|immediately|directly|straight|shortly|moments?|seconds)"
_HAPPENED = (
    r"(?:came|comes?|happen(?:s|ed)?|logged|written|recorded|printed|stands?|is|was|were|goes|went|occur(?:s|red)?)"
)
_NEXT = re.compile(
    rf"\b(?:{_CLOSELY}\s+(?:after|behind|below|following|afterwards|next)|{_HAPPENED}\s+(?:{_ONE}\s+)?(?:after|afterwards|next|below)\b"
    rf"|{_HAPPENED}\s+{_CLOSELY}\s+(?:after|next)|next\s+{_ONE}|(?:what|anything|something)(?:'s| is| was| came| comes)? next"
    rf"|(?:the )?{_ONE}\s+(?:right |just |directly |immediately )?(?:after|following|below|behind)"
    rf"|follow(?:s|ed|ing)?\s+(?:directly\s+|right\s+|immediately\s+)?(?:(?:on |after |the |to )*{_IT}\b|\?|$|directly|immediately|next)"
    rf"|(?:what|which {_ONE})\s+follow(?:s|ed)|after\s+(?:that|this|it|line|wards?)\b|(?:and )?then\s*\?|afterwards|subsequent(?:ly)?"
    r"|what (?:came|happened|was logged) after|succeed(?:s|ed|ing)\s+(?:it|that|this|line|entry))",
    re.IGNORECASE,
)
_PREVIOUS = re.compile(
    rf"\b(?:{_CLOSELY}\s+(?:before|above|prior|ahead|preceding|beforehand)|{_HAPPENED}\s+(?:{_ONE}\s+)?(?:before(?:hand)?|earlier|previously|above)\b"
    rf"|{_HAPPENED}\s+{_CLOSELY}\s+before|(?:previous|preceding|prior)\s+{_ONE}"
    rf"|(?:the )?{_ONE}\s+(?:right |just |directly |immediately )?(?:before|preceding|above|prior|ahead)"
    r"|preced(?:es?|ed|ing)\s+(?:it|that|this|line|the entry|entry)|(?:what|which \w+|anything) preced(?:es|ed)"
    r"|led (?:up )?to (?:it|that|this)|before\s+(?:that|this|it|line)\b|beforehand|what (?:came|happened|was logged) before"
    r"|prior to (?:it|that|this|line))",
    re.IGNORECASE,
)
# "What did it say before?"; "has that happened before?" asks for any time.
_ENDS_BESIDE = re.compile(
    r"^(?!.*\b(?:has|have|had|ever)\b).*\b(?:(?P<previous>before(?:hand)?|earlier|prior)|(?P<next>after(?:wards?)?))\W*$",
    re.IGNORECASE | re.DOTALL,
)
_COUNT = re.compile(
    r"\b(?:h\w{0,2} many|how often|how frequently|(?:number|amount|quantity) of|nos?\. of|nr\.? of|count(?: of| the| all|ing)?"
    r"|total (?:of|number)|tally|times did)\b|(?<!\w)# of\b",
    re.IGNORECASE,
)
_COUNT_LINES = re.compile(
    rf"\b(?:how (?:many (?:{_ENTRY}|times|hits)|often|frequently)|(?:count|number)(?: of| the| all)*(?: {_ENTRY}))\b",
    re.IGNORECASE,
)
_ASKS_ELSE = re.compile(r"\b(?:wh(?:ich|at|ere|en|o|y)|how)\b", re.IGNORECASE)
_MENTIONED = re.compile(
    r"\b(?:mention(?:s|ed|ing)?|contain(?:s|ing)?|hits?|with|appear(?:s|ed)?|show(?:s|ed)? up|come up|occur(?:s|red)?)\b",
    re.IGNORECASE,
)
_NAME = r"(?P<{}>[A-Za-z_][\w.$/-]*(?:\([\w.-]+\))?)"
_WRITER = re.compile(
    rf"\b(?:did|does|has|have)\s+(?:the\s+)?{_NAME.format('subject')}\s+(?:write|wrote|log|print|produce|emit|report)(?:ten|ged|ed|d)?\b"
    rf"|\b(?:from|by|of)\s+(?:the\s+)?(?:(?:component|logger|class|process|module|service|program|daemon)\s+)?{_NAME.format('object')}",
    re.IGNORECASE,
)
_GROUPS = re.compile(
    r"\b(?:distribution|breakdown|broken down|histogram|statistics|stats|summar(?:y|ise|ize)|group(?:ed)? by|per (?:level|component|severity)"
    r"|most (?:common|frequent|often|errors|warnings)|which (?:components|levels|severities|loggers|modules|classes"
    r"|services|processes|daemons)|what (?:components|levels|severities|loggers|kinds of (?:levels|entries)))\b",
    re.IGNORECASE,
)
_LIST = re.compile(
    r"\b(?:list(?: all| every| the)?|show (?:me )?(?:all|every)|all (?:the )?|every|each|give me all|any)\b",
    re.IGNORECASE,
)
_N_OF = re.compile(
    r"\b(?:first|last|latest|earliest|oldest|newest|most recent)\s+(\d{1,2}|two|three|four|five|six|seven|eight|nine|ten)\b",
    re.IGNORECASE,
)
_NUMBERS = ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]

_ORDINALS = {"second": 2, "third": 3, "fourth": 4, "fifth": 5}
_NTH = re.compile(
    rf"\b(second|third|fourth|fifth|[2-9](?:nd|rd|th)|penultimate)(?:[- ](?:to[- ])?(last|latest|newest))?\s+"
    rf"(?!line|row|entry)(?:{_WORD}s?|{_ENTRY}|time|occurrence|mention|hit)\b",
    re.IGNORECASE,
)

_LINE = re.compile(
    r"\b(?:lines?|rows?|ln|L)(?:\s*(?:no\.?|number(?:s|ed)?|nr\.?|#))?\s*[#:]?\s*(\d{1,7})(?:\s*(?:-|–|to|through|until|\.\.|and)\s*(?:line\s*)?(\d{1,7}))?\b(?![.:]\d)",
    re.IGNORECASE,
)
_NTH_LINE = re.compile(r"\b(\d{1,7})(?:st|nd|rd|th)\s+(?:line|row|entry)\b", re.IGNORECASE)
_COLON_LINE = re.compile(r"[\w)]\.[A-Za-z]\w{0,9}:(\d{1,7})(?:-(\d{1,7}))?(?![\d:.])")


class Position(StrEnum):
    FIRST = "first"
    LAST = "last"
    NEXT = "next"
    PREVIOUS = "previous"


class Aggregate(StrEnum):
    COUNT = "count"
    GROUPS = "groups"
    LIST = "list"


@dataclass(frozen=True, slots=True)
class Severity:
    levels: tuple[str, ...]
    hard: bool
    """A level by its name; a plain "errors" is hard only where entries are counted, listed or put in order."""
    text: str


def severity(question: str) -> Severity | None:
    named = _UPPER.search(question) or _NAMED.search(question) or _LETTER.search(question)
    if named:
        groups = named.groupdict()
        word = _BY_LETTER.get(groups.get("letter") or "") or (groups.get("before") or groups.get("after") or named[1])
        word = word.lower()
        levels = _LEVELS[word]
        if _ABOVE.search(question):
            levels = _WORSE.get(levels[0], levels)
        return Severity(levels, hard=True, text=named[0].strip())
    plain = _PLAIN.search(question)
    if plain is None:
        return None
    word = plain[0].lower().removesuffix("s")
    levels = _WORSE["ERROR"] if word == "error" else _LEVELS[word]
    if _ABOVE.search(question):
        levels = _WORSE.get(levels[0], levels)
    return Severity(levels, hard=False, text=plain[0])


def position(question: str) -> Position | None:
    if _PREVIOUS.search(question):
        return Position.PREVIOUS
    if _NEXT.search(question):
        return Position.NEXT
    beside = _ENDS_BESIDE.match(question)
    if beside:
        return Position.PREVIOUS if beside["previous"] else Position.NEXT
    return first_or_last(question)


def first_or_last(question: str) -> Position | None:
    """Also of "what came after the first error": where that starts from."""
    plain = _NOT_LAST.sub(" ", question)
    began = _WHEN_IT_BEGAN.search(plain)
    if began:
        return Position.FIRST if began["first"] else Position.LAST
    how = _HOW_IT_ENDS.search(plain)
    if how:
        return Position.LAST if how["end"].lower().startswith(("end", "finish")) else Position.FIRST
    first, last = _FIRST.search(plain), _LAST.search(plain)
    if first and (not last or first.start() < last.start()):
        return Position.FIRST
    return Position.LAST if last else None


def without_position(question: str) -> str:
    return _FIRST.sub(" ", _LAST.sub(" ", question))


def without_count(question: str) -> str:
    return _COUNT.sub(" ", question)


def how_many_wanted(question: str) -> int:
    """Of "the last three errors": 3."""
    found = _N_OF.search(question)
    if not found:
        return 1
    word = found[1].lower()
    return max(1, int(word) if word.isdigit() else _NUMBERS.index(word) + 2)


def which_of_them(question: str) -> int | None:
    """Of "the second error": 2; of "the second to last error": -2."""
    found = _NTH.search(question)
    if not found:
        return None
    word = found[1].lower()
    number = 2 if word == "penultimate" else _ORDINALS.get(word) or int(word[:-2])
    return -number if found[2] or word == "penultimate" else number


def aggregate(question: str) -> Aggregate | None:
    if _COUNT.search(question):
        return Aggregate.COUNT
    if _GROUPS.search(question):
        return Aggregate.GROUPS
    return Aggregate.LIST if _LIST.search(question) else None


def counts_lines(question: str) -> bool:
    """Lines are to be counted, and nothing else: "how often does X show up", not "where is X, and how often"."""
    found = _COUNT_LINES.search(question)
    return bool(found) and not _ASKS_ELSE.search(question[: found.start()])


def counts_mentions(question: str) -> bool:
    """The word that is counted is meant as it stands: none of it is an answer."""
    return bool(_MENTIONED.search(question))


def writers(question: str) -> tuple[str, ...]:
    """Names that may be those of components: "how many lines did X write", "the first WARN from X"."""
    return tuple(name for found in _WRITER.finditer(question) for name in (found["subject"] or found["object"],))


def line_span(question: str) -> tuple[int, int] | None:
    """`line 42`, `lines 40-60`, `app.log:42`, `L42`, `the 42nd line`."""
    found = _LINE.search(question) or _COLON_LINE.search(question)
    if found:
        first = int(found[1])
        last = int(found[2]) if found[2] else first
        return (first, last) if first <= last else (last, first)
    nth = _NTH_LINE.search(question)
    return (int(nth[1]), int(nth[1])) if nth else None


def without_line_span(question: str) -> str:
    text = _LINE.sub(" ", question)
    return _NTH_LINE.sub(" ", re.sub(r"(\.[A-Za-z0-9]{1,10}):\d{1,7}(?:-\d{1,7})?(?![\d:.])", r"\1", text))


# Words of questions about files that do not stand in the files.
_STRUCTURE = re.compile(
    r"\b(?:entr(?:y|ies)|lines?|log(?:s|ged|file|files)?|files?|records?|messages?|events?|appear(?:s|ed)?|occur(?:s|red|rence|rences)?"
    r"|happen(?:s|ed|ing)?|show(?:s|n)?|numbers?|mention(?:s|ed|ing)?|contain(?:s|ed|ing)?|about|there|second|third|fourth|fifth|written|wrote|write|find|found"
    r"|first|1st|last|latest|earliest|newest|oldest|initial|final|recent|many|often|count|total|amount|quantity|types?|kinds?|categor(?:y|ies)|penultimate|list|all|any|every|times?|level|severity"
    r"|between|after|before|since|until|during|around|exactly|say(?:s|ing)?|said|tell|give|print(?:ed)?|text|content|row|position"
    r"|distribution|breakdown|common|frequent|most|which|what|when|where|who|why|how|did|does|do|was|were|is|are|the|that|this"
    r"|report(?:ed|s)?|record(?:ed|s)?|exist(?:s)?|present|see|seen|begin|start(?:s|ed)? with|end(?:s)? with|date|day|timestamp"
    r"|components?|frequently|hits?|attached|one|two|three|four|five|six|seven|eight|nine|ten|attachment|upload(?:ed)?|posted|evidence|stuff|going on|exact|full|whole|please|at|on|in|of|for|to|with|its|it"
    r"|anything|something|everything|anywhere|nowhere|up|down|come|turn(?:s|ed)? up|still|ever|trace|sign|altogether|overall|quote|happening|search|look(?:ing)?|grep|refer(?:s|red)?|right|just|immediately|next|previous|preceding"
    r"|following|came|comes?|error|errors|warning|warnings|fatal|critical|warn|info|debug|trace|notice|only|single|very|exactly|went|gone|wrong|point|moment|instan(?:ce|t))\b",
    re.IGNORECASE,
)


def content(question: str) -> str:
    """What is left of a question when the words about files and time are taken out of it."""
    how = _HOW_IT_ENDS.search(question)
    question = _WHEN_IT_BEGAN.sub(" ", question)
    return "" if how else " ".join(_STRUCTURE.sub(" ", question).split())
