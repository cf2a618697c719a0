"""Whether two questions are two: by an opposite, a direction, a number, whose it is, or what is asked besides."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import NamedTuple

from services import lazy_pattern
from services.search.languages import ENGLISH, language_of
from services.search.questions import AUXILIARY, OPENING, SENTENCE_END, asking_sentences, prose_of, without_greeting
from services.search.tokenizer import STOP_WORDS, terms

_ACTS = """
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
_SCOPES = """
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


@lru_cache(maxsize=2)
def _sides(table: str) -> tuple[tuple[frozenset[str], ...], ...]:
    """Return for each group of a table the terms of its sides."""
    groups = table.replace("\n", ";").split(";")
    return tuple(
        tuple(frozenset(terms(side)) | STOP_WORDS.intersection(side.split()) for side in each.split("/"))
        for each in groups
        if each
    )


@lru_cache(maxsize=1)
def _exclusive_terms() -> tuple[tuple[frozenset[str], ...], ...]:
    return _sides(_ACTS) + _sides(_SCOPES)


@lru_cache(maxsize=8)
def _terms_of(words: str) -> frozenset[str]:
    """Return the terms of one of the lists of this module."""
    return frozenset(terms(words))


_WORD_OR_PAUSE = lazy_pattern(r"[\w'’+#-]+|[.,;:!?()\n]")
_JOINED_PARTICLE = lazy_pattern(r"\b(log|sign|opt)-?(in|out|off|on|up)\b", re.IGNORECASE)
_NO_PARTICLE = lazy_pattern(
    r"\b(?:figure|figuring|find|finding|found|work|working|run|running|ran) out\b|\b(?:at|after|first of) all\b"
    r"|\ball (?:of (?:a )?sudden|day|night|the time)\b|\blet (?:me|us) know\b",
    re.IGNORECASE,
)
_PARTICLES = frozenset({"on", "off", "in", "out", "up", "down", "back"})
_LEADS_TO_VERB = frozenset(["i", "we", "you", "they", "to", "please", "not", "cannot", "and", "or", *".,;:!?()\n"])
_FOLLOWS_PARTICLE = frozenset(["to", "from", "of", "for", "with", "in", "on", "at", "by", "again", "when", "and", "or"])
_PAUSES = frozenset(".,;:!?()\n")
_SIDED_PARTICLES = frozenset({"in", "out", "up", "back"})
_WORDS_TO_VERB = 3
_DIRECTIONS = {"into": "to", "onto": "to", "by": "with", "during": "while"} | {
    each: each for each in ("from", "to", "with", "over", "under", "than", "before", "after", "while", "instead", "or")
}
"""Words that lead to another thing, each with the direction that it stands for."""
_REVERSED = (("from", "to"), ("before", "after"), ("over", "under"), ("while", "after"), ("while", "before"))
_NOTHING = frozenset[str]()


class _FunctionWords(NamedTuple):
    """The meaning of the stop words of a question, which `terms` leaves out.

    Attributes:
        words: those of `_ACTS` and `_SCOPES`; "on" and "up" only behind a verb ("turn it on").
        particles: "in", "out", "up" and "back" behind a verb, by each of the terms in front of them ("log in to").
        targets: by direction, the terms of what it leads to: "from A to B".
    """

    words: frozenset[str]
    particles: Mapping[str, frozenset[str]]
    targets: Mapping[str, frozenset[str]]


@lru_cache(maxsize=256)
def _function_words_in(question: str) -> _FunctionWords:
    text = _NO_PARTICLE.sub(" ", _JOINED_PARTICLE.sub(r"\1 \2", without_greeting(question)))
    words = [each.removesuffix("'s").removesuffix("’s") for each in _WORD_OR_PAUSE.findall(text.lower())]
    words = _with_english_particles(words)
    exclusive = frozenset[str]().union(*itertools.chain.from_iterable(_exclusive_terms()))
    places = [at for at, each in enumerate(words) if each not in _PARTICLES or _is_particle(words, at)]
    particles: dict[str, frozenset[str]] = {}
    for at in (each for each in places if words[each] in _SIDED_PARTICLES):
        for term in terms(" ".join(words[max(0, at - _WORDS_TO_VERB) : at])):
            particles[term] = particles.get(term, _NOTHING) | {words[at]}
    said = {words[at] for at in places}
    return _FunctionWords(exclusive & said & (STOP_WORDS | _PARTICLES), particles, _targets_in(words))


_GERMAN_PARTICLES = {"an": "on", "ein": "on", "aus": "off", "ab": "off"}


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
            targets[direction] = targets.get(direction, _NOTHING).union(found)
            is_named = True
        elif word in _PAUSES or (is_named and word != "and"):
            direction = ""
    return targets


def _goes_elsewhere(one: _FunctionWords, other: _FunctionWords, shared: set[str]) -> bool:
    """Return True if one question turns in or up what the other turns out; if one goes to where the other comes from;
    if one has with a thing what the other has instead of it; or if both name the same two things (`shared`) in another
    order: "A faster than B" and "B faster than A".
    """
    both = one.particles.keys() & other.particles.keys()
    if any(one.particles[term].isdisjoint(other.particles[term]) for term in both):
        return True
    for mine, its in ((one.targets, other.targets), (other.targets, one.targets)):
        is_beside = "instead" not in mine and not mine.get("with", _NOTHING).isdisjoint(its.get("instead", _NOTHING))
        if is_beside or _is_reversed(mine, its):
            return True
    for direction in (one.targets.keys() & other.targets.keys()) - {"or"}:
        here, there = one.targets[direction], other.targets[direction]
        is_alike = direction in {"to", "with"} or len(here - there) == len(there - here)
        if here ^ there <= shared and here - there and there - here and is_alike:
            return True
    return False


def _is_reversed(one: Mapping[str, frozenset[str]], other: Mapping[str, frozenset[str]]) -> bool:
    """Return True if one question comes from where the other goes to, by their targets."""
    for direction, back in _REVERSED:
        comes, goes = one.get(direction, _NOTHING), other.get(back, _NOTHING)
        is_same = bool(comes and goes) and (comes <= goes or goes <= comes)
        if is_same and comes.isdisjoint(one.get(back, _NOTHING)) and goes.isdisjoint(other.get(direction, _NOTHING)):
            return True
    return False


_HIDES_WORD = lazy_pattern(
    r"[🚫❌⛔🔙✖]|:\w+:(?=[^\W\d_])|[A-Za-z][\u0370-\u04ff]|[\u0370-\u04ff][A-Za-z]|(?<=[A-Za-z])[\u00ad\u200b-\u200f\u2060-\u2064\ufeff](?=[A-Za-z])"
)
"""Letters of two alphabets, or a sign that nobody sees, within a word: it is not the one that people read; or a picture
that says the opposite, or says something right before a word.
"""
_MARKUP = lazy_pattern(r"[*~`]+|(?<!\w)_+|_+(?!\w)|\|\|")
_NEGATION_APART = lazy_pattern(r"\b(un|de|dis|non)[-_/.:\"')\]]{1,3}(?=[^\W\d_]{3})", re.IGNORECASE)
_UN_APART = lazy_pattern(r"\bun (?=[a-z]{4})", re.IGNORECASE)
_NEGATING = ("un", "de", "dis")
_KEEP_FROM = lazy_pattern(
    r"\bkeep(?:ing)?((?:\s+\w{1,20}){1,3}\s+from)\b|\b(?:wo|does|did|do)(?:n['’]t|\s+not)\s+let\b",
    re.IGNORECASE,
)
_BACK_UP = lazy_pattern(r"\bback(?:ed|ing|s)? up\b", re.IGNORECASE)
_NUMBER_IN_QUESTION = lazy_pattern(r"\d[\d.]*|(?<=[a-z]\s)[A-HJ-Z](?![\w'’+#&-])")
"""Numbers, and letters that count things: "version B"."""
_WITHOUT = lazy_pattern(r"\b(?:without|ohne|sans|sin)((?:[^\S\n]+[\w-]+){1,3})", re.IGNORECASE)
_EXCEPT = lazy_pattern(
    r"\b(?:except(?:\s+for)?|excluding|excepting|(?:other|different)\s+than|apart\s+from|aside\s+from|save\s+for|außer|ausgenommen"
    r"|bis\s+auf|sauf|excepto|salvo|(?:all|any|every|no)\w*(?:\s+\w{1,20}){0,4}\s+but)((?:[^\S\n]+[\w-]+){1,3})",
    re.IGNORECASE,
)


def asks_something_else(question: str, earlier: str, answer: str) -> bool:
    """Return True if a question differs from an `earlier` one, and from its `answer`, in a word that makes it another
    one: an opposite (disable, enable; turn on, turn off) or another act (restore, back up), a system, whose or how many
    (my, all, one), a number such as a version, "not", "without", another direction (from A to B, from B to A) or other
    roles (A deletes B, B deletes A).

    True, too, if it names somebody (`@name`), an option (`-f`) or a language (C++) that neither has; if the two ask for
    things of different kinds (why, when); if the question leaves out a word of the
    earlier one, or has others at the same place; if that names both of two opposites and the question one of them; or
    if a word of it has letters of two alphabets or signs that nobody sees.
    """
    if _HIDES_WORD.search(earlier) or _as_written(question) - _as_written(f"{earlier}\n{answer}"):
        return True
    question, earlier, answer = map(_with_whole_verbs, (question, earlier, answer))
    if _is_opposite(question, earlier, answer):
        return True
    if _swaps_words(question, earlier, answer) or _swaps_roles(question, earlier):
        return True
    if _is_asked_otherwise(question, earlier, answer):
        return True
    new, old = (_meant_by(text) for text in (question, earlier))
    for group in _exclusive_terms():
        now, before = ([at for at, side in enumerate(group) if side & words] for words in (new, old))
        if len(group) == len(before) > len(now) > 0:
            return True
    numbers = _numbers_in(question)
    told = _numbers_in(f"{earlier}\n{_told_of_both(answer) if asking_sentences(earlier)[0] else answer}")
    return bool(numbers - told and _numbers_in(earlier) - numbers)


_AS_WRITTEN = lazy_pattern(r"(?<![\w.])@[\w.-]{1,40}|(?<![\w-])--?[A-Za-z][\w-]{0,40}|(?<!\w)[A-Za-z](?:\+\+|#)")
"""Names and signs that `terms` leaves out."""


def _as_written(text: str) -> set[str]:
    return {each.lower() for each in _AS_WRITTEN.findall(without_greeting(text))}


def _with_whole_verbs(text: str) -> str:
    """Return a text without markup, where a verb of several words is one: "un-install" and, in English, "un install",
    "back up"; "prevent" for "keep somebody from".
    """
    joined = _NEGATION_APART.sub(r"\1", _MARKUP.sub("", text))
    if language_of(joined) != ENGLISH:
        return joined
    return _KEEP_FROM.sub(r"prevent\1", _BACK_UP.sub("backup", _UN_APART.sub("un", joined)))


_LIGHT_VERBS = frozenset({"do", "get", "make", "put", "switch", "turn"})
_MOST_SWAPPED = 3
"""Words of each question in the place of which the other has others."""


def _swaps_words(question: str, earlier: str, answer: str, *, is_heading: bool = False) -> bool:
    """Return True if two questions differ at one place, in one to three words each ("reset the staging database" and
    "reset the live production database"), unless the words are of one meaning or the answer has the new ones.

    `is_heading`: of a section whose text is `answer`; words of the question that the text has are left out.

    A word in the place of another is told only by a sentence that says that it holds for both; so is any word where a
    question is risky, or wants a yes or a no. It is enough that the new question has a word of its own where both are
    risky, where both want a yes or a no and nothing else differs, and in languages other than English, of which too
    little is known of words.
    """
    new, old = (_matter_of(text) for text in (question, earlier))
    own, lost = set(new).difference(old), set(old).difference(new)
    decides, is_risky = bool(_AUXILIARY.search(question)), _is_risky(question)
    told = _told_in(answer, of_both=is_risky or (not is_heading and (decides or bool(lost))))
    if not own or own <= told:
        return False
    if is_heading:
        new = [each for each in new if each in old or each not in told]
        own = set(new).difference(old)
    if language_of(question) != ENGLISH:
        return True
    if (is_risky and _is_risky(earlier)) or (decides and not lost and _AUXILIARY.search(earlier)):
        return not _are_alike(own, lost)
    mine, its = _apart(new, old)
    most = _MOST_SWAPPED if asking_sentences(earlier)[0] else 1  # a report of trouble says more than who asks of it
    is_one_place = set(mine) == own and (len(mine) < len(new) or most == 1)
    if not is_one_place or not 0 < len(its) <= most or len(mine) > most:
        return False
    return not _are_alike(mine, its)


def _are_alike(mine: Iterable[str], its: Iterable[str]) -> bool:
    """Return True if all these terms are of one side of a group."""
    return any({*mine, *its} <= side for group in _exclusive_terms() for side in group)


_NOT = (
    r"\b(?:not|no|never|cannot|cant|dont|doesnt|wont|isnt|[a-z]{2,6}n['’]t|nicht|nie|niemals|kein(?:e[nmrs]?)?|pas|jamais"
    r"|nunca|não)\b"
)
_SAYS_OTHERWISE = lazy_pattern(
    rf"{_NOT}|\b(?:nobody|else|an?other|other|different|only|except|unless|would|again|afterwards)\b", re.IGNORECASE
)


_OF_BOTH = lazy_pattern(
    r"^\W{0,9}(?:yes\W{1,3})?(?:like|as|same)\b|\b(?:both|also|too|as\s+well|either|same|whether)\b"
    r"|\b(?:this|that|it)\s+(?:applies|holds|goes\s+for)\b",
    re.IGNORECASE,
)


def _is_risky(question: str) -> bool:
    """Return True if a question asks how to do something, or whether to, that may do harm with another thing; for a
    judgement, or for an amount.
    """
    if _JUDGED.search(question) or _AMOUNT.search(question):
        return True
    found = _HOW_TO.search(question) or _WHETHER_TO.search(question) or _WHAT_TO.search(question)
    if found is None:
        return False
    acts = {found[1].lower(), *terms(found[1]), *_destroying_next(found)}
    stops = "off" in _function_words_in(question).words
    return stops or not acts.isdisjoint(_terms_of(_DESTROYING) | frozenset(_RISKY.split()))


def _told_in(answer: str, *, of_both: bool = False) -> set[str]:
    """Return the terms of an answer, but for sentences that say where it does not hold. `of_both`: only of those that
    say where it holds as well.
    """
    return set(terms(_told_of_both(answer) if of_both else "\n".join(_told_sentences(answer))))


def _told_sentences(answer: str) -> list[str]:
    return [each for each in SENTENCE_END.split(answer) if not _SAYS_OTHERWISE.search(each)]


def _told_of_both(answer: str) -> str:
    """Return the sentences of an answer that say where it holds as well ("As on Linux: …", "the same for wheels")."""
    return "\n".join(filter(_OF_BOTH.search, _told_sentences(answer)))


def _apart(one: Sequence[str], other: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return what is left of two lists without what they begin and end with alike."""
    begin = _shared_beginning(one, other)
    one, other = one[begin:], other[begin:]
    end = _shared_beginning(one[::-1], other[::-1])
    return one[: len(one) - end], other[: len(other) - end]


def _shared_beginning(one: Sequence[str], other: Sequence[str]) -> int:
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


_FEWEST_ROLES = 3
"""Who does what to whom: of two words ("submit homework", "homework is submitted") the order says nothing."""
_LISTED = frozenset({"and", "or", "vs"})
_BETWEEN_THINGS = frozenset({"of", "for", "in", "on", "at"})


def _swaps_roles(question: str, earlier: str) -> bool:
    """Return True if two questions have the same words in another order, apart from what prepositions lead to: "can a
    viewer remove an admin". Where one has other prepositions, it may say the same ("the date of the exam", "the exam
    date"); and the order of a list says nothing.
    """
    mine, its = _function_words_in(question).targets, _function_words_in(earlier).targets
    words, words_before = (_WORD_OR_PAUSE.findall(text.lower()) for text in (question, earlier))
    between, between_before = (sorted(_BETWEEN_THINGS.intersection(each)) for each in (words, words_before))
    if mine.keys() != its.keys() or between != between_before or _LISTED.intersection(words):
        return False
    new, old = (
        [each for each in _matter_of(text) if all(each not in led_to for led_to in targets.values())]
        for text, targets in ((question, mine), (earlier, its))
    )
    return len(new) >= _FEWEST_ROLES and new != old and set(new) == set(old)


