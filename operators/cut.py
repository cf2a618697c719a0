"""From batches to parts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Sequence

from reactivex import Observable

from model.batches import Batch, Key, Part
from model.messages import AuthorType, Message, Reference
from operators.spread import spread
from services.conversations import History, InFlight, People

Addressee = Callable[[Reference], Hashable]
"""Whom a reply is to."""


def cut(people: People, history: History, in_flight: InFlight) -> Callable[[Observable[Batch]], Observable[Part]]:
    """Cut each batch where the person replied to changes, and number the parts.

    --[m1, m2→x, m3, m4→y]--------|
    [ cut (a community user)      ]      x and y are messages of two people
    --([m1] [m2, m3] [m4])--------|      a team member's m1 would go with m2
    """
    numbers = itertools.count(1)

    def parts(batch: Batch) -> list[Part]:
        author_type = people.type_of(batch.messages[0].author)
        place = history.place(batch.messages[0].channel_id)
        cuts = pieces(batch.messages, author_type, addressee_in(history))
        begun = [Part(next(numbers), piece, author_type, place, batch.closed_at) for piece in cuts]
        for part in begun:
            in_flight.begin(part)
        return begun

    return spread(parts)


def addressee_in(history: History) -> Addressee:
    """The place and author of the message replied to, or the reference itself where that message is not in memory.

    Discord sends the message along with a reply: one that is missing was deleted, or is old. The place counts, since
    what is said in a private channel must not be in one part with what is said in public.
    """

    def addressee(reference: Reference) -> Hashable:
        target = history.known(reference.channel_id, reference.message_id)
        return reference if target is None else Key(target.channel_id, target.author.id)

    return addressee


def pieces(messages: Sequence[Message], author_type: AuthorType, addressee: Addressee) -> list[tuple[Message, ...]]:
    """The messages, cut where the person replied to changes.

    A message without a reply stays with what came before it. A leading piece without one joins the next of a team
    member (who often says something before pressing "reply") and stands alone for a community user.
    """
    cuts: list[list[Message]] = []
    towards: Hashable = None
    for message in messages:
        reference = message.reply_to
        own = None if reference is None or reference.gone else addressee(reference)
        leading = towards is None and author_type is AuthorType.TEAM_MEMBER
        if not cuts or (own is not None and own != towards and not leading):
            cuts.append([])
        cuts[-1].append(message)
        towards = own if own is not None else towards
    return [tuple(piece) for piece in cuts]
