# ruff: noqa: E501 (tables of words, one class a line)
"""The words of questions about files, each list once: the phrases of `grammar` are made of these classes.

A word is a regular expression, letter case aside; `_` means a space.
"""

from __future__ import annotations

import re
from functools import lru_cache

LEVELS = {
    "fatal": ("FATAL", "CRITICAL"),
    "panic": ("FATAL", "CRITICAL"),
    "emerg": ("FATAL", "CRITICAL"),
    "emergency": ("FATAL", "CRITICAL"),
    "critical": ("CRITICAL", "FATAL"),
    "crit": ("CRITICAL", "FATAL"),
    "alert": ("CRITICAL", "FATAL"),
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
"""What people call a level. FATAL and CRITICAL may mean the same: the one that was said comes first."""

COLUMNS = {
    "severity": "(?:log_)?levels? severit(?:y|ies)",
    "component": "components? loggers? modules? class(?:es)? services? process(?:es)? daemons? programs? writers?",
    "day": "days? dates?",
    "hour": "hours?",
    "minute": "minutes?",
    "thread": "threads?",
    "address": "ip(?:s|_address(?:es)?)? address(?:es)?",
}
"""What lines can be counted by."""

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")

_NUMBERS = {
    "a couple of": 2,
    "a few": 3,
    "penultimate": 2,
    "second": 2,
    "third": 3,
    "fourth": 4,
    "fifth": 5,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
}

SIDES = {
    "until": "no_later_than not_later_than up_to_and_including up_to until till by",
    "since": "no_earlier_than not_earlier_than starting_from starting_at onwards_from since",
    "before": "earlier_than older_than prior_to ahead_of before",
    "after": "later_than newer_than more_recent_than past after",
}
"""Which side of a time is meant."""

_FEW = "a_couple_of a_few two three four five six seven eight nine ten"
_CLASSES = {
    "LEVEL": " ".join(f"{word}s?" for word in sorted(LEVELS, key=len, reverse=True)),
    "COLUMN": " ".join(COLUMNS.values()),
    "FEW": _FEW,
    "N": rf"\d{{1,3}} {_FEW}",
    "ORDINAL": r"second third fourth fifth penultimate [2-9](?:nd|rd|th)",
    "ENTRY": "entr(?:y|ies) lines? messages? records? events? logs? level lvl severity statements? output",
    "THING": "entry line message one record log row event thing",
    "THINGS": "entries lines? messages records rows events logs ones",
    "IT": "it that this there them those",
    "WHAT": "what anything something",
    "HAPPENED": "came comes? happen(?:s|ed)? logged written recorded printed stands? is was were goes went occur(?:s|red)?",
    "CLOSE": "right just immediately directly straight shortly moments? seconds",
    # The sides of a line: as an adverb, before a noun, as a verb, before `it`, and behind a number of lines.
    "NEXT_ADVERB": "after(?:wards?)? next below",
    "NEXT_PLACE": "behind following",
    "NEXT_ADJECTIVE": "next following",
    "NEXT_VERB": "follow(?:s|ed|ing)? succeed(?:s|ed|ing)?",
    "NEXT_TO": "after",
    "NEXT_AWAY": "later on further(?:_down|_on)? down",
    "NEXT_LAST": "after(?:wards?)?",
    "PREVIOUS_ADVERB": "before(?:hand)? above prior earlier previously",
    "PREVIOUS_PLACE": "ahead preceding",
    "PREVIOUS_ADJECTIVE": "previous preceding prior",
    "PREVIOUS_VERB": "preced(?:es?|ed|ing) led_(?:up_)?to",
    "PREVIOUS_TO": "before prior_to",
    "PREVIOUS_AWAY": "earlier back up further_up previously",
    "PREVIOUS_LAST": "before(?:hand)? earlier prior",
    "FIRST": "first 1st earliest initial(?:ly)? oldest (?:start|begin(?:s|ning)?)_of",
    "LAST": "last latest most_recent(?:ly)? newest final(?:ly)? end_of",
    "START": "starts? started begins? set_in",
    "STOP": "stops? ends? finish(?:es)? cease",
    "KINDS": "distribution breakdown histogram statistics stats tally counts? numbers? totals?",
    "BY": "per (?:(?:group(?:ed|ing)?|count(?:ed)?|split|broken_down)_)?by (?:for|in|of)_each",
    "MENTION": "mention(?:s|ed|ing)? contain(?:s|ed|ing)? hits? with appear(?:s|ed)? show(?:s|ed)?_up come_up occur(?:s|red)?",
}

# Words that ask, beside those of the classes.
_ASKING = """
    errors? warnings? warn fatal critical info debug trace notice files? logs? logg?ed logfiles? levels? lvl severit(?:y|ies)
    shown? shows about written wrote write finds? found recent many often counts? total amount quantity types? kinds?
    categor(?:y|ies) list all any every each times? between since until during around exactly say(?:s|ing)? said tell give text
    print content position distribution breakdown common frequent(?:ly)? most which what when where who why how did does do are
    the report(?:ed|s)? records? exists? present see seen date day timestamp components? attached one attachment upload(?:ed)?
    posted evidence stuff exact full whole please at on in of for to with its it everything anywhere nowhere come up
    down still ever sign altogether overall quote happening search look(?:ing)? grep refer(?:s|red)? per only single very gone
    ips? address(?:es)? users? wrong points? instan(?:ce|t) occurrences? numbers? later entries and""".replace(
    "\n", " "
)


def any_of(*names: str) -> str:
    """A pattern for the words of classes, and for other words as they are."""
    words = [word for name in names for word in _CLASSES.get(name, name).split()]
    return f"(?:{'|'.join(words)})".replace("_", r"\s++")


_STRUCTURE = re.compile(
    any_of(
        *("THING", "THINGS", "WHAT", "HAPPENED", "CLOSE", "FEW", "ORDINAL", "FIRST", "LAST", "MENTION"),
        *(f"{side}_{form}" for side in ("NEXT", "PREVIOUS") for form in ("ADVERB", "ADJECTIVE", "VERB")),
        _ASKING,
    ),
    re.IGNORECASE,
)


def asks(word: str) -> bool:
    """Whether a word belongs to the question, and not to what is looked for."""
    return not word.isdigit() and _STRUCTURE.fullmatch(word) is not None


_LINES = re.compile(
    any_of("ENTRY", "THING", "THINGS", "LEVEL", "time", "files?", "ones?", "kinds?", "types?"), re.IGNORECASE
)


def asks_for_lines(noun: str) -> bool:
    """Whether a noun means lines themselves, or their levels: "which entries", "which errors"."""
    return _LINES.fullmatch(noun) is not None


def number_of(words: str) -> int:
    """Of `5`, `five`, `a few`, `3rd`, `third`."""
    digits = re.match(r"\d+", words)
    return max(1, int(digits[0])) if digits else _NUMBERS[" ".join(words.lower().split())]


_STEERING = """
    first last latest earliest oldest newest final recent initial many number count often error errors warning warnings
    fatal critical entry entries message messages line lines before after between previous next following when which
    what where""".split()  # noqa: SIM905 (thirty lines of quotes otherwise)
_REAL = frozenset({"fist", "thirst", "terror", "lastly"})
_SHORT = 4  # words up to this length have too many neighbours: only swapped letters are mended in them
_QUOTED = r"\"[^\"\n]*\"|`[^`\n]*`|“[^”\n]*”|(?<!\w)'[^'\n]*'(?!\w)"
_WORD = re.compile(rf"{_QUOTED}|(?<![\w./:@#$%+=-])([A-Za-z][a-z]{{2,11}})(?![\w/@=-]|[.:]\w)")


def mended(question: str) -> str:
    """`question` without typing errors in the words that steer a search: `frist`, `eror`, `how mnay`.

    Only one swapped, missing or doubled letter is mended: a changed letter too often makes another word (`lost` and
    `last`). What is quoted, and what may be a name, is left alone.
    """
    return _WORD.sub(lambda found: _slips().get(found[0].lower(), found[0]), question)


@lru_cache(maxsize=1)
def _slips() -> dict[str, str]:
    slips = {"lastest": "latest"} | {slip: word for word in reversed(_STEERING) for slip in _slips_of(word)}
    return {slip: word for slip, word in slips.items() if slip not in _REAL.union(_STEERING)}


def _slips_of(word: str) -> set[str]:
    """The first letter is seldom missed."""
    swapped = {word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in range(len(word) - 1)}
    if len(word) <= _SHORT:
        return swapped
    missing = {word[:at] + word[at + 1 :] for at in range(1, len(word))}
    return swapped | missing | {word[:at] + word[at] + word[at:] for at in range(1, len(word))}
