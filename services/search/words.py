"""Splits English technical text into terms to compare: stems of words, and whole identifiers."""

from __future__ import annotations

import re
from functools import lru_cache

_TOKEN = re.compile(r"[^\W_]+(?:[._/:-]{1,2}[^\W_]+)*(?:\+\+|#(?!\w))?|[^\W_]+")
_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
_CONTRACTION = re.compile(r"(?<=\w)(?:n['’]t|['’](?:s|re|ve|ll|d|m))\b", re.IGNORECASE)

STOP_WORDS = frozenset(
    """a about after again all also am an and another any anybody anyone anything are as at be because been before being
    both but by can cannot cant could couldn did didn didnt do does doesn doesnt doing don done dont each either else
    even ever every few for from further get gets getting give go going gone gonna got had has hasn have haven having he
    hello help her here hey hi him his hm how i id idea if im in instead into is isn isnt it its itself ive just know
    let like ll lot make many maybe me might mine more most much must my myself need needs no nor not now of off ok okay
    on once one only or other our ours out over own people please possible pls possibly quite rather re really right
    same say see seem seems shall she should so some somebody somehow someone something still such sure tell than
    thank thanks that thats the their them then there these they thing things think this those though through to too
    try trying tried u under until up us use used using very want wanted was wasn way we well were what whats when
    where whether which while who whom whose why will with without won wondering wont would wouldn yeah yes yet you
    your yours ve does anybody way work works working problem problems issue issues question questions doesnt isnt
    whenever wherever however guys folks good best able currently actually basically ca wo sha
    already always anymore ago everyone everybody often sometimes never since yet today yesterday tomorrow tonight
    away completely totally fairly pretty kind lots bit little""".split()  # noqa: SIM905 - thirty lines of quotes otherwise
)

# Words that users and documentation write differently: one, and what is written in its place.
_SYNONYMS = {
    "authentication": "auth",
    "certificate": "cert certs",
    "colour": "color",
    "configure": "cfg conf config configs",
    "database": "db",
    "directory": "dir folder folders",
    "documentation": "docs",
    "environment": "env",
    "fail": "failure failures",
    "forgot": "forgotten",
    "licence": "license",
    "log": "login logs",
    "mail": "email emails mails",
    "memory": "ram",
    "parameter": "param params",
    "password": "pwd",
    "permission": "perms",
    "picture": "pics photo photos",
    "remove": "erase uninstall delete deleting deleted",
    "repository": "repo",
    "sign": "signin",
    "two-factor": "2fa",
    "variable": "var vars",
}
_ALIASES = {alias: word for word, aliases in _SYNONYMS.items() for alias in aliases.split()}
_MIN_STEM = 3
# One of each group, in this order: plural, verb forms, nouns made of verbs.
_ENDINGS = (
    (("sses", "ss"), ("ies", "y"), ("xes", "x"), ("ches", "ch"), ("shes", "sh"), ("s", "")),
    (("ations", ""), ("ation", ""), ("ating", ""), ("ated", ""), ("ator", ""), ("ate", ""), ("ing", ""), ("ed", "")),
    (("ment", ""), ("tion", "t"), ("sion", "s"), ("ably", ""), ("able", ""), ("er", ""), ("ly", ""), ("e", "")),
)
_KEEPS_S = ("ss", "us", "is")


def terms(text: str) -> list[str]:
    """The terms of `text`, in order, with repeats, without stop words.

    `max_retries`, `api.example.net` and `E-1042` are a term each, and so is every word in them.
    """
    tokens = _TOKEN.findall(_CONTRACTION.sub("", text.replace("_", "-")))
    return [term for token in tokens for term in _terms_of(token)]


@lru_cache(maxsize=65_536)
def _terms_of(token: str) -> tuple[str, ...]:
    whole = token.lower()
    if whole in STOP_WORDS:
        return ()
    pieces = [piece.lower() for piece in _PIECE.findall(token)]
    if len(pieces) <= 1:
        return (stem(whole),) if len(whole) > 1 or not whole.isascii() else ()
    parts = tuple(stem(piece) for piece in pieces if len(piece) > 1 and piece not in STOP_WORDS)
    return (whole, *(part for part in parts if part != whole))


def stem(word: str) -> str:
    """A short common form of a lower-case word: configure, configured and configuration are one."""
    word = _ALIASES.get(word, word)
    if not word.isascii() or not word.isalpha():
        return word
    for group in _ENDINGS:
        for ending, instead in group:
            if word.endswith(ending):
                left = word[: -len(ending)]
                if len(left + instead) >= _MIN_STEM and not (ending == "s" and word.endswith(_KEEPS_S)):
                    word = _undoubled(left) + instead if ending in {"ing", "ed", "er"} else left + instead
                break
    return word[:-1] + "i" if word.endswith("y") and len(word) > _MIN_STEM else word


def _undoubled(word: str) -> str:
    """`runn` → `run`, but `install` stays."""
    return word[:-1] if word[-1] == word[-2] and word[-1] not in "lsz" else word
