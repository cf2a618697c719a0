# ruff: noqa: E501 (patterns are read in one piece)
"""The grammar that cuts a question into phrases, each with its kind and position.

In a pattern of words, capitals name a class of `vocabulary` or a condition (`_CONDITIONS`). `a/b`: one of both words;
`a?`: optional; `a*`: any number of times; `=a`: has to follow, but is not part of the phrase.
"""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass
from functools import cache
from typing import Literal, cast

from services.documents.asking import times
from services.documents.asking.vocabulary import any_of
from services.documents.limits import KINDS
from services.storage import in_thread

# fmt: off
Kind = Literal[
    "time", "levels", "quoted", "line", "file", "name", "numbered", "idiom", "around", "steps_next", "steps_previous", "distinct",
    "grouped", "groups", "count", "began", "stopped", "nth", "next", "previous", "first", "last", "list", "word",
]
# fmt: on


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words of a question that belong together."""

    kind: Kind
    match: re.Match[str]  # with the groups of its pattern, and the question as its string

    @property
    def text(self) -> str:
        return self.match[0]

    @property
    def start(self) -> int:
        return self.match.start()

    @property
    def end(self) -> int:
        return self.match.end()


@dataclass(frozen=True, slots=True)
class Reading:
    """A question with its phrases in order; no two of them overlap."""

    text: str
    phrases: tuple[Phrase, ...]

    def of(self, *kinds: Kind) -> list[Phrase]:
        return [phrase for phrase in self.phrases if phrase.kind in kinds]

    def has(self, *kinds: Kind) -> bool:
        return bool(self.of(*kinds))

    def without(self, kinds: Container[Kind]) -> str:
        """Return the question without its phrases of these kinds."""
        text = self.text
        for phrase in reversed(self.phrases):
            if phrase.kind in kinds:
                text = f"{text[: phrase.start]} {text[phrase.end :]}"
        return text


def read(question: str) -> Reading:
    """Cut a question into phrases. At each position the first kind that fits is taken; the last is a single word."""
    found = _any_phrase().finditer(question)
    return Reading(question, tuple(Phrase(cast("Kind", match.lastgroup), match) for match in found))


async def prepare() -> None:
    """Compile the grammar in a thread. Await this before `read` on the event loop, which compiling would block for too
    long.

    It always uses a thread, so that the order of work does not depend on earlier questions.
    """
    await in_thread(_any_phrase)


@cache
def _any_phrase() -> re.Pattern[str]:
    """Return the grammar as one pattern, compiled with the first question: it takes too long for start-up."""
    return re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _GRAMMAR.items()), re.IGNORECASE)


_START, _STOP = r"(?<![\w./:@$-])", r"(?!\w|[-./:@=]\w)"
_ENTRY, _LEVEL = any_of("ENTRY"), any_of("LEVEL")
_CONDITIONS = {
    "END": r"(?=\W*$)",
    "ENDS": r"(?=\W*$|\s++(?:in|of|for|on|and|or|between|from|at|before|after|since|please|with|across)\b|\s*+[?.,;:!)])",
    "NO_TIME": rf"(?!\s++(?:(?:about|around)\s++)?{times.MOMENT})",
    "OFTEN": rf"(?=.{{0,60}}\b(?:most|fewest|least)\s++(?:{_LEVEL}|{_ENTRY}|often|frequent(?:ly)?|common|active|noise|output)\b)",
}


def _phrase(text: str) -> str:
    pattern = ""
    for token in text.split():
        name = token.strip("?*=")
        if name in _CONDITIONS:
            pattern += _CONDITIONS[name]
            continue
        word = rf"{any_of(*name.split('/'))}{_STOP}"
        word = rf"\s++{word}" if pattern else f"{_START}{word}"
        pattern += {"?": f"(?:{word})?", "*": f"(?:{word})*"}.get(token[-1], f"(?={word})" if token[0] == "=" else word)
    return pattern


def _phrases(*texts: str) -> str:
    return "|".join(map(_phrase, texts))


def _beside(side: str) -> str:
    """Return a pattern for phrases that ask for a line's neighbour on one side."""
    return _phrases(
        f"CLOSE {side}_ADVERB/{side}_PLACE",
        f"HAPPENED THING? {side}_ADVERB NO_TIME",
        f"{side}_ADJECTIVE THING",
        f"THING CLOSE? {side}_ADVERB/{side}_PLACE NO_TIME",
        f"WHAT/THING {side}_VERB",
        f"{side}_VERB the? IT/THING",
        f"{side}_TO IT",
        f"{side}_TO the? =line/entry",
        f"{side}_LAST END",
    )


