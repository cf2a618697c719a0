"""Access to the dashboard: tokens, sessions, allowed host names, and keys for forms."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urlsplit

from model.permissions import OWNER, Operator

COOKIE = "millrace"
SESSION_SECONDS = 12 * 3600.0
MAX_SESSIONS = 200
"""The most sessions of one operator; with one more, the oldest ends."""
FREE_TRIES = 5
"""After so many wrong tokens an address has to wait, each time twice as long."""
MAX_WAIT_SECONDS = 300.0
MAX_ADDRESSES = 2_000
"""The most addresses whose wrong tokens are remembered."""
FORWARDED = frozenset({"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip"})
"""Headers of proxies."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(slots=True)
class _Tries:
    wrong: int = 0
    not_before: float = 0.0


@dataclass(slots=True)
class AccessControl:
    """Decides about requests by their headers.

    Attributes:
        operators: by their tokens. Empty: everybody who reaches the server is its owner, which the assembly allows on
            loopback only.
        host_names: the allowed `Host`s, in lower case. With a token every name is allowed: a page of another name has
            no cookie of this one, and only gets the form to log in.
        clock: gives seconds that only grow.

    Sessions are kept in memory: with the settings, which are read at a start, they end.
    """

    operators: Mapping[str, Operator] = field(repr=False)
    host_names: frozenset[str]
    clock: Callable[[], float]
    _secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    _sessions: dict[str, tuple[float, Operator]] = field(default_factory=dict[str, tuple[float, Operator]], repr=False)
    _tries: OrderedDict[str, _Tries] = field(default_factory=OrderedDict[str, _Tries], repr=False)

    def is_allowed_host(self, headers: Mapping[str, str]) -> bool:
        """Return True if the `Host` header names this server; this prevents DNS rebinding. Without tokens, what a proxy
        passes on from elsewhere is not allowed.
        """
        name = _name_of(headers.get("Host", ""))
        if self.operators or not name:
            return bool(name)
        return (name in LOOPBACK or name in self.host_names) and not any(each in headers for each in FORWARDED)

    def operator_in(self, session: str) -> Operator | None:
        """Return whose session it is; None: it is not valid any more. Without tokens everybody may do everything."""
        if not self.operators:
            return OWNER
        until, operator = self._sessions.get(session, (0.0, OWNER))
        return operator if until > self.clock() else None

    def session_of(self, cookie: str | None) -> str | None:
        """Return the valid session of a cookie, or None. Without operators everybody is in one, which is empty and
        keeps nothing: a page of another origin, whose requests bring no cookie, could fill a list of them.
        """
        if not self.operators:
            return ""
        return cookie if cookie and self.operator_in(cookie) is not None else None

    def begin_session(self, operator: Operator) -> str:
        session = secrets.token_urlsafe(32)
        self._sessions[session] = self.clock() + SESSION_SECONDS, operator
        theirs = [each for each, (_, owner) in self._sessions.items() if owner == operator]
        for oldest in theirs[:-MAX_SESSIONS]:
            del self._sessions[oldest]
        return session

    def end_session(self, session: str) -> None:
        self._sessions.pop(session, None)

    def seconds_to_wait(self, address: str) -> float:
        """Return the seconds for which wrong tokens of this address are refused without being counted."""
        tries = self._tries.get(address)
        return 0.0 if tries is None else max(0.0, tries.not_before - self.clock())

    def find_operator(self, given: str, address: str) -> Operator | None:
        """Return whose token this is. A right token is accepted at any time, as all visitors may come from the address
        of one proxy. A wrong one counts against the address.
        """
        digest = _digest(given)
        # All are compared, so that the time tells nothing about which one it is.
        found = [who for token, who in self.operators.items() if hmac.compare_digest(digest, _digest(token))]
        if found:
            return found[0]
        if self.seconds_to_wait(address):
            return None
        tries = self._tries.setdefault(address, _Tries())
        self._tries.move_to_end(address)
        tries.wrong += 1
        if tries.wrong >= FREE_TRIES:
            tries.not_before = self.clock() + min(MAX_WAIT_SECONDS, 2.0 ** min(9, tries.wrong - FREE_TRIES))
        while len(self._tries) > MAX_ADDRESSES:
            self._tries.popitem(last=False)
        return None

    def form_key(self, session: str) -> str:
        """Make the key that each form of this session has to send."""
        return hmac.new(self._secret, session.encode(), hashlib.sha256).hexdigest()

    def has_form_key(self, session: str, form_key: str) -> bool:
        return hmac.compare_digest(_digest(form_key), _digest(self.form_key(session)))


def is_same_origin(headers: Mapping[str, str]) -> bool:
    """Return True if a form was sent from a page of this server, by the headers Origin and Sec-Fetch-Site."""
    origin, site = headers.get("Origin"), headers.get("Sec-Fetch-Site")
    if site is not None and site not in {"same-origin", "none"}:
        return False
    try:
        return origin is None or urlsplit(origin).netloc.lower() == headers.get("Host", "").lower()
    except ValueError:  # no address at all
        return False


_HOST = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9._-]{1,253})(?::[0-9]{1,5})?", re.ASCII | re.IGNORECASE)
"""A name as browsers send it, in ASCII, or an address, and perhaps a port. Parsers of URLs decode other names as well,
and take a second for a long one.
"""


def _name_of(host: str) -> str:
    found = _HOST.fullmatch(host)
    return "" if found is None else found[1].strip("[]").lower()


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()


class AdmittedRequest(NamedTuple):
    """One request that passed the access check.

    Attributes:
        session: empty if there is no token, or the request had it in a header and needs no key.
        form_key: what each form of this session has to send.
        logged_in: with a session that can be ended; without tokens there is none.
        operator: who it is.
    """

    session: str
    form_key: str
    logged_in: bool
    operator: Operator
