"""One request and its answer, bounded in size as sent and as unpacked."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from services.knowledge.pages import FetchFailed
from services.knowledge.web.dialling import connector
from services.knowledge.web.urls import host_key

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

_TOLD_BELOW = (aiohttp.ClientConnectorDNSError, aiohttp.ClientSSLError)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server said."""

    url: URL
    """Which gave it."""
    status: int
    headers: Mapping[str, str]
    """Case does not matter."""
    body: bytes
    """Unpacked; empty unless `status` is one of `PAGES`."""


class HttpExchange:
    """Asks for one URL at a time, without cookies, stored passwords or proxies, and follows nothing.

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

    async def get(self, url: URL, headers: Mapping[str, str]) -> Answer:
        """Ask for `url`, which has been checked. The caller bounds the time.

        Raises:
            FetchFailed: it cannot be reached safely, breaks off, or sends more than `max_bytes`.
        """
        public_only = host_key(url.raw_host or "") not in self._private_hosts
        try:
            async with (
                aiohttp.ClientSession(
                    connector=connector(self._resolver(), public_only=public_only),
                    cookie_jar=aiohttp.DummyCookieJar(),
                    timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
                    trust_env=False,
                    headers=self._headers,
                ) as session,
                session.get(url, headers=headers, allow_redirects=False) as response,
            ):
                body = await self._body(response) if response.status in PAGES else b""
                return Answer(url, response.status, response.headers, body)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if isinstance(error, TimeoutError):
                raise
            raise FetchFailed(_reason(error)) from error

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        encoding = response.headers.get("Content-Encoding", "").strip().lower()
        if encoding not in _ENCODINGS:
            raise FetchFailed(f"its body is packed in a way that is not understood ({encoding[:40]!r})")
        self._check(response.content_length or 0)
        body = bytearray()
        # aiohttp unpacks a chunk at a time and no further than it is read, so a bomb goes off in small pieces.
        async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
            body += chunk
            self._check(len(body))
        return bytes(body)

    def _check(self, size: int) -> None:
        if size > self._max_bytes:
            raise FetchFailed(f"it is larger than {self._max_bytes} bytes (kb.max_source_bytes)")


def _reason(error: Exception) -> str:
    """One line for people. The library's own words may hold the URL."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            verdict = error.certificate_error
            detail = verdict.verify_message if isinstance(verdict, ssl.SSLCertVerificationError) else "not valid"
            return f"its certificate is not accepted ({detail})"
        case aiohttp.ClientConnectorError() if not isinstance(error, _TOLD_BELOW):
            return f"it cannot be reached ({error.os_error.strerror or type(error.os_error).__name__})"
        case _:
            said = (reason for kind, reason in _REASONS if isinstance(error, kind))
            return next(said, f"its answer is not understood ({type(error).__name__})")
