"""The grammar of a cache file: what is known about each source, read and written side by side.

    {
    "schema_version": 1,
    "generated_at": "2026-02-01T03:10:56.000Z",
    "sources": {
    "guides/setup.md": {"source_type":"file","content_hash":"9f86…", … "file":{"rel_path":"guides/setup.md", …}},
    "https://example.org/faq": {"source_type":"url", … "url":{"url":"https://example.org/faq", …}}
    }
    }

It is JSON with one record a line: a change is one line of a diff, a damaged file keeps all its other lines, and
neither reading nor writing is one long step.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Annotated, Any, Self, Union

from pydantic import AfterValidator, ConfigDict, Discriminator, Field, TypeAdapter, ValidationError

from clock import from_rfc3339
from services.telemetry import number_of

SCHEMA_VERSION = 1

REPORTED = 5
"""So many bad records are named in the log; the others are counted."""

_HEAD, _TAIL = 4, 3
"""Lines before the first record and behind the last, with the empty one after the last line end."""
_AT_ONCE = 100
"""Records that are validated in one go, which takes a millisecond."""

log = logging.getLogger(__name__)


def _time(text: str) -> str:
    from_rfc3339(text)  # a ValueError if it is none
    return text


Time = Annotated[str, AfterValidator(_time)]
Count = Annotated[int, Field(ge=0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(ABC):
    """The cached facts about one source. Each kind of source has a subclass with one more field, a frozen dataclass
    that is named as `source_type`: the facts of that kind.

    Attributes:
        source_type: a `Literal` in the subclass.
        content_hash: `hash_text` of the text as last read; empty when there is no text, as for a page never fetched.
        summary_text: the description in the index; empty until there is one, the previous one while one is pending.
        summary_key: from which prompt and model `summary_text` came.
        gone_at: since when the source has been missing; such a record is in no index.
    """

    source_type: str
    content_hash: Annotated[str, Field(pattern=r"^(?:[0-9a-f]{64})?$")]
    summary_text: str
    summary_key: str
    last_indexed_at: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")]
    summary_pending: bool
    gone_at: Time | None = None

    __pydantic_config__ = ConfigDict(extra="forbid")  # so that a record with the part of another kind is not valid

    @property
    @abstractmethod
    def source_id(self) -> str:
        """The source's name in the index, without `kb:`; taken from the kind's own part."""

    @property
    def described(self) -> bool:
        """True if `summary_text` describes the content with `content_hash`."""
        return not self.summary_pending and bool(self.summary_text.strip())

    @property
    def indexed(self) -> bool:
        return self.gone_at is None and bool(self.summary_text)

    @classmethod
    def new(cls, at: str, **part: Any) -> Self:
        """The record of a source that was first seen at `at`; `part`: the kind's own part, by its name."""
        return cls(content_hash="", summary_text="", summary_key="", last_indexed_at=at, summary_pending=True, **part)

    def holding(self, content_hash: str) -> Self:
        """Return the record with this content: new content needs a new description, and the source is no longer
        gone.
        """
        pending = bool(content_hash) and (self.summary_pending or self.content_hash != content_hash)
        return replace(self, content_hash=content_hash, summary_pending=pending, gone_at=None)


_VERSION = re.compile(r'"schema_version"\s*:\s*(\d+)\s*[,}]')


