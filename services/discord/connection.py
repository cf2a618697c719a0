"""Whether the live connection is alive, and why it was refused: without importing discord.py."""

from __future__ import annotations

PATIENCE_SECONDS = 180.0
"""SPEC section 11: `/healthz` answers 200 unless the gateway has been away for more than 3 minutes."""


class GatewayRefused(Exception):
    """Discord refuses this bot, and a retry cannot help. The message is one line that names the setting to change."""


class Health:
    """Whether the gateway is alive. All times are in seconds since 1970, UTC.

    Attributes:
        since: when it was last connected or disconnected.
    """

    def __init__(self, at: float) -> None:
        self.connected = False
        self.since = at
        self._heard_at = at

    def up(self, at: float) -> None:
        """A session has begun or was resumed."""
        self.connected, self.since, self._heard_at = True, at, at

    def down(self, at: float) -> None:
        """The connection is lost. Only the first of several failures counts."""
        if self.connected:
            self.connected, self.since = False, at

    def heard(self, at: float) -> None:
        """Any frame. Heartbeats are acknowledged every 41 s, so one comes from a quiet server as well."""
        self._heard_at = at

    def problem(self, at: float) -> str | None:
        """Why the gateway counts as dead, in words; None while it is alive."""
        if not self.connected:
            away = at - self.since
            return f"disconnected for {away:.0f} s" if away > PATIENCE_SECONDS else None
        silent = at - self._heard_at
        return f"connected, but silent for {silent:.0f} s" if silent > PATIENCE_SECONDS else None
