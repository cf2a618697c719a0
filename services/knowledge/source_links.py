"""The list of web pages: one URL a line. Blocking; reads only."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Links:
    urls: tuple[str, ...]
    """In the order of the file, each once."""
    left_out: dict[str, str]
    """By line number: why it is no web page."""


def read_links(path: Path) -> Links | None:
    """The list in `path`; None: there is no such file.

    Raises:
        OSError: it cannot be read.
    """
    try:
        return parse_links(path.read_bytes(), path.name)
    except FileNotFoundError:
        return None


def parse_links(data: bytes, file: str = "links") -> Links:
    """Lines are trimmed; empty ones and `#` comments do not count. Only `http` and `https`, without credentials."""
    urls: dict[str, None] = {}
    left_out: dict[str, str] = {}
    for number, raw in enumerate(data.decode("utf-8-sig", "replace").splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        reason = _unfit(line)
        if reason:
            left_out[f"{file}, line {number}"] = reason
        else:
            urls[line] = None
    return Links(tuple(urls), left_out)


def _unfit(line: str) -> str:
    try:
        parts = urlsplit(line)
        host = parts.hostname
        _ = parts.port
    except ValueError:
        return "it is no URL"
    if parts.scheme not in {"http", "https"} or not line.startswith(("http://", "https://")) or not host:
        return "it is no http or https URL"
    if parts.username is not None:
        # It would stand in the index, in prompts and under answers.
        return "it holds a user name or password"
    if not line.isprintable() or any(letter.isspace() for letter in line):
        return "it holds blanks or invisible characters"
    return ""
