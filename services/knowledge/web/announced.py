"""How many pages something announces that lists them: a sitemap, an llms.txt, a repository. For `--init`."""

from __future__ import annotations

import re
from collections.abc import Collection

from services.knowledge.source_pages import FetchFailed
from services.knowledge.web.fetcher import CheckedClient, checked_page

LISTS = ("sitemap", "llms", "git")
"""What may stand before the address in a line of the links file, with a colon."""

_ENTRY = re.compile(rb"<(?:[a-z]{1,9}:)?loc\b", re.IGNORECASE)
_LINK = re.compile(rb"\]\(\s*+https?://")
_PACKED = b"\x1f\x8b"


async def announced(
    kind: str, url: str, *, timeout_seconds: float, max_bytes: int, private_hosts: Collection[str]
) -> tuple[int | None, str]:
    """How many of what: `page`, or `sitemap` where it lists sitemaps. None: it is there, and the number is not known.

    `kind`: one of `LISTS`. The other arguments are those of `CheckedClient`.

    Raises:
        FetchFailed, FetchTimedOut: it is not there, or lists nothing.
    """
    client = CheckedClient(timeout_seconds=timeout_seconds, max_bytes=max_bytes, private_hosts=private_hosts)
    if kind == "git":
        # What `git clone` asks first.
        checked_page(await client.get(f"{url.rstrip('/')}/info/refs?service=git-upload-pack"))
        return None, "page"
    body = checked_page(await client.get(url)).body
    if body.startswith(_PACKED):
        return None, "page"
    count = len((_ENTRY if kind == "sitemap" else _LINK).findall(body))
    if not count:
        raise FetchFailed("it lists no pages; is this the right address?")
    return count, "sitemap" if b"<sitemapindex" in body[:2000] else "page"
