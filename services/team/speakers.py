"""Labels for the speakers of a conversation, and for whom they address, in place of names (SPEC 6).

    one asker       User, Team
    several         User A, User B, … in the order of their first words; Team (to User A) where that is known

It is known whom the team speaks to while only one asker has written, and later from a mention that opened such a turn.
"""

from __future__ import annotations

import re
from itertools import groupby
from operator import itemgetter
from string import ascii_uppercase
from typing import NamedTuple

from services.team.archive import REMOVED, Pair, PairTurn, Speaker

_OPENING = re.compile(r"@([^\s,:;.!?]+)")

_NOTHING = frozenset({"", REMOVED})
"""Texts that say nothing: of people who were forgotten, and of messages that earlier programs kept empty."""


def has_several_askers(pair: Pair) -> bool:
    return len(_askers(pair)) > 1


def labels_of(pair: Pair) -> tuple[str, ...]:
    """Return a label for each turn. When a person's texts are removed, only the "(to …)" of others may change."""
    askers = _askers(pair)
    if len(askers) <= 1:
        return tuple(turn.speaker.value for turn in pair.turns)
    user_label = {author: f"{Speaker.USER} {_letter(at)}" for at, author in enumerate(askers)}
    so_far: set[str] = set()
    mentioned: dict[str, str] = {}
    labels: list[str] = []
    for author, turn in zip(pair.author_ids, pair.turns, strict=True):
        if turn.speaker is Speaker.USER:
            labels.append(user_label[author])
            so_far.add(user_label[author])
            continue
        opening = _OPENING.match(turn.text)
        name = opening[1].casefold() if opening else ""
        to = mentioned.get(name)
        if to is None and len(so_far) == 1:
            (to,) = so_far
            if name:
                mentioned[name] = to
        labels.append(f"{Speaker.TEAM} (to {to})" if to else Speaker.TEAM.value)
    return tuple(labels)


def spoken(pair: Pair) -> list[tuple[str, PairTurn]]:
    """Return the turns that still have text, each with its label."""
    return [(label, turn) for label, turn in zip(labels_of(pair), pair.turns, strict=True) if turn.text not in _NOTHING]


class Utterance(NamedTuple):
    """One or more consecutive messages of one person."""

    label: str
    text: str
    message_ids: tuple[int, ...]


def as_read(pair: Pair) -> list[Utterance]:
    """Return the conversation with consecutive messages of one person joined: many people send a sentence in two
    messages.
    """
    said = zip(labels_of(pair), pair.author_ids, pair.message_ids, pair.turns, strict=True)
    left = [(label, author, message, turn.text) for label, author, message, turn in said if turn.text not in _NOTHING]
    turns = ((label, list(own)) for (label, _), own in groupby(left, key=itemgetter(0, 1)))
    return [
        Utterance(label, "\n".join(text for *_, text in own), tuple(message for _, _, message, _ in own))
        for label, own in turns
    ]


def _askers(pair: Pair) -> list[int]:
    """The users, in the order of their first words."""
    said = zip(pair.author_ids, pair.turns, strict=True)
    return list(dict.fromkeys(author for author, turn in said if turn.speaker is Speaker.USER))


def _letter(place: int) -> str:
    return ascii_uppercase[place] if place < len(ascii_uppercase) else str(place + 1)
