"""From Discord's dispatches to events."""

from __future__ import annotations

from collections.abc import Callable

from reactivex import Observable

from model.events import Event
from operators.spread import spread
from services.discord import Dispatch
from services.discord.wire import Decoder


def decode(decoder: Decoder | None = None) -> Callable[[Observable[Dispatch]], Observable[Event]]:
    """The events of each dispatch; none for types that are not used.

        --GUILD_CREATE----TYPING_START--MESSAGE_CREATE--|
        [ decode                                        ]
        --(PlaceSeen …)-----------------Posted----------|

    An unusable payload is logged and left out.
    """
    return spread((decoder or Decoder()).decode)
