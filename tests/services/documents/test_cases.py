from __future__ import annotations

import asyncio
import tracemalloc

import pytest

from clock import now
from model.messages import Attachment
from operators.evidence import DropFiles
from services.documents import thread_files as cases_module
from services.documents.thread_files import Candidate, CaseClosed, IngestJob, ThreadFiles


def candidate(number: int = 1, *, case_id: int = 7, message_id: int = 70) -> Candidate:
    return Candidate(
        case_id=case_id,
        guild_id=9,
        place_id=case_id,
        message_id=message_id,
        uploader_id=101,
        attachment=Attachment(number, f"{number}.log", 10, ""),
        at=0.0,
    )


def begun(cases: ThreadFiles, *args: int, **kwargs: int) -> IngestJob:
    job = cases.begin(candidate(*args, **kwargs))
    assert job is not None
    return job


async def test_a_file_is_taken_on_once() -> None:
    cases = ThreadFiles()
    assert not cases.has_files(7)
    job = begun(cases)
    assert cases.begin(candidate()) is None
    assert cases.has_files(7)
    assert cases.unread(7) == [job.candidate]
    cases.finish(job)
    cases.finish(job)
    assert cases.unread(7) == []
    assert cases.begin(candidate()) is None


async def test_whoever_waits_hears_when_the_last_file_can_be_searched() -> None:
    cases = ThreadFiles()
    first, second = begun(cases, 1), begun(cases, 2)
    waiting = asyncio.create_task(cases.wait(7, 10))
    cases.finish(first)
    await asyncio.sleep(1)
    assert not waiting.done()
    cases.finish(second)
    await waiting
    began = now()
    await cases.wait(8, 10)
    assert now() == began, "there is nothing to wait for"


async def test_nobody_waits_longer_than_they_said() -> None:
    cases = ThreadFiles()
    begun(cases)
    began = now()
    await cases.wait(7, 10)
    assert now() == began + 10
    assert cases.unread(7)


async def test_closing_calls_off_what_is_under_way_and_lets_files_come_anew() -> None:
    cases = ThreadFiles([7, 8])
    job = begun(cases)
    cases.close(7)
    cases.close(99)
    assert isinstance(job.token.error, CaseClosed)
    assert list(cases) == [8]
    assert cases.begin(candidate()) is not None


async def test_deleted_messages_take_their_files_back_but_for_those_that_stay() -> None:
    cases = ThreadFiles()
    gone, kept, other = begun(cases, 1), begun(cases, 2), begun(cases, 3, message_id=71)
    assert cases.cases_of_messages([70, 5]) == {7}
    DropFiles(7, frozenset([70]), frozenset([2])).cancel_reads(cases)
    DropFiles(99, frozenset([70, 71])).cancel_reads(cases)
    assert [job.token.error is not None for job in (gone, kept, other)] == [True, False, False]


async def test_a_file_of_before_the_closing_does_not_settle_the_one_of_after() -> None:
    cases = ThreadFiles()
    before = begun(cases)
    cases.close(7)
    after = begun(cases)
    cases.finish(before)
    assert cases.unread(7) == [after.candidate]


async def test_of_threads_that_were_closed_nothing_stays_once_nothing_is_read() -> None:
    cases = ThreadFiles()
    tracemalloc.start()
    for case_id in range(1, 1_000):
        before = begun(cases, case_id, case_id=case_id)
        if case_id % 2:
            cases.finish(before)
        cases.close(case_id)
        if not case_id % 2:
            assert cases.unread(case_id) == [before.candidate], "until the reading has ended"
            cases.finish(before)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 50_000


async def test_threads_of_long_ago_are_forgotten_unless_something_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases_module, "REMEMBERED", 2)
    cases = ThreadFiles()
    cases.finish(begun(cases, 1, case_id=1))
    under_way = begun(cases, 2, case_id=2)
    more = begun(cases, 3, case_id=3)
    assert cases.begin(candidate(1, case_id=1)) is not None, "it is looked up in the store then"
    assert cases.unread(2) == [under_way.candidate]
    assert cases.begin(candidate(3, case_id=3)) is None
    cases.finish(more)
    cases.note_collection(5)
    assert cases.has_files(5)


async def test_where_all_is_under_way_nothing_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases_module, "REMEMBERED", 1)
    cases = ThreadFiles()
    first, second = begun(cases, 1, case_id=1), begun(cases, 2, case_id=2)
    assert cases.begin(candidate(1, case_id=1)) is None
    assert cases.unread(1) == [first.candidate]
    assert cases.unread(2) == [second.candidate]
