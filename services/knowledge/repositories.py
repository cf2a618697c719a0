"""The protocol for fetching git repositories, and the addresses at which known hosts show their files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from services.knowledge.choosing import PathFilter


@dataclass(frozen=True, slots=True)
class RepositoryFiles:
    """The files of one commit that were selected, with the contents that were asked for.

    Attributes:
        blobs: by path, the hash that git gives the content.
        texts: by such a hash, the content, as far as it was wanted.
        left_out: how many others there are, by why.
    """

    commit: str
    blobs: dict[str, str] = field(default_factory=dict[str, str])
    texts: dict[str, bytes] = field(default_factory=dict[str, bytes])
    left_out: dict[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True)
class RepositorySelection:
    """Selects files of a repository: those below `folder` that the path filter lets in, `most` of them."""

    folder: str
    choice: PathFilter
    most: int


class RepositoryWeb(Protocol):
    """Fetches git repositories over http and https, bounded in time and size. Packs are unpacked in processes of their
    own.
    """

    async def files(
        self,
        url: str,
        branch: str,
        taken: RepositorySelection,
        known: str,
        wanted: Callable[[Mapping[str, str]], set[str]],
    ) -> RepositoryFiles | None:
        """The files at the newest commit; None: that is still `known` (its hash, or empty).

        `branch`: or tag; empty for the repository's own choice. `wanted`: given all files with the hashes of their
        contents, which hashes' contents to bring.

        Raises:
            WebError: they cannot be had.
        """
        ...
