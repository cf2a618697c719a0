"""Reading files, giving them vectors, deleting and sweeping them: where the store, Discord or a file is in trouble."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from unittest.mock import AsyncMock

import pytest

from clock import FairTurns, Processes, WorkStopped, finish_even_if_cancelled, now
from model.messages import Attachment, Author, AuthorType, Message, Part, Place, PlaceKind, Reference
from operators import evidence
from operators import evidence as chunk_module
from operators.evidence import (
    CloseThread,
    DropFiles,
    IngestResult,
    IngestServices,
    MessageFiles,
    Threads,
    chunk,
    discard,
    embed,
    sweep,
    withdraw_missing,
)
from services.conversations.history import History
from services.conversations.people import ThreadAccess
from services.discord.protocols import LookupFailed
from services.documents.limits import FileLimits
from services.documents.lookup import Lookup, OwnRunbook
from services.documents.reading.preparing import prepare
from services.documents.runbooks import Runbooks
from services.documents.store import protocol
from services.documents.store.collection_files import DiskFull, Folders, SqliteCollections
from services.documents.store.document_store import DocumentStore
from services.documents.store.protocol import Collection as Case
from services.documents.store.protocol import NewDocument, Origin, State, StoreUnavailable
from services.documents.thread_files import Candidate, IngestJob, ThreadFiles, Tombstones, remove_file
from services.documents.tools.libraries import Status
from services.documents.tools.toolset import build
from services.storage import in_thread
from services.telemetry import current_people
from tests.hashing import HashingEmbedder
from tests.talk import ANN
from tests.world import Uploads

P = ParamSpec("P")
T = TypeVar("T")

CASE, GUILD = 7, 9


class BrokenStore(DocumentStore):
    """The embedded one, of which single calls fail."""

    def __init__(self, folder: Path) -> None:
        super().__init__(SqliteCollections(Folders(folder, folder)))
        self.broken: set[str] = set()

    def __getattribute__(self, name: str) -> Any:
        if name != "broken" and name in object.__getattribute__(self, "__dict__").get("broken", ()):
            raise StoreUnavailable("the disk is full")
        return object.__getattribute__(self, name)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[BrokenStore]:
    store = BrokenStore(tmp_path)
    yield store
    store.broken.clear()
    await store.close()


def job_of(uploads: Uploads, name: str = "app.log", content: str = "all is well\n") -> IngestJob:
    file = uploads.file(name, content)
    job = ThreadFiles().begin(candidate_of(file))
    assert job is not None
    return job


def candidate_of(file: Attachment, message_id: int = 70) -> Candidate:
    return Candidate(
        case_id=CASE,
        guild_id=GUILD,
        place_id=CASE,
        message_id=message_id,
        uploader_id=101,
        attachment=file,
        at=now(),
    )


def services_of(store: BrokenStore, uploads: Uploads) -> IngestServices:
    return IngestServices(store=store, attachments=uploads, run=in_thread)


async def taken(
    store: BrokenStore, uploads: Uploads, name: str = "app.log", content: str = "all is well\n"
) -> IngestResult:
    return await chunk(services_of(store, uploads))(job_of(uploads, name, content))


async def names(store: BrokenStore) -> list[str]:
    described = await store.describe(protocol.case_collection(str(CASE)))
    return [] if described is None else [doc.filename for doc in described.documents]


async def test_what_is_refused_by_its_name_waits_for_no_turn(store: BrokenStore) -> None:
    uploads, turns = Uploads(), FairTurns()
    async with turns.turn(101), asyncio.timeout(1):
        result = await chunk(replace(services_of(store, uploads), turns=turns))(job_of(uploads, "app.exe"))
    assert result.refusal is not None
    assert uploads.downloaded == []


async def test_a_disk_that_is_full_is_told(
    store: BrokenStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def full(_: Origin) -> None:
        raise DiskFull("documents.max_disk_bytes is used up")

    monkeypatch.setattr(store, "check_room", full)
    result = await taken(store, Uploads())
    assert result.failure.startswith("app.log ")
    assert "evidence: documents.max_disk_bytes is used up" in caplog.messages


async def test_the_files_of_a_message_are_of_one_thread() -> None:
    result = IngestResult(job=job_of(Uploads()))
    assert MessageFiles((result,), is_complete=True).case_id == CASE


async def test_a_store_that_cannot_be_written_is_told_and_the_file_can_be_posted_again(store: BrokenStore) -> None:
    store.broken = {"expect"}
    result = await taken(store, Uploads())
    assert result.document is None
    assert result.failure.startswith("app.log ")
    assert "Post it again in a few minutes" in result.failure
    store.broken = {"add"}
    assert "few minutes" in (await taken(store, Uploads())).failure


async def test_a_bug_in_reading_is_logged_and_ends_with_that_file(
    store: BrokenStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(chunk_module, "prepare_document", broken)
    result = await taken(store, Uploads())
    assert "through a fault of the bot" in result.failure
    assert "ZeroDivisionError" in caplog.text
    monkeypatch.undo()
    assert (await taken(store, Uploads(), "other.log")).document is not None


async def test_pitfall_64_a_file_that_takes_too_much_to_read_costs_itself_only(
    store: BrokenStore, caplog: pytest.LogCaptureFixture
) -> None:
    uploads = Uploads()
    job = job_of(uploads)
    processes = Processes(seconds=0.01)
    try:
        result = await chunk(IngestServices(store=store, attachments=uploads, run=processes.run))(job)
    finally:
        await processes.close()
    assert result.failure == "app.log could not be read: it takes too long, or too much memory."
    about = f"attachment {job.candidate.attachment.id}"
    assert caplog.messages == [f"evidence: {about} cannot be read: it takes longer than 0.01 s"]
    held = await store.describe(protocol.case_collection(str(CASE)))
    assert held is not None
    assert [doc.state for doc in held.documents] == [State.FAILED]


async def test_pitfall_64_files_that_could_not_be_read_count_against_what_a_thread_may_have(store: BrokenStore) -> None:
    async def too_slow(_work: Callable[P, T], *_args: P.args, **_kwargs: P.kwargs) -> T:
        raise WorkStopped("it takes longer than 60 s")

    uploads = Uploads()
    read = chunk(IngestServices(store=store, attachments=uploads, run=too_slow, limits=FileLimits(max_files=2)))
    for _ in range(2):
        assert "takes too long" in (await read(job_of(uploads))).failure
    await read(job_of(uploads, "a.exe"))  # it was not even downloaded
    assert "this place has 2 files, and 2 is the most" in (await read(job_of(uploads))).failure
    assert len(uploads.downloaded) == 2


@pytest.mark.parametrize("limits", [FileLimits(max_files=4), FileLimits(max_total_bytes=4 * len("all is well 1\n"))])
async def test_pitfall_64_a_guest_leaves_half_of_a_thread_to_others(store: BrokenStore, limits: FileLimits) -> None:
    uploads = Uploads()
    read = chunk(replace(services_of(store, uploads), limits=limits))
    failures: list[str] = []
    for number, (user_id, is_guest) in enumerate([(5, True)] * 3 + [(6, True)] + [(101, False)] * 2):
        job = job_of(uploads, f"{number}.log", f"all is well {number}\n")
        failures.append(
            (await read(replace(job, candidate=replace(job.candidate, uploader_id=user_id, is_guest=is_guest)))).failure
        )
    assert [bool(failure) for failure in failures] == [False, False, True, False, False, True]
    assert "in a thread that somebody else has opened" in failures[2]
    assert "in a thread that somebody else has opened" not in failures[5]


async def test_a_trouble_of_the_store_while_it_reads_is_not_taken_for_one_of_the_file(
    store: BrokenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise StoreUnavailable("gone")

    monkeypatch.setattr(chunk_module, "prepare_document", broken)
    assert "few minutes" in (await taken(store, Uploads())).failure


async def test_nothing_is_kept_of_a_file_whose_thread_was_closed_while_it_was_read(store: BrokenStore) -> None:
    uploads = Uploads()
    job = job_of(uploads)

    async def closing_meanwhile(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        await store.delete_collection(protocol.case_collection(str(CASE)))
        return await in_thread(work, *args, **kwargs)

    result = await chunk(IngestServices(store=store, attachments=uploads, run=closing_meanwhile))(job)
    assert (result.document, result.is_new, result.failure) == (None, False, "")
    assert await store.list_collections(protocol.CASE_PREFIX) == []


async def test_the_same_file_again_is_known(store: BrokenStore) -> None:
    uploads = Uploads()
    job = job_of(uploads)
    first = await chunk(services_of(store, uploads))(job)
    again = await chunk(services_of(store, uploads))(job)
    assert first.is_new
    assert not again.is_new
    assert again.document is not None
    failed = job_of(uploads, "a.exe", "MZ")
    assert "a program" in (await chunk(services_of(store, uploads))(failed)).failure
    assert (await chunk(services_of(store, uploads))(failed)).document is None


async def test_what_a_crash_has_left_pending_is_read(store: BrokenStore) -> None:
    uploads = Uploads()
    job = job_of(uploads)
    await store.expect(job.candidate.collection, job.candidate.origin)
    assert (await chunk(services_of(store, uploads))(job)).document is not None


async def test_work_that_is_called_off_is_waited_for() -> None:
    done: list[str] = []

    async def work() -> None:
        await asyncio.sleep(5)
        done.append("written")

    task = asyncio.create_task(finish_even_if_cancelled(work()))
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == ["written"]


async def test_a_file_gets_its_vectors_and_one_that_failed_none(store: BrokenStore) -> None:
    result = await taken(store, Uploads())
    embedding = embed(store, HashingEmbedder())
    assert await embedding(result) is result
    described = await store.describe(protocol.case_collection(str(CASE)))
    assert described is not None
    assert [doc.state for doc in described.documents] == [State.READY]
    nothing = replace(result, document=None)
    assert await embedding(nothing) is nothing


async def test_without_a_store_a_file_stays_as_it_is(store: BrokenStore, caplog: pytest.LogCaptureFixture) -> None:
    result = await taken(store, Uploads())
    store.broken = {"unembedded"}
    assert await embed(store, HashingEmbedder())(result) is result
    assert "keyword search only" in caplog.text


async def test_the_text_of_a_long_message_is_read_without_a_download(store: BrokenStore) -> None:
    uploads = Uploads()
    job = ThreadFiles().begin(replace(candidate_of(uploads.file("message.txt", "", 12)), text="all is well\n"))
    assert job is not None
    result = await chunk(services_of(store, uploads))(job)
    assert result.document is not None
    assert uploads.downloaded == []


async def test_a_file_that_cannot_be_downloaded_is_kept_as_failed(
    store: BrokenStore, caplog: pytest.LogCaptureFixture
) -> None:
    uploads = Uploads()
    job = job_of(uploads)
    uploads.contents.clear()
    result = await chunk(services_of(store, uploads))(job)
    assert result.document is None
    assert "could not be downloaded" in result.failure
    assert "attachment 1000 is gone" in caplog.text


# Deleting


@pytest.mark.parametrize("may_reopen", [False, True])
async def test_only_people_of_a_thread_that_is_still_there_can_miss_its_files(
    store: BrokenStore, may_reopen: bool
) -> None:
    await taken(store, Uploads())
    cases = ThreadFiles([CASE])
    await discard(store, cases, list[str]().append)(CloseThread(CASE, may_reopen=may_reopen))
    assert await names(store) == []
    assert cases.tombstones.is_unannounced(CASE) == may_reopen


@pytest.mark.parametrize("clock_is_ahead_by", [-3600.0, 3600.0])
async def test_files_of_a_closed_thread_are_told_from_later_ones_by_discords_clock(
    store: BrokenStore, clock_is_ahead_by: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our clock may be set back before a thread is closed, or have been ahead."""
    uploads, posted = Uploads(), 10_000.25
    await asyncio.sleep(posted)
    await taken(store, uploads)
    waiting, cases = replace(candidate_of(uploads.file("b.log", "b")), at=posted + 60), ThreadFiles([CASE])
    assert cases.begin(waiting) is not None
    monkeypatch.setattr(evidence, "now", lambda: posted + 120 + clock_is_ahead_by)
    await discard(store, cases, list[str]().append)(CloseThread(CASE, may_reopen=True))
    came = candidate_of(uploads.file("app.log", "as it was"))
    held = [cases.tombstones.forbids(replace(came, at=at)) for at in (posted, posted + 60, posted + 180)]
    assert held == [True, True, False]


