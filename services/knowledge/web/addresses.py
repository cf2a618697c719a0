"""Which addresses belong to the public internet, in whatever notation or wrapping they come.

The registries are IANA's for IPv4 and IPv6 special-purpose addresses; `ipaddress` knows most of them, and what it
counts as global although nobody's pages lie there is listed here.
"""

from __future__ import annotations

import re
import socket
from contextlib import suppress
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Address = IPv4Address | IPv6Address

_NOT_PUBLIC_4 = (
    IPv4Network("192.0.0.0/24"),  # IETF protocol assignments
    IPv4Network("192.88.99.0/24"),  # once the relays of 6to4, RFC 7526
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
    """The address that `host` spells out, also as `127.1`, `0x7f000001`, `017700000001` or with a dot behind.

    None: it is a name, which only a look-up can tell.
    """
    bare = host.rstrip(".")
    with suppress(ValueError):
        return ip_address(bare)
    if _NUMERIC.fullmatch(bare):
        # What the C library makes of it, and so whoever dials it.
        with suppress(OSError):
            return IPv4Address(socket.inet_aton(bare))
    return None


def _inner(address: IPv6Address) -> IPv4Address | None:
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour
