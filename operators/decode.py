"""From Discord's dispatches to events."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from reactivex import Observable

from model.events import Event
from operators.spread import spread
from services.dispatches import Dispatch
from services.payloads import Decoder, OddPayload

log = logging.getLogger(__name__)


def decode() -> Callable[[Observable[Dispatch]], Observable[Event]]:
    """What each dispatch says, if it says anything that concerns us.

        --GUILD_CREATE----TYPING_START--MESSAGE_CREATE--|
        [ decode                                        ]
        --(PlaceSeen …)-----------------Posted----------|

    A payload without what it must have is reported and left out.
    """
    decoder = Decoder()

    def events(dispatch: Dispatch) -> Sequence[Event]:
        try:
            return decoder.decode(dispatch)
        except OddPayload as odd:
            log.warning("a %s was left out: %s", dispatch.t, odd)
            return ()

    return spread(events)
