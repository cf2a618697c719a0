"""What a question wants of many lines at once: how many, by which column, all of them (DOCUMENT_QA 5.1)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from services.documents.asking.levels import ENTRY, LEVEL

_COUNT = re.compile(
    r"\b(?:h\w{0,2} many|how often|how frequently|(?:number|amount|quantity) of|nos?\. of|nr\.? of|count(?: of| the| all|ing)?"
    r"|total (?:of|number)|tally|times did)\b|(?<!\w)# of\b",
    re.IGNORECASE,
)
_COUNT_LINES = re.compile(
    rf"\b(?:how (?:many (?:{ENTRY}|times|hits)|often|frequently)|(?:count|number)(?: of| the| all)*(?: {ENTRY}))\b",
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
_COLUMNS = {
    "severity": r"(?:log )?(?:levels?|severit(?:y|ies))",
    "component": r"(?:components?|loggers?|modules?|class(?:es)?|services?|process(?:es)?|daemons?|programs?|writers?)",
    "day": r"(?:days?|dates?)",
    "hour": r"hours?",
    "minute": r"minutes?",
}
_ENDS = r"(?=\W*$|\s+(?:in|of|for|on|and|or|between|from|at|before|after|since|please|with|across)\b|\s*[?.,;:!)])"
_KINDS = r"(?:distribution|breakdown|histogram|statistics|stats|tally|counts?|numbers?|totals?)"
_MOST = rf"(?:most|fewest|least)\s+(?:{LEVEL}s?|{ENTRY}|often|frequent(?:ly)?|common|active|noise|output)"
# Each with a column in its place. Where one of them is said, lines are counted by that column, whatever else is said.
_GROUPED = tuple(
    (column, re.compile(pattern.replace("COLUMN", name), re.IGNORECASE))
    for column, name in _COLUMNS.items()
    for pattern in (
        rf"\b(?:per|(?:group(?:ed|ing)?|count(?:ed)?|split|broken down|)\s*\bby|for each|in each|of each)\s+(?:the\s+|their\s+)?COLUMN{_ENDS}",
        rf"\b{_KINDS}\s+(?:of|over|by|for|per|across)\s+(?:the |all |its )*COLUMN\b",
        rf"\bCOLUMN\s+{_KINDS}\b",
        rf"\b(?:which|what)\s+COLUMN\b(?=.{{0,60}}\b{_MOST})",
        r"\b(?:most (?:common|frequent|active)|noisiest|busiest|loudest|rarest)\s+COLUMN\b",
        r"\b(?:do|does|did|has|have)\s+(?:each|every)\s+COLUMN\b",
    )
)
_DISTINCT = {
    "severity": re.compile(
        r"\bhow many (?:different |distinct |unique )?(?:log )?(?:levels|severities)\b", re.IGNORECASE
    ),
    "component": re.compile(r"\bhow many (?:different |distinct |unique )?(?:components|loggers)\b", re.IGNORECASE),
}
# These may as well be said of what no column holds: they count lines only where nothing else is asked for.
_GROUPS = re.compile(
    r"\b(?:distribution|breakdown|broken down|histogram|statistics|stats|summar(?:y|ise|ize)|overview|group(?:ed)? by"
    r"|most (?:common|frequent|often|errors|warnings)|which (?:components|levels|severities|loggers|modules|classes"
    r"|services|processes|daemons)|what (?:components|levels|severities|loggers|kinds of (?:levels|entries)))\b",
    re.IGNORECASE,
)
_UNITS = {
    "lines": "lines",
    "rows": "rows",
    "records": "rows",
    "samples": "rows",
    "entries": "rows",
    "columns": "columns",
    "keys": "keys",
    "settings": "keys",
    "values": "keys",
}
_UNIT = re.compile(
    r"\b(?:how many|number of|count(?: of| the| all)*|total(?: number of)?|(?:which|what)(?= keys| settings)"
    r"|list(?: all| the| of)*|all(?: the)?)\s+(?:(?:data|different|config(?:uration)?)\s+)?(?P<unit>lines|rows|records"
    r"|samples|columns|keys|settings|values|entries)\b",
    re.IGNORECASE,
)
_LIST = re.compile(
    r"\b(?:list(?: all| every| the)?|show (?:me )?(?:all|every)|all (?:the )?|every|each|give me all|any)\b",
    re.IGNORECASE,
)


class Aggregate(StrEnum):
    COUNT = "count"
    GROUPS = "groups"
    LIST = "list"


@dataclass(frozen=True, slots=True)
class Grouping:
    columns: tuple[str, ...] = ()
    """By which lines are to be counted: `severity`, `component`, `day`, `hour`, `minute`."""
    distinct: bool = False
    """Whether the values of the column are what is counted: "how many components"."""


def grouping(question: str) -> tuple[Grouping, str]:
    """What a question asks to be counted by, and the question without that."""
    for column, pattern in _DISTINCT.items():
        if pattern.search(question):
            return Grouping((column,), distinct=True), pattern.sub("how many", question)
    columns: dict[str, None] = {}
    for column, pattern in _GROUPED:
        if pattern.search(question):
            columns[column] = None
            question = pattern.sub(" ", question)
    return Grouping(tuple(columns)), question


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


def without_count(question: str) -> str:
    return _COUNT.sub(" ", question)


def without_groups(question: str) -> str:
    return _GROUPS.sub(" ", question)


def unit(question: str) -> str | None:
    """What is counted or listed, where that is a part of every file of a kind: `lines`, `rows`, `columns`, `keys`."""
    found = _UNIT.search(question)
    return None if found is None else _UNITS[found["unit"].lower()]


def without_unit(question: str) -> str:
    return _UNIT.sub(" ", question)
