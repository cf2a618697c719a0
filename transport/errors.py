"""What can go wrong between the program and the servers of NATS."""

from __future__ import annotations


class Unfit(Exception):
    """The servers cannot be used as they are: one line that names what differs, and the remedy."""


class Fenced(Exception):
    """Somebody else has taken over what this process was writing: nothing of it is accepted any more."""


class ServerAway(Exception):
    """The servers do not answer, or refuse: one readable line."""