async def test_what_cannot_be_deleted_now_is_known_and_tried_again(
    store: BrokenStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "operators.evidence")
    await taken(store, Uploads())
    cases, forgotten = ThreadFiles([CASE]), list[str]()
    delete = discard(store, cases, forgotten.append)
    closing = CloseThread(CASE)
    closing.cancel_reads(cases)
    store.broken = {"delete_collection"}
    await delete(closing)
    assert cases.has_files(CASE)
    store.broken = set()
    await delete(closing)
    await delete(closing)
    assert await names(store) == []
    assert forgotten == ["case_7"] * 3
    assert caplog.messages == [
        "evidence: thread 7: not deleted: the disk is full",
        "evidence: thread 7 is closed: its files are deleted",
    ]


async def test_a_guilds_end_closes_its_own_threads_only(store: BrokenStore) -> None:
    await taken(store, Uploads())
    cases = ThreadFiles([CASE, 8])
    delete = discard(store, cases, list[str]().append)
    for case_id, guild_id in ((CASE, 1), (8, GUILD)):
        closing = CloseThread(case_id, guild_id=guild_id)
        closing.cancel_reads(cases)
        await delete(closing)
    assert await names(store) == ["app.log"]
    await delete(CloseThread(CASE, guild_id=GUILD))
    assert await names(store) == []


