"""Sends one HTTP request: to public addresses only, and bounded in size."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from services.knowledge.web_interface import FetchFailed

Address = IPv4Address | IPv6Address

# What `ipaddress` counts as global although IANA's registries of special-purpose addresses know better.
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
_HOST = re.compile(r"[a-z0-9_.-]+|[0-9a-f:]+(?:\.\d{1,3}){3}|[0-9a-f:]+")
"""A name as it is looked up (after IDNA), or an IPv6 address without a zone; one that stands for an IPv4 address may
end with it, as Python 3.13 writes it.
"""


def checked_url(text: str, private_hosts: Collection[str]) -> URL:
    """Parse a URL and check that it may be fetched. The result is what is dialled, so that nothing parses the text a
    second time.

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
    """Return whether `address` is an ordinary address of the public internet.

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
    """Return the address that `host` spells out (also as `127.1`, `0x7f000001`, `017700000001` or with a final dot), or
    None if it is a name to be looked up.
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


PAGES = frozenset({200, 203})
"""Statuses whose body is the page: OK, and OK as a proxy has changed it."""

_CHUNK_BYTES = 65_536
_ENCODINGS = frozenset({"", "identity", "gzip", "deflate", "br", "zstd"})
"""What aiohttp unpacks, the last two only where their packages are installed. It passes others on as they are."""

_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (aiohttp.ClientConnectorDNSError, "its host name cannot be looked up"),
    (aiohttp.ClientSSLError, "no secure connection can be made to it"),
    (aiohttp.ClientPayloadError, "its body is damaged or breaks off"),
    (aiohttp.ServerDisconnectedError, "the connection was closed before it had answered"),
    (OSError, "the connection broke off"),
)

_AddressInfo = tuple[int, int, int, str, tuple[object, ...]]
"""Family, type, protocol, name and address, as `getaddrinfo` gives them."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The response of the server at `url`. `headers` ignore case; `body` is decompressed, and empty unless `status` is
    one of `PAGES`.
    """

    url: URL
    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpExchange:
    """Sends requests without cookies, stored passwords or proxies, and follows no redirects.

    `resolver` makes what looks up names, on the loop that asks.
    """

    def __init__(
        self,
        *,
        max_bytes: int,
        private_hosts: Collection[str],
        user_agent: str,
        resolver: Callable[[], AbstractResolver],
    ) -> None:
        self._max_bytes = max_bytes
        self._private_hosts = private_hosts
        self._headers = {"User-Agent": user_agent, "Accept": "text/html, text/*;q=0.9, */*;q=0.5"}
        self._resolver = resolver

    async def ask(
        self, url: URL, headers: Mapping[str, str], body: bytes | None = None, max_bytes: int | None = None
    ) -> Answer:
        """Ask for `url`, which has been checked: GET, or with a `body` POST. The caller bounds the time.

        Raises:
            FetchFailed: it cannot be reached safely, breaks off, or sends more than `max_bytes` (None: as usual).
        """
        public_only = host_key(url.raw_host or "") not in self._private_hosts
        try:
            async with (
                aiohttp.ClientSession(
                    connector=_connector(self._resolver(), public_only=public_only),
                    cookie_jar=aiohttp.DummyCookieJar(),
                    timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
                    trust_env=False,
                    headers=self._headers,
                ) as session,
                session.request(
                    "GET" if body is None else "POST", url, data=body, headers=headers, allow_redirects=False
                ) as response,
            ):
                got = await self._body(response, max_bytes) if response.status in PAGES else b""
                return Answer(url, response.status, response.headers, got)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if isinstance(error, TimeoutError):
                raise
            raise FetchFailed(_reason(error)) from error

    async def _body(self, response: aiohttp.ClientResponse, max_bytes: int | None) -> bytes:
        encoding = response.headers.get("Content-Encoding", "").strip().lower()
        if encoding not in _ENCODINGS:
            raise FetchFailed(f"its body is packed in a way that is not understood ({encoding[:40]!r})")
        most = max_bytes or self._max_bytes
        setting = "" if max_bytes else " (kb.max_source_bytes)"
        body = bytearray()
        if (response.content_length or 0) > most:
            raise FetchFailed(f"it is larger than {most} bytes{setting}")
        # aiohttp unpacks chunk by chunk and only as it is read, so a bomb goes off in small pieces.
        async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
            body += chunk
            if len(body) > most:
                raise FetchFailed(f"it is larger than {most} bytes{setting}")
        return bytes(body)


class PublicOnly(AbstractResolver):
    """A resolver that refuses a name if any one of its addresses is not public.

    A name that leads inside among others is either a mistake or an attack on clients that pick at random.
    """

    def __init__(self, inner: AbstractResolver) -> None:
        self._inner = inner

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found = await self._inner.resolve(host, port, family)
        if not all(_is_public(result["host"]) for result in found):
            raise FetchFailed(
                "its host name leads to an address that is not public; hosts of your own belong in "
                "kb.web_fetch_private_hosts"
            )
        return found

    async def close(self) -> None:
        await self._inner.close()


def _connector(resolver: AbstractResolver, *, public_only: bool) -> aiohttp.TCPConnector:
    """For one request, and one connection after the other.

    aiohttp dials exactly the addresses that the resolver gives. They are looked up anew for each connection and not
    kept, so that what was checked for one request is never used, unchecked, by another.
    """
    return aiohttp.TCPConnector(
        resolver=PublicOnly(resolver) if public_only else resolver,
        use_dns_cache=False,
        force_close=True,
        socket_factory=_public_socket if public_only else _socket,
    )


def _public_socket(info: _AddressInfo) -> socket.socket:
    """The last check before dialling: an address that the URL itself spells out passes no resolver."""
    if not _is_public(str(info[4][0])):
        raise PermissionError("not a public address")
    return _socket(info)


def _socket(info: _AddressInfo) -> socket.socket:
    family, kind, protocol, _, _ = info
    return socket.socket(family, kind, protocol)


def _is_public(address: str) -> bool:
    try:
        return is_public(ip_address(address))
    except ValueError:
        return False  # in a form that was not checked


def _reason(error: Exception) -> str:
    """One line for people. The library's own words may hold the URL."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            verdict = error.certificate_error
            detail = verdict.verify_message if isinstance(verdict, ssl.SSLCertVerificationError) else "not valid"
            return f"its certificate is not accepted ({detail})"
        case aiohttp.ClientConnectorDNSError() | aiohttp.ClientSSLError():
            pass
        case aiohttp.ClientConnectorError():
            return f"it cannot be reached ({error.os_error.strerror or type(error.os_error).__name__})"
        case _:
            pass
    reasons = (reason for kind, reason in _REASONS if isinstance(error, kind))
    return next(reasons, f"its answer is not understood ({type(error).__name__})")
