"""From batches to parts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reactivex import Observable

from model.batches import Batch, Part
from model.messages import AuthorType, Message
from operators.cancel_token import CancelToken
from operators.in_hand import InHand
from operators.spread import spread
from services.history import History
from services.people import People


@dataclass(frozen=True, slots=True)
class Begun:
    """A part, and what may call it off."""

    part: Part
    token: CancelToken


def cut(people: People, history: History, in_hand: InHand) -> Callable[[Observable[Batch]], Observable[Begun]]:
    """Cut each batch where the person replied to changes, and number the parts.

    --[m1, m2→x, m3, m4→y]--------|
    [ cut (a community user)      ]
    --([m1] [m2, m3] [m4])--------|      a team member's m1 would go with m2
    """
    numbers = itertools.count(1)

    def parts(batch: Batch) -> list[Begun]:
        author_type = people.type_of(batch.messages[0].author)
        place = history.place(batch.messages[0].channel_id)
        return [
            Begun(part, in_hand.begin(part))
            for piece in pieces(batch.messages, author_type)
            for part in (Part(next(numbers), piece, author_type, place, batch.closed_at),)
        ]

    return spread(parts)


def pieces(messages: Sequence[Message], author_type: AuthorType) -> list[tuple[Message, ...]]:
    """The messages, cut where the reply target changes.

    A message without a reply stays with what came before it. A leading piece without one joins the next of a team
    member (who often says something before pressing "reply") and stands alone for a community user.
    """
    cuts: list[list[Message]] = []
    target: int | None = None
    for message in messages:
        own = None if message.reply_to is None or message.reply_to.gone else message.reply_to.message_id
        leading = target is None and author_type is AuthorType.TEAM_MEMBER
        if not cuts or (own is not None and own != target and not leading):
            cuts.append([])
        cuts[-1].append(message)
        target = own if own is not None else target
    return [tuple(piece) for piece in cuts]
