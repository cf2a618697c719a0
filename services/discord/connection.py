"""What the rest of the program knows of the live connection: whether it is alive, and why it was refused.

Kept apart from the modules that import `discord`, so that the command line can name these without loading it.
"""

from __future__ import annotations

PATIENCE_SECONDS = 180.0
"""SPEC section 11: `/healthz` answers 200 unless the gateway has been away for more than 3 minutes."""


class GatewayRefused(Exception):
    """Discord will not let this bot connect, and asking again cannot help.

    The message is one line for the operator: what was refused, and which setting is the remedy.
    """


class Health:
    """Whether the gateway is alive. Times are seconds since 1970, UTC, and handed in by the caller."""

    def __init__(self, at: float) -> None:
        self.connected = False
        self.since = at
        """When it was last connected or disconnected."""
        self._heard_at = at

    def up(self, at: float) -> None:
        """A session has begun or was resumed."""
        self.connected, self.since, self._heard_at = True, at, at

    def down(self, at: float) -> None:
        """The connection is lost. Failing again to connect does not move the time since when."""
        if self.connected:
            self.connected, self.since = False, at

    def heard(self, at: float) -> None:
        """Any frame at all. Heartbeats are acknowledged every 41 s, so that even a quiet server is heard."""
        self._heard_at = at

    def problem(self, at: float) -> str | None:
        """Why the gateway counts as dead, in words; None while it is alive."""
        if not self.connected:
            away = at - self.since
            return f"disconnected for {away:.0f} s" if away > PATIENCE_SECONDS else None
        silent = at - self._heard_at
        return f"connected, but silent for {silent:.0f} s" if silent > PATIENCE_SECONDS else None
