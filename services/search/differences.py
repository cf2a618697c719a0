"""Decides whether two questions differ: in an opposite, a direction, a number, an owner, or in what else they ask.

A question that is asked now (`new`) is compared with an earlier one (`old`) and the answer that this was given. Each
rule is a function of these three that tells one way in which the answer is not to the new question.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from services import lazy_pattern
from services.search.questions import asking_sentences, prose_of, without_greeting
from services.search.tokenizer import terms
from services.search.wording import (
    ACTS,
    ASK_NOTHING,
    DESTROYING,
    LIGHT_VERBS,
    NOTHING,
    SCOPES,
    Group,
    Wording,
    groups_of,
    sides_of,
    terms_of,
    wording_of,
)


def asks_something_else(question: str, earlier: str, answer: str) -> bool:
    """Return True if a question differs from an `earlier` one, and from its `answer`, in what makes it another one, by
    one of the rules of this module; if it names somebody (`@name`), an option (`-f`) or a language (C++) that neither
    has; or if a word of the earlier one has letters of two alphabets or signs that nobody sees.
    """
    if _HIDES_WORD.search(earlier) or _as_written(question) - _as_written(f"{earlier}\n{answer}"):
        return True
    new, old, told = map(wording_of, (question, earlier, answer))
    if any(differ(new, old, told) for differ in _RULES_FOR_TEXTS):
        return True
    # An earlier one that only reports something is taken as it is.
    both_ask = new.asking.text and old.asking.text
    return bool(both_ask) and any(differ(new, old, told) for differ in _RULES_FOR_QUESTIONS)


def is_another_question(one: str, other: str) -> bool:
    """Return True if one of two questions is about something else, or asks for something besides, that the other does
    not ask for.
    """
    for mine, its in ((one, other), (other, one)):
        if asks_something_else(mine, its, "") or asks_only_among_others(mine, its):
            return True
        if Wording(its).function_words.targets.get("or", NOTHING).difference(terms(mine)):
            return True
    return False


_HIDES_WORD = lazy_pattern(
    r"[🚫❌⛔🔙✖]|:\w+:(?=[^\W\d_])|[A-Za-z][\u0370-\u04ff]|[\u0370-\u04ff][A-Za-z]|(?<=[A-Za-z])[\u00ad\u200b-\u200f\u2060-\u2064\ufeff](?=[A-Za-z])"
)
"""Letters of two alphabets, or a sign that nobody sees, within a word: it is not the one that people read; or a picture
that says the opposite, or says something right before a word.
"""
_AS_WRITTEN = lazy_pattern(r"(?<![\w.])@[\w.-]{1,40}|(?<![\w-])--?[A-Za-z][\w-]{0,40}|(?<!\w)[A-Za-z](?:\+\+|#)")
"""Names and signs that `terms` leaves out."""


def _as_written(text: str) -> set[str]:
    return {each.lower() for each in _AS_WRITTEN.findall(without_greeting(text))}


# Opposites

_NEGATING = ("un", "de", "dis")


def has_opposite_word(
    new: Wording, old: Wording, answer: Wording, *, named: AbstractSet[str] = NOTHING, most_sides: int | None = None
) -> bool:
    """Return True for "turn it on", "turn it off"; "all logs", "my logs"; "install", "uninstall".

    The scopes that the answer names are no opposites, and none of the terms `named`. `most_sides`: only groups of so
    few are looked at; None: all.
    """
    own, other = new.meant - old.meant - named, old.meant - new.meant
    acts = [group for group in groups_of(ACTS) if most_sides is None or len(group) <= most_sides]
    return (
        any(_are_on_two_sides(own, other, group) for group in acts)
        or any(_are_on_two_sides(own - answer.terms, other, group) for group in groups_of(SCOPES))
        or any(f"{prefix}{term}" in old.meant for prefix in _NEGATING for term in own)
        or any(f"{prefix}{term}" in own for prefix in _NEGATING for term in other)
    )


def are_opposite_acts(one: AbstractSet[str], other: AbstractSet[str]) -> bool:
    return any(_are_on_two_sides(one, other, group) for group in groups_of(ACTS))


def _are_on_two_sides(one: AbstractSet[str], other: AbstractSet[str], group: Group) -> bool:
    """Return True if two sets of terms have words of a group, and never of the same side."""
    mine = sides_of(one, group)
    its = sides_of(other, group) if mine else mine
    return bool(its) and mine.isdisjoint(its)


def _names_one_of_two(new: Wording, old: Wording, _: Wording) -> bool:
    """Return True for "how do I enable it", "how do I enable or disable it"."""
    groups = groups_of(ACTS) + groups_of(SCOPES)
    return any(len(group) == len(sides_of(old.meant, group)) > len(sides_of(new.meant, group)) > 0 for group in groups)


def does_without(new: Wording, old: Wording, answer: Wording) -> bool:
    """Return True for "install it without pip", "install it with pip"."""
    lacking = new.excepted & old.meant
    lacked = (old.excepted & new.meant) - new.excepted
    return bool(lacked or (lacking and lacking - old.followed_by(answer).excepted))


# Directions

_REVERSED = (("from", "to"), ("before", "after"), ("over", "under"), ("while", "after"), ("while", "before"))


def leads_elsewhere(new: Wording, old: Wording, _: Wording) -> bool:
    """Return True for "from Git to Jira", "from Jira to Git"; "log in", "log out"; "with pip", "instead of pip"."""
    mine, its = new.function_words, old.function_words
    return (
        any(particles.isdisjoint(its.particles.get(term, particles)) for term, particles in mine.particles.items())
        or _is_beside(mine.targets, its.targets)
        or _is_beside(its.targets, mine.targets)
        or _is_reversed(mine.targets, its.targets)
        or _is_reversed(its.targets, mine.targets)
        or _has_other_targets(mine.targets, its.targets, new.meant & old.meant)
    )


def _is_beside(one: Mapping[str, frozenset[str]], other: Mapping[str, frozenset[str]]) -> bool:
    """Return True if one question has with a thing what the other has instead of it."""
    return "instead" not in one and not one.get("with", NOTHING).isdisjoint(other.get("instead", NOTHING))


def _is_reversed(one: Mapping[str, frozenset[str]], other: Mapping[str, frozenset[str]]) -> bool:
    """Return True if one question comes from where the other goes to, by their targets."""
    for direction, back in _REVERSED:
        comes, goes = one.get(direction, NOTHING), other.get(back, NOTHING)
        is_same = bool(comes and goes) and (comes <= goes or goes <= comes)
        if is_same and comes.isdisjoint(one.get(back, NOTHING)) and goes.isdisjoint(other.get(direction, NOTHING)):
            return True
    return False


def _has_other_targets(
    one: Mapping[str, frozenset[str]], other: Mapping[str, frozenset[str]], shared: AbstractSet[str]
) -> bool:
    """Return True if both name the same things in another order: "A faster than B" and "B faster than A"."""
    for direction in (one.keys() & other.keys()) - {"or"}:
        here, there = one[direction], other[direction]
        is_alike = direction in {"to", "with"} or len(here - there) == len(there - here)
        if here ^ there <= shared and here - there and there - here and is_alike:
            return True
    return False


# Words in the place of others

_MAX_SWAPPED = 3
"""Words of each question in the place of which the other has others."""
_FEWEST_ROLES = 3
"""The order of fewer words says nothing of who does what to whom: "submit homework", "homework is submitted"."""
_LISTED = frozenset({"and", "or", "vs"})
_BETWEEN_THINGS = frozenset({"of", "for", "in", "on", "at"})


def _swaps_words(new: Wording, old: Wording, answer: Wording) -> bool:
    """Return True for "how do I reset the staging database", "how do I reset the live database".

    Not if the answer has the new words. Where one word is in the place of another, that is told only by a sentence that
    says that it holds for both; and so it is where a question is risky, or wants a yes or a no.
    """
    is_decisive = new.is_risky or new.asks_whether or not set(old.matter).issubset(new.matter)
    told = answer.told_of_both if is_decisive else answer.told
    return not set(new.matter).difference(old.matter) <= told and has_other_words(new, old, new.matter)


def has_other_words(new: Wording, old: Wording, matter: Sequence[str]) -> bool:
    """Return True if two questions differ at one place, in one to three words each, that are not of one meaning.
    `matter`: of the new one; it has a term that the old one has not.

    It is enough that the new question has a word of its own where both are risky, where both want a yes or a no and
    nothing else differs, and in languages other than English, of which too little is known of words.
    """
    if not new.is_english:
        return True
    own, lost = set(matter).difference(old.matter), set(old.matter).difference(matter)
    if (new.is_risky and old.is_risky) or (new.asks_whether and old.asks_whether and not lost):
        return not _are_alike(own | lost)
    mine, its = without_shared_ends(matter, old.matter)
    most = _MAX_SWAPPED if old.asks else 1  # a report of trouble says more than who asks of it
    is_one_place = set(mine) == own and (len(mine) < len(matter) or most == 1)
    return is_one_place and 0 < len(its) <= most and len(mine) <= most and not _are_alike({*mine, *its})


def _are_alike(words: AbstractSet[str]) -> bool:
    """Return True if all these terms are of one side of a group."""
    return any(words <= side for group in groups_of(ACTS) + groups_of(SCOPES) for side in group)


def without_shared_ends(one: Sequence[str], other: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return what is left of two lists without what they begin and end with alike."""
    begin = _shared_beginning(one, other)
    one, other = one[begin:], other[begin:]
    end = _shared_beginning(one[::-1], other[::-1])
    return one[: len(one) - end], other[: len(other) - end]


