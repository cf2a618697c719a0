"""An HTTP client for a server that may be broken or hostile: it bounds replies, and sends prompts to one origin only.

Imports the OpenAI SDK (1.1 s): import it only when a call is made.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import openai

MAX_REPLY_BYTES = 4_000_000
"""The limit of one reply, after decompression."""
MAX_VECTORS_BYTES = 32_000_000
"""The limit of a reply with vectors: each of their numbers takes some twenty characters."""
MAX_REDIRECTS = 5

_DEFAULT_PORTS = {"http": 80, "https": 443}


class UnusableReply(ValueError):
    """The reply was not read to its end; the message completes "it …" and quotes nothing of it."""


class BoundedClient(openai.DefaultAsyncHttpxClient):
    """Reads up to `max_bytes` of a reply after decompression, then stops and raises UnusableReply. The limit also
    bounds the memory that a reply takes.

    Follows redirects only within the origin of the request, as each request contains a prompt and the key. Another
    redirect is returned as it is, without its body.
    """

    def __init__(self, *, timeout: float, max_bytes: int = MAX_REPLY_BYTES) -> None:
        # Other encodings cannot be decompressed piece by piece everywhere.
        super().__init__(timeout=timeout, headers={"Accept-Encoding": "gzip"})
        self._max_bytes = max_bytes

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        options |= {"stream": True, "follow_redirects": False}
        for _ in range(MAX_REDIRECTS):
            response = await super().send(request, **options)
            following = response.next_request
            if following is None or _origin(following.url) != _origin(request.url):
                break
            await response.aclose()
            request = following
        else:
            raise UnusableReply(f"redirects more than {MAX_REDIRECTS} times")
        try:
            content = b"" if following is not None else await _read(response, self._max_bytes)
        finally:
            await response.aclose()
        coded = {"content-encoding", "content-length", "transfer-encoding"}
        headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in coded]
        return httpx2.Response(response.status_code, headers=headers, content=content, request=request)


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port or _DEFAULT_PORTS.get(url.scheme)


async def _read(response: httpx2.Response, most: int) -> bytes:
    coding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if coding not in {"", "identity", "gzip", "x-gzip"}:
        raise UnusableReply("is compressed in a way that was not offered")
    content = bytearray()
    async for piece in response.aiter_raw() if "gzip" not in coding else _unzipped(response.aiter_raw(), most):
        content += piece
        if len(content) > most:
            raise UnusableReply(_too_large(most))
    return bytes(content)


async def _unzipped(raw: AsyncIterator[bytes], most: int) -> AsyncIterator[bytes]:
    """Decompress in pieces of at most `most` + 1 bytes. Ends with the first member, as no server sends another."""
    decompressor, taken = zlib.decompressobj(zlib.MAX_WBITS | 16), 0
    async for piece in raw:
        taken += len(piece)
        try:
            yield decompressor.decompress(piece, most + 1)
        except zlib.error:
            raise UnusableReply("cannot be decompressed") from None
        if decompressor.eof:
            return
        # More input would make it longer still; and a header of any length decompresses to nothing.
        if decompressor.unconsumed_tail or taken > most:
            raise UnusableReply(_too_large(most))
    raise UnusableReply("ends before it is whole")


def _too_large(most: int) -> str:
    return f"is larger than {most / 1e6:g} MB"
