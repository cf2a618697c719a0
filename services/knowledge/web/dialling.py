"""Connections that lead to public addresses only: each is looked up once, checked, and dialled as it was checked."""

from __future__ import annotations

import socket
from ipaddress import ip_address

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from services.knowledge.pages import FetchFailed
from services.knowledge.web.addresses import is_public

_AddressInfo = tuple[int, int, int, str, tuple[object, ...]]
"""Family, type, protocol, name and address, as `getaddrinfo` gives them."""


class PublicOnly(AbstractResolver):
    """Looks up with `inner`, and refuses a name if any one of its addresses is not public.

    A name that leads to the inside among others is either a mistake or an attack on whoever picks at random.
    """

    def __init__(self, inner: AbstractResolver) -> None:
        self._inner = inner

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found = await self._inner.resolve(host, port, family)
        if not all(_dialled_is_public(result["host"]) for result in found):
            raise FetchFailed(
                "its host name leads to an address that is not public; hosts of your own belong in "
                "kb.web_fetch_private_hosts"
            )
        return found

    async def close(self) -> None:
        await self._inner.close()


def connector(resolver: AbstractResolver, *, public_only: bool) -> aiohttp.TCPConnector:
    """For one request, and one connection after the other.

    aiohttp dials exactly the addresses that the resolver gives. Looked up anew for each connection and kept by
    nobody, so that what was checked for one request is never used, unchecked, by another.
    """
    return aiohttp.TCPConnector(
        resolver=PublicOnly(resolver) if public_only else resolver,
        use_dns_cache=False,
        force_close=True,
        socket_factory=_public_socket if public_only else _socket,
    )


def _public_socket(info: _AddressInfo) -> socket.socket:
    """The last gate before the dialling: addresses that stand in the URL itself pass no resolver."""
    if not _dialled_is_public(str(info[4][0])):
        raise PermissionError("not a public address")
    return _socket(info)


def _socket(info: _AddressInfo) -> socket.socket:
    family, kind, protocol, _, _ = info
    return socket.socket(family, kind, protocol)


def _dialled_is_public(address: str) -> bool:
    try:
        return is_public(ip_address(address))
    except ValueError:
        return False  # whatever it is, it is none that was checked
