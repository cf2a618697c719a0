"""Who looks at a page."""

from __future__ import annotations

from typing import NamedTuple


class AdmittedRequest(NamedTuple):
    """One request that was let in.

    Attributes:
        session: empty for who sends the token with each request, and needs no key.
        key: what forms of this session send along.
        logged_in: whether there is something to log out of.
    """

    session: str
    key: str
    logged_in: bool
