"""Which URLs may be asked at all, by their spelling alone."""

from __future__ import annotations

import re
from collections.abc import Collection

from yarl import URL

from services.knowledge.pages import FetchFailed
from services.knowledge.web.addresses import is_public, literal

_HOST = re.compile(r"[a-z0-9_.-]+|[0-9a-f:]+")
"""A name as it is looked up (after IDNA), or an IPv6 address without a zone."""


def checked_url(text: str, private_hosts: Collection[str]) -> URL:
    """`text` as it will be dialled: nothing reads the text itself a second time, and perhaps differently.

    `private_hosts` are as `host_key` gives them. A fragment is left out.

    Raises:
        FetchFailed: it is no http or https URL, holds a user or password, or spells out an address (or names this
            machine) that is not public.
    """
    try:
        # Without surrogates, which no address can hold and not every parser minds.
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


def _is_private(host: str) -> bool:
    address = literal(host)
    if address is None:
        return host == "localhost" or host.endswith(".localhost")
    return not is_public(address)