_NEGATES = lazy_pattern(rf"{_NOT}(?!\s+let\b)", re.IGNORECASE)
"""But what "won't let me" is trouble, and asked for without a "not" as well."""
_JUDGED = lazy_pattern(
    r"\b(?:is|isn['’]t|was|be)\s+(?:it|this|that)\s+(?:\w{1,20}\s+)?(safe|dangerous|risky|harmful|right|wrong|normal|necessary|recommended|best|legal"
    r"|bad|good|ok|okay|required|enough)\b",
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
"""How something is done: the verb, and what stands behind it."""
_WHETHER_TO = lazy_pattern(
    r"^\W{0,9}(?:(?:can|may|might|could|should|must)\s+(?:i|we|one)|is\s+it\s+\w{1,20}\s+to|(?:do|would)\s+(?:i|we|you)\s+(?:have|need)\s+to)\s+(\w+)\s*((?:[\w'’+#-]+\s*){0,4})",
    re.IGNORECASE | re.MULTILINE,
)
"""The same for whether something may, must or should be done."""
_WHAT_TO = lazy_pattern(
    r"\b(?:which|what|where|when|whom?|how\s+\w+)\b[^?\n]{0,60}\b(?:do|can|could|should|must|may)\s+(?:i|we|one)\s+(\w+)\s*((?:[\w'’+#-]+\s*){0,4})",
    re.IGNORECASE,
)
"""The same for what, where and when."""
_AMOUNT = lazy_pattern(
    r"\bhow\s+(?:much|many|long|often)\b[^?\n]{0,60}\b(?:may|can|should|must)\s|\b(?:what|which)\s+dos(?:e|age)\b",
    re.IGNORECASE,
)
_RISKY = """
accept allow approve buy disable disconnect drink eat execute expose give grant move open overwrite pay publish replace
run send share shut sign stop take tell transfer trust unplug withdraw
"""
"""Acts that may do harm where they are done with another thing, beside those that destroy."""
_KEEPS = lazy_pattern(
    r"\b(?:keep(?:ing|s)?|kept|preserv\w{1,4}|retain\w{0,3}|surviv\w{1,4}|los(?:e|es|ing|t)|loss(?:es)?|behalten|verlier\w{1,3})\b",
    re.IGNORECASE,
)
"""Words for things that are to be there afterwards."""
_CONDITION = lazy_pattern(
    r"\w\s{1,4}(?:if|when|while|unless|once|until|as\s+long\s+as|wenn|falls|solange|sobald)\s([^?.!\n]{1,120})",
    re.IGNORECASE,
)
_TAKING_AND_GIVING = {"get", "give"}
_KEEPING = "keep preserve retain"
_REHEARSING = "test simulate try preview rehearse emulate check verify"
_EVERYTHING = frozenset({"all", "every", "everyone", "everybody", "everything", "whole", "entire"})


def _is_asked_otherwise(question: str, earlier: str, answer: str) -> bool:
    """Return True if two questions that share their words ask for other things.

    - One negates what the other does not, asks for a judgement ("is it safe to …"), or does without something; or one
      excepts something ("all but the logs").
    - Of two that ask for yes or no, one asks about others, or whether one must, and the other whether one may.
    - They ask for things of different kinds: why, when, who, how many.
    - One asks how to undo or avoid what the other asks how to do, to do it to another thing, or to keep something; or
      how to destroy, and one has a word of its own; or the earlier one is how to test it, or to do it on a condition.
    - The earlier one is about something particular ("a blocked account"), and the other about all of its kind.

    An earlier one that only reports something is taken as it is.
    """
    asked, before = ("\n".join(asking_sentences(without_greeting(text))[0]) for text in (question, earlier))
    if not asked or not before:
        return False
    return (
        _asks_for_another_kind(asked, before)
        or _decides_otherwise(asked, before)
        or _is_wider(asked, before, answer)
        or _acts_otherwise(asked, before, question, earlier, answer)
        or _negates_otherwise(asked, before, answer)
    )


def _acts_otherwise(asked: str, before: str, question: str, earlier: str, answer: str) -> bool:
    """Return True if a question is how to do something else than the earlier one: undo it, do it to another thing, keep
    something, do it in earnest, or on no condition; or if it is how to destroy, and one has a word of its own.
    """
    (act, thing), (earlier_act, _) = _act_in(asked), _act_in(before)
    if not act:
        return False
    told = _told_in(answer)
    if act == earlier_act:
        is_another = bool(thing) and thing not in {*terms(earlier), *told}
    else:
        is_another = earlier_act in terms(question) or {act, earlier_act} == _TAKING_AND_GIVING
    keeps = _KEEPS.search(asked) and not _KEEPS.search(f"{before}\n{answer}")
    new, old = set(_matter_of(asked)), set(_matter_of(before))
    apart = (new - set(terms(earlier)) - told - _terms_of(_DESTROYING)) or (
        old - set(terms(question)) - _terms_of(_DESTROYING)
    )
    condition = _conditions_of(before)
    only_if = condition - set(terms(question)) - told if condition.isdisjoint(_conditions_of(asked)) else _NOTHING
    rehearses = earlier_act in _terms_of(_REHEARSING) and _terms_of(_REHEARSING).isdisjoint(new)
    return bool(is_another or keeps or only_if or rehearses or (apart and act in _terms_of(_DESTROYING)))


def _negates_otherwise(asked: str, before: str, answer: str) -> bool:
    """Return True if one question negates what the other does not, or excepts something; or if the new one does without
    something.
    """
    negated, denied = _negated_in(asked), _negated_in(before)
    is_negated = (negated - denied) & {*terms(before), ""} or (denied - negated) & {*terms(asked), ""}
    is_excepted = bool(_EXCEPT.search(asked)) != bool(_EXCEPT.search(before))
    return bool(is_negated or is_excepted or _left_out(asked) - _left_out(f"{before}\n{answer}"))


_AUXILIARY = lazy_pattern(
    rf"{OPENING}(?:(?P<should>should|shall|would\s+you|is\s+it\s+(?:better|best|advisable|worth))"
    r"|(?P<must>must|need|(?:do|does|did|will|would)\s+(?:\w+\s+){1,3}(?:have|need)\s+to|(?:is|are|am)\s+(?:\w+\s+){1,2}(?:required|obliged|supposed))"
    r"|(?P<may>can|could|may|might|(?:is|are|am)\s+(?:\w+\s+){1,2}(?:possible|allowed|able|permitted)))\b"
    rf"|{AUXILIARY}",
    re.IGNORECASE | re.MULTILINE,
)
"""The beginning of a question that wants a yes or a no; its group tells whether one should, must or may."""
_PEOPLE = {
    word: person
    for person, words in {
        "I": "i we",
        "me": "me us",
        "my": "my mine our ours",
        "you": "you",
        "your": "your yours",
        "they": "they he she",
        "them": "them him",
        "their": "their theirs his her hers",
    }.items()
    for word in words.split()
}
_ANYBODY = frozenset({"I", "my", "you", "your"})
_ROLES_TURNED = {"I": "you", "you": "I", "my": "your", "your": "my"}


def _decides_otherwise(asked: str, before: str) -> bool:
    """Return True if two questions want a yes or a no, and one is about others: "can they see mine", "can I see
    theirs"; or one asks whether one must, and the other whether one may; or the earlier one has a word more.
    """
    mine, its = _AUXILIARY.search(asked), _AUXILIARY.search(before)
    if mine is None or its is None:
        return False
    is_choice = _LISTED.intersection(_WORD_OR_PAUSE.findall(before.lower()))
    if mine.lastgroup and its.lastgroup and mine.lastgroup != its.lastgroup and not is_choice:
        return True
    if set(_matter_of(asked)) < set(_matter_of(before)):  # "is it free", "is it free for students"
        return True
    people, people_before = (
        [_PEOPLE[word] for word in _WORD_OR_PAUSE.findall(text.lower()) if word in _PEOPLE] for text in (asked, before)
    )
    others, others_before = set(people) - _ANYBODY, set(people_before) - _ANYBODY
    if others and others_before and others != others_before:
        return True
    is_turned = people_before == [_ROLES_TURNED.get(each, each) for each in people]
    return is_turned and not {"I", "my"}.isdisjoint(people) and not {"you", "your"}.isdisjoint(people)


def _asks_for_another_kind(asked: str, before: str) -> bool:
    """Return True if one question asks why and the other when, or only one for a judgement; or if one asks for any of
    these, and the other how the same is done.
    """
    kinds, other_kinds = ({each.lastgroup for each in _ASKS_FOR.finditer(text)} for text in (asked, before))
    judged, judged_before = ({each.lower() for each in _JUDGED.findall(text)} for text in (asked, before))
    if judged != judged_before or (kinds and other_kinds and kinds.isdisjoint(other_kinds)):
        return True
    if _asks_how_or_whether(asked, before) or _asks_how_or_whether(before, asked):
        return True
    act, thing = _act_in(before if kinds else asked)
    is_same = (thing if act in _LIGHT_VERBS else act) in terms(asked if kinds else before)
    return bool(kinds) != bool(other_kinds) and is_same


def _asks_how_or_whether(one: str, other: str) -> bool:
    """Return True if one question is whether something should or must be done, and the other only how."""
    whether = _AUXILIARY.search(one)
    is_whether = whether is not None and whether.lastgroup in {"should", "must"}
    return is_whether and bool(_HOW_TO.search(other)) and not (_HOW_TO.search(one) or _AUXILIARY.search(other))


def _is_wider(asked: str, before: str, answer: str) -> bool:
    """Return True if a question is about all of a kind, and the earlier one about some: by "all", or by a word that it
    leaves out before a thing that both name.
    """
    said = _EVERYTHING.intersection(_WORD_OR_PAUSE.findall(f"{before}\n{answer}".lower()))
    if not said and not _OWN.search(before) and _EVERYTHING.intersection(_WORD_OR_PAUSE.findall(asked.lower())):
        return True
    new, old = set(_matter_of(asked)), set(_matter_of(before))
    words = [terms(word) for word in _WORD_OR_PAUSE.findall(before.lower())]
    described = {each[-1] for each, thing in itertools.pairwise(words) if each and thing and thing[0] in new}
    return new < old and not described.isdisjoint(old - new)


def _act_in(text: str) -> tuple[str, str]:
    """Return the verb of the first "how do I …" or "can I …", and the first term behind it ("make a backup": "backup");
    "" each if there is none.
    """
    found = _HOW_TO.search(text) or _WHETHER_TO.search(text)
    if found is None or (found[1].lower() == "do" and not terms(found[2])):  # "how do I do that?"
        return "", ""
    if following := _destroying_next(found):  # "how do I factory reset …"
        return following[0], next(iter(terms(found[2])[1:]), "")
    act, *things = [*(terms(found[1]) or [found[1].lower()]), *terms(found[2])]
    if things and act in {"do", "make"}:
        act, *things = things
    return act, next(iter(things), "")


def _destroying_next(found: re.Match[str]) -> list[str]:
    """Return the term of the second word of an act, of `_HOW_TO`, if it destroys: "force delete"."""
    return [each for each in terms(found[2].partition(" ")[0]) if each in _terms_of(_DESTROYING)]


def _negated_in(text: str) -> set[str]:
    """Return the term behind each "not" or "no" of a text; "" where nothing follows, such as behind "geht nicht"."""
    behind = (_WORD_OR_PAUSE.findall(text[found.end() : found.end() + 80]) for found in _NEGATES.finditer(text))
    clauses = (itertools.takewhile(lambda word: word not in _PAUSES, words) for words in behind)
    return {next((each[0] for each in map(terms, clause) if each), "") for clause in clauses}


def _matter_of(question: str) -> list[str]:
    """Return the terms of a question in order, without those that name no matter."""
    found = terms(without_greeting(question))
    return [each for each in dict.fromkeys(found) if each not in _terms_of(_ASK_NOTHING) | _LIGHT_VERBS]


def _tells_another_act(asking: str, headings: Sequence[str], text: str) -> bool:
    """Return True if the last heading has the act of a question for another thing, on a condition that the question
    does not name, or, if it destroys, for fewer things; or if it is about testing, and the question about doing.
    """
    (act, thing), (*above, heading) = _act_in(asking), headings
    first = terms(heading.partition(" ")[0])
    if not act:
        return False
    if [act] != first:
        is_rehearsal = act not in _terms_of(_REHEARSING) and not _terms_of(_REHEARSING).isdisjoint(first)
        keeps = act in _terms_of(_DESTROYING) and not _terms_of(_KEEPING).isdisjoint(first)
        is_opposite = keeps or _are_opposites({act}, set(first))
        return is_rehearsal or (is_opposite and act not in _told_in(text))
    wanted = {*terms(asking), *terms("\n".join(above))}
    narrower = thing and act in _terms_of(_DESTROYING) and set(_matter_of(heading)) - wanted - _terms_of(_DESTROYING)
    return bool(narrower or _conditions_of(heading) - wanted) or _swaps_words(asking, heading, text, is_heading=True)


def _are_opposites(one: AbstractSet[str], other: AbstractSet[str]) -> bool:
    """Return True if two sets of terms are on different sides of a group of `_ACTS`, and never on the same."""
    for group in _sides(_ACTS):
        mine, its = ({at for at, side in enumerate(group) if side & terms_of} for terms_of in (one, other))
        if mine and its and mine.isdisjoint(its):
            return True
    return False


def _conditions_of(text: str) -> set[str]:
    return {term for clause in _CONDITION.findall(text) for term in terms(clause)}


def _is_below_another(asking: str, headings: Sequence[str], text: str) -> bool:
    """Return True if a question has the words of a section's own heading, all but one, and a heading between that and
    the title has other words or numbers than the question, which in turn has some that the section has not:
    "Staging › Reset the server", and "How do I reset the production server?".
    """
    wanted, own, between = set(_matter_of(asking)), set(_matter_of(headings[-1] if headings else "")), headings[1:-1]
    if not between or len(own - wanted) > min(1, len(own) - 1):
        return False
    above, section = "\n".join(between), "\n".join([*headings, text])
    narrower = (set(terms(above)) | _numbers_in(above)) - wanted - _numbers_in(asking)
    return bool(narrower and (wanted | _numbers_in(asking)) - set(terms(section)) - _numbers_in(section))


class Place(NamedTuple):
    """Where a section stands.

    Attributes:
        path: the folders of its page, the title, and the headings down to its own.
        pages: how many of the path name pages: the folders and the title.
    """

    path: tuple[str, ...]
    pages: int


def is_for_another(question: str, place: Place, text: str, others: Iterable[Place]) -> bool:
    """Return True if a section of the documentation is for somebody or something else than the question names.

    - One of the `others`, beside it or below, has words of the question alone in its name, and the section, at the same
      level, none: *Dosage › Adults*, beside *Dosage › Children*. Of pages only those count whose places differ in one
      word: *ios › Backup*, *android › Backup*.
    - In English, a word of its headings stands beside another one than in the question: *Pro plan*, "in the Enterprise
      plan"; *Model B*, "of Model C". For a question about an act that destroys, a word of the text, too.

    What the `text` of the section has as well is no such word, and neither is what is to be done.
    """
    asking = _with_whole_verbs("\n".join(asking_sentences(question)[0]) or question)
    held = _named_in("\n".join([*place.path, text]))
    wanted, act = _named_in(asking), frozenset(_act_in(asking))
    missing = wanted - held
    if not missing:
        return False
    for each in set(others) - {place}:
        own, its = _apart_at(place, each)
        if its & missing and its <= wanted and own.isdisjoint(wanted):
            return True
    if not wanted.isdisjoint(_terms_of(_DESTROYING)) and _has_another_behind(asking, text, held):
        return True
    if language_of(asking) != ENGLISH:  # stop words of others stand between what they join
        return False
    headings = place.path[min(place.pages, len(place.path) - 1) :]
    return any(_has_another_neighbour(asking, each, held, act) for each in headings if not _AUXILIARY.search(each))


def _apart_at(place: Place, other: Place) -> tuple[AbstractSet[str], AbstractSet[str]]:
    """Return what each of two places names, and the other does not, where they part; nothing if `other` is above the
    first, or if they are pages that differ in more than one word.
    """
    at = next((at for at, pair in enumerate(zip(place.path, other.path, strict=False)) if pair[0] != pair[1]), None)
    if at is None and len(other.path) <= len(place.path):
        return _NOTHING, _NOTHING
    if at is None:
        return _NOTHING, _named_in(other.path[len(place.path)]) - _named_in("\n".join(place.path))
    own, its = _named_in(place.path[at]), _named_in(other.path[at])
    if at < max(place.pages, other.pages):
        mine, theirs = _apart(_terms_of_page(place.path[: place.pages]), _terms_of_page(other.path[: other.pages]))
        if len(mine) != 1 or len(theirs) != 1:
            return _NOTHING, _NOTHING
    return own - its, its - own


@lru_cache(maxsize=512)
def _terms_of_page(path: tuple[str, ...]) -> list[str]:
    return [term for part in path for term in terms(part)]


@lru_cache(maxsize=512)
def _named_in(text: str) -> frozenset[str]:
    """Return the terms of a text that name a matter, its numbers, and letters that count things ("Model C")."""
    return frozenset((*_matter_of(text), *_numbers_in(text)))


def _has_another_neighbour(asking: str, heading: str, held: AbstractSet[str], act: AbstractSet[str]) -> bool:
    """Return True if a question has a word of a heading behind another word than the heading, or before another
    number or letter, which the section does not hold; and not the one that the heading has.
    """
    asked, wanted = _pairs_of(asking), _named_in(asking)
    for first, second in _pairs_of(heading):
        for before, after in asked:
            if second == after and first not in wanted and before not in {*held, *act, *_LIGHT_VERBS}:
                return True
            is_sign = after[:1].isdigit() or len(after) == 1
            if first == before and is_sign and second not in wanted and not _holds_number(after, held):
                return True
    return False


def _has_another_behind(asking: str, text: str, held: AbstractSet[str]) -> bool:
    """Return True if a question has a word of a text before another word, which the section does not hold; and not the
    one that the text has: "the folder data", "the folder cache".
    """
    asked, wanted = _pairs_of(asking), _named_in(asking)
    told = [(first, second) for first, second in _pairs_of(text) if second not in wanted]
    return any(one == first and other not in held for first, _ in told for one, other in asked)


def _holds_number(number: str, held: AbstractSet[str]) -> bool:
    """Return True if a set has a number, or one that it is a part of: 2.1 of 2."""
    return any(number == each or number.startswith(f"{each}.") or each.startswith(f"{number}.") for each in held)


def _pairs_of(text: str) -> list[tuple[str, str]]:
    """Return the pairs of words that stand side by side, without stop words and pauses between them."""
    written = _WORD_OR_PAUSE.findall(text)
    # One word by itself begins a sentence, as an article may: "A" is a letter only behind another word.
    words = [min(_named_in(f"x {each}" if len(each) == 1 else each), default="") for each in written]
    return [(one, other) for one, other in itertools.pairwise(words) if one and other and one != other]


_DESTROYING = """
clear delete deletion destroy drop erase format kill purge remove removal reset revoke terminate uninstall wipe rid
"""


_IS_DONE = lazy_pattern(
    r"\b(?:has|have|had|was|were|is|are|got|been|i|we|they|he|she|somebody|someone|accidentally)\s+(?:\w{1,20}\s+){0,3}"
    r"(?:deleted|removed|wiped|erased|dropped|reset|lost|purged|uninstalled|revoked|gone)\b",
    re.IGNORECASE,
)


def _destroys_unasked(asking: str, heading: str) -> bool:
    """Return True if a heading begins with an act that destroys, and a question asks how to do something else, or what
    to do after it was done.
    """
    if _terms_of(_DESTROYING).isdisjoint(_matter_of(heading)[:1]):
        return False
    act, thing = _act_in(asking)
    if act:
        return _terms_of(_DESTROYING).isdisjoint([act, thing] if act in _LIGHT_VERBS else [act])
    kinds = {each.lastgroup for each in _ASKS_FOR.finditer(asking)}
    if not kinds.isdisjoint({"reason", "person"}):
        return True
    return not kinds and bool(_IS_DONE.search(asking)) and not _AUXILIARY.search(asking)


_UNDOING = "undo revert reverse rollback"


def _undoes_or_widens(asking: str, section: str) -> bool:
    """Return True if a question asks how to undo something, or how to destroy all of a kind, and the section says
    nothing of either.
    """
    (act, _), told = _act_in(asking), set(terms(section))
    if act in _terms_of(_UNDOING):
        return told.isdisjoint(_terms_of(_UNDOING))
    words, said = (_EVERYTHING.intersection(_WORD_OR_PAUSE.findall(each.lower())) for each in (asking, section))
    return act in _terms_of(_DESTROYING) and bool(words) and not said


def is_about_opposite(question: str, headings: Sequence[str], text: str) -> bool:
    """Return True if a section of the documentation is about an opposite of what is asked, or leads elsewhere, by its
    headings or by all those sentences of its `text` that have the most terms of `question`; or, in English, if its
    heading has the same act and another thing ("Reset the staging server"), stands below a heading about another thing,
    or is about destroying, and the question how to do something else ("I deleted it: how do I get it back?").
    """
    asking = _with_whole_verbs("\n".join(asking_sentences(question)[0]) or question)
    headings = [_with_whole_verbs(each) for each in headings]
    text = _with_whole_verbs(text)
    heading = _EACH.sub(" ", "\n".join(headings))
    if _is_opposite(asking, heading, text, _told_in(text), _MOST_SIDES):
        return True
    if headings and _destroys_unasked(asking, headings[-1]):
        return True
    if (
        _act_in(asking)[0] in _terms_of(_DESTROYING)
        and _KEEPS.search(asking)
        and not _KEEPS.search(f"{heading}\n{text}")
    ):
        return True
    if headings and language_of(asking) == ENGLISH and _tells_another_act(asking, headings, text):
        return True
    if _is_below_another(asking, headings, text) or _undoes_or_widens(asking, f"{heading}\n{text}"):
        return True
    # A page speaks to everybody: what is the asker's own is in no contrast to what holds for all.
    asked, wanted = _WITHOUT.sub(" ", _OWN.sub(" ", asking)), set(terms(question))
    shared = [(len(wanted.intersection(terms(each))), each) for each in SENTENCE_END.split(_EACH.sub(" ", text))]
    most = max(shared)[0]
    enough = min(_ENOUGH_SHARED, max(1, len(wanted) - 1))  # a word of a short question may be the opposite itself
    nearest = [f"{heading}\n{_WITHOUT.sub(' ', each)}" for count, each in shared if count == most >= enough]
    named = _meant_by(text)
    return bool(nearest) and all(_is_opposite(asked, each, text, named, _MOST_SIDES) for each in nearest)


_ENOUGH_SHARED = 2
"""Terms that a sentence of a page shares with a question."""
_MOST_SIDES = 5
"""Pages name acts as things, too ("shadow copies"): a group of more sides, those of acts, is not looked at."""
_OWN = lazy_pattern(r"\b(?:my|mine|our|own)\b", re.IGNORECASE)
_EACH = lazy_pattern(r"\b(?:each|every)\b", re.IGNORECASE)
"""What holds for each thing holds for one."""


def _is_opposite(
    question: str, earlier: str, answer: str, named: AbstractSet[str] = _NOTHING, most_sides: int | None = None
) -> bool:
    """Return True if a question has the opposite of a word of `earlier`, does without what that has, or leads
    elsewhere. The scopes that the `answer` names are no opposites, and none of the terms `named`. `most_sides`: only
    groups of so few are looked at; None: all.
    """
    mine, its = _function_words_in(question), _function_words_in(earlier)
    new, old = _meant_by(question), _meant_by(earlier)
    own, other, told = new - old - named, old - new, set(terms(answer))
    for group in (each for each in _exclusive_terms() if most_sides is None or len(each) <= most_sides):
        left = own - told if group in _sides(_SCOPES) else own
        asked, said = ({at for at, side in enumerate(group) if side & words} for words in (left, other))
        if asked and said and asked.isdisjoint(said):
            return True
    if any(f"{prefix}{term}" in old for prefix in _NEGATING for term in own) or any(
        f"{prefix}{term}" in own for prefix in _NEGATING for term in other
    ):
        return True
    lacking = _left_out(question) & old - _left_out(f"{earlier}\n{answer}")
    lacked = _left_out(earlier) & new - _left_out(question)
    return bool(lacking or lacked) or _goes_elsewhere(mine, its, new & old)


def _meant_by(question: str) -> set[str]:
    """Return the terms of a question, and the stop words that have a meaning in it."""
    return set(terms(question)) | _function_words_in(question).words


_REQUESTS = lazy_pattern(
    r"""\b(?:i|we)(?:['’]d|\s+would)?\s+(?:\w+\s+)?(?:need|want|like|wish)\b | \b(?:tell|give|show|send)\s+(?:me|us)\b
    | \bich\s+(?:will|möchte|brauche|suche|hätte\s+gern) | \b(?:sag|sagt|zeig|zeigt|gib|gebt)\s+mir\b""",
    re.IGNORECASE | re.VERBOSE,
)
_WITHDRAWS = lazy_pattern(
    r"\b(?:(?:forget|scrap)\s+(?:it|that)|no\s+wait|nvm|never\s*mind|solved|works?\s+(?:now|again)|hat\s+sich\s+erledigt"
    r"|vergiss\s+(?:es|das)|geht\s+(?:jetzt|wieder))\b",
    re.IGNORECASE,
)


_SECRETS = "password passphrase pin login"
"""To reset them harms nobody."""
_ENOUGH_TAKEN_UP = 2
"""An answer with so many words of a statement beside the question is for those of whom that is true."""


def asks_only_among_others(question: str, earlier: str, answer: str = "") -> bool:
    """Return True if only a part of an `earlier` question is about what `question` asks: a second sentence of it asks
    something besides, with a word that neither `question` nor the sentence nearest to that has; or only what stands
    beside its questions has words of `question`. Also if the `answer` has two words of a statement beside it that
    `question` has not, or one of what somebody wants ("I need …"); if a statement beside a risky question has a word of
    its own ("It's a test box."); or if the question is withdrawn behind it ("never mind, solved").

    Then nobody knows whether the answer was to that part, and anybody may have put it there to be quoted to others.
    """
    asking, others = _sentences_with_matter(earlier)
    wanted = set(terms(question))
    asked = [set(terms(each)) - _terms_of(_ASK_NOTHING) for each in asking]
    nearest = max(asked, key=lambda words: len(words & wanted), default=set[str]())
    behind = earlier.find(asking[0]) if asking else len(earlier)
    if any(earlier.find(each) > behind and _WITHDRAWS.search(prose_of(each)) for each in others):
        return True
    if nearest & wanted:
        answered = set(terms(answer)) - wanted - nearest - _terms_of(_ASK_NOTHING)
        taken_up = [(answered.intersection(terms(each)), _REQUESTS.search(prose_of(each))) for each in others]
        asks_besides = any(words - wanted - nearest for words in asked)
        if _is_risky("\n".join(asking)) and not wanted & _terms_of(_SECRETS):
            told_besides = any(set(terms(each)) - wanted - nearest - _terms_of(_ASK_NOTHING) for each in others)
            asks_besides = asks_besides or told_besides
        return asks_besides or any(len(words) >= (1 if request else _ENOUGH_TAKEN_UP) for words, request in taken_up)
    return bool(asked) and bool(set(terms(" ".join(others))) & wanted)


def is_another_question(one: str, other: str) -> bool:
    """Return True if one of two questions is about something else, or asks for something besides, that the other does
    not ask for.
    """
    for mine, its in ((one, other), (other, one)):
        if asks_something_else(mine, its, "") or asks_only_among_others(mine, its):
            return True
        if _function_words_in(its).targets.get("or", _NOTHING).difference(terms(mine)):
            return True
    return False


def _sentences_with_matter(question: str) -> tuple[Sequence[str], Sequence[str]]:
    """Return what `asking_sentences` does, without sentences that ask about what the others say ("What is wrong?")."""
    asking, others = asking_sentences(question)
    return [each for each in asking if set(terms(each)) - _terms_of(_ASK_NOTHING)], others


_ASK_NOTHING = """
advice anybody anyone best correct explain fix happen happening help hint idea know mean missing miss normal possible
possibly problem issue proper properly recommend reason resolve right safe solution solve somebody someone suggest
suggestion thought tip way work wrong able please thanks ideas ways works issues problems knows helps anyones
command option setting step use
"""


def _numbers_in(text: str) -> set[str]:
    """Return the numbers, without zeros behind the point: 95.00 is 95."""
    found = (each.rstrip(".") for each in _NUMBER_IN_QUESTION.findall(text))
    return {each.rstrip("0").rstrip(".") if "." in each else each for each in found}


def _left_out(text: str) -> set[str]:
    """Return the terms of what a text does without, or excepts."""
    return {term for pattern in (_WITHOUT, _EXCEPT) for words in pattern.findall(text) for term in terms(words)}
