from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.knowledge import cache
from services.knowledge.cache import Record
from services.knowledge.source_files import FileFacts, FileRecord
from services.knowledge.source_pages import UrlFacts, UrlRecord
from tests.shelves import RECORDS as TYPES

TIME = "2026-02-01T03:10:56.000Z"
HASH = "a" * 64
TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)


def file_record(name: str = "a.md", summary: str = "About a.") -> Record:
    return FileRecord(
        content_hash=HASH,
        summary_text=summary,
        summary_key="k",
        last_indexed_at=TIME,
        summary_pending=False,
        file=FileFacts(name, 12, 34),
    )


def url_record(url: str = "https://a.example", gone_at: str | None = None) -> Record:
    facts = UrlFacts(url, None, '"e"', None, "timeout", TIME)
    return replace(UrlRecord.new(TIME, url=facts), summary_key="k", gone_at=gone_at)


COMMON: dict[str, st.SearchStrategy[object]] = {
    "summary_text": TEXT,
    "summary_key": TEXT,
    "last_indexed_at": st.just(TIME),
    "summary_pending": st.booleans(),
    "gone_at": st.none() | st.just(TIME),
}
FILES = st.builds(
    FileRecord,
    content_hash=st.sampled_from([HASH, "0" * 64]),
    file=st.builds(FileFacts, NAMES, st.integers(0, 2**40), st.integers(-(2**62), 2**62)),
    **COMMON,
)
PAGES = st.builds(
    UrlRecord,
    content_hash=st.sampled_from(["", HASH]),
    url=st.builds(
        UrlFacts,
        NAMES,
        st.none() | st.just(TIME),
        st.none() | TEXT,
        st.none() | TEXT,
        st.sampled_from(["success", "not_modified", "timeout", "error"]),
        st.just(TIME),
    ),
    **COMMON,
)
RECORDS = st.lists(FILES | PAGES, max_size=5, unique_by=lambda record: record.source_id)


def parse(data: bytes, file: str = "cache") -> dict[str, Record]:
    return cache.parse(data, TYPES, file)


def rendered(*records: Record) -> bytes:
    return cache.render(map(cache.render_line, records), TIME)


@given(RECORDS)
def test_parse_is_the_inverse_of_render(records: list[Record]) -> None:
    data = rendered(*records)
    assert list(parse(data).values()) == records
    assert json.loads(data)["schema_version"] == 1


@given(RECORDS)
def test_the_layout_does_not_matter(records: list[Record]) -> None:
    content = json.loads(rendered(*records))
    assert list(parse(json.dumps(content, indent=2, ensure_ascii=False).encode()).values()) == records


@given(RECORDS, st.data())
def test_a_torn_file_gives_its_whole_lines_and_never_raises(records: list[Record], data: st.DataObject) -> None:
    whole = rendered(*records)
    cut = whole[: data.draw(st.integers(0, len(whole)))]
    found = list(parse(cut).values())
    assert found == records[: len(found)]
    lines = cut.count(b"}},\n")
    assert len(found) >= min(lines, len(records)) - 1 or not found


@given(st.binary(max_size=200))
def test_rubbish_is_an_empty_cache(data: bytes) -> None:
    assert parse(data) == {}


def test_more_than_a_hundred_records_are_read_in_pieces() -> None:
    records = [file_record(f"{number:03}.md") for number in range(250)]
    assert list(parse(rendered(*records)).values()) == records


@pytest.mark.parametrize("version", [0, 2, "1", True, None])
def test_another_version_is_reported_and_empty(version: object, caplog: pytest.LogCaptureFixture) -> None:
    content = json.loads(rendered(file_record())) | {"schema_version": version}
    assert parse(json.dumps(content).encode(), "cache.json") == {}
    assert "cache.json is not a cache of schema_version 1" in caplog.text


@pytest.mark.parametrize("content", [[], {"schema_version": 1}, {"schema_version": 1, "sources": []}, 3])
def test_a_file_without_sources_is_reported_and_empty(content: object, caplog: pytest.LogCaptureFixture) -> None:
    assert parse(json.dumps(content).encode()) == {}
    assert caplog.records


@pytest.mark.parametrize(
    "change",
    [
        {"content_hash": "short"},
        {"summary_pending": "no"},
        {"source_type": "url"},
        {"source_type": "folder"},
        {"file": None},
        {"file": {"rel_path": "other.md", "size_bytes": 1, "mtime_ns": 1}},
        {"file": {"rel_path": "b.md", "size_bytes": -1, "mtime_ns": 1}},
        {"gone_at": "yesterday"},
        {"url": {"url": "b.md", "last_fetched_at": None, "etag": None, "last_modified": None}},
    ],
)
def test_one_bad_record_is_reported_and_dropped(change: dict[str, object], caplog: pytest.LogCaptureFixture) -> None:
    """Pitfall 12."""
    content = json.loads(rendered(file_record("a.md"), file_record("b.md"), url_record()))
    content["sources"]["b.md"].update(change)
    for data in (json.dumps(content), json.dumps(content, indent=1)):
        assert list(parse(data.encode())) == ["a.md", "https://a.example"]
    assert "b.md" in caplog.text


def test_a_line_that_is_no_json_costs_that_record(caplog: pytest.LogCaptureFixture) -> None:
    """Pitfall 12."""
    lines = rendered(*(file_record(f"{number}.md") for number in range(9))).split(b"\n")
    for number in range(5, 12):
        lines[number] = lines[number][:40] + b"\xff" + lines[number][40:].replace(b":", b";")
    assert list(parse(b"\n".join(lines))) == ["0.md", "8.md"]
    assert "2 further records" in caplog.text


def test_what_could_be_saved_of_a_file_that_is_cut_off_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    """Pitfall 12."""
    lines = rendered(*(file_record(f"{number}.md") for number in range(9))).split(b"\n")
    assert list(parse(b"\n".join(lines[:7]), "cache.json")) == ["0.md", "1.md", "2.md"]
    assert "cache.json is damaged: 3 records could be saved from it" in caplog.messages


@pytest.mark.parametrize(
    ("before", "pending", "now", "expected"),
    [
        ("a", False, "a", False),
        ("a", False, "b", True),
        ("a", True, "a", True),
        ("a", True, "b", True),
        ("", True, "a", True),
        ("a", False, "", False),
        ("", True, "", False),
    ],
)
def test_new_content_needs_a_description_and_none_needs_none(
    before: str, pending: bool, now: str, expected: bool
) -> None:
    hashes = {"": "", "a": "a" * 64, "b": "b" * 64}
    record = replace(
        file_record(), content_hash=hashes[before], summary_pending=pending, gone_at="2026-01-01T00:00:00Z"
    )
    held = record.with_content(hashes[now])
    assert (held.content_hash, held.summary_pending, held.gone_at) == (hashes[now], expected, None)
    assert held.summary_text == record.summary_text


def test_text_is_normalised_before_it_is_hashed() -> None:
    assert cache.normalise("\r\n\r\n One \t\r\n\r\nTwo\r\n \n") == " One\n\nTwo"
    assert cache.hash_text("One\n") == cache.hash_text("\nOne  \r\n")
    assert cache.hash_text("\ud800") != cache.hash_text("")


def test_a_blank_description_is_none() -> None:
    assert file_record().is_described
    assert not file_record(summary=" ").is_described
    assert not url_record().is_described