async def test_only_the_files_of_a_deleted_message_go_and_of_an_edited_one_those_taken_off(store: BrokenStore) -> None:
    uploads = Uploads()
    await taken(store, uploads, "one.log", "1")
    await taken(store, uploads, "two.log", "2")
    cases = ThreadFiles([CASE])
    delete = discard(store, cases, list[str]().append)
    dropping = DropFiles(CASE, frozenset({70}), kept=frozenset({1000}))
    dropping.cancel_reads(cases)
    await delete(dropping)
    assert await names(store) == ["one.log"]
    await delete(DropFiles(CASE, frozenset({71})))
    assert await names(store) == ["one.log"]
    await delete(DropFiles(99, frozenset({70})))


# Sweeping


@dataclass
class Discord:
    """What it says of threads; an exception instead is raised."""

    guilds: Collection[int] | Exception = (GUILD,)
    active: Collection[int] | Exception = ()
    places: dict[int, Place | Exception] = field(default_factory=dict[int, Place | Exception])
    asked: list[int] = field(default_factory=list[int])

    @property
    def threads(self) -> Threads:
        async def active(guild_id: int) -> Collection[int]:
            return said(self.active)

        async def find(place_id: int) -> Place | None:
            self.asked.append(place_id)
            found = self.places.get(place_id)
            if isinstance(found, Exception):
                raise found
            return found

        return Threads(left=lambda guild_id: guild_id not in said(self.guilds), active=active, find=find)


