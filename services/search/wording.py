"""Reads what a question, an answer or a section says: its terms, where it leads to, and what it asks how to do."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache, cached_property, lru_cache
from typing import NamedTuple

from services import lazy_pattern
from services.search.languages import ENGLISH, language_of
from services.search.questions import AUXILIARY, OPENING, SENTENCE_END, asking_sentences, without_greeting
from services.search.tokenizer import STOP_WORDS, terms

# Words

ACTS = """
enable activate on / disable deactivate off; install / uninstall remove; add create / remove delete; start run / stop
open / close; allow grant let permit / deny block forbid revoke prevent; show / hide; see view / change edit
once / again; increase raise / decrease lower; include / exclude
import / export; upgrade update / downgrade; upload / download; encrypt / decrypt; mount / unmount; push / pull
connect / disconnect; subscribe / unsubscribe; minimum min / maximum max; always / never
backup / restore recover / delete remove erase wipe / rename / copy duplicate clone / archive / reset / move
lock / unlock; cancel / renew; attach / detach; ban / unban; pause / resume continue; accept approve / reject decline
delete remove erase wipe reset drop / restore recover undo
public / private; join / leave; merge / split; expand / collapse; promote / demote; up / down
select choose pick / deselect unselect
aktivieren / deaktivieren; installieren / deinstallieren; activer / désactiver; activar / desactivar
"""
SCOPES = """
all every everybody everyone everything each whole / one single some only / nobody
all every everybody everyone everything each whole / my mine our own / nobody
my mine our own / another other else / nobody; nobody / somebody someone anybody anyone people
windows / linux / macos mac / android / ios
positive / negative; production prod / staging
"""
"""Lines of words, in groups: a question with a word of one side is not answered where one of another side stands. An
answer to one of two scopes may be for the other as well, if it names it; an answer that names the opposite act does so
to warn: "nobody can restore it afterwards".
"""
DESTROYING = """
clear delete deletion destroy drop erase format kill purge remove removal reset revoke terminate uninstall wipe rid
"""
_RISKY = """
accept allow approve buy disable disconnect drink eat execute expose give grant move open overwrite pay publish replace
run send share shut sign stop take tell transfer trust unplug withdraw
"""
"""Acts that may do harm where they are done with another thing, beside those that destroy."""
ASK_NOTHING = """
advice anybody anyone best correct explain fix happen happening help hint idea know mean missing miss normal possible
possibly problem issue proper properly recommend reason resolve right safe solution solve somebody someone suggest
suggestion thought tip way work wrong able please thanks ideas ways works issues problems knows helps anyones
command option setting step use
"""
EVERYTHING = frozenset({"all", "every", "everyone", "everybody", "everything", "whole", "entire"})
LIGHT_VERBS = frozenset({"do", "get", "make", "put", "switch", "turn"})
NOTHING = frozenset[str]()

Group = tuple[frozenset[str], ...]
"""The terms of each side of a group."""


@cache
def groups_of(table: str) -> tuple[Group, ...]:
    """Return the groups of `ACTS` or `SCOPES`."""
    return tuple(
        tuple(frozenset(terms(side)) | STOP_WORDS.intersection(side.split()) for side in group.split("/"))
        for group in table.replace("\n", ";").split(";")
        if group
    )


def sides_of(words: AbstractSet[str], group: Group) -> set[int]:
    """Return the numbers of the sides of a group that have one of the words."""
    return {number for number, side in enumerate(group) if not side.isdisjoint(words)}


@cache
def terms_of(words: str) -> frozenset[str]:
    """Return the terms of one of the lists of words of this room."""
    return frozenset(terms(words))


# Patterns

_MARKUP = lazy_pattern(r"[*~`]+|(?<!\w)_+|_+(?!\w)|\|\|")
_NEGATION_APART = lazy_pattern(r"\b(un|de|dis|non)[-_/.:\"')\]]{1,3}(?=[^\W\d_]{3})", re.IGNORECASE)
_UN_APART = lazy_pattern(r"\bun (?=[a-z]{4})", re.IGNORECASE)
_BACK_UP = lazy_pattern(r"\bback(?:ed|ing|s)? up\b", re.IGNORECASE)
_KEEP_FROM = lazy_pattern(
    r"\bkeep(?:ing)?((?:\s+\w{1,20}){1,3}\s+from)\b|\b(?:wo|does|did|do)(?:n['’]t|\s+not)\s+let\b",
    re.IGNORECASE,
)
_WORD_OR_PAUSE = lazy_pattern(r"[\w'’+#-]+|[.,;:!?()\n]")
_PAUSES = frozenset(".,;:!?()\n")
_CLAUSE_CHARS = 80
_NUMBER = lazy_pattern(r"\d[\d.]*|(?<=[a-z]\s)[A-HJ-Z](?![\w'’+#&-])")
"""Numbers, and letters that count things: "version B"."""
_NOT = (
    r"\b(?:not|no|never|cannot|cant|dont|doesnt|wont|isnt|[a-z]{2,6}n['’]t|nicht|nie|niemals|kein(?:e[nmrs]?)?|pas|jamais"
    r"|nunca|não)\b"
)
_NEGATES = lazy_pattern(rf"{_NOT}(?!\s+let\b)", re.IGNORECASE)
"""But what "won't let me" is trouble, and asked for without a "not" as well."""
_SAYS_OTHERWISE = lazy_pattern(
    rf"{_NOT}|\b(?:nobody|else|an?other|other|different|only|except|unless|would|again|afterwards)\b", re.IGNORECASE
)
_OF_BOTH = lazy_pattern(
    r"^\W{0,9}(?:yes\W{1,3})?(?:like|as|same)\b|\b(?:both|also|too|as\s+well|either|same|whether)\b"
    r"|\b(?:this|that|it)\s+(?:applies|holds|goes\s+for)\b",
    re.IGNORECASE,
)
WITHOUT = lazy_pattern(r"\b(?:without|ohne|sans|sin)((?:[^\S\n]+[\w-]+){1,3})", re.IGNORECASE)
_EXCEPT = lazy_pattern(
    r"\b(?:except(?:\s+for)?|excluding|excepting|(?:other|different)\s+than|apart\s+from|aside\s+from|save\s+for|außer|ausgenommen"
    r"|bis\s+auf|sauf|excepto|salvo|(?:all|any|every|no)\w*(?:\s+\w{1,20}){0,4}\s+but)((?:[^\S\n]+[\w-]+){1,3})",
    re.IGNORECASE,
)
_CONDITION = lazy_pattern(
    r"\w\s{1,4}(?:if|when|while|unless|once|until|as\s+long\s+as|wenn|falls|solange|sobald)\s([^?.!\n]{1,120})",
    re.IGNORECASE,
)
_KEEPS = lazy_pattern(
    r"\b(?:keep(?:ing|s)?|kept|preserv\w{1,4}|retain\w{0,3}|surviv\w{1,4}|los(?:e|es|ing|t)|loss(?:es)?|behalten|verlier\w{1,3})\b",
    re.IGNORECASE,
)
"""Words for things that are to be there afterwards."""
_JUDGED = lazy_pattern(
    r"\b(?:is|isn['’]t|was|be)\s+(?:it|this|that)\s+(?:\w{1,20}\s+)?(safe|dangerous|risky|harmful|right|wrong|normal|necessary|recommended|best|legal"
    r"|bad|good|ok|okay|required|enough)\b",
    re.IGNORECASE,
)
_AMOUNT = lazy_pattern(
    r"\bhow\s+(?:much|many|long|often)\b[^?\n]{0,60}\b(?:may|can|should|must)\s|\b(?:what|which)\s+dos(?:e|age)\b",
    re.IGNORECASE,
)
_ASKS_FOR = lazy_pattern(
    r"^[^\w\n]{0,9}(?:(?:and|but|so|also|ok|please|well)[^\w\n]{1,9})?"
    r"(?:(?P<time>how\s+(?:often|long|soon)|when)|(?P<number>how\s+(?:many|much))|(?P<reason>why)|(?P<owner>whose)|(?P<person>whom?)"
    r"|(?P<result>what\s+happens))\b",
    re.IGNORECASE | re.MULTILINE,
)
_HOW_TO = lazy_pattern(
    r"\bhow\s+(?:(?:do|can|could|should|would|must|may)\s+(?:i|we|you|one)|to)\s+(\w+)\s*((?:[\w'’+#-]+\s*){0,4})",
    re.IGNORECASE,
)
"""Asks how to do something. Groups: the verb, and the words behind it."""
_WHETHER_TO = lazy_pattern(
    r"^\W{0,9}(?:(?:can|may|might|could|should|must)\s+(?:i|we|one)|is\s+it\s+\w{1,20}\s+to|(?:do|would)\s+(?:i|we|you)\s+(?:have|need)\s+to)\s+(\w+)\s*((?:[\w'’+#-]+\s*){0,4})",
    re.IGNORECASE | re.MULTILINE,
)
"""Asks whether one may, must or should do something. Groups: as above."""
_WHAT_TO = lazy_pattern(
    r"\b(?:which|what|where|when|whom?|how\s+\w+)\b[^?\n]{0,60}\b(?:do|can|could|should|must|may)\s+(?:i|we|one)\s+(\w+)\s*((?:[\w'’+#-]+\s*){0,4})",
    re.IGNORECASE,
)
"""Asks what, where or when to do something. Groups: as above."""
_WHETHER = lazy_pattern(
    rf"{OPENING}(?:(?P<should>should|shall|would\s+you|is\s+it\s+(?:better|best|advisable|worth))"
    r"|(?P<must>must|need|(?:do|does|did|will|would)\s+(?:\w+\s+){1,3}(?:have|need)\s+to|(?:is|are|am)\s+(?:\w+\s+){1,2}(?:required|obliged|supposed))"
    r"|(?P<may>can|could|may|might|(?:is|are|am)\s+(?:\w+\s+){1,2}(?:possible|allowed|able|permitted)))\b"
    rf"|{AUXILIARY}",
    re.IGNORECASE | re.MULTILINE,
)
"""The beginning of a question that wants a yes or a no; its group tells whether one should, must or may."""

# Texts


class Act(NamedTuple):
    """An act that a question is about: the term of its verb, and the first term behind it. Each may be empty."""

    verb: str = ""
    thing: str = ""


class FunctionWords(NamedTuple):
    """The meaning of the stop words of a text, which `terms` leaves out.

    Attributes:
        words: those of `ACTS` and `SCOPES`; "on" and "up" only behind a verb ("turn it on").
        particles: "in", "out", "up" and "back" behind a verb, by each of the terms in front of them ("log in to").
        targets: by direction, the terms of what it leads to: "from A to B".
    """

    words: frozenset[str]
    particles: Mapping[str, frozenset[str]]
    targets: Mapping[str, frozenset[str]]


class Wording:
    """A text, read for comparison with others. Each attribute is computed at its first use."""

    def __init__(self, text: str) -> None:
        self.text = text

    def followed_by(self, other: Wording) -> Wording:
        return Wording(f"{self.text}\n{other.text}")

    @cached_property
    def is_english(self) -> bool:
        return language_of(self.text) == ENGLISH

    @cached_property
    def asks(self) -> bool:
        """True if one of its sentences asks."""
        return bool(asking_sentences(self.text)[0])

    @cached_property
    def asking(self) -> Wording:
        """Its sentences that ask, without a greeting."""
        return Wording("\n".join(asking_sentences(without_greeting(self.text))[0]))

    @cached_property
    def words(self) -> list[str]:
        """Its words as they are written, in lower case, with the pauses between them."""
        return _WORD_OR_PAUSE.findall(self.text.lower())

    @cached_property
    def terms(self) -> frozenset[str]:
        """The terms of all its words but stop words."""
        return frozenset(terms(self.text))

    @cached_property
    def meant(self) -> frozenset[str]:
        """Its terms, and the stop words that have a meaning in it."""
        return self.terms | self.function_words.words

    @cached_property
    def function_words(self) -> FunctionWords:
        return _function_words_in(self.text)

    @cached_property
    def matter(self) -> list[str]:
        """Its terms in order, without those that name no matter ("help", "make")."""
        found = dict.fromkeys(terms(without_greeting(self.text)))
        return [each for each in found if each not in terms_of(ASK_NOTHING) and each not in LIGHT_VERBS]

    @cached_property
    def numbers(self) -> set[str]:
        """Its versions and amounts, without zeros behind the point (95.00 is 95); and letters that count things."""
        found = (each.rstrip(".") for each in _NUMBER.findall(self.text))
        return {each.rstrip("0").rstrip(".") if "." in each else each for each in found}

    @cached_property
    def excepted(self) -> set[str]:
        """The terms of what it does without, or excepts."""
        excepted = itertools.chain(WITHOUT.findall(self.text), _EXCEPT.findall(self.text))
        return {term for words in excepted for term in terms(words)}

    @cached_property
    def makes_exception(self) -> bool:
        return _EXCEPT.search(self.text) is not None

    @cached_property
    def conditions(self) -> set[str]:
        """The terms behind "if", "while" and the like."""
        return {term for clause in _CONDITION.findall(self.text) for term in terms(clause)}

    @cached_property
    def negated(self) -> set[str]:
        """The term behind each "not" or "no"; empty where nothing follows, such as behind "geht nicht"."""
        behind = (self.text[found.end() : found.end() + _CLAUSE_CHARS] for found in _NEGATES.finditer(self.text))
        clauses = (
            itertools.takewhile(lambda word: word not in _PAUSES, _WORD_OR_PAUSE.findall(each)) for each in behind
        )
        return {next((each[0] for each in map(terms, clause) if each), "") for clause in clauses}

    @cached_property
    def told(self) -> frozenset[str]:
        """The terms of its sentences, but for those that say where it does not hold."""
        return frozenset(terms("\n".join(_told_sentences(self.text))))

    @cached_property
    def sentences_of_both(self) -> str:
        """Its sentences that say where it holds as well ("As on Linux: …", "the same for wheels")."""
        return "\n".join(filter(_OF_BOTH.search, _told_sentences(self.text)))

    @cached_property
    def told_of_both(self) -> frozenset[str]:
        return frozenset(terms(self.sentences_of_both))

    @cached_property
    def speaks_of_keeping(self) -> bool:
        return _KEEPS.search(self.text) is not None

    @cached_property
    def everything(self) -> frozenset[str]:
        """The words for all of a kind that it has."""
        return EVERYTHING.intersection(self.words)

    @cached_property
    def kinds(self) -> set[str]:
        """The kinds of things that it asks for: time, number, reason, owner, person, result."""
        return {str(found.lastgroup) for found in _ASKS_FOR.finditer(self.text)}

    @cached_property
    def judged(self) -> set[str]:
        """The judgements that it asks for: "safe" of "is it safe to …"."""
        return {each.lower() for each in _JUDGED.findall(self.text)}

    @cached_property
    def asks_how_to(self) -> bool:
        return _HOW_TO.search(self.text) is not None

    @cached_property
    def asks_whether(self) -> bool:
        """True if it wants a yes or a no."""
        return _WHETHER.search(self.text) is not None

    @cached_property
    def modal(self) -> str:
        """The one of "should", "must" and "may" that it asks about; empty: none of these."""
        found = _WHETHER.search(self.text)
        return (found and found.lastgroup) or ""

    @cached_property
    def act(self) -> Act:
        """The first act that it asks how to do ("how do I …"), or whether to do ("can I …")."""
        found = _HOW_TO.search(self.text) or _WHETHER_TO.search(self.text)
        if found is None or (found[1].lower() == "do" and not terms(found[2])):  # "how do I do that?"
            return Act()
        if following := _destroying_next(found):  # "how do I factory reset …"
            return Act(following[0], *terms(found[2])[1:2])
        verb, *things = [*(terms(found[1]) or [found[1].lower()]), *terms(found[2])]
        if things and verb in {"do", "make"}:  # "how do I make a backup?"
            verb, *things = things
        return Act(verb, *things[:1])

    @cached_property
    def destroys(self) -> bool:
        """True if it asks how to destroy something."""
        return self.act.verb in terms_of(DESTROYING)

    @cached_property
    def is_risky(self) -> bool:
        """True if it asks for a judgement or for an amount, or about an act that may do harm with another thing."""
        if _JUDGED.search(self.text) or _AMOUNT.search(self.text):
            return True
        found = _HOW_TO.search(self.text) or _WHETHER_TO.search(self.text) or _WHAT_TO.search(self.text)
        if found is None:
            return False
        verbs = {found[1].lower(), *terms(found[1]), *_destroying_next(found)}
        return "off" in self.function_words.words or not verbs.isdisjoint(terms_of(DESTROYING).union(_RISKY.split()))

    @cached_property
    def pairs(self) -> list[tuple[str, str]]:
        """The terms of words that stand side by side, without stop words and pauses between them."""
        written = _WORD_OR_PAUSE.findall(self.text)
        # One word by itself begins a sentence, as an article may: "A" is a letter only behind another word.
        words = [min(named_in(f"x {each}" if len(each) == 1 else each), default="") for each in written]
        return [(one, other) for one, other in itertools.pairwise(words) if one and other and one != other]


@lru_cache(maxsize=256)
def wording_of(text: str) -> Wording:
    """Return the wording of a text without markup, where a verb of several words is one: "un-install" and, in English,
    "un install", "back up"; "prevent" for "keep somebody from".
    """
    joined = _NEGATION_APART.sub(r"\1", _MARKUP.sub("", text))
    if language_of(joined) != ENGLISH:
        return Wording(joined)
    return Wording(_KEEP_FROM.sub(r"prevent\1", _BACK_UP.sub("backup", _UN_APART.sub("un", joined))))


@lru_cache(maxsize=512)
def named_in(text: str) -> frozenset[str]:
    """Return the terms of a text that name a matter, its numbers, and letters that count things ("Model C")."""
    wording = Wording(text)
    return frozenset((*wording.matter, *wording.numbers))


def _told_sentences(text: str) -> list[str]:
    return [each for each in SENTENCE_END.split(text) if not _SAYS_OTHERWISE.search(each)]


def _destroying_next(found: re.Match[str]) -> list[str]:
    """Return the term of the second word of an act, of `_HOW_TO`, if it destroys: "force delete"."""
    return [each for each in terms(found[2].partition(" ")[0]) if each in terms_of(DESTROYING)]


# Function words

_JOINED_PARTICLE = lazy_pattern(r"\b(log|sign|opt)-?(in|out|off|on|up)\b", re.IGNORECASE)
_NO_PARTICLE = lazy_pattern(
    r"\b(?:figure|figuring|find|finding|found|work|working|run|running|ran) out\b|\b(?:at|after|first of) all\b"
    r"|\ball (?:of (?:a )?sudden|day|night|the time)\b|\blet (?:me|us) know\b",
    re.IGNORECASE,
)
_PARTICLES = frozenset({"on", "off", "in", "out", "up", "down", "back"})
_SIDED_PARTICLES = frozenset({"in", "out", "up", "back"})
_GERMAN_PARTICLES = {"an": "on", "ein": "on", "aus": "off", "ab": "off"}
_LEADS_TO_VERB = frozenset(["i", "we", "you", "they", "to", "please", "not", "cannot", "and", "or", *".,;:!?()\n"])
_FOLLOWS_PARTICLE = frozenset(["to", "from", "of", "for", "with", "in", "on", "at", "by", "again", "when", "and", "or"])
_WORDS_TO_VERB = 3
_DIRECTIONS = {"into": "to", "onto": "to", "by": "with", "during": "while"} | {
    each: each for each in ("from", "to", "with", "over", "under", "than", "before", "after", "while", "instead", "or")
}
"""Words that lead to another thing, each with the direction that it stands for."""


def _function_words_in(text: str) -> FunctionWords:
    text = _NO_PARTICLE.sub(" ", _JOINED_PARTICLE.sub(r"\1 \2", without_greeting(text)))
    words = [each.removesuffix("'s").removesuffix("’s") for each in _WORD_OR_PAUSE.findall(text.lower())]
    words = _with_english_particles(words)
    places = [at for at, each in enumerate(words) if each not in _PARTICLES or _is_particle(words, at)]
    particles: dict[str, frozenset[str]] = {}
    for at in (each for each in places if words[each] in _SIDED_PARTICLES):
        for term in terms(" ".join(words[max(0, at - _WORDS_TO_VERB) : at])):
            particles[term] = particles.get(term, NOTHING) | {words[at]}
    return FunctionWords(
        _sided_function_words().intersection(words[at] for at in places), particles, _targets_in(words)
    )


@cache
def _sided_function_words() -> frozenset[str]:
    """Return the stop words and particles of `ACTS` and `SCOPES`."""
    sides = itertools.chain.from_iterable(groups_of(ACTS) + groups_of(SCOPES))
    return NOTHING.union(*sides) & (STOP_WORDS | _PARTICLES)


def _with_english_particles(words: Sequence[str]) -> list[str]:
    """Return the words with the German particles of verbs, which end a clause, in English: "schalte … aus", "off"."""
    return [
        _GERMAN_PARTICLES.get(word, word) if after in _PAUSES else word
        for word, after in itertools.pairwise([*words, "."])
    ]


def _is_particle(words: Sequence[str], at: int) -> bool:
    """Return True if the word at that place belongs to a verb ("turn it on"), and is no preposition ("on Windows")."""
    if words[at] in {"off", "out", "down", "back"}:
        return True
    lead, verb = words[at - 2] if at > 1 else ".", words[at - 1] if at else "."
    after = words[at + 1] if at + 1 < len(words) else "."
    return (lead in _LEADS_TO_VERB and bool(terms(verb))) or after in _PAUSES | _FOLLOWS_PARTICLE


def _targets_in(words: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return the terms that each direction leads to, up to the next stop word."""
    targets: dict[str, frozenset[str]] = {}
    direction, is_named = "", False
    for before, word in itertools.pairwise(["", *words]):
        found = terms(word)
        if word in _DIRECTIONS:  # "way to", "how to" lead to no thing
            direction, is_named = "" if word == "to" and not terms(before) else _DIRECTIONS[word], False
        elif found and direction:
            targets[direction] = targets.get(direction, NOTHING).union(found)
            is_named = True
        elif word in _PAUSES or (is_named and word != "and"):
            direction = ""
    return targets
