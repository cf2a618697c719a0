"""The format of the cache file, which keeps one record for each source.

    {
    "schema_version": 1,
    "generated_at": "2026-02-01T03:10:56.000Z",
    "sources": {
    "guides/setup.md": {"source_type":"file","content_hash":"9f86…", … "file":{"rel_path":"guides/setup.md", …}},
    "https://example.org/faq": {"source_type":"url", … "url":{"url":"https://example.org/faq", …}}
    }
    }

It is JSON with one record a line: a change is one line of a diff, damage costs only the damaged lines, and the file is
read and written in short steps.
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

MAX_REPORTED = 5
"""The number of bad records that the log names; it counts the others."""

_HEAD_LINES, _TAIL_LINES = 4, 3
"""The number of lines before the first record and after the last, including the empty one at the end of the file."""
_BATCH_RECORDS = 100
"""The number of records that are validated at once, which takes a millisecond."""

log = logging.getLogger(__name__)


def _require_time(text: str) -> str:
    from_rfc3339(text)  # raises ValueError
    return text


Time = Annotated[str, AfterValidator(_require_time)]
Count = Annotated[int, Field(ge=0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(ABC):
    """The cached facts about one source. Each kind of source has a subclass with one more field: a frozen dataclass
    with the facts of that kind, in a field whose name is the `source_type`.

    Attributes:
        source_type: a `Literal` in the subclass.
        content_hash: `hash_text` of the text as last read; empty without a text, as for a page never fetched.
        summary_text: the description in the index. While a new one is pending, it is the previous one, or empty.
        summary_key: identifies the prompt and the model that `summary_text` came from.
        gone_at: the time since which the source has been missing; the index leaves it out.
    """

    source_type: str
    content_hash: Annotated[str, Field(pattern=r"^(?:[0-9a-f]{64})?$")]
    summary_text: str
    summary_key: str
    last_indexed_at: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")]
    summary_pending: bool
    gone_at: Time | None = None

    __pydantic_config__ = ConfigDict(extra="forbid")  # a record with the facts of another kind is not valid

    @property
    @abstractmethod
    def source_id(self) -> str:
        """The source's id in the index, without `kb:`."""

    @property
    def is_described(self) -> bool:
        """True if `summary_text` describes the content with `content_hash`."""
        return not self.summary_pending and bool(self.summary_text.strip())

    @property
    def is_indexed(self) -> bool:
        return self.gone_at is None and bool(self.summary_text)

    @classmethod
    def new(cls, at: str, **facts: Any) -> Self:
        """Return the record of a source that was first seen at `at`; `facts`: the field of the kind, by its name."""
        return cls(content_hash="", summary_text="", summary_key="", last_indexed_at=at, summary_pending=True, **facts)

    def with_content(self, content_hash: str) -> Self:
        """Return the record with this content. Changed content needs a new description; a missing source is back."""
        pending = bool(content_hash) and (self.summary_pending or self.content_hash != content_hash)
        return replace(self, content_hash=content_hash, summary_pending=pending, gone_at=None)


_VERSION = re.compile(r'"schema_version"\s*:\s*(\d+)\s*[,}]')


def normalise(text: str) -> str:
    r"""Return `text` with `\n` as line ends, no white space at the end of lines, and no blank lines at either end."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return "\n".join([line.rstrip() for line in text.split("\n")]).strip("\n")


def hash_text(text: str) -> str:
    """Return the SHA-256 of the normalised text, in hex."""
    return hashlib.sha256(normalise(text).encode("utf-8", "replace")).hexdigest()


def render_line(record: Record) -> str:
    """Render a record as a line of the file, without the separator."""
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
    """Render the cache file from lines of `render_line`, in their order."""
    body = ",\n".join(lines)
    head = f'{{\n"schema_version": {SCHEMA_VERSION},\n"generated_at": {_dumps(generated_at)},\n"sources": {{\n'
    return f"{head}{body}\n}}\n}}\n".encode()


def parse(data: bytes, types: Iterable[type[Record]], file: str = "cache") -> dict[str, Record]:
    """Return the valid records in `data`, by source id. `types`: the record classes of all kinds of sources.

    Never raises: damage is logged with `file` and skipped. Another `schema_version` gives no records. A bad record
    costs only itself. In a file that is not JSON, each line with a whole record still counts.
    """
    text = data.decode("utf-8", "replace")
    version = _VERSION.search(text)
    if version is None or int(version[1]) != SCHEMA_VERSION:
        log.warning("%s is not a cache of schema_version %d; all descriptions are made anew", file, SCHEMA_VERSION)
        return {}
    lines, damaged = text.split("\n"), False
    if lines[_HEAD_LINES - 1 : _HEAD_LINES] == ['"sources": {'] and lines[-_TAIL_LINES:] == ["}", "}", ""]:
        members = lines[_HEAD_LINES:-_TAIL_LINES]
    else:
        try:
            sources: dict[str, object] = json.loads(text)["sources"]
            members = [f"{_dumps(key)}: {_dumps(value)}" for key, value in sources.items()]
        except (ValueError, RecursionError, LookupError, AttributeError, TypeError):
            members, damaged = lines[_HEAD_LINES:], True
    records, bad = _parse_members(members, _adapter(tuple(types)))
    for name in bad[:MAX_REPORTED]:
        log.warning("%s: the record %.80r is damaged and dropped; its source counts as new", file, name)
    if len(bad) > MAX_REPORTED:
        log.warning("%s: %d further records are damaged and dropped", file, len(bad) - MAX_REPORTED)
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


def _parse_members(lines: Sequence[str], adapter: _Records) -> tuple[dict[str, Record], list[str]]:
    """Parse members of a JSON object, one a line. Returns the records, and the lines that are no record."""
    found: dict[str, Record] = {}
    bad: list[str] = []
    # In batches: validation lets no other thread run, and the event loop must not wait for a large cache.
    for start in range(0, len(lines), _BATCH_RECORDS):
        batch = [line.strip().removesuffix(",") for line in lines[start : start + _BATCH_RECORDS]]
        records = _validate_members(batch, adapter)
        if records is not None:
            found.update(records)
            continue
        for each in batch:
            one = _validate_members([each], adapter)
            found.update(one or {})
            if not one and each.strip("}"):
                bad.append(each)
    return found, bad


def _validate_members(lines: Sequence[str], adapter: _Records) -> dict[str, Record] | None:
    """Return the records by source id; None if one of the lines is not valid."""
    try:
        found = adapter.validate_json(f"{{{','.join(lines)}}}", strict=True)
    except ValidationError:
        return None
    return found if all(key == record.source_id != "" for key, record in found.items()) else None