def said(what: Collection[int] | Exception) -> Collection[int]:
    if isinstance(what, Exception):
        raise what
    return what


def sweeper(
    store: BrokenStore, discord: Discord, gone: list[int], *, unopened_seconds: float = -inf
) -> Callable[[object], Any]:
    async def remove(case_id: int) -> None:
        gone.append(case_id)
        await store.delete_collection(protocol.case_collection(str(case_id)))

    return sweep(
        store,
        discord.threads,
        remove,
        solved_tags=frozenset({"solved"}),
        grace_seconds=3600,
        unopened_seconds=unopened_seconds,
    )


POST = Place(CASE, PlaceKind.FORUM_POST, guild_id=GUILD)


@pytest.mark.parametrize(
    "discord",
    [
        Discord(),
        Discord(guilds=(GUILD + 1,)),
        Discord(places={CASE: replace(POST, locked=True)}),
        Discord(places={CASE: replace(POST, tags=("Solved",))}),
        Discord(places={CASE: replace(POST, archived=True, archived_at=-3600.0)}),
    ],
    ids=["deleted", "guild left", "locked", "solved", "archived for long"],
)
async def test_a_thread_that_is_over_is_swept_up_when_it_is_seen_so_twice(store: BrokenStore, discord: Discord) -> None:
    await taken(store, Uploads())
    gone: list[int] = []
    sweeping = sweeper(store, discord, gone)
    assert await sweeping(None) == 0
    assert await names(store) == ["app.log"]
    assert await sweeping(None) == 1
    assert gone == [CASE]
    assert await sweeping(None) == 0


async def test_the_files_of_a_question_whose_answer_may_wait_for_approval_stay(store: BrokenStore) -> None:
    """There is no thread before the answer is posted."""
    await taken(store, Uploads())
    gone: list[int] = []
    sweeping = sweeper(store, Discord(), gone, unopened_seconds=86_400)
    assert [await sweeping(None) for _ in range(3)] == [0, 0, 0]
    assert gone == []


