"""Git repositories as sources: what is known of each, where its files are published, and the seam to their servers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import quote

from services.knowledge.choosing import Choice

_HOSTED: Sequence[tuple[re.Pattern[str], str]] = (
    (re.compile(r"github\.com"), "https://{host}/{path}/blob/{branch}/{file}"),
    (re.compile(r"gitlab\..+"), "https://{host}/{path}/-/blob/{branch}/{file}"),
    (re.compile(r"codeberg\.org|(?:gitea|forgejo)\..+"), "https://{host}/{path}/src/branch/{branch}/{file}"),
    (re.compile(r"git\.sr\.ht"), "https://{host}/{path}/tree/{branch}/item/{file}"),
)
"""Where files are shown, by hosts whose software is known."""


def hosted_address(source_id: str) -> str | None:
    """Where the host of a repository shows a file of it, given its id (without `kb:`); None: it is no such file, or
    nobody knows. Where no branch was named it is `HEAD`, which all of these hosts understand.
    """
    if not source_id.startswith("git:"):
        return None
    repository, _, file = source_id.removeprefix("git:").partition("//")
    repository, _, branch = repository.partition("@")
    host, _, path = repository.partition("/")
    parts = {name: quote(value) for name, value in (("path", path), ("branch", branch or "HEAD"), ("file", file))}
    return next((form.format(host=host, **parts) for known, form in _HOSTED if known.fullmatch(host)), None)


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
