"""Ids as a model gives them back: of sources, topics and conversations.

A model copies what it was shown, and often what stands around it: quotes, backticks, a label.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence

_AROUND = " \t\r\n\"'`[]“”‘’„«»\u200b\ufeff"
_BEFORE = re.compile(r"(?:¦+|[Ii][Dd]\s{0,9}:)\s{0,9}")
_NAMESPACE = re.compile(r"(?:kb|team):(?:@[0-9]{1,20}/)?")


def clean_id(text: str) -> str:
    """`text` without white space, quotes and backticks around it, and without a leading `¦` or `Id:`."""
    cleaned = text.strip(_AROUND)
    while (before := _BEFORE.match(cleaned)) is not None:
        cleaned = cleaned[before.end() :].strip(_AROUND)
    return cleaned


def resolve_ids(named: Iterable[str], known: Collection[str]) -> tuple[list[str], list[str]]:
    """Which of the `known` ids a model has named, and what it has named that is none of them.

    An id counts as named without its namespace (`guide.md` for `kb:guide.md`), or in other letter case, only where no
    other known id could be meant.

    Returns:
        The known ones, in the model's order, each once; the unknown ones as given, each once.
    """
    resolve = _resolver(known)
    found: dict[str, None] = {}
    unknown: dict[str, None] = {}
    for each in named:
        meant = resolve(each)
        if meant is None:
            unknown[each] = None
        else:
            found[meant] = None
    return list(found), list(unknown)


def conversation_label(place: int) -> str:
    """The label of a conversation in a prompt: `c1` for the first one shown (place 0)."""
    return f"c{place + 1}"


def resolve_conversations(named: Iterable[str], shown: Sequence[str]) -> tuple[list[str], list[str]]:
    """Like `resolve_ids`, for conversations: a model may name their ids or their labels. `shown`: the ids in the order
    of the labels.
    """
    by_name = {conversation_label(place): each for place, each in enumerate(shown)} | {each: each for each in shown}
    found, unknown = resolve_ids(named, by_name)
    return list(dict.fromkeys(by_name[each] for each in found)), unknown


def _resolver(known: Collection[str]) -> Callable[[str], str | None]:
    exact = frozenset(known)
    likenesses: list[dict[str, str | None]] = []

    def resolve(text: str) -> str | None:
        cleaned = clean_id(text)
        for given in (text, cleaned):
            if given in exact:
                return given
        if not likenesses:  # of a long index, they take a while to make
            # The stricter form goes first: a form of which there are two known ids names neither.
            likenesses.extend(_by_form(exact, form) for form in (_bare, str.casefold, _bare_in_any_case))
        for ids, given in zip(likenesses, (cleaned, cleaned.casefold(), cleaned.casefold()), strict=True):
            if given in ids:
                return ids[given]
        return None

    return resolve


def _by_form(known: Collection[str], form: Callable[[str], str]) -> dict[str, str | None]:
    """The id by its form; None where several have it."""
    ids: dict[str, str | None] = {}
    for each in known:
        ids[form(each)] = None if form(each) in ids else each
    return ids


def _bare(source_id: str) -> str:
    return _NAMESPACE.sub("", source_id, count=1) if _NAMESPACE.match(source_id) else source_id


def _bare_in_any_case(source_id: str) -> str:
    return _bare(source_id).casefold()