@pytest.mark.parametrize(
    "discord",
    [
        Discord(active=(CASE,)),
        Discord(places={CASE: POST}),
        Discord(places={CASE: replace(POST, archived=True, archived_at=0.0)}),
        Discord(places={CASE: replace(POST, archived=True)}),
        Discord(places={CASE: LookupFailed("403")}),
        Discord(active=LookupFailed("500")),
        Discord(guilds=LookupFailed("away")),
    ],
    ids=["active", "there", "archived lately", "archived at some time", "unknown", "not listed", "away"],
)
async def test_whatever_is_not_known_to_be_over_stays(store: BrokenStore, discord: Discord) -> None:
    await taken(store, Uploads())
    gone: list[int] = []
    sweeping = sweeper(store, discord, gone)
    for _ in range(3):
        await sweeping(None)
    assert not gone
    assert await names(store) == ["app.log"]


async def test_one_thread_that_cannot_be_asked_about_spares_all(
    store: BrokenStore, caplog: pytest.LogCaptureFixture
) -> None:
    await taken(store, Uploads())
    await store.expect(Case(protocol.case_collection("8"), "case", "8", GUILD), Origin("app.log", attachment_id=1))
    gone: list[int] = []
    discord = Discord(places={8: LookupFailed("500")})
    sweeping = sweeper(store, discord, gone)
    for _ in range(3):
        assert await sweeping(None) == 0
    assert not gone
    assert caplog.messages == ["evidence: nothing is swept: 500"] * 3
    discord.places = {}
    await sweeping(None)
    assert await sweeping(None) == 2


async def test_before_a_server_has_arrived_nothing_is_swept_and_the_log_says_so(
    store: BrokenStore, caplog: pytest.LogCaptureFixture
) -> None:
    early = Discord(guilds=LookupFailed("no server has arrived yet"))
    assert await sweeper(store, early, [])(None) == 0
    assert caplog.messages == []
    await taken(store, Uploads())
    assert await sweeper(store, early, [])(None) == 0
    assert caplog.messages == ["evidence: nothing is swept: no server has arrived yet"]


async def test_one_incomplete_sweep_between_two_complete_ones_starts_no_count_anew(store: BrokenStore) -> None:
    await taken(store, Uploads())
    gone: list[int] = []
    discord = Discord()
    sweeping = sweeper(store, discord, gone)
    await sweeping(None)
    discord.active = LookupFailed("500")
    await sweeping(None)
    assert not gone
    discord.active = ()
    await sweeping(None)
    assert gone == [CASE]


