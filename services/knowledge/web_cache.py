"""The text of fetched pages on disk, one file a page, named by the hash of its URL. Blocking."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from services.storage import files


def page_name(url: str) -> str:
    return hashlib.sha256(url.encode("utf-8", "replace")).hexdigest()


def page_names(folder: Path) -> frozenset[str]:
    """Which pages there are; none when the folder cannot be read, so that they are fetched again."""
    try:
        return frozenset(os.listdir(folder))  # noqa: PTH208 (names are all that is wanted)
    except OSError:
        return frozenset()


def read_page(folder: Path, url: str) -> str:
    """Raises OSError."""
    return (folder / page_name(url)).read_bytes().decode("utf-8", "replace")


def write_page(folder: Path, url: str, text: str) -> None:
    """Raises OSError."""
    files.replace(folder / page_name(url), text.encode("utf-8", "replace"))


def drop_page(folder: Path, url: str) -> None:
    """Raises OSError."""
    (folder / page_name(url)).unlink(missing_ok=True)
