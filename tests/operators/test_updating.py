"""The steps of an update of the knowledge base, each by itself, over a kind of sources that does as it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import pytest

from clock import now, rfc3339
from operators.updating import GONE_SECONDS, NAME_TAKEN, begin, discover, event_of, fetch, summarise
from services.assistant import NotDescribed, SaysNothing
from services.knowledge import (
    CannotList,
    Discovered,
    Due,
    LeftOut,
    Pending,
    Purged,
    Record,
    SourceRecords,
    Trouble,
    UpdateEvent,
    UpdateResult,
    UpToDate,
    hash_text,
)
from services.knowledge.cache import render, render_line
from services.knowledge.source_kinds import LineResult, LinksLine, Listing, SourceDetails, Text
from tests.shelves import FakeDescriber

KEY = "key 1"
"""That of `FakeDescriber`."""


@dataclass(frozen=True, slots=True)
class NoteFacts:
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteRecord(Record):
    note: NoteFacts
    source_type: Literal["note"] = "note"

    @property
    def source_id(self) -> str:
        return self.note.name


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionRecord(Record):
    question: NoteFacts
    source_type: Literal["question"] = "question"

    @property
    def source_id(self) -> str:
        return self.question.name


@dataclass
class Notes:
    """A kind of sources: what it lists and fetches is what a test says."""

    listing: Listing | CannotList = field(default_factory=Listing)
    fetched: Sequence[NoteRecord | LeftOut | Trouble] = ()
    surveyed: Sequence[Trouble] = ()
    texts: dict[str, Text] = field(default_factory=dict[str, Text])
    asked_for: list[Mapping[str, NoteRecord | None]] = field(default_factory=list[Mapping[str, NoteRecord | None]])
    forgotten: list[str] = field(default_factory=list[str])
    prefix: str = ""
    noun: str = "note"
    plural: str = "notes"
    record: type[Record] = NoteRecord
    step = "read"
    batch = concurrency = 1

    def owns(self, source_id: str) -> bool:
        return source_id.startswith(self.prefix)

    def address(self, _source_id: str) -> str | None:
        return None

    def details(self, _record: NoteRecord) -> SourceDetails:
        return SourceDetails()

    def line_result(self, _line: LinksLine) -> LineResult | None:
        return None

    async def refresh(self, _at: float) -> Sequence[Trouble]:
        return self.surveyed

    def list_sources(self, _records: Mapping[str, NoteRecord], _at: float) -> Listing:
        if isinstance(self.listing, CannotList):
            raise self.listing
        return self.listing

    async def fetch(self, due: Mapping[str, NoteRecord | None]) -> Sequence[NoteRecord | LeftOut | Trouble]:
        self.asked_for.append(due)
        return self.fetched

    def read(self, source_id: str) -> Text:
        return self.texts[source_id]

    def forget(self, source_id: str) -> None:
        self.forgotten.append(source_id)
        raise OSError(28, "No space left on device")  # is no reason to keep the record


def questions() -> Notes:
    """Another kind, whose names begin with `faq:`."""
    return Notes(prefix="faq:", noun="question", plural="questions", record=QuestionRecord)


def note(name: str, text: str = "", *, said: str = "", key: str = KEY, gone_at: str | None = None) -> NoteRecord:
    """A source with this text; `said`: its description."""
    content = hash_text(text) if text else ""
    record = NoteRecord.new("2026-01-01T00:00:00Z", note=NoteFacts(name))
    return replace(
        record,
        content_hash=content,
        summary_text=said,
        summary_key=key if said else "",
        summary_pending=not said,
        gone_at=gone_at,
    )


def records_of(folder: Path, kind: Notes, *records: Record, others: Sequence[Notes] = ()) -> SourceRecords:
    """What is known at the start, from its file if there is anything."""
    path = folder / "cache.json"
    if records:
        path.write_bytes(render([render_line(record) for record in records], "2026-01-01T00:00:00Z"))
    return SourceRecords(path, (kind, *others))


async def looked(folder: Path, kind: Notes, *records: Record) -> list[UpdateEvent]:
    """The events of one discovery, after the first."""
    first, *events = await look(records_of(folder, kind, *records))
    assert isinstance(first, Discovered)
    return events


async def look(source_records: SourceRecords) -> list[UpdateEvent]:
    """The events of one discovery, of the first kind."""
    kind, *_ = await begin(source_records)(None)
    return await discover(source_records, KEY)(kind)


# discover


async def test_what_a_survey_could_not_have_is_told_and_the_rest_is_looked_at(tmp_path: Path) -> None:
    trouble = Trouble("https://mill.example/sitemap.xml", "list", "HTTP 500")
    kind = Notes(Listing(due=["a"]), surveyed=[trouble])
    assert await look(records_of(tmp_path, kind)) == [Discovered({"note": 1}), trouble, Due(kind, "a")]


async def test_a_source_that_is_done_costs_nothing(tmp_path: Path) -> None:
    kind = Notes(Listing(unchanged=["a"]))
    source_records = records_of(tmp_path, kind, note("a", "A", said="About A."))
    assert await look(source_records) == await look(source_records) == [Discovered({"note": 1})]


@pytest.mark.parametrize(
    ("record", "how"),
    [
        (note("a", "A"), Pending),
        (note("a", "A", said="About A.", key="another prompt"), Pending),
        (note("a", "A", said="About A.", gone_at="2026-01-01T00:00:00Z"), UpToDate),
        (note("a"), None),
    ],
    ids=["not described", "described otherwise", "back again", "without a text"],
)
async def test_an_unchanged_source_gets_what_it_lacks(tmp_path: Path, record: Record, how: type | None) -> None:
    events = await looked(tmp_path, Notes(Listing(unchanged=["a"])), record)
    assert [type(event) for event in events] == ([] if how is None else [how])
    assert all(event.record.gone_at is None for event in events if isinstance(event, Pending | UpToDate))
    assert all(event.result is UpdateResult.SAME for event in events if isinstance(event, UpToDate))


async def test_troubles_come_first_then_what_is_left_out_then_what_is_due(tmp_path: Path) -> None:
    kind = Notes(Listing(due=["a"], left_out={"b": "it is binary"}, troubles={"c": "cannot be read"}))
    source_records = records_of(tmp_path, kind)
    assert await look(source_records) == [
        Discovered({"note": 1}),
        Trouble("c", "discover", "cannot be read"),
        LeftOut("b", "it is binary"),
        Due(kind, "a"),
    ]


async def test_a_name_that_belongs_to_another_kind_is_left_out(tmp_path: Path) -> None:
    kind = Notes(Listing(due=["faq:why", "a"]))
    source_records = records_of(tmp_path, kind, others=[questions()])
    assert await look(source_records) == [
        Discovered({"note": 2}),
        LeftOut("faq:why", NAME_TAKEN),
        Due(kind, "a"),
    ]


async def test_a_kind_that_cannot_be_looked_at_stays_as_it_is(tmp_path: Path) -> None:
    """Pitfalls 11 and 46."""
    kind = Notes(CannotList("sources", "is gone", "kb.sources_dir"))
    events = await looked(tmp_path, kind, note("a", "A", said="About A."))
    assert events == [Trouble("sources", "discover", "is gone", fatal=True)]


async def test_what_is_gone_leaves_at_once_and_is_forgotten_after_a_day(tmp_path: Path) -> None:
    kind, record = Notes(), note("a", "A", said="About A.")
    (left,) = await looked(tmp_path, kind, record)
    assert isinstance(left, UpToDate)
    assert (left.result, left.record.gone_at) == (UpdateResult.GONE, rfc3339(now()))
    await asyncio.sleep(GONE_SECONDS - 1)
    assert await looked(tmp_path, kind, left.record) == []
    await asyncio.sleep(1)
    assert await looked(tmp_path, kind, left.record) == [Purged("a")]
    assert kind.forgotten == ["a"]


async def test_what_may_be_there_although_it_is_not_listed_stays(tmp_path: Path) -> None:
    kind = Notes(Listing(may_exist=lambda name: name == "a"))
    events = await looked(tmp_path, kind, note("a", "A", said="About A."), note("b", "B", said="About B."))
    assert [event.record.source_id for event in events if isinstance(event, UpToDate)] == ["b"]


# fetch


async def test_due_sources_are_fetched_with_what_is_known_of_them(tmp_path: Path) -> None:
    known, trouble = note("a", "A", said="About A."), Trouble("b", "read", "gone")
    kind = Notes(fetched=[known, trouble])
    source_records = records_of(tmp_path, kind, known)
    await source_records.load()
    events = await fetch(kind, source_records, KEY)([Due(kind, "a"), Due(kind, "b")])
    assert events == [UpToDate(known, UpdateResult.SAME), trouble]
    assert kind.asked_for == [{"a": known, "b": None}]


async def test_what_is_known_of_another_kind_is_not_handed_on(tmp_path: Path) -> None:
    kind = questions()
    source_records = records_of(tmp_path, Notes(), note("a", "A"), others=[kind])
    await source_records.load()
    await fetch(kind, source_records, KEY)([Due(kind, "a")])
    assert kind.asked_for == [{"a": None}]


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (note("b", "B", gone_at="2026-01-01T00:00:00Z"), UpdateResult.GONE),
        (note("b"), UpdateResult.SAME),
        (note("b", "B", said="About B."), UpdateResult.SAME),
        (note("b", "B", said="About B.", key="another prompt"), None),
        (note("b", "A"), UpdateResult.REUSED),
        (note("b", "B"), None),
    ],
    ids=["gone", "without a text", "described", "described otherwise", "text of another", "new"],
)
def test_what_is_left_to_do_for_a_fetched_source(
    tmp_path: Path, record: NoteRecord, expected: UpdateResult | None
) -> None:
    source_records = records_of(tmp_path, Notes())
    source_records.put(note("a", "A", said="About A."))
    event = event_of(record, source_records, KEY)
    assert (event.result if isinstance(event, UpToDate) else None) == expected
    assert (event.record.summary_text == "About A.") == (expected is UpdateResult.REUSED)
    assert not isinstance(event, Pending) or event.record.summary_pending


# summarise


def text(content: str, *, cut: bool = False, flaw: str = "") -> Text:
    return Text(content, Path("a"), (0, 0, 0), is_cut=cut, flaw=flaw)


async def summarised(folder: Path, describer: FakeDescriber, *texts: Text) -> list[UpToDate | BaseException]:
    """What comes of sources named 0, 1, … with these texts, asked for at the same time."""
    kind = Notes(texts={str(number): each for number, each in enumerate(texts)})
    summarising = summarise(describer, records_of(folder, kind), 60)
    pending = [Pending(note(name, "as it was")) for name in kind.texts]
    return await asyncio.gather(*map(summarising, pending), return_exceptions=True)


async def test_a_source_is_described_as_it_reads_now(tmp_path: Path) -> None:
    (done,) = await summarised(tmp_path, FakeDescriber(), text("As it is."))
    assert isinstance(done, UpToDate)
    assert (done.result, done.record.summary_text, done.record.summary_key) == (
        UpdateResult.DESCRIBED,
        "About As it is.",
        KEY,
    )
    assert (done.record.content_hash, done.record.is_described) == (hash_text("As it is."), True)


async def test_of_a_text_that_was_cut_the_hash_stays(tmp_path: Path) -> None:
    (done,) = await summarised(tmp_path, FakeDescriber(), text("As it", cut=True))
    assert isinstance(done, UpToDate)
    assert done.record.content_hash == hash_text("as it was")


async def test_equal_texts_share_one_description(tmp_path: Path) -> None:
    describer = FakeDescriber()
    describer.seconds = 1
    done = await summarised(tmp_path, describer, text("Same."), text("Same."))
    assert [each.record.summary_text for each in done if isinstance(each, UpToDate)] == ["About Same."] * 2
    assert describer.asked == ["0"]


async def test_a_description_that_has_come_meanwhile_is_used(tmp_path: Path) -> None:
    describer, kind = FakeDescriber(), Notes(texts={"b": text("A")})
    source_records = records_of(tmp_path, kind)
    source_records.put(note("a", "A", said="About A."))
    done = await summarise(describer, source_records, 60)(Pending(note("b", "B")))
    assert (done.result, done.record.summary_text, describer.asked) == (UpdateResult.REUSED, "About A.", [])


async def test_what_says_nothing_leaves_the_index_and_is_looked_at_again(tmp_path: Path) -> None:
    describer = FakeDescriber()
    describer.failing = {"0": SaysNothing("a list of links")}
    (done,) = await summarised(tmp_path, describer, text("- a\n- b"))
    assert isinstance(done, UpToDate)
    assert (done.result, done.record.summary_text, done.record.summary_pending) == (UpdateResult.SAME, "", True)


@pytest.mark.parametrize(
    ("now_there", "said", "why"),
    [
        (text("\x00", flaw="it is binary"), "fine", "it is binary"),
        (text(" \n"), "fine", "it is empty"),
        (text("As it is."), " ", "the description is empty"),
    ],
)
async def test_there_is_no_description_of_nothing_and_an_empty_one_is_none(
    tmp_path: Path, now_there: Text, said: str, why: str
) -> None:
    """Pitfall 39."""
    describer = FakeDescriber()
    describer.says = lambda _: said
    (failed,) = await summarised(tmp_path, describer, now_there)
    assert isinstance(failed, NotDescribed)
    assert str(failed) == why
