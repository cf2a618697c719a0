"""Cuts clauses off a question that limit which lines are meant: "before the FATAL entry", "not about login"."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from services.documents.asking import grammar
from services.documents.asking.grammar import Kind, Reading
from services.documents.asking.times import MONTH
from services.documents.asking.vocabulary import any_of
from services.storage import in_thread


@dataclass(frozen=True, slots=True)
class SplitQuestion:
    """A question in parts.

    Attributes:
        main: the question without its clauses.
        anchor: "the FATAL entry" of "before the FATAL entry", which lines come `before` or after.
        excluded: each clause such as "not about login", with its "login".
        unread: clauses that no query can say, such as "in the last hour", "over 100 ms" and "not succeed". Who leaves
            them out answers another question.
        text: all clauses.
    """

    main: str
    text: str
    anchor: str = ""
    before: bool = False
    excluded: tuple[tuple[str, str], ...] = ()
    unread: tuple[str, ...] = ()


_BEFORE = r"(?:before|prior\s++to|ahead\s++of|(?<!the\s)preceding|leading\s++up\s++to|until|till|up\s++to)"
_AFTER = r"(?:after|(?<!the\s)following|since)"
_NOT = r"(?:not|never|cannot|(?:do|does|did|is|are|was|were|has|have|had|can?|could|wo|would|should)n['’]?t)"
_HOLDS = (
    r"(?:contain(?:s|ed|ing)?|mention(?:s|ed|ing)?|includ(?:es?|ed|ing)|involv(?:es?|ed|ing)|match(?:es|ed|ing)?"
    r"|show(?:s|ed|ing)?|refer(?:s|red|ring)?\s++to|related\s++to|about|concerning|regarding|with|from|by)"
)
_OTHER_THAN = (
    r"(?:without|except(?:ing|\s++for)?|excluding|other\s++than|apart\s++from|aside\s++from|besides|lacking|ignoring"
    rf"|leaving\s++out|not\s++counting)(?:\s++(?:the|those|any|all|ones|{any_of('ENTRY')})){{0,4}}(?:\s++(?:that|which|{_HOLDS})){{0,4}}"
)
_SPAN = r"(?:seconds?|minutes?|mins?|hours?|days?|nights?|weeks?|weekends?|months?|years?)"
_WHILE = r"(?:mornings?|afternoons?|evenings?|nights?|weekends?)"
_DAY = (
    r"(?:today|tonight|yesterday|tomorrow|midnight|noon|midday|overnight|(?:mon|tues|wednes|thurs|fri|satur|sun)days?)"
)
_WITHIN = r"(?:before|after|since|until|till|at|by|on|in|within|during|over|for|from|of|past|around)\s++"
_SOME = rf"(?:(?:\d+|{any_of('FEW')})\s++)?{_SPAN}"
_TIME = (
    rf"(?:{_WITHIN}(?:the\s++)?(?:last|past|previous|next|first|final)\s++{_SOME}|(?<!the\s)(?:last|past)\s++{_SOME}"
    rf"|{_WITHIN}(?:(?:the|early|late|mid)[\s-]++){{0,2}}{MONTH}(?!\s*+\d{{1,2}}(?!\d))(?:,?\s++(?:of\s++)?\d{{4}})?"
    rf"|this\s++{_SPAN}|(?:{_WITHIN})?(?:(?:the|this|last|at)\s++{_WHILE}|{_DAY}|an?\s++{_SPAN}\s++ago|{_SOME}\s++ago))\b"
)
_UNIT = (
    r"(?:[nmuµ]?s|[kmgt]?i?b|%|per\s?cent"
    r"|(?:\w{2,5})?(?:seconds?|secs?|minutes?|mins?|hours?|days?|bytes?|times|requests?|characters?))"
)
_AMOUNT = (
    rf"(?:(?:\d[\d,]{{0,20}}(?:\.\d{{1,9}})?|half\s++an?|{any_of('FEW')}\b)(?:\s*+{_UNIT})?(?![\w:/-]|\.\d)"
    rf"|an?\s++{_UNIT}\b)"
)
_COMPARED = (
    rf"(?:(?:\b(?:\w{{2,20}}er|more|less)\s++than|\bat\s++(?:least|most)|\b(?:over|under|above|below|exceed(?:s|ed|ing)?"
    rf"|up\s++to)|[<>]=?)\s*+{_AMOUNT}|(?<![\w.:-]){_AMOUNT}\s++or\s++(?:\w{{2,12}}er|more|less)\b)"
)
_ASIDE = (
    r"(?:(?:I|we|you)\s++(?:\w++\s++)?(?:(?:do|did|am|are|can|could|would|have|should|might|need)\s++not|cannot"
    r"|(?:do|did|are|have|had|ca|could|wo|would|should|need)n['’]?t)|or\s++not|no(?=,)|no\s++matter|why\s++not|a\s++while)"
)
_CLAUSES = {
    # Said of the asker ("I don't know"), or to be answered with yes or no: "Isn't there an ERROR?"
    "aside": rf"\b{_ASIDE}\b|\A\W*(?:is|are|was|were|do|does|did|has|have|had)n['’]?t\b",
    "time": rf"\b{_TIME}",
    "both": r"\b(?:before\s++(?:and|or)\s++after|after\s++(?:and|or)\s++before)\s",
    "before": rf"\b{_BEFORE}\s",
    "after": rf"\b{_AFTER}\s",
    "excluded": rf"\b(?:{_NOT}(?:\s++(?:be|been|the|ones|those|have|has)){{0,4}}\s++{_HOLDS}|{_OTHER_THAN})\s",
    "compared": _COMPARED,
    "unread": rf"\b(?:{_NOT}|no|none|nothing|nobody|neither|nor|unless|between|while)\b",
    # Whether two entries are the same is not known, nor how many users there are for each host.
    "same": r"\b(?:different|distinct|unique)\s++"
    rf"(?:{any_of('ENTRY', 'THINGS', 'LEVEL', 'kinds?', 'types?')}\b|\w++(?=.{{0,80}}\b(?:per|each|grouped\s++by)\b))",
}
_ASKS = r"(?:how|wh\w{1,3}|list|show|count|give|tell|find|is|are|was|were|did|do|does|can|could)"
_END = re.compile(rf"[;.?!](?=\s|$)|,(?=\s++{_ASKS}\b)|\s(?=and\s++(?:how|wh\w{{1,3}})\b)|\n", re.IGNORECASE)
_LINKS = re.compile(
    r"(?:\s{1,3}+(?:that|which|who|are|is|was|were|do|does|did|have|has|had)){1,4}\s{0,3}\Z", re.IGNORECASE
)
_SENTENCE_END = re.compile(r"[.?!]\s++|\n++")
_IT = re.compile(
    rf"\s*+(?:(?:and|or|when|what|which|now)\b|(?:(?:{any_of('IT')})(?:\s++(?:{any_of('THING', 'THINGS', 'LEVEL')}))?)?"
    r"(?:\W*$|[,;.?!]|\s++(?:in|of|at|on|and|or|please|within)\b))",
    re.IGNORECASE,
)
# What stands in these has been read already; a "not" or "before" there is part of it.
_READ: frozenset[Kind] = frozenset(
    {"time", "levels", "quoted", "line", "file", "name", "numbered", "distinct", "around", "count"}
)


async def prepare() -> None:
    """Compile the grammar and how clauses begin in threads. Await this before a question is read on the event loop."""
    await grammar.prepare()
    await in_thread(_clause_start)


@cache
def _clause_start() -> re.Pattern[str]:
    """Return the pattern of how clauses begin, compiled with the first question: it takes too long for start-up."""
    return re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _CLAUSES.items()), re.IGNORECASE)


def split_question(reading: Reading) -> SplitQuestion | None:
    """Cut a question into its main part and its clauses. None: it has no clauses."""
    text = reading.text
    asks = _asking_start(text)
    starts = [found for found in _clause_start().finditer(text) if found.start() >= asks]
    starts = [found for found in starts if found.lastgroup != "aside" and _is_free(reading, found)]
    if not starts:
        return None
    anchors: list[tuple[str, bool]] = []
    excluded: list[tuple[str, str]] = []
    unread: list[str] = []
    clauses: list[str] = []
    main, at = "", 0
    for found, following in zip(starts, [*(each.start() for each in starts[1:]), len(text)], strict=True):
        kind, start = found.lastgroup, found.end()
        stop = start if kind in {"time", "same", "compared"} else _end(text, start, following)
        clauses.append(" ".join(text[found.start() : stop].split()).rstrip(","))
        said = text[start:stop].strip()
        if kind in {"before", "after"} and not anchors:
            anchors.append((said, kind == "before"))
        elif kind == "excluded":
            excluded.append((clauses[-1], said))
        else:
            unread.append(clauses[-1])
        main, at = f"{main}{_LINKS.sub('', text[at : found.start()])} ", stop
    anchor, before = anchors[0] if anchors else ("", False)
    return SplitQuestion(f"{main}{text[at:]}", ", ".join(clauses), anchor, before, tuple(excluded), tuple(unread))


def _end(text: str, start: int, most: int) -> int:
    found = _END.search(text, start, most)
    return found.start() if found else most


def _asking_start(text: str) -> int:
    """Return where the first sentence with a question mark begins, else where the text does."""
    ends = [0, *(found.end() for found in _SENTENCE_END.finditer(text)), len(text)]
    return next((start for start, end in pairwise(ends) if text[start:end].rstrip().endswith("?")), 0)


def _is_free(reading: Reading, found: re.Match[str]) -> bool:
    """Return True if a clause begins here: not in a phrase with another meaning, nor before an "it"."""
    if any(phrase.start <= found.start() < phrase.end for phrase in reading.phrases if phrase.kind in _READ):
        return False
    return found.lastgroup not in {"before", "after"} or not _IT.match(reading.text, found.end())
