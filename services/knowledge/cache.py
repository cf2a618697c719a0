"""The grammar of a cache file (SPEC 7, "Cache file"): what is known about each source, read and written side by side.

    {
    "schema_version": 1,
    "generated_at": "2026-02-01T03:10:56.000Z",
    "sources": {
    "guides/setup.md": {"source_type":"file","content_hash":"9f86…", … "file":{"rel_path":"guides/setup.md", …}},
    "https://example.org/faq": {"source_type":"url", … "url":{"url":"https://example.org/faq", …}}
    }
    }

It is JSON, written with one record a line: so a change is one line of a diff, a file that was cut or scribbled into
gives back all its other lines, and neither reading nor writing is one long step.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from clock import from_rfc3339
from services.telemetry import number_of

SCHEMA_VERSION = 1

REPORTED = 5
"""So many bad records are named; of more, only the number is told."""

_HEAD, _TAIL = 4, 3
"""Lines of the file before the first record and behind the last, with the empty one that a final line end makes."""
_AT_ONCE = 100
"""Records, a millisecond's work."""

log = logging.getLogger(__name__)


def _time(text: str) -> str:
    from_rfc3339(text)  # a ValueError if it is none
    return text


Time = Annotated[str, AfterValidator(_time)]
Count = Annotated[int, Field(ge=0)]
FetchStatus = Literal["success", "not_modified", "timeout", "error"]


@dataclass(frozen=True, slots=True)
class FileFacts:
    rel_path: str
    """Below the folder of sources, with `/` between folders."""
    size_bytes: Count
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class UrlFacts:
    url: str
    last_fetched_at: Time | None
    """When the server last answered with the page, or that it is unchanged; None: it never has."""
    etag: str | None
    last_modified: str | None
    fetch_status: FetchStatus
    next_check_at: Time


@dataclass(frozen=True, slots=True)
class Record:
    """One source. Exactly one of `file` and `url` is there, as `source_type` says."""

    source_type: Literal["file", "url"]
    content_hash: Annotated[str, Field(pattern=r"^(?:[0-9a-f]{64})?$")]
    """Of the text as it was last read (`hash_text`); empty for a page that was never fetched."""
    summary_text: str
    """The description in the index; empty until there is one. While one is pending, the one before."""
    summary_key: str
    """Says from which prompt and model `summary_text` came."""
    last_indexed_at: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")]
    summary_pending: bool
    file: FileFacts | None = None
    url: UrlFacts | None = None
    gone_at: Time | None = None
    """Since when the source has been missing; such a record is in no index."""

    @property
    def source_id(self) -> str:
        return self.file.rel_path if self.file is not None else self.url.url if self.url is not None else ""

    @property
    def described(self) -> bool:
        """Whether `summary_text` is the description of the content that `content_hash` names."""
        return not self.summary_pending and bool(self.summary_text.strip())


_RECORDS = TypeAdapter(dict[str, Record])
_VERSION = re.compile(r'"schema_version"\s*:\s*(\d+)')


