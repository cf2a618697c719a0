"""Sends one HTTP request: to public addresses only, and bounded in size."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from services.knowledge.web_interface import FetchFailed

Address = IPv4Address | IPv6Address

# Networks that `ipaddress` counts as global, contrary to IANA's registries of special-purpose addresses.
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
"""The addresses that IANA has assigned as global unicast."""
_NAT64 = IPv6Network("64:ff9b::/96")
"""RFC 6052: a gateway passes these on to the IPv4 address in their last 32 bits."""

_NUMERIC = re.compile(r"[0-9a-fx.]+", re.IGNORECASE)
_HOST = re.compile(r"[a-z0-9_.-]+|[0-9a-f:]+(?:\.\d{1,3}){3}|[0-9a-f:]+")
"""A host name after IDNA, or an IPv6 address without a zone, which may end with an IPv4 address, as Python 3.13 writes
it.
"""
_AUTHORITY = re.compile(r"(?:[a-z][a-z0-9+.-]{0,20}:)?//([^/?#]*)", re.IGNORECASE)
_MAX_AUTHORITY_CHARS = 300
"""A name has 253 characters at most (RFC 1035), and a port."""


def check_url(text: str, private_hosts: Collection[str]) -> URL:
    """Parse a URL and check that it may be fetched. Requests use the result, so that nothing parses the text again.

    `private_hosts`: as `host_key` returns them. The fragment is removed.

    Raises:
        FetchFailed: it is no http or https URL, has a user or password, or has the address or name of a host that is
            not public.
    """
    try:
        # Without surrogates, which no address can hold and not every parser rejects.
        url = parse_url(text.encode().decode()).with_fragment(None)
    except ValueError:
        raise FetchFailed("it is not a valid URL") from None
    return check_allowed(url, private_hosts)


def parse_url(text: str) -> URL:
    """Parse a URL, or a part of one. Raises ValueError: it is none, or its host is longer than names may be. To encode
    one of a thousand characters of other alphabets (IDNA) takes a second.
    """
    authority = _AUTHORITY.match(text)
    if authority and len(authority[1]) > _MAX_AUTHORITY_CHARS:
        raise ValueError("its host is too long")
    return URL(text)


def check_allowed(url: URL, private_hosts: Collection[str]) -> URL:
    """Return `url`; raises as `check_url`."""
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


async def why_not_public(url: str, private_hosts: Iterable[str]) -> str | None:
    """Return why the address of a page is not fetched, by itself and by its host's name; None: it may be."""
    allowed = frozenset(map(host_key, private_hosts))
    try:
        host = check_url(url, allowed).host or ""
        if host_key(host) not in allowed:
            await PublicOnly(aiohttp.ThreadedResolver()).resolve(host)
    except FetchFailed as error:
        return str(error)
    except OSError:
        pass  # an unknown name is no private one
    return None


def host_key(host: str) -> str:
    """Normalise the spelling of a host for comparison."""
    return host.strip().lower().removeprefix("[").removesuffix("]").rstrip(".")


def is_public(address: Address) -> bool:
    """Return True for an ordinary address of the public internet. An IPv6 address with an embedded IPv4 address
    (mapped, 6to4, NAT64) counts as that one; Teredo never is public.
    """
    if isinstance(address, IPv4Address):
        # Some versions of Python count multicast and reserved addresses as global.
        return (
            address.is_global
            and not address.is_multicast
            and not address.is_reserved
            and not any(address in network for network in _NOT_PUBLIC_4)
        )
    if address.scope_id is not None:
        return False
    inner = _embedded_ipv4(address)
    if inner is not None:
        return is_public(inner)
    return address in _UNICAST_6 and address.is_global and not any(address in network for network in _NOT_PUBLIC_6)


def parse_address(host: str) -> Address | None:
    """Parse a host that is an address (also `127.1`, `0x7f000001` or with a final dot); None if it is a name."""
    bare = host.rstrip(".")
    with suppress(ValueError):
        return ip_address(bare)
    if _NUMERIC.fullmatch(bare):
        # Parse as the C library does, which will dial it.
        with suppress(OSError):
            return IPv4Address(socket.inet_aton(bare))
    return None


