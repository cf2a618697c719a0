"""The ids of sources, as the index, citations, outcomes and votes name them.

    kb:guides/setup.md                            a shared document, by its path or address
    team:tokens.txt                               a topic of what the team has taught
    kb:@1175948623872000001/guides/setup.md       a document of one server
    team:@1175948623872000001/tokens.txt          what the team of that server has taught

The files in a server's own folder hold ids without the server.
"""

from __future__ import annotations

import re
from typing import Final

DOCUMENT: Final = "kb:"
TOPIC: Final = "team:"
"""The beginnings of all ids."""
_TOPIC_ENDING: Final = ".txt"
_WITH_OWNER = re.compile(rf"(?P<namespace>{DOCUMENT}|{TOPIC})@(?P<owner>[0-9]{{1,20}})/(?P<name>.+)", re.DOTALL)


def is_document(source_id: str) -> bool:
    return source_id.startswith(DOCUMENT)


def is_topic(source_id: str) -> bool:
    return source_id.startswith(TOPIC)


def has_namespace(source_id: str) -> bool:
    return is_document(source_id) or is_topic(source_id)


def document_id(name: str) -> str:
    """Return the id of a shared document, given its path below the folder, or its address."""
    return f"{DOCUMENT}{name}"


def topic_id(topic: str) -> str:
    """Return the id of a shared topic, given its name. The inverse of `topic_in`."""
    return f"{TOPIC}{topic}{_TOPIC_ENDING}"


def topic_in(source_id: str) -> str:
    """Return the name of a topic. What is no id of one is taken as its name."""
    return without_owner(source_id).removeprefix(TOPIC).removesuffix(_TOPIC_ENDING)


def bare_name(source_id: str) -> str:
    """Return the path of a document below its folder, or its address."""
    return without_owner(source_id).removeprefix(DOCUMENT)


def folders_of(source_id: str) -> tuple[str, ...]:
    """Return the folders of a document below its own; none of what has an address."""
    name = bare_name(source_id)
    return () if "://" in name else tuple(name.split("/")[:-1])


def owner_of(source_id: str) -> int | None:
    """Return the server that a source belongs to; None if it is shared."""
    found = _WITH_OWNER.fullmatch(source_id)
    return None if found is None else int(found["owner"])


def with_owner(source_id: str, owner: int) -> str:
    """Return the id of a server's own source, given one with its namespace. The inverse of `without_owner`."""
    namespace, _, name = source_id.partition(":")
    return f"{namespace}:@{owner}/{name}"


def without_owner(source_id: str) -> str:
    """Return the id without the server, as in the library that holds the source. The inverse of `with_owner`."""
    found = _WITH_OWNER.fullmatch(source_id)
    return source_id if found is None else f"{found['namespace']}{found['name']}"