async def test_a_store_that_cannot_be_read_is_not_swept(store: BrokenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    await taken(store, Uploads())
    gone: list[int] = []
    sweeping = sweeper(store, Discord(), gone)
    store.broken = {"list_collections"}
    assert await sweeping(None) == 0
    store.broken = set()
    monkeypatch.setattr(store, "describe", _gone)
    assert await sweeping(None) == 0
    assert not gone


async def test_files_of_messages_that_went_while_the_bot_was_away_are_deleted(store: BrokenStore) -> None:
    uploads, there, broken = Uploads(), dict[int | None, int | None](), True
    for number, letter in enumerate("abc"):
        job = job_of(uploads, f"{letter}.log", f"the log {letter}\n")
        there[20 + number] = job.candidate.attachment.id
        await chunk(services_of(store, uploads))(replace(job, candidate=replace(job.candidate, message_id=20 + number)))

    async def find(_: int, message_id: int) -> Message | None:
        if broken:
            raise LookupFailed("500")
        attachment_id = there.get(message_id)
        files = () if attachment_id is None else (Attachment(attachment_id, "x.log", 1, ""),)
        return Message(message_id, CASE, ANN, "", 0.0, attachments=files) if message_id in there else None

    withdrawn = withdraw_missing(store, find, discard(store, ThreadFiles(), lambda _: None))
    del there[20]
    await withdrawn()
    store.broken = {"list_collections"}
    await withdrawn()
    store.broken = set()
    assert await names(store) == ["a.log", "b.log", "c.log"]
    broken = False
    await withdrawn()
    assert await names(store) == ["b.log", "c.log"]
    there[21] = None
    await withdrawn()
    assert await names(store) == ["c.log"]


async def _gone(_: str) -> None:
    """It was deleted between two looks."""


# Looking up


def asked_by(
    asker_id: int, text: str = "", *, place: Place = POST, message_id: int = 900, reply_to: int | None = None
) -> Part:
    """A question as the only message of its part."""
    reference = None if reply_to is None else Reference(reply_to, place.id)
    message = Message(message_id, place.id, Author(asker_id, "asker"), text, 0.0, reply_to=reference)
    return Part(1, (message,), AuthorType.COMMUNITY_USER, place, 0.0)


async def lookup_of(store: BrokenStore, tmp_path: Path, cases: ThreadFiles) -> Lookup:
    runbooks = Runbooks(store=store, shown_path=tmp_path / "shown.json", run=in_thread)
    history = History(None)
    history.add_place(POST)
    tools = build(store=store, shares=runbooks.shown_in_threads)
    viewing, nobody = ThreadAccess(history, None), AsyncMock(return_value=False)
    return Lookup(store=store, tools=tools, cases=cases, runbooks=runbooks, viewing=viewing, is_team=nobody)


async def test_files_are_told_of_as_they_stand(store: BrokenStore, tmp_path: Path) -> None:
    uploads = Uploads()
    await taken(store, uploads, "app.log", "2026-02-16T00:00:00 INFO web: up\n")
    await taken(store, uploads, "app.log", "2026-02-16T00:00:00 INFO web: up\n2026-02-16T00:00:01 INFO web: down\n")
    await taken(store, uploads, "a.exe", "MZ")
    cases = ThreadFiles([CASE])
    cases.begin(candidate_of(uploads.file("next.log", "x"), 71))
    lookup = await lookup_of(store, tmp_path, cases)
    toolset = await lookup.toolset(asked_by(101), CASE, public=True)
    assert toolset is not None
    first, second, third = toolset.files
    assert first.startswith("app.log (log")
    assert "2 lines" in first
    assert second.startswith("a.exe could not be read: it is ")
    assert third == "next.log (1 byte, being read)"
    store.broken = {"describe"}
    blind = await lookup.toolset(asked_by(101), CASE, public=True)
    assert blind is not None
    assert blind.files == (third,)


async def test_whoever_posted_a_file_that_a_model_may_be_shown_is_noted(store: BrokenStore, tmp_path: Path) -> None:
    """Pitfall 67: by their ids, exchanges that hold passages of files are found."""
    await taken(store, Uploads(), "app.log", "2026-02-16T00:00:00 INFO web: up\n")
    cases = ThreadFiles([CASE])
    cases.begin(replace(candidate_of(Uploads().file("next.log", "x"), 71), uploader_id=103))
    current_people.set({102})
    asking = asked_by(102, "what do app.log and next.log say?")
    toolset = await (await lookup_of(store, tmp_path, cases)).toolset(asking, CASE, public=True)
    assert current_people.get() == {102, 101, 103}
    assert toolset is not None
    current_people.set({102})
    # A model's calls run in tasks of their own, and the next request is made by the one that started them.
    await asyncio.gather(toolset.prepare())
    assert current_people.get() == {102, 101, 103}
    (doc,) = await store.documents(protocol.case_collection(str(CASE)))
    await remove_file(store, Tombstones(tmp_path / "gone.json"), protocol.case_collection(str(CASE)), doc)
    (removed,) = await store.documents(protocol.case_collection(str(CASE)))
    assert (removed.origin.uploader_id, removed.poster_ids) == (None, {101})
    current_people.set(None)
    await toolset.prepare()
    assert current_people.get() is None


async def post_as(store: BrokenStore, uploader_id: int, name: str = "app.log", text: str = "") -> None:
    """A file that is searchable at once; its message has the id of who posted it."""
    origin = Origin(name, uploader_id=uploader_id, message_id=uploader_id, attachment_id=uploader_id)
    prepared = prepare(name, (text or f"{uploader_id}\n").encode(), limits=FileLimits())
    await store.add(
        Case(protocol.case_collection(str(CASE)), "case", str(CASE), POST.guild_id), [NewDocument(origin, prepared)]
    )


async def test_files_of_one_name_by_several_people_are_told_apart(store: BrokenStore, tmp_path: Path) -> None:
    for uploader_id in (101, 102):
        await post_as(store, uploader_id)
    lookup = await lookup_of(store, tmp_path, ThreadFiles([CASE]))
    asked = [asked_by(asker_id, "compare app.log with app-2.log") for asker_id in (101, 102)]
    told = [await lookup.toolset(each, CASE, public=True) for each in asked]
    own, others = "app.log (log, 4 bytes, 1 line)", "app-2.log (log, 4 bytes, 1 line, somebody else's app.log)"
    assert [each.files for each in told if each is not None] == [(own, others), (others, own)]


async def test_each_asker_is_answered_from_the_own_file_of_one_name(store: BrokenStore, tmp_path: Path) -> None:
    """Answers are kept for a while: not for whoever has another file of that name."""
    for uploader_id in (101, 102):
        await post_as(store, uploader_id, text=f"2026-02-16T00:00:30 ERROR db: of {uploader_id}\n")
    lookup = await lookup_of(store, tmp_path, ThreadFiles([CASE]))
    for asker_id in (101, 102):
        toolset = await lookup.toolset(asked_by(asker_id), CASE, public=True)
        assert toolset is not None
        await toolset.prepare()
        result = await toolset.ask("answer_from_case_evidence", "what is the first ERROR?")
        assert result.answer.endswith(f"db: of {asker_id}")
        assert not result.cached


ERROR = "2026-02-16T00:00:30 ERROR db: stuck\n"
OF_ANOTHER = "node.js.log (log, 36 bytes, 1 line, somebody else's)"


@pytest.mark.parametrize(
    ("question", "is_used"),
    [
        (asked_by(101, "what is the first ERROR?"), False),
        (asked_by(101, "what is the first ERROR in node.js.log?"), True),
        (asked_by(101, "what is the first ERROR in NODE.JS.log please"), True),
        (asked_by(101, "what is the first ERROR?", reply_to=103), True),
        (asked_by(101, "what is the first ERROR?", reply_to=102), False),
        (asked_by(101, "what is the first ERROR in node.js?"), False),  # whoever posts a file chooses its name
        (asked_by(101, "what is the first ERROR in other-node.js.log?"), False),
        (asked_by(101, "what is the first ERROR in node.js.log?", message_id=90), False),  # before it was posted
    ],
    ids=lambda each: each.messages[0].text if isinstance(each, Part) else "",
)
async def test_somebody_elses_file_is_used_for_whoever_names_it_or_replies_to_it(
    store: BrokenStore, tmp_path: Path, question: Part, is_used: bool
) -> None:
    await post_as(store, 101, "own.txt", "nothing of note\n")
    await post_as(store, 103, "node.js.log", ERROR)
    lookup = await lookup_of(store, tmp_path, ThreadFiles([CASE]))
    toolset = await lookup.toolset(question, CASE, public=True)
    assert toolset is not None
    assert (OF_ANOTHER in toolset.files) is is_used
    await toolset.prepare()
    tools = {tool.name: tool for tool in toolset.tools}
    given = str(await tools["query_file"].run({"level": ["ERROR"]}))
    result = await toolset.ask("answer_from_case_evidence", "what is the first ERROR?")
    assert [ERROR.strip() in each for each in (given, result.answer)] == [is_used, is_used]
    notice = "`node.js.log` was posted by <@103>, and nobody else has checked it."
    assert toolset.notice(["kb:guide.md"]) == (notice if is_used else "")
    assert toolset.notice([]) == (notice if is_used else "")
    if is_used:
        assert toolset.render("answer_from_case_evidence", result).endswith("📎 Sources: node.js.log (<@103>)")
        assert "node.js.log was posted by somebody else" in given


async def test_a_question_before_and_the_teams_files_count_as_well(store: BrokenStore, tmp_path: Path) -> None:
    await post_as(store, 103, "app.log", ERROR)
    lookup = await lookup_of(store, tmp_path, ThreadFiles([CASE]))
    assert await lookup.toolset(asked_by(101, "and the next one?"), CASE, public=True) is None
    before = asked_by(101, "what is the first ERROR in app.log?", message_id=800).messages
    goes_on = await lookup.toolset(asked_by(101, "and the next one?"), CASE, public=True, messages=before)
    assert goes_on is not None
    of_another = asked_by(102, "what is the first ERROR in app.log?", message_id=800).messages
    assert await lookup.toolset(asked_by(101, "why?"), CASE, public=True, messages=of_another) is None

    async def is_team(user_id: int, guild_id: int | None) -> bool:
        return (user_id, guild_id) == (103, GUILD)

    of_team = await replace(lookup, is_team=is_team).toolset(asked_by(101, "why?"), CASE, public=True)
    assert of_team is not None
    assert of_team.files == ("app.log (log, 36 bytes, 1 line)",)
    await of_team.prepare()
    assert (await of_team.ask("answer_from_case_evidence", "what is the first ERROR?")).posters == {}


async def test_the_name_of_ones_own_file_opens_no_other_while_it_is_read(store: BrokenStore, tmp_path: Path) -> None:
    await post_as(store, 103, "app.log", ERROR)
    cases = ThreadFiles([CASE])
    cases.begin(candidate_of(Uploads().file("app.log", "all is well\n"), 900))
    toolset = await (await lookup_of(store, tmp_path, cases)).toolset(asked_by(101, "see app.log"), CASE, public=True)
    assert toolset is not None
    assert toolset.files == ("app.log (12 bytes, being read)",)


async def test_runbooks_are_told_of_where_their_owner_shows_them(store: BrokenStore, tmp_path: Path) -> None:
    lookup = await lookup_of(store, tmp_path, ThreadFiles())
    await lookup.runbooks.add(101, "restart.md", b"# Restart\n\nTurn it off and on.\n", "Restart")
    assert await lookup.toolset(asked_by(101), CASE, public=True) is None
    assert await lookup.toolset(asked_by(102), CASE, public=False) is None
    private = await lookup.toolset(asked_by(101), None, public=False)
    assert private is not None
    assert private.files == (OwnRunbook("runbook of the asker: Restart"),)
    assert isinstance(private.files[0], OwnRunbook)
    await private.prepare()
    assert [tool.name for tool in private.tools] == ["answer_from_user_kb"]
    await lookup.runbooks.show_in_threads(101, shown=True)
    shown = await lookup.toolset(asked_by(101), CASE, public=True)
    assert shown is not None
    assert [isinstance(each, OwnRunbook) for each in shown.files] == [False]
    assert await lookup.without_runbooks().toolset(asked_by(101), CASE, public=True) is None
    await asyncio.gather(*(each.prepare() for each in (shown, private)))
    for each in (shown, private):
        await each.ask("answer_from_user_kb", "How is it turned off and on?")
    notice = "From the own runbooks of <@101>, which nobody else has checked:"
    assert [each.notice(["Restart"]) for each in (shown, private)] == [notice, ""]
    assert (shown.notice([]), shown.notice(["kb:backup.md"])) == (notice, "")


async def test_what_is_denied_meanwhile_is_logged_with_the_answer_it_was_for(
    store: BrokenStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    lookup = await lookup_of(store, tmp_path, ThreadFiles())
    await lookup.runbooks.add(101, "restart.md", b"# Restart\n\nTurn it off and on.\n", "Restart")
    await lookup.runbooks.show_in_threads(101, shown=True)
    toolset = await lookup.toolset(asked_by(101, message_id=0x1F2E), CASE, public=True)
    assert toolset is not None
    await toolset.prepare()
    await lookup.runbooks.show_in_threads(101, shown=False)
    assert (await toolset.ask("answer_from_user_kb", "restart?")).status is Status.DENIED
    assert "denied to 101 in guild 9, thread 7 (1f2e)" in caplog.text


async def test_files_of_a_thread_are_not_even_named_to_whoever_cannot_view_it(
    store: BrokenStore, tmp_path: Path
) -> None:
    await taken(store, Uploads())
    lookup = await lookup_of(store, tmp_path, ThreadFiles([CASE]))
    private, elsewhere = replace(POST, public=False, invited_only=True), replace(POST, id=8)
    lookup.viewing.history.add_place(private)
    assert await lookup.toolset(asked_by(101, place=elsewhere), CASE, public=True) is None
    assert await lookup.toolset(asked_by(101, place=private), CASE, public=True, in_view=False) is None
    there = await lookup.toolset(asked_by(101, place=private), CASE, public=True)
    assert there is not None
    assert len(there.files) == 1
    await lookup.runbooks.add(101, "restart.md", b"# Restart\n\nTurn it off and on.\n", "Restart")
    own = await lookup.toolset(asked_by(101, place=elsewhere), CASE, public=False)
    assert own is not None
    assert own.files == ("runbook of the asker: Restart",)
    await own.prepare()
    assert [tool.name for tool in own.tools] == ["answer_from_user_kb"]
    to_come = await lookup.toolset(asked_by(101, place=elsewhere), CASE, public=True, opened=False)
    assert to_come is not None
    await to_come.prepare()
    assert [tool.name for tool in to_come.tools] == ["answer_from_case_evidence", "query_file"]