def _shared_beginning(one: Sequence[str], other: Sequence[str]) -> int:
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def _swaps_roles(new: Wording, old: Wording, _: Wording) -> bool:
    """Return True for "can a viewer remove an admin", "can an admin remove a viewer".

    Words that prepositions lead to do not count. Where one has other prepositions, it may say the same ("the date of
    the exam", "the exam date"); and the order of a list says nothing.
    """
    mine, its = new.function_words.targets, old.function_words.targets
    between, between_before = (sorted(_BETWEEN_THINGS.intersection(each.words)) for each in (new, old))
    if mine.keys() != its.keys() or between != between_before or _LISTED.intersection(new.words):
        return False
    roles, roles_before = (
        [each for each in text.matter if all(each not in led_to for led_to in targets.values())]
        for text, targets in ((new, mine), (old, its))
    )
    return len(roles) >= _FEWEST_ROLES and roles != roles_before and set(roles) == set(roles_before)


def _has_other_numbers(new: Wording, old: Wording, answer: Wording) -> bool:
    """Return True for "in version 2", "in version 3"."""
    if not new.numbers or not old.numbers - new.numbers:
        return False
    told = Wording(answer.sentences_of_both) if old.asks else answer
    return bool(new.numbers - old.followed_by(told).numbers)


# What is asked