def normalise(text: str) -> str:
    r"""`text` with `\n` as line ends, no white space at the end of lines, and no blank lines at either end."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return "\n".join([line.rstrip() for line in text.split("\n")]).strip("\n")


def hash_text(text: str) -> str:
    """SHA-256, in hex, of the normalised text."""
    return hashlib.sha256(normalise(text).encode("utf-8", "replace")).hexdigest()


def line(record: Record) -> str:
    """A record as a line of the file, without what separates it from the next."""
    facts: dict[str, object] = {
        "source_type": record.source_type,
        "content_hash": record.content_hash,
        "summary_text": record.summary_text,
        "summary_key": record.summary_key,
        "last_indexed_at": record.last_indexed_at,
        "summary_pending": record.summary_pending,
    }
    if record.file is not None:
        file = record.file
        facts["file"] = {"rel_path": file.rel_path, "size_bytes": file.size_bytes, "mtime_ns": file.mtime_ns}
    if record.url is not None:
        url = record.url
        facts["url"] = {
            "url": url.url,
            "last_fetched_at": url.last_fetched_at,
            "etag": url.etag,
            "last_modified": url.last_modified,
            "fetch_status": url.fetch_status,
            "next_check_at": url.next_check_at,
        }
    if record.gone_at is not None:
        facts["gone_at"] = record.gone_at
    return f"{_dumps(record.source_id)}: {_dumps(facts)}"


_dumps = json.JSONEncoder(separators=(",", ":")).encode


def render(lines: Iterable[str], generated_at: str) -> bytes:
    """The cache file with these `line`s, in their order."""
    body = ",\n".join(lines)
    head = f'{{\n"schema_version": {SCHEMA_VERSION},\n"generated_at": {_dumps(generated_at)},\n"sources": {{\n'
    return f"{head}{body}\n}}\n}}\n".encode()


def parse(data: bytes, file: str = "cache") -> dict[str, Record]:
    """The sound records in `data`, by source id.

    Never raises: what is damaged is reported with `file`, and left out. Another `schema_version` gives nothing, a
    bad record costs that record, and of a file that is no JSON every line counts that holds a whole record.
    """
    text = data.decode("utf-8", "replace")
    found = _as_rendered(text)
    if found is not None:
        return found
    try:
        whole: Any = json.loads(text)
    except (ValueError, RecursionError):
        return _saved(text, file)
    content: dict[str, Any] = cast("dict[str, Any]", whole) if isinstance(whole, dict) else {}
    version, sources = content.get("schema_version"), content.get("sources")
    if version is not SCHEMA_VERSION or not isinstance(sources, dict):
        log.warning("%s: no cache of schema_version %d; descriptions are made anew", file, SCHEMA_VERSION)
        return {}
    return _sound_ones(((key, _dumps({key: value})) for key, value in cast("dict[str, Any]", sources).items()), file)


def _as_rendered(text: str) -> dict[str, Record] | None:
    """The records of a file just as `render` writes it; None: it is not, or not every record is sound."""
    lines = text.split("\n")
    head, tail = ["{", f'"schema_version": {SCHEMA_VERSION},'], ["}", "}", ""]
    if lines[:2] != head or lines[-_TAIL:] != tail or len(lines) < _HEAD + _TAIL:
        return None
    if lines[_HEAD - 1] != '"sources": {':
        return None
    found: dict[str, Record] = {}
    # Not in one go: validation lets no other thread run, and the event loop must not wait for a large cache.
    for at in range(_HEAD, len(lines) - _TAIL, _AT_ONCE):
        body = "\n".join(lines[at : min(at + _AT_ONCE, len(lines) - _TAIL)])
        try:
            found.update(_RECORDS.validate_json(f"{{{body.removesuffix(',')}}}", strict=True))
        except ValidationError:
            return None
    return found if all(_sound(key, record) for key, record in found.items()) else None


def _saved(text: str, file: str) -> dict[str, Record]:
    """What can be read of a file that is no JSON."""
    version = _VERSION.search(text)
    if version is None or int(version[1]) != SCHEMA_VERSION:
        log.warning("%s is no cache of schema_version %d; descriptions are made anew", file, SCHEMA_VERSION)
        return {}
    lines = [each.strip().removesuffix(",") for each in text.split("\n")[_HEAD:]]
    found = _sound_ones(((each, f"{{{each}}}") for each in lines if each.strip("}")), file)
    log.warning("%s is damaged: %s could be saved from it", file, number_of(len(found), "record"))
    return found


def _sound_ones(objects: Iterable[tuple[str, str]], file: str) -> dict[str, Record]:
    """The records in JSON objects of one member each; bad ones are reported by the name they come with."""
    found: dict[str, Record] = {}
    bad: list[str] = []
    for name, each in objects:
        try:
            members = _RECORDS.validate_json(each, strict=True)
        except ValidationError:
            members = {}
        sound = {key: record for key, record in members.items() if _sound(key, record)}
        found.update(sound)
        if not sound:
            bad.append(name)
    for name in bad[:REPORTED]:
        log.warning("%s: the record %.80r is damaged and dropped; its source counts as new", file, name)
    if len(bad) > REPORTED:
        log.warning("%s: %d further records are damaged and dropped", file, len(bad) - REPORTED)
    return found


def _sound(key: str, record: Record) -> bool:
    """Whether the parts of a record fit together."""
    if record.source_type == "file":
        return record.file is not None and record.url is None and record.file.rel_path == key != ""
    return record.url is not None and record.file is None and record.url.url == key != ""
