"""REST: which handler answers a request, and the checks that all of them share."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.loopback.model import Message, Place
from tests.loopback.payloads import Payload
from tests.loopback.permissions import Permission
from tests.loopback.refusals import invalid_form, missing_access, missing_permissions, unknown
from tests.loopback.state import State


@dataclass(frozen=True)
class Upload:
    """A file of a multipart request."""

    filename: str
    content: bytes


@dataclass(frozen=True)
class Call:
    """A request, read."""

    method: str
    path: str
    """Below `/api/v10`, decoded."""
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    body: object = None
    """The JSON, or the `payload_json` of a multipart form."""
    uploads: Mapping[str, Upload] = field(default_factory=dict[str, Upload])
    """Files of a multipart form by the number of their field: `files[0]` is `0`."""
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """What the path's `{names}` stood for."""

    def id(self, name: str) -> int:
        return int(self.names[name])

    @property
    def form(self) -> Payload:
        """The JSON object sent; empty if there was none."""
        return {str(key): value for key, value in self.body.items()} if isinstance(self.body, dict) else {}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType, reportUnknownMemberType] (JSON from outside)

    def number(self, name: str) -> int | None:
        """An integer of the query string."""
        text = self.query.get(name)
        if text is None:
            return None
        if not text.isdecimal():
            raise invalid_form(name, "NUMBER_TYPE_COERCE", f'Value "{text}" is not int.')
        return int(text)


OPAQUE = frozenset({"emoji", "token"})
"""Parts of a path that may hold anything."""

Answer = Payload | list[Payload] | None
"""The JSON of the answer; None: 204, no content."""
Handler = Callable[[State, Call], Answer]


class Routes:
    """A table of handlers. Ids in `{braces}` match digits, `{emoji}` and `{token}` whatever stands there."""

    def __init__(self) -> None:
        self._table: list[tuple[str, re.Pattern[str], Handler]] = []

    def on(self, method: str, template: str) -> Callable[[Handler], Handler]:
        """Register a handler for `method` and `template`, such as `/channels/{channel}`."""

        def register(handler: Handler) -> Handler:
            self._table.append((method, _pattern(template), handler))
            return handler

        return register

    def match(self, method: str, path: str) -> tuple[Handler, dict[str, str]] | None:
        for known, pattern, handler in self._table:
            found = pattern.fullmatch(path) if known == method else None
            if found is not None:
                return handler, found.groupdict()
        return None


def _pattern(template: str) -> re.Pattern[str]:
    def group(found: re.Match[str]) -> str:
        name = found[1]
        return f"(?P<{name}>{'[^/]+' if name in OPAQUE else '[0-9]+'})"

    return re.compile(re.sub(r"\{(\w+)\}", group, template))


def place_of(state: State, call: Call, needed: Permission = Permission.VIEW_CHANNEL) -> Place:
    """The channel or thread of the request, if the bot may do there what is `needed`.

    Raises:
        Refused: 10003 it does not exist, 50001 it cannot be seen, 50013 this is not allowed there.
    """
    place = state.places.get(call.id("channel"))
    if place is None:
        raise unknown("Channel")
    require(state, place, needed)
    return place


def require(state: State, place: Place, needed: Permission) -> None:
    if not state.may(Permission.VIEW_CHANNEL, place):
        raise missing_access()
    if not state.may(needed, place):
        raise missing_permissions()


def message_of(state: State, call: Call, place: Place) -> Message:
    message = state.find(place.id, call.id("message"))
    if message is None:
        raise unknown("Message")
    return message
