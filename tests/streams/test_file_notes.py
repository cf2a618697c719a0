"""Notes about files: the files of a message together, and no thread waits for another."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest
import reactivex as rx

from clock.cancellation import CancelToken
from operators.evidence import IngestResult
from services.documents.thread_files import IngestJob, ThreadFiles
from streams.evidence import NOTES_AT_ONCE, Note, by_message, notify
from tests.world import posted_file

FLOODED, OTHER = 1, 2


def job_of(cases: ThreadFiles, case_id: int, message_id: int, number: int) -> IngestJob:
    job = cases.begin(posted_file(case_id, message_id, number))
    assert job is not None
    return job


def test_the_files_of_a_message_are_complete_with_its_last_one() -> None:
    cases = ThreadFiles()
    a1, a2, b1 = job_of(cases, 1, 70, 1), job_of(cases, 1, 70, 2), job_of(cases, 2, 80, 1)
    together, seen = by_message(cases), list[tuple[list[CancelToken], bool]]()
    for job in (a1, b1, a2):
        cases.finish(job)
        files = together(IngestResult(job=job))
        assert files.case_id == job.case_id
        seen.append(([each.job.token for each in files.results], files.is_complete))
    assert seen == [([a1.token], False), ([b1.token], True), ([a1.token, a2.token], True)]


@pytest.mark.parametrize("fails", [False, True])
async def test_the_notes_of_one_thread_keep_their_order_and_hold_up_no_other(fails: bool) -> None:
    loop, posted = asyncio.get_running_loop(), list[tuple[int, int, float]]()
    begun = loop.time()

    async def post(case_id: int, number: int) -> None:
        await asyncio.sleep(2 if number == 0 else 1)
        posted.append((case_id, number, loop.time() - begun))
        if fails:
            raise ZeroDivisionError

    many = range(2 * NOTES_AT_ONCE)
    notes = [*(Note(FLOODED, partial(post, FLOODED, number)) for number in many), Note(OTHER, partial(post, OTHER, 1))]
    done = asyncio.Event()
    notify(rx.from_iterable(notes)).subscribe(on_completed=done.set)
    await done.wait()
    assert [number for case_id, number, _ in posted if case_id == FLOODED] == [*many]
    assert [at for case_id, _, at in posted if case_id == OTHER] == [1]