def _asks_for_judgement(new: Wording, old: Wording, _: Wording) -> bool:
    """Return True for "is it safe to delete it", "how do I delete it"."""
    return new.asking.judged != old.asking.judged


def _asks_for_another_kind(new: Wording, old: Wording, _: Wording) -> bool:
    """Return True for "why is it deleted", "when is it deleted"; "why is it deleted", "how do I delete it"."""
    asked, before = new.asking, old.asking
    if asked.kinds and before.kinds:
        return asked.kinds.isdisjoint(before.kinds)
    if not asked.kinds and not before.kinds:
        return False
    how, other = (before, asked) if asked.kinds else (asked, before)
    verb, thing = how.act
    return (thing if verb in LIGHT_VERBS else verb) in other.terms


def _asks_how_or_whether(new: Wording, old: Wording, _: Wording) -> bool:
    """Return True for "should I update", "how do I update"."""
    return any(
        one.modal in {"should", "must"} and other.asks_how_to and not (one.asks_how_to or other.asks_whether)
        for one, other in ((new.asking, old.asking), (old.asking, new.asking))
    )


def _decides_otherwise(new: Wording, old: Wording, _: Wording) -> bool:
    """Return True for "must I update", "may I update"; "is it free", "is it free for students"."""
    asked, before = new.asking, old.asking
    if not (asked.asks_whether and before.asks_whether):
        return False
    has_other_modal = bool(asked.modal and before.modal) and asked.modal != before.modal
    return (has_other_modal and _LISTED.isdisjoint(before.words)) or set(asked.matter) < set(before.matter)


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


