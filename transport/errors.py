"""The errors between the program and the servers of NATS."""

from __future__ import annotations

import errno

from model.outcomes import Reason
from services.conversations import WorkCancelled


class ServersUnusable(Exception):
    """The servers cannot be used as configured. The message is one line: what is wrong, and what to do."""


class Fenced(WorkCancelled):
    """Another process owns this scope of the log now: the server rejects every further write. Work under way here is
    cancelled; the new owner does it again.
    """

    def __init__(self, scope: str) -> None:
        super().__init__(Reason.SHUTDOWN)
        self.scope = scope

    def __str__(self) -> str:
        return f"{self.scope} belongs to another process now"


class ServerAway(OSError):
    """The servers do not answer, or refuse: one readable line. For a caller it is like a disk that is gone."""

    def __init__(self, why: str) -> None:
        super().__init__(errno.EIO, why)

    def __str__(self) -> str:
        return str(self.strerror)