def _steps(side: str) -> str:
    return _phrases(
        f"{side}_ADJECTIVE N THINGS",
        f"{side}_ADJECTIVE N END",
        f"N THINGS CLOSE/that? {side}_ADVERB/{side}_PLACE/{side}_VERB",
        f"N THINGS {side}_AWAY",
    )


def _set_in(verb: str) -> str:
    """Return a pattern for the begin or end of a level or a name: "when did the 502s stop"."""
    what = rf"(?:(?:the|all|these|those|our|my|this)\s++)*(?:(?:{_LEVEL}|[^\s\d]*+\d\S*+)\s++)?(?:{_ENTRY}\s++)?"
    return rf"{_START}(?:(?:since\s++)?when|where|at what time)\s++(?:did|do|does|have)(?=\s++{what}{any_of(verb)}\b)"


def _story(verb: str) -> str:
    """Return a pattern for the begin or end of the whole file: "how does the log end?"."""
    return rf"{_START}how\s++(?:does|do|did)\b(?=.{{0,40}}?\b{any_of(verb)}\W*$)"


_WORSE, _LESS = r"(?:above|worse|higher|more\s++severe)\b", r"(?:below|lower|less\s++severe)\b"
_NOT = (
    r"(?:non-?|(?:not|isn't|aren't|wasn't|weren't|neither|except(?:\s++for)?|excluding|without|other\s++than|apart\s++from|besides"
    r"|(?:all|any|every|anything|everything)\s++but|but\s++(?:not|no)|different\s++from)\s++(?:(?:an?|at|of|the|level|severity)\s++)*)"
)
_ONE_LEVEL = (
    rf"(?:(?<!\w)(?P<not>{_NOT}))?(?:\b(?P<beyond>{_WORSE}(?:\s++than)?\s++(?:level\s++)?)|\b(?P<least>at\s++least\s++)|\b(?P<most>at\s++most\s++))?"
    r"(?:\b(?P<named>(?:level|severity|logged\s++as|logged\s++at|of\s++(?:the\s++)?(?:type|kind|class|category|priority))\s*+(?:of|is|=|:)?\s*+))?"
    rf"(?P<word>\[{_LEVEL}\]|[\"'`“]{_LEVEL}[\"'`”]|(?:(?<=non-)|(?<=[A-Za-z]/)|(?<![\w.:/-]))(?:{_LEVEL}|(?-i:[EWFIDV](?=[- ]{_ENTRY}\b))))"
    rf"(?!\w|-(?!{_ENTRY}\b)|[.:=]\w|/(?!{_LEVEL}))"
    rf"(?P<entry>(?=[- ](?:(?:or|and)\s++{_WORSE}\s++)?{_ENTRY}\b))?"
    rf"(?:(?P<above>(?:\s++{_ENTRY})?\s++(?:or|and)\s++{_WORSE})|(?P<below>(?:\s++{_ENTRY})?\s++(?:or|and)\s++{_LESS}))?"
)
_JOINED = rf"(?:(?>(?:\s*+(?:[,/|&+]|\b(?:or|and|nor)\b))+)\s*+(?:(?:an?|the)\s++)?|\s++{_ENTRY}\s++(?:or|and)\s++)"
_QUOTES = r"\"[^\"\n]{2,200}\"|“[^”\n]{2,200}”|`[^`\n]{2,200}`|(?<!\w)'[^'\n]{2,200}'(?!\w)"
_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?![\d,])|\d+)"
FILE_NAME = (
    rf"(?<![\w./:@-])[\w~-][\w.~/-]*(?:{'|'.join(re.escape(ending) for ending in sorted(KINDS, key=len, reverse=True))})"
    r"(?![\w/-]|\.\w)"
)
_LABEL = (
    r"(?:port|pid|tid|id|job|task|session|thread|status|code|error\s++code|exit\s++code|exit\s++status|errno|user|uid|node|block"
    r"|request|transaction|order|ticket|child|process|slot|worker|attempt|stage|partition|container|executor|rdd|broadcast"
    r"|instance|event|eventid|http|https|response)"
)
_BEHIND = (
    "in|on|at|of|from|to|and|or|before|after|between|since|until|with|is|was|were|are|had|has|have|got|did|does|do"
)
_SOME = rf"(?:\s++(?:\d{{1,2}}|\d{{3}}(?=\s++(?:{any_of('THINGS')}|{_LEVEL})\b)|{any_of('FEW')}){_STOP})?"
_ANY_LEVEL = re.sub(r"\(\?P<\w+>", "(?:", _ONE_LEVEL)