def normalise(text: str) -> str:
    r"""`text` with `\n` as line ends, no white space at the end of lines, and no blank lines at either end."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return "\n".join([line.rstrip() for line in text.split("\n")]).strip("\n")


def hash_text(text: str) -> str:
    """SHA-256, in hex, of the normalised text."""
    return hashlib.sha256(normalise(text).encode("utf-8", "replace")).hexdigest()


def line(record: Record) -> str:
    """A record as a line of the file, without the separator."""
    fields: dict[str, object] = {
        "source_type": record.source_type,
        "content_hash": record.content_hash,
        "summary_text": record.summary_text,
        "summary_key": record.summary_key,
        "last_indexed_at": record.last_indexed_at,
        "summary_pending": record.summary_pending,
        record.source_type: asdict(getattr(record, record.source_type)),
    }
    if record.gone_at is not None:
        fields["gone_at"] = record.gone_at
    return f"{_dumps(record.source_id)}: {_dumps(fields)}"


_dumps = json.JSONEncoder(separators=(",", ":")).encode


def render(lines: Iterable[str], generated_at: str) -> bytes:
    """The cache file with these `line`s, in their order."""
    body = ",\n".join(lines)
    head = f'{{\n"schema_version": {SCHEMA_VERSION},\n"generated_at": {_dumps(generated_at)},\n"sources": {{\n'
    return f"{head}{body}\n}}\n}}\n".encode()


def parse(data: bytes, types: Iterable[type[Record]], file: str = "cache") -> dict[str, Record]:
    """The valid records in `data`, by source id; `types`: those of the kinds of sources that there are.

    Never raises: damage is reported with `file` and left out. Another `schema_version` gives nothing, a bad record
    costs that record, and of a file that is not JSON every line counts that holds a whole record.
    """
    text = data.decode("utf-8", "replace")
    version = _VERSION.search(text)
    if version is None or int(version[1]) != SCHEMA_VERSION:
        log.warning("%s is not a cache of schema_version %d; all descriptions are made anew", file, SCHEMA_VERSION)
        return {}
    lines, damaged = text.split("\n"), False
    if lines[_HEAD - 1 : _HEAD] == ['"sources": {'] and lines[-_TAIL:] == ["}", "}", ""]:
        members = lines[_HEAD:-_TAIL]
    else:
        try:
            sources: dict[str, object] = json.loads(text)["sources"]
            members = [f"{_dumps(key)}: {_dumps(value)}" for key, value in sources.items()]
        except (ValueError, RecursionError, LookupError, AttributeError, TypeError):
            members, damaged = lines[_HEAD:], True
    records, bad = _valid(members, _adapter(tuple(types)))
    for name in bad[:REPORTED]:
        log.warning("%s: the record %.80r is damaged and dropped; its source counts as new", file, name)
    if len(bad) > REPORTED:
        log.warning("%s: %d further records are damaged and dropped", file, len(bad) - REPORTED)
    if damaged:
        log.warning("%s is damaged: %s could be saved from it", file, number_of(len(records), "record"))
    return records


_Records = TypeAdapter[dict[str, Record]]


@lru_cache
def _adapter(types: tuple[type[Record], ...]) -> _Records:
    records: Any = Union[types]  # noqa: UP007 (of a tuple)
    if len(types) > 1:
        records = Annotated[records, Discriminator("source_type")]
    records = dict[str, records]
    return TypeAdapter(records)


def _valid(lines: Sequence[str], adapter: _Records) -> tuple[dict[str, Record], list[str]]:
    """The records in members of an object, one a line, and the lines that hold none."""
    found: dict[str, Record] = {}
    bad: list[str] = []
    # Not in one go: validation lets no other thread run, and the event loop must not wait for a large cache.
    for at in range(0, len(lines), _AT_ONCE):
        some = [line.strip().removesuffix(",") for line in lines[at : at + _AT_ONCE]]
        records = _members(some, adapter)
        if records is not None:
            found.update(records)
            continue
        for each in some:
            one = _members([each], adapter)
            found.update(one or {})
            if not one and each.strip("}"):
                bad.append(each)
    return found, bad


def _members(lines: Sequence[str], adapter: _Records) -> dict[str, Record] | None:
    """None: not all of them are valid."""
    try:
        found = adapter.validate_json(f"{{{','.join(lines)}}}", strict=True)
    except ValidationError:
        return None
    return found if all(key == record.source_id != "" for key, record in found.items()) else None
