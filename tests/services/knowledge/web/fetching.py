"""A fetcher, and the pieces tests put in its way."""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from services.knowledge.web.client import CheckedClient
from services.knowledge.web.contents import Extraction
from services.knowledge.web.fetcher import WebFetcher
from services.knowledge.web_interface import FetchFailed, NotModified, Page, Web
from services.storage import in_thread

LOOPBACK = ("127.0.0.1",)
MAX_BYTES = 100_000


class Names(AbstractResolver):
    """Leads every name to `addresses`, one look-up after the other; the last of them lasts."""

    def __init__(self, *addresses: Iterable[str]) -> None:
        self._addresses = list(addresses)
        self.asked: list[str] = []

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        self.asked.append(host)
        found = self._addresses.pop(0) if len(self._addresses) > 1 else self._addresses[0]
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=0,
            )
            for address in found
        ]

    async def close(self) -> None:
        return


def client(
    *,
    private_hosts: Iterable[str] = LOOPBACK,
    timeout_seconds: float = 20,
    max_bytes: int = MAX_BYTES,
    requests_per_second: float = 1000,
    names: AbstractResolver | None = None,
) -> CheckedClient:
    resolver = Names(LOOPBACK) if names is None else names
    return CheckedClient(
        timeout_seconds=timeout_seconds,
        max_bytes=max_bytes,
        requests_per_second=requests_per_second,
        private_hosts=tuple(private_hosts),
        resolver=lambda: resolver,
    )


@asynccontextmanager
async def fetching(used: CheckedClient | None = None) -> AsyncGenerator[WebFetcher]:
    fetcher = WebFetcher(used or client(), Extraction(in_thread, max_bytes=MAX_BYTES))
    try:
        yield fetcher
    finally:
        await fetcher.aclose()


async def page_of(web: Web, url: str) -> Page:
    fetched = await web.fetch(url, etag=None, last_modified=None)
    assert isinstance(fetched, Page)
    return fetched


async def failure_of(web: Web, url: str) -> str:
    with pytest.raises(FetchFailed) as caught:
        await web.fetch(url, etag=None, last_modified=None)
    said = str(caught.value)
    # One line that does not repeat what the reader has before him, or what is secret in it.
    assert "\n" not in said
    assert url not in said
    return said


def again(page: Page | NotModified) -> dict[str, str | None]:
    """What a second fetch is asked with."""
    return {"etag": page.etag, "last_modified": page.last_modified}
