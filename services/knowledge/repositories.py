"""Git repositories as sources: what is known of each, where its files are published, and the seam to their servers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from services.knowledge.choosing import Choice


@dataclass(frozen=True, slots=True)
class RepositoryFiles:
    """The files of one commit that may be sources.

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
class Taken:
    """Which files of a repository are wanted: those below `folder` that `choice` lets in, `most` of them."""

    folder: str
    choice: Choice
    most: int


class RepositoryWeb(Protocol):
    """Servers of git, asked over http and https, bounded in time and size. What they send is unpacked elsewhere."""

    async def files(
        self, url: str, branch: str, taken: Taken, known: str, wanted: Callable[[Mapping[str, str]], set[str]]
    ) -> RepositoryFiles | None:
        """The files at the newest commit; None: that is still `known` (its hash, or empty).

        `branch`: or tag; empty for the repository's own choice. `wanted`: given all files with the hashes of their
        contents, which hashes' contents to bring.

        Raises:
            WebError: they cannot be had.
        """
        ...
