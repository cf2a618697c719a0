"""What the bot posted, as a test wants to look at it."""

from __future__ import annotations

from dataclasses import dataclass

from tests.loopback.mentions import Pings
from tests.loopback.model import Message, Place, Thread
from tests.loopback.payloads import Payload


@dataclass(frozen=True, eq=False)
class Post:
    """One message the bot posted. A repeated nonce makes no second one."""

    message: Message
    payload: Payload
    """The request's JSON."""

    @property
    def id(self) -> int:
        return self.message.id

    @property
    def content(self) -> str:
        """As posted, whatever became of it later."""
        return str(self.payload.get("content") or "")

    @property
    def place(self) -> Place:
        return self.message.place

    @property
    def thread(self) -> Thread | None:
        return self.place if isinstance(self.place, Thread) else None

    @property
    def nonce(self) -> str | None:
        return self.message.nonce

    @property
    def reference(self) -> int | None:
        """The id of the message it replies to."""
        return None if self.message.link is None else self.message.link.message_id

    @property
    def allowed_mentions(self) -> Payload | None:
        """None: the payload had none, and Discord pings whoever is named."""
        return self.payload.get("allowed_mentions")

    @property
    def pings(self) -> Pings:
        return self.message.pings

    @property
    def at(self) -> float:
        return self.message.at
