"""Explains why a server could not be reached, in words that tell an operator what to check. Never repeats the address,
which may hold a password.
"""

from __future__ import annotations

import errno
import socket
import ssl

DNS = "its name is not known (DNS): check the name, and this machine's network"
NO_TLS = "it does not speak TLS there: write http:// instead of https://, or check the port"
REFUSED = "nothing listens there (connection refused): check the port, and that the server runs"
NO_WAY = "there is no way there: check the address, this machine's network and its firewall"
CLOSED = "it closed the connection without an answer: check the port, https or http, and the server's log"
ODD = "check the address, and that the server runs"


def why_unreached(error: Exception) -> str:
    """Return the reason for a failed connection and what to do about it. Completes "cannot be reached: "."""
    import aiohttp  # noqa: PLC0415 (a tenth of a second that most commands do not need)

    cause = getattr(error, "os_error", error)
    number = cause.errno if isinstance(cause, OSError) else None
    certificate = getattr(error, "certificate_error", error)
    if isinstance(certificate, ssl.SSLCertVerificationError):
        why = certificate.verify_message
        return f"its certificate is refused (TLS, {why}): check the name, this machine's clock and its certificates"
    for kinds, numbers, says in (
        ((aiohttp.ClientConnectorDNSError, socket.gaierror), (), DNS),
        ((aiohttp.ClientSSLError, ssl.SSLError), (), NO_TLS),
        ((), (errno.ECONNREFUSED,), REFUSED),
        ((), (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ETIMEDOUT), NO_WAY),
        ((aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, ConnectionResetError), (), CLOSED),
    ):
        if isinstance(error, kinds) or isinstance(cause, kinds) or number in numbers:
            return says
    return ODD
