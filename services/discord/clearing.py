"""What may be written into a recording."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from model.messages import Message
from services.discord.dispatches import RECORDED, Dispatch
from services.discord.wire import OddPayload, message, payloads, quoted

HIDDEN_REMEMBERED = 100_000
"""Ids of opted-out messages kept, so that their reactions and deletions are left out as well."""

KEPT_FIELDS = {
    "READY": ("v", "user", "guilds"),
    "GUILD_CREATE": ("id", "name", "owner_id", "channels", "threads", "roles"),
}
"""READY also has the key to resume the session; GUILD_CREATE the members, who is online and who is speaking."""

Payload = Mapping[str, object]


class Clearing:
    """Removes from dispatches what must not be kept: interactions, what is not used, and messages of people who opted
    out. `opted_out` judges each message and each edit. What cannot be judged is removed.
    """

    def __init__(self, opted_out: Callable[[Message], bool]) -> None:
        self._opted_out = opted_out
        self._hidden: dict[int, None] = {}

    def clear(self, dispatch: Dispatch) -> Dispatch | None:
        """The dispatch as it may be written; None: not at all."""
        if dispatch.t not in RECORDED:
            return None
        try:
            d = self._payload(dispatch.t, dispatch.d)
        except OddPayload:
            return None
        return None if d is None else Dispatch(dispatch.at, dispatch.t, d)

    def _payload(self, t: str, d: Payload) -> Payload | None:
        match t:
            case "MESSAGE_CREATE" | "MESSAGE_UPDATE":
                return self._message(d)
            case "MESSAGE_DELETE":
                return None if payloads.read(payloads.MessageDelete, d).id in self._hidden else d
            case "MESSAGE_DELETE_BULK":
                left = [each for each in payloads.read(payloads.MessageDeleteBulk, d).ids if each not in self._hidden]
                return {**d, "ids": [str(each) for each in left]} if left else None
            case "MESSAGE_REACTION_ADD" | "MESSAGE_REACTION_REMOVE":
                return None if payloads.read(payloads.MessageReaction, d).message_id in self._hidden else d
            case _:
                kept = KEPT_FIELDS.get(t)
                return d if kept is None else {key: d[key] for key in kept if key in d}

    def _message(self, d: Payload) -> Payload | None:
        sent, target = message(d), quoted(d)
        if self._is_hidden(sent):
            self._hidden[sent.id] = None
            if len(self._hidden) > HIDDEN_REMEMBERED:
                del self._hidden[next(iter(self._hidden))]
            return None
        # A forward copies a message without its author: whether they opted out is unknown.
        cleared = {key: value for key, value in d.items() if key != "message_snapshots"}
        if d.get("referenced_message") is not None and (target is None or self._is_hidden(target)):
            del cleared["referenced_message"]
        return cleared

    def _is_hidden(self, sent: Message) -> bool:
        return sent.id in self._hidden or self._opted_out(sent)
