"""What a gateway writes and a worker reads: a line of a recording, and beside it what only its cache knows."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from nats.aio.msg import Msg

from services.discord import BadLine, Dispatch
from transport.lines import dispatch_of, unpacked
from transport.places import place_payload

OF_A_MESSAGE = frozenset({"MESSAGE_CREATE", "MESSAGE_UPDATE", "MESSAGE_DELETE"})
INTERACTIONS = "INTERACTION_"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Received:
    """A dispatch as it came.

    Attributes:
        message_ids: the messages that it is about: itself, or what it changes.
        place: introduces the thread that it is in.
    """

    dispatch: Dispatch
    message_ids: tuple[int, ...]
    place: Dispatch | None = None

    @property
    def interaction(self) -> Mapping[str, Any] | None:
        """The payload of a call of a command."""
        return self.dispatch.d if self.dispatch.t.startswith(INTERACTIONS) else None


def received(message: Msg) -> Received | None:
    """None: nobody could read it, which is logged; it would be no better the next time."""
    dispatch = parsed(message.data)
    if dispatch is None:
        return None
    shown = place_payload(cast("Mapping[str, str] | None", message.headers))
    place = None if shown is None else Dispatch(dispatch.at, "THREAD_CREATE", shown)
    return Received(dispatch, _concerned(dispatch), place)


def parsed(data: bytes) -> Dispatch | None:
    """A line, as it is or compressed."""
    try:
        # A line begins with a brace, what zlib writes does not.
        return dispatch_of(data) if data[:1] == b"{" else unpacked(data)
    except BadLine as error:
        log.error("a message from the gateway cannot be read, and is left out: %s", error)  # noqa: TRY400 (a line for the operator)
        return None


def _concerned(dispatch: Dispatch) -> tuple[int, ...]:
    given = dispatch.d
    if dispatch.t in OF_A_MESSAGE:
        ids: object = [given.get("id")]
    elif dispatch.t == "MESSAGE_DELETE_BULK":
        ids = given.get("ids")
    else:
        return ()
    listed = cast("list[object]", ids) if isinstance(ids, list) else []
    return tuple(int(str(each)) for each in listed if str(each).isdecimal())
