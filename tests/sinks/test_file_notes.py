"""The note about refused files: one for all of a message, one a minute in a thread."""

from __future__ import annotations

import asyncio

from clock.cancellation import CancelToken
from model.servers import Servers
from operators.evidence import IngestResult, MessageFiles
from services.conversations import History
from services.documents import FileRefused, Tombstones, refusal_text
from services.documents.thread_files import IngestJob
from sinks.evidence import DONE, FAILED, NOTE_SECONDS, FileNotes
from tests.sinks.test_evidence_languages import THREAD, Notebook
from tests.talk import people_of
from tests.world import posted_file


class Reacting(Notebook):
    def __init__(self) -> None:
        super().__init__()
        self.marks: list[tuple[int, str]] = []

    async def react(self, place_id: int, message_id: int, emoji: str) -> None:
        self.marks.append((message_id, emoji))


def result_of(message_id: int, number: int, *, refused: bool = True, place_id: int = THREAD) -> IngestResult:
    candidate = posted_file(THREAD, message_id, number, place_id=place_id)
    refusal = FileRefused("fault", name=f"{number}.exe") if refused else None
    failure = "" if refusal is None else refusal_text(refusal)
    return IngestResult(job=IngestJob(candidate, CancelToken()), failure=failure, refusal=refusal)


async def told(notes: FileNotes, *results: IngestResult) -> None:
    for last in range(1, len(results) + 1):
        await notes.on_end(MessageFiles(results[:last], last == len(results)))


def notes_for(poster: Notebook) -> FileNotes:
    people = people_of(frozenset(), frozenset(), None)
    return FileNotes(
        poster=poster,
        history=History(None),
        people=people,
        tombstones=Tombstones(),
        reply_languages=Servers({None: "en"}),
    )


async def test_all_refused_files_of_a_message_are_one_note_and_one_reaction() -> None:
    poster = Reacting()
    await told(notes_for(poster), result_of(70, 1), result_of(70, 2, refused=False), result_of(70, 3))
    assert poster.marks == [(70, FAILED), (70, DONE)]
    (text,) = poster.texts
    assert ["1.exe" in text, "2.exe" in text, "3.exe" in text] == [True, False, True]


async def test_within_a_minute_a_thread_has_one_note_and_then_reactions_only() -> None:
    poster = Reacting()
    notes = notes_for(poster)
    await told(notes, result_of(70, 1))
    await told(notes, result_of(71, 2))
    assert len(poster.texts) == 1
    await asyncio.sleep(NOTE_SECONDS)
    await told(notes, result_of(72, 3))
    assert [("1.exe" in text, "3.exe" in text) for text in poster.texts] == [(True, False), (False, True)]
    assert poster.marks == [(70, FAILED), (71, FAILED), (72, FAILED)]


async def test_in_a_channel_the_answer_says_it() -> None:
    poster = Reacting()
    await told(notes_for(poster), result_of(70, 1, place_id=5))
    assert (poster.texts, poster.marks) == ([], [(70, FAILED)])
