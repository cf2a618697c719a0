"""Decode a message that a gateway published: the dispatch, and from the header `Place` the thread it was written in."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from nats.aio.msg import Msg

from services.discord import BadLine, Dispatch
from transport.lines import decode_compressed, decode_line
from transport.places import place_payload

OF_A_MESSAGE = frozenset({"MESSAGE_CREATE", "MESSAGE_UPDATE", "MESSAGE_DELETE"})
INTERACTIONS = "INTERACTION_"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReceivedDispatch:
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


def parse_message(message: Msg) -> ReceivedDispatch | None:
    """Decode one message of the stream MESSAGES. None: it is damaged, which is logged; the caller acknowledges it,
    since a retry would not help.
    """
    dispatch = parse_dispatch(message.data)
    if dispatch is None:
        return None
    shown = place_payload(cast("Mapping[str, str] | None", message.headers))
    place = None if shown is None else Dispatch(dispatch.at, "THREAD_CREATE", shown)
    return ReceivedDispatch(dispatch, _concerned(dispatch), place)


def parse_dispatch(data: bytes) -> Dispatch | None:
    """A line, as it is or compressed."""
    try:
        # A line begins with a brace, what zlib writes does not.
        return decode_line(data) if data[:1] == b"{" else decode_compressed(data)
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