def _decides_about_others(new: Wording, old: Wording, _: Wording) -> bool:
    """Return True for "can I see their files", "can they see mine"; "can I see your files", "can you see mine"."""
    asked, before = new.asking, old.asking
    if not (asked.asks_whether and before.asks_whether):
        return False
    people, people_before = ([_PEOPLE[word] for word in each.words if word in _PEOPLE] for each in (asked, before))
    others, others_before = set(people) - _ANYBODY, set(people_before) - _ANYBODY
    if others and others_before and others != others_before:
        return True
    is_turned = people_before == [_ROLES_TURNED.get(each, each) for each in people]
    return is_turned and not {"I", "my"}.isdisjoint(people) and not {"you", "your"}.isdisjoint(people)


OWN = lazy_pattern(r"\b(?:my|mine|our|own)\b", re.IGNORECASE)


def _is_about_all(new: Wording, old: Wording, answer: Wording) -> bool:
    """Return True for "how do I delete all logs", "how do I delete a log"."""
    asked, before = new.asking, old.asking
    return bool(asked.everything) and not (before.everything or answer.everything or OWN.search(before.text))


def _is_wider(new: Wording, old: Wording, _: Wording) -> bool:
    """Return True for "why is my account slow", "why is my blocked account slow"."""
    matter, matter_before = set(new.asking.matter), set(old.asking.matter)
    if not matter < matter_before:
        return False
    words = [terms(word) for word in old.asking.words]
    described = {each[-1] for each, thing in itertools.pairwise(words) if each and thing and thing[0] in matter}
    return not described.isdisjoint(matter_before - matter)


_TAKING_AND_GIVING = {"get", "give"}
REHEARSING = "test simulate try preview rehearse emulate check verify"


def _acts_on_another(new: Wording, old: Wording, answer: Wording) -> bool:
    """Return True for "how do I reset a phone", "how do I reset a watch"; "how do I undo a merge", "how do I merge"."""
    (verb, thing), verb_before = new.asking.act, old.asking.act.verb
    if not verb:
        return False
    if verb == verb_before:
        return bool(thing) and thing not in old.terms and thing not in answer.told
    return verb_before in new.terms or {verb, verb_before} == _TAKING_AND_GIVING


def _acts_in_earnest(new: Wording, old: Wording, _: Wording) -> bool:
    """Return True for "how do I restore it", "how do I test whether I can restore it"."""
    asked, rehearsing = new.asking, terms_of(REHEARSING)
    return bool(asked.act.verb) and old.asking.act.verb in rehearsing and rehearsing.isdisjoint(asked.matter)


def _keeps_something(new: Wording, old: Wording, answer: Wording) -> bool:
    """Return True for "how do I reset it and keep my files", "how do I reset it"."""
    is_kept = old.asking.speaks_of_keeping or answer.speaks_of_keeping
    return bool(new.asking.act.verb) and new.asking.speaks_of_keeping and not is_kept


