"""The grammar of source ids: namespace, the server that a source belongs to, and its name.

    kb:guides/setup.md                            a shared document
    kb:@1175948623872000001/guides/setup.md       one of a server
    team:@1175948623872000001/tokens.txt          what the team of that server has taught

The mark of a server is in no file that is read here: on disk, in its own folder, its index reads like any other.
"""

from __future__ import annotations

import re

_OWNED = re.compile(r"(?P<namespace>kb|team):@(?P<owner>[0-9]{1,20})/(?P<name>.+)", re.DOTALL)


def owner_of(source_id: str) -> int | None:
    """The server that a source belongs to; None: it is shared."""
    found = _OWNED.fullmatch(source_id)
    return None if found is None else int(found["owner"])


def owned(source_id: str, owner: int) -> str:
    """Return the id, with its namespace, of a server's own source. The inverse of `unowned`."""
    namespace, _, name = source_id.partition(":")
    return f"{namespace}:@{owner}/{name}"


def unowned(source_id: str) -> str:
    """Return the id without the server, as the library that holds the source calls it. The inverse of `owned`."""
    found = _OWNED.fullmatch(source_id)
    return source_id if found is None else f"{found['namespace']}:{found['name']}"


def bare_name(source_id: str) -> str:
    """Return the path of a document below its folder, or its address."""
    return unowned(source_id).removeprefix("kb:")
