"""What can go wrong between the program and the servers of NATS."""

from __future__ import annotations

from model.outcomes import Reason
from services.conversations import CalledOff


class Unfit(Exception):
    """The servers cannot be used as they are: one line that names what differs, and the remedy."""


class Fenced(CalledOff):
    """Somebody else has taken over what this process was writing: nothing of it is accepted any more. What was under
    way is called off here, and done there.
    """

    def __init__(self, scope: str) -> None:
        super().__init__(Reason.SHUTDOWN)
        self.scope = scope

    def __str__(self) -> str:
        return f"{self.scope} belongs to another process now"


class ServerAway(Exception):
    """The servers do not answer, or refuse: one readable line."""