_GRAMMAR: dict[Kind, str] = {
    "time": times.PERIOD,
    "levels": rf"{_ANY_LEVEL}(?:{_JOINED}{_ANY_LEVEL})*",
    # A time in quotes is a time.
    "quoted": rf"(?!.{times.PERIOD}[\"”`'])(?:{_QUOTES})",
    "line": rf"{_START}(?:(?:lines?|rows?|ln|L)(?:\s*+(?:no\.?|number(?:s|ed)?|nr\.?|#))?\s*+[#:]?\s*+(?P<from_line>{_DIGITS})"
    rf"(?:\s*+(?:-|–|to|through|until|\.\.|and)\s*+(?:line\s*+|L)?(?P<to_line>{_DIGITS}))?\b(?![.:]\d)"
    rf"|(?P<nth_line>{_DIGITS})(?:st|nd|rd|th)\s++(?:line|row|entry)\b)",
    "file": rf"{FILE_NAME}(?::\d+(?:-\d+)?(?![\d:.]))?",
    "name": r"(?<!\w)[A-Za-z][\w.\-]*(?:\([\w.\-]+\))?\[\d+\]|(?<![\w.=])[A-Za-z_][\w.-]*=[\w./:@-]*\w",
    # "port 8080", "TID 179": `id-00005` and `job5` are whole names, a label is parted from its number.
    "numbered": rf"(?:\b(?P<label>{_LABEL})(?:\s*+(?:#|\bno\.?|\bnumber|\bid\b|=|:)\s*+|\s++)"
    r"|(?<![\w.-])(?P<capitals>(?-i:[A-Z][A-Z_]{1,15}))\s++#?)"
    rf"(?P<number>-?\d+|(?(label)(?-i:[A-Za-z])(?=\W*$|[,;.?!]|\s++(?:{_BEHIND})\b)|(?!)))(?![\w.:/-]*\w)",
    "idiom": _phrases("at first/last", "first of_all/name", "START/STOP with", "turn/turns/turned up", "going on"),
    "around": _phrases(
        "N THINGS around",
        "N THINGS before/after/above and after/before/below",
        "N THINGS on/to either/each/both sides?",
    ),
    "steps_next": f"{_steps('NEXT')}|{_phrase('N more/further/other THINGS')}",
    "steps_previous": _steps("PREVIOUS"),
    "distinct": _phrases(
        "how many different/distinct/unique* (?:log_)?levels/severities/components/loggers",
        "number of different/distinct/unique COLUMN",
        "how many different/distinct/unique COLUMN",
    ),
    "grouped": _phrases(
        "BY the/their? COLUMN ENDS",
        "KINDS of/over/by/for/per/across the/all/its* COLUMN",
        "COLUMN KINDS",
        "which/what COLUMN OFTEN",
        "most common/frequent/active COLUMN",
        "noisiest/busiest/loudest/rarest COLUMN",
        "do/does/did/has/have each/every COLUMN",
    ),
    "groups": _phrases(
        "distribution/breakdown/broken_down/histogram/statistics/stats/summar(?:y|ise|ize)/overview/group(?:ed)?_by",
        "most common/frequent/often",
        "which/what components/levels/severities/loggers/modules/classes/services/processes/daemons",
    ),
    "count": _phrases(
        r"h\w{0,2} many/often/frequently",
        "number/amount/quantity of",
        "total of/number",
        "count/counting/tally of/the/all*",
    )
    + r"|(?<!\w)(?:#|nos?\.|nr\.?)\s++of\b",
    "began": f"{_story('START')}|{_set_in('START')}",
    "stopped": f"{_story('STOP')}|{_set_in('STOP')}",
    "nth": rf"{_START}(?P<ordinal>{any_of('ORDINAL')})(?:[- ](?:to[- ])?(?P<backwards>last|latest|newest))?"
    rf"(?=\s++(?!line|row|entry)(?:{_LEVEL}|{_ENTRY}|time|occurrence|mention|hit)\b)",
    "next": f"{_beside('NEXT')}|{_phrases('WHAT next', 'afterwards', 'and then END')}" + r"|\bthen(?=\s*+\?)",
    "previous": _beside("PREVIOUS"),
    "first": _phrase("FIRST") + _SOME,
    "last": _phrase("LAST") + _SOME,
    "list": _phrases("list all/every/the?", "all/any/every/each the?"),
    "word": r"[\w/@$#+-][\w./:@$#%+~\-]*",
}

ONE_LEVEL = re.compile(_ONE_LEVEL, re.IGNORECASE)  # one level of a phrase that names some, with what is said of it
SOME = re.compile(rf"(?<!\S){any_of('N')}(?!\w)", re.IGNORECASE)  # the number in "the last five" and "5 lines after"
