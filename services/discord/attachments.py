"""The content of attachments: from Discord's CDN, or in a replay from the folder beside the recording."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_exponential

import clock
from model.messages import Attachment

if TYPE_CHECKING:
    import aiohttp

DISCORD_ORIGINS = frozenset({"https://cdn.discordapp.com", "https://media.discordapp.net"})
"""The origins of Discord's attachments. No other address is contacted."""

_CHUNK_BYTES = 65_536
_MIB, _MB = 1024 * 1024, 1_000_000


class AttachmentFailed(Exception):
    """An attachment is not available; the message names its id and the reason, never its signed address."""


class AttachmentUnreachable(AttachmentFailed):
    """An attachment could not be downloaded now; a later try may succeed."""


class Attachments(Protocol):
    async def content(self, attachment: Attachment, max_bytes: int) -> bytes:
        """Return the whole content. Raises AttachmentFailed: it is larger than `max_bytes`, elsewhere, or not
        available; AttachmentUnreachable: it could not be downloaded now.
        """
        ...


class CDNAttachments:
    """Downloads from `origins` only (scheme, host, and port if not the default), in real time even in a replay.
    `timeout_seconds` bounds one try, of which there are up to `1 + max_retries`.
    """

    def __init__(
        self,
        *,
        timeout_seconds: float = 20,
        max_retries: int = 2,
        origins: Collection[str] = DISCORD_ORIGINS,
        jitter: Callable[[], float] = random.random,
        first_pause_seconds: float = 0.5,
    ) -> None:
        self._timeout = timeout_seconds
        self._attempts = 1 + max_retries
        self._origins = origins
        self._jitter = jitter
        self._first_pause = first_pause_seconds

    async def content(self, attachment: Attachment, max_bytes: int) -> bytes:
        check_size(attachment, attachment.size, max_bytes)
        address = self._checked_address(attachment)
        doubling = wait_exponential(multiplier=self._first_pause)
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(AttachmentUnreachable),
            stop=stop_after_attempt(self._attempts),
            wait=lambda state: doubling(state) * (0.5 + self._jitter()),
            sleep=asyncio.sleep,
            reraise=True,
        )

        async def download() -> bytes:
            return await retrying(self._download, attachment, address, max_bytes)

        return await clock.run_in_real_time(download)

    def _checked_address(self, attachment: Attachment) -> str:
        """Return an attachment's address, put together from checked parts: no parser can read another host in it."""
        refused = AttachmentFailed(f"attachment {attachment.id} is not on Discord's CDN and not downloaded")
        try:
            parts = urlsplit(attachment.url)
            origin = f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")
        except ValueError:
            raise refused from None
        if origin not in self._origins or "@" in parts.netloc or "\\" in attachment.url:
            raise refused
        return f"{origin}{parts.path or '/'}" + (f"?{parts.query}" if parts.query else "")

    async def _download(self, attachment: Attachment, address: str, max_bytes: int) -> bytes:
        import aiohttp  # noqa: PLC0415 (a tenth of a second, wanted only when something is downloaded)

        try:
            # Not compressed: that could grow beyond the limit when it is unpacked.
            async with (
                asyncio.timeout(self._timeout),
                aiohttp.ClientSession(auto_decompress=False, headers={"Accept-Encoding": "identity"}) as session,
                session.get(address, allow_redirects=False) as response,
            ):
                return await _body(attachment, response, max_bytes)
        except TimeoutError:
            raise AttachmentUnreachable(
                f"attachment {attachment.id} was not downloaded within {self._timeout:g} s"
            ) from None
        except aiohttp.ClientError as error:
            # Its text may hold the signed address.
            kind = type(error).__name__
            raise AttachmentUnreachable(f"attachment {attachment.id} could not be downloaded ({kind})") from None


async def _body(attachment: Attachment, response: aiohttp.ClientResponse, max_bytes: int) -> bytes:
    status = response.status
    if status == 429 or status >= 500:  # noqa: PLR2004 (too many requests; the class of server errors)
        raise AttachmentUnreachable(f"attachment {attachment.id} could not be downloaded (HTTP {status})")
    if status != 200:  # noqa: PLR2004 (OK; a redirect is not followed: it may lead anywhere)
        raise AttachmentFailed(f"attachment {attachment.id} could not be downloaded (HTTP {status})")
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise AttachmentFailed(f"attachment {attachment.id} came compressed, which was not asked for")
    check_size(attachment, response.content_length or 0, max_bytes)
    data = bytearray()
    async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
        data += chunk
        check_size(attachment, len(data), max_bytes)
    return bytes(data)


def check_size(attachment: Attachment, size: int, max_bytes: int) -> None:
    """Raises `AttachmentFailed` when `size` is over the limit."""
    if size > max_bytes:
        limit = f"{max_bytes // _MIB} MiB" if max_bytes % _MIB == 0 else f"{max_bytes / _MB:g} MB"
        raise AttachmentFailed(f"attachment {attachment.id} is larger than {limit}")


class RecordedAttachments:
    """Reads `folder/<attachment id>`, where a recorder has put the content; None: there is no such folder."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    async def content(self, attachment: Attachment, max_bytes: int) -> bytes:
        missing = AttachmentFailed(f"attachment {attachment.id} is not among the recording's attachments")
        name = str(attachment.id)
        if self._folder is None or not (name.isascii() and name.isdigit()):
            raise missing
        check_size(attachment, attachment.size, max_bytes)
        try:
            data = await asyncio.to_thread(_read, self._folder, name, max_bytes)
        except OSError:
            raise missing from None
        check_size(attachment, len(data), max_bytes)
        return data


def _read(folder: Path, name: str, max_bytes: int) -> bytes:
    path = (folder / name).resolve(strict=True)
    if path.parent != folder.resolve():
        raise FileNotFoundError(name)  # a link that leads out of the folder
    with path.open("rb") as file:
        return file.read(max_bytes + 1)
