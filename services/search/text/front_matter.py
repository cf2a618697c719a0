"""Reads the front matter of a document: YAML between `---`, or TOML between `+++`."""

from __future__ import annotations

import re
from typing import NamedTuple

import yaml

_MAX_LINES = 500
_MAX_VALUE_CHARS = 2000
_KEY = re.compile(r"(?P<key>[A-Za-z_][\w .-]{0,60}?)\s*(?P<mark>[:=])(?:\s(?P<value>.*))?")
_PERMALINKS = ("permalink", "url", "slug")


class FrontMatter(NamedTuple):
    """`rest`: the text after it, all of the text where there is none."""

    title: str
    permalink: str
    rest: str


def read_front_matter(text: str) -> FrontMatter:
    """Return the title and the permalink of a document (empty if not given), and the text after its front matter."""
    text = text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}")
    lines = text.split("\n", _MAX_LINES)
    fence = lines[0].rstrip()
    if fence not in {"---", "+++"}:
        return FrontMatter("", "", text)
    ends = {"---", "..."} if fence == "---" else {"+++"}
    end = next((at for at, line in enumerate(lines[1:_MAX_LINES], 1) if line.rstrip() in ends), None)
    if end is None:
        return FrontMatter("", "", text)
    values = _values(lines[1:end])
    if not values and any(line.strip() for line in lines[1:end]):
        return FrontMatter("", "", text)  # text between two rules
    permalink = next((values[key] for key in _PERMALINKS if values.get(key)), "")
    return FrontMatter(values.get("title", ""), permalink, "\n".join(lines[end + 1 :]))


def _values(lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    at = 0
    while at < len(lines):
        key = _KEY.fullmatch(lines[at].rstrip()) if len(lines[at]) <= _MAX_VALUE_CHARS else None
        at += 1
        if key is None:
            continue
        more: list[str] = []
        while at < len(lines) and lines[at].startswith((" ", "\t")):
            more.append(lines[at])
            at += 1
        name = key["key"].lower()
        wanted = name in {"title", *_PERMALINKS}
        found.setdefault(name, _scalar("\n".join([key["value"] or "", *more])) if wanted else "")
    return found


def _scalar(text: str) -> str:
    """A single value in YAML, of which TOML's strings are close enough a part; as written where it is none."""
    if len(text) > _MAX_VALUE_CHARS:
        return ""
    try:
        # Not alone: `title: uv: a tool` is no YAML, and everybody writes it.
        value: object = yaml.safe_load(text) if text.lstrip()[:1] in {'"', "'", ">", "|"} else text
    except (yaml.YAMLError, ValueError):
        value = text.strip().strip("\"'")
    return " ".join(value.split()) if isinstance(value, str) else ""
