"""Which URLs may be fetched, by their spelling alone, and which addresses belong to the public internet.

The registries are IANA's for IPv4 and IPv6 special-purpose addresses; `ipaddress` knows most of them. What it counts as
global although no pages are there is listed here.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Collection
from contextlib import suppress
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from yarl import URL

from services.knowledge.pages import FetchFailed

Address = IPv4Address | IPv6Address

_NOT_PUBLIC_4 = (
    IPv4Network("192.0.0.0/24"),  # IETF protocol assignments
    IPv4Network("192.88.99.0/24"),  # formerly the relays of 6to4, RFC 7526
    IPv4Network("168.63.129.16/32"),  # Azure's platform, which answers inside virtual machines only
)
_NOT_PUBLIC_6 = (
    IPv6Network("2001::/23"),  # IETF protocol assignments, Teredo among them
    IPv6Network("3fff::/20"),  # documentation, RFC 9637
)
_UNICAST_6 = IPv6Network("2000::/3")
"""All that IANA has given out as global unicast."""
_NAT64 = IPv6Network("64:ff9b::/96")
"""RFC 6052: a gateway passes these on to the IPv4 address in their last 32 bits."""

_NUMERIC = re.compile(r"[0-9a-fx.]+", re.IGNORECASE)
_HOST = re.compile(r"[a-z0-9_.-]+|[0-9a-f:]+")
"""A name as it is looked up (after IDNA), or an IPv6 address without a zone."""


def checked_url(text: str, private_hosts: Collection[str]) -> URL:
    """`text` as it will be dialled: nothing parses the text a second time, and perhaps differently.

    `private_hosts` are as `host_key` gives them. A fragment is left out.

    Raises:
        FetchFailed: it is no http or https URL, holds a user or password, or spells out an address (or names this
            machine) that is not public.
    """
    try:
        # Without surrogates, which no address can hold and not every parser rejects.
        url = URL(text.encode().decode()).with_fragment(None)
    except ValueError:
        raise FetchFailed("it is not a valid URL") from None
    return allowed(url, private_hosts)


def allowed(url: URL, private_hosts: Collection[str]) -> URL:
    """`url` itself; raises as `checked_url` does."""
    if url.scheme not in {"http", "https"}:
        raise FetchFailed("only http and https URLs are fetched")
    if "@" in url.raw_authority:
        raise FetchFailed("a URL that holds a user or password is not fetched")
    host = host_key(url.raw_host or "")
    if not _HOST.fullmatch(host) or not url.port:
        raise FetchFailed("it is not a valid URL")
    if host not in private_hosts and _is_private(host):
        raise FetchFailed("its address is not public; hosts of your own belong in kb.web_fetch_private_hosts")
    return url


def host_key(host: str) -> str:
    """A host in the one spelling in which hosts are compared."""
    return host.strip().lower().removeprefix("[").removesuffix("]").rstrip(".")


def is_public(address: Address) -> bool:
    """Whether `address` is an ordinary address of the public internet.

    An IPv6 address that stands for an IPv4 one (mapped, 6to4, NAT64) is judged as that one; Teredo never is public.
    """
    if isinstance(address, IPv4Address):
        # Global multicast and what is reserved for the future count as global in some versions of Python.
        return (
            address.is_global
            and not address.is_multicast
            and not address.is_reserved
            and not any(address in network for network in _NOT_PUBLIC_4)
        )
    if address.scope_id is not None:
        return False
    inner = _inner(address)
    if inner is not None:
        return is_public(inner)
    return address in _UNICAST_6 and address.is_global and not any(address in network for network in _NOT_PUBLIC_6)


def literal(host: str) -> Address | None:
    """The address that `host` spells out, also as `127.1`, `0x7f000001`, `017700000001` or with a final dot; None: it
    is a name, to be looked up.
    """
    bare = host.rstrip(".")
    with suppress(ValueError):
        return ip_address(bare)
    if _NUMERIC.fullmatch(bare):
        # As the C library reads it, which will dial it.
        with suppress(OSError):
            return IPv4Address(socket.inet_aton(bare))
    return None


def _inner(address: IPv6Address) -> IPv4Address | None:
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour


def _is_private(host: str) -> bool:
    address = literal(host)
    if address is None:
        return host == "localhost" or host.endswith(".localhost")
    return not is_public(address)