def _embedded_ipv4(address: IPv6Address) -> IPv4Address | None:
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour


def _is_private(host: str) -> bool:
    address = parse_address(host)
    if address is None:
        return host == "localhost" or host.endswith(".localhost")
    return not is_public(address)


PAGES = frozenset({200, 203})
"""The statuses whose body is the page: OK, and OK changed by a proxy."""

_CHUNK_BYTES = 65_536
_ENCODINGS = frozenset({"", "identity", "gzip", "deflate", "br", "zstd"})
"""The encodings that aiohttp decompresses, the last two only with their packages. It returns others as they are."""

_AddressInfo = tuple[int, int, int, str, tuple[object, ...]]
"""Family, type, protocol, name and address, as from `getaddrinfo`."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A response. `headers` ignore case. `body` is decompressed, and empty if `status` is not in `PAGES`."""

    url: URL
    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpExchange:
    """Sends requests without cookies, stored passwords or proxies, and follows no redirects. `resolver`: makes the
    resolver of host names, on the running loop.
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
        """Request a checked `url`: GET, or with a `body` POST. The caller bounds the time. Raises FetchFailed: it
        cannot be reached safely, breaks off, or sends more than `max_bytes` (None: the usual).
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
                got = await self._read_body(response, max_bytes) if response.status in PAGES else b""
                return Answer(url, response.status, response.headers, got)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if isinstance(error, TimeoutError):
                raise
            raise FetchFailed(_describe_error(error)) from error

    async def _read_body(self, response: aiohttp.ClientResponse, max_bytes: int | None) -> bytes:
        encoding = response.headers.get("Content-Encoding", "").strip().lower()
        if encoding not in _ENCODINGS:
            raise FetchFailed(f"its body is packed in a way that is not understood ({encoding[:40]!r})")
        most = max_bytes or self._max_bytes
        setting = "" if max_bytes else " (kb.max_source_bytes)"
        body = bytearray()
        if (response.content_length or 0) > most:
            raise FetchFailed(f"it is larger than {most} bytes{setting}")
        # aiohttp decompresses while the body is read, so a decompression bomb is noticed after a few pieces.
        async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
            body += chunk
            if len(body) > most:
                raise FetchFailed(f"it is larger than {most} bytes{setting}")
        return bytes(body)


class PublicOnly(AbstractResolver):
    """A resolver that refuses a name if any of its addresses is not public: that is a mistake, or an attack on clients
    that pick at random.
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
    """Make the connector of one request, with one connection at a time.

    aiohttp dials exactly the addresses from the resolver. They are resolved anew for each connection and not cached, so
    that no request uses addresses that were checked for another.
    """
    return aiohttp.TCPConnector(
        resolver=PublicOnly(resolver) if public_only else resolver,
        use_dns_cache=False,
        force_close=True,
        socket_factory=_public_socket if public_only else _socket,
    )


def _public_socket(info: _AddressInfo) -> socket.socket:
    """Open a socket to a public address. This check is needed because a URL with an address passes no resolver."""
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
        return False  # it cannot be parsed, so it was not checked


def _describe_error(error: Exception) -> str:
    """Describe an error in one line for people. The library's own message may hold the URL."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            verdict = error.certificate_error
            detail = verdict.verify_message if isinstance(verdict, ssl.SSLCertVerificationError) else "not valid"
            reason = f"its certificate is not accepted ({detail})"
        case aiohttp.ClientConnectorDNSError():
            reason = "its host name cannot be looked up"
        case aiohttp.ClientSSLError():
            reason = "no secure connection can be made to it"
        case aiohttp.ClientConnectorError():
            reason = f"it cannot be reached ({error.os_error.strerror or type(error.os_error).__name__})"
        case aiohttp.ClientPayloadError():
            reason = "its body is damaged or breaks off"
        case aiohttp.ServerDisconnectedError():
            reason = "the connection was closed before it had answered"
        case OSError():
            reason = "the connection broke off"
        case _:
            reason = f"its answer is not understood ({type(error).__name__})"
    return reason