def _names_no_condition(new: Wording, old: Wording, answer: Wording) -> bool:
    """Return True for "how do I sign in", "how do I sign in if I have lost my phone"."""
    asked, conditions = new.asking, old.asking.conditions
    is_free = bool(asked.act.verb) and conditions.isdisjoint(asked.conditions)
    return is_free and bool(conditions - new.terms - answer.told)


def _destroys_another(new: Wording, old: Wording, answer: Wording) -> bool:
    """Return True for "how do I delete the cache", "how do I delete the cache of a user"."""
    if not new.asking.destroys:
        return False
    own, lost = set(new.asking.matter) - old.terms - answer.told, set(old.asking.matter) - new.terms
    return bool((own | lost) - terms_of(DESTROYING))


def _is_negated(new: Wording, old: Wording, _: Wording) -> bool:
    """Return True for "why does it start", "why does it not start"."""
    asked, before = new.asking, old.asking
    own, lost = asked.negated - before.negated, before.negated - asked.negated
    return not own.isdisjoint({*before.terms, ""}) or not lost.isdisjoint({*asked.terms, ""})


def _makes_exception(new: Wording, old: Wording, answer: Wording) -> bool:
    """Return True for "how do I install it without pip", "how do I install it"."""
    asked, before = new.asking, old.asking
    if asked.makes_exception != before.makes_exception:
        return True
    return bool(asked.excepted and asked.excepted - before.followed_by(answer).excepted)


_RULES_FOR_TEXTS: tuple[Callable[[Wording, Wording, Wording], bool], ...] = (
    has_opposite_word,
    does_without,
    leads_elsewhere,
    _swaps_words,
    _swaps_roles,
    _names_one_of_two,
    _has_other_numbers,
)
_RULES_FOR_QUESTIONS = (
    _asks_for_judgement,
    _asks_for_another_kind,
    _asks_how_or_whether,
    _decides_otherwise,
    _decides_about_others,
    _is_about_all,
    _is_wider,
    _acts_on_another,
    _acts_in_earnest,
    _keeps_something,
    _names_no_condition,
    _destroys_another,
    _is_negated,
    _makes_exception,
)

# Questions among others

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
    sentences, statements = asking_sentences(earlier)
    # "What is wrong?" asks about what the others say.
    asking = [each for each in sentences if not terms_of(ASK_NOTHING).issuperset(terms(each))]
    if _is_withdrawn(earlier, asking, statements):
        return True
    wanted = set(terms(question))
    asked = [set(terms(each)) - terms_of(ASK_NOTHING) for each in asking]
    nearest = max(asked, key=lambda words: len(words & wanted), default=set[str]())
    if nearest.isdisjoint(wanted):
        return bool(asked) and not wanted.isdisjoint(terms(" ".join(statements)))
    known = wanted | nearest
    beside = [set(terms(each)) - known - terms_of(ASK_NOTHING) for each in statements]
    is_risky = wanted.isdisjoint(terms_of(_SECRETS)) and Wording("\n".join(asking)).is_risky
    return (
        any(words - known for words in asked)
        or (is_risky and any(beside))
        or any(_is_taken_up(words, each, answer) for words, each in zip(beside, statements, strict=True))
    )


def _is_withdrawn(text: str, asking: Sequence[str], statements: Sequence[str]) -> bool:
    start = text.find(asking[0]) if asking else len(text)
    return any(text.find(each) > start and _WITHDRAWS.search(prose_of(each)) for each in statements)


def _is_taken_up(words: set[str], statement: str, answer: str) -> bool:
    """Return True if an answer has enough of these `words` of a statement."""
    taken_up = len(words.intersection(terms(answer))) if words else 0
    return taken_up >= _ENOUGH_TAKEN_UP or (taken_up == 1 and _REQUESTS.search(prose_of(statement)) is not None)
