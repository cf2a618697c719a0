"""The branch for files of support threads: read them as they are posted, delete them when their thread is closed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import Any, NamedTuple

import reactivex as rx
from reactivex import Observable
from reactivex import operators as ops

from clock.cancellation import CancelToken
from dataflow import concat_map_iterable, delay_unless_replaced, fork, map_async, of_type, serialize_by_key
from dataflow.metering import operator_gauge, operator_watch
from model.events import Deleted, Edited, Event, GuildGone, PlaceGone, PlaceSeen, Posted
from model.messages import Message, Place, snowflake_at
from model.outcomes import Outcome, OutcomeKind
from operators.evidence import CloseThread, Deletion, DropFiles, IngestResult, MessageFiles, chunk, discard, embed
from services.assistant import Inquiry
from services.conversations import History
from services.documents import Candidate, IngestJob, ThreadFiles, candidates_in, is_closed
from streams.wiring import EvidenceParts, EvidenceRules

log = logging.getLogger(__name__)


def deletions(
    events: Observable[Event], outcomes: Observable[Outcome], parts: EvidenceParts, rules: EvidenceRules
) -> Observable[Deletion]:
    """Emit what is to be deleted. The reading of these files is cancelled at once, before the deletion's turn comes.

    places    --a--b--c------------|      a was archived, b locked, c reopened a
    outcomes  -----------o---------|      o: no answer, so that its thread is never opened
    deleted   --------------m------|
    deletions -----b-----o--m------|
    """
    cases, history = parts.cases, parts.history
    ended = events.pipe(
        of_type(PlaceSeen, PlaceGone, GuildGone),
        concat_map_iterable(closings(cases, history, rules)),
        delay_unless_replaced(lambda closing: closing.case_id, lambda closing: closing.in_seconds),
    )
    gone: Observable[Deletion] = rx.merge(
        ended,
        events.pipe(of_type(Deleted, Edited), concat_map_iterable(lost_files(parts, rules))),
        outcomes.pipe(concat_map_iterable(unopened_threads(cases, history))),
    )
    return gone.pipe(ops.do_action(lambda item: item.cancel_reads(cases)))


def closings(
    cases: ThreadFiles, history: History, rules: EvidenceRules
) -> Callable[[PlaceSeen | PlaceGone | GuildGone], Iterator[CloseThread]]:
    """Return a function that finds the threads with files that an event closes, now or later, or opens again."""

    def of(event: PlaceSeen | PlaceGone | GuildGone) -> Iterator[CloseThread]:
        match event:
            case PlaceSeen(at=at, place=place):
                if not cases.has_files(place.id):
                    return
                if is_closed(place, rules.solved_tags):
                    yield CloseThread(place.id, may_reopen=True)
                elif place.archived:
                    since = at if place.archived_at is None else place.archived_at
                    yield CloseThread(place.id, max(0.0, since + rules.grace_seconds - at), may_reopen=True)
                else:
                    yield CloseThread(place.id, None)
            case PlaceGone(place_id=gone):
                yield from (CloseThread(each) for each in cases if gone in {each, history.place(each).parent_id})
            case GuildGone(guild_id=guild_id):
                yield from (CloseThread(each, guild_id=guild_id) for each in cases)

    return of


def reopenings(events: Observable[Event], cases: ThreadFiles, rules: EvidenceRules) -> Observable[int]:
    """Emit threads that are open again after their files were deleted, until people have been notified.

    places    --a--b----c--d-------|      b was locked, with files; c and d are b again, no longer locked
    reopened  ----------b----------|
    """

    def of(event: PlaceSeen) -> Iterator[int]:
        place = event.place
        if cases.tombstones.is_unannounced(place.id) and not place.archived and not is_closed(place, rules.solved_tags):
            yield place.id

    return events.pipe(of_type(PlaceSeen), concat_map_iterable(of))


def lost_files(parts: EvidenceParts, rules: EvidenceRules) -> Callable[[Deleted | Edited], Iterator[DropFiles]]:
    """Return a function that finds files of deleted and withheld messages, and those that edited messages have lost: an
    attachment, or all code blocks if one has changed.
    """
    cases, history = parts.cases, parts.history

    def of(event: Deleted | Edited) -> Iterator[DropFiles]:
        kept: frozenset[int] = frozenset()
        if isinstance(event, Deleted):
            ids = frozenset(event.message_ids)
        elif (message := history.in_memory(event.channel_id, event.message_id)) is not None and parts.withheld(message):
            ids = frozenset({event.message_id})
        elif event.attachments is not None:
            ids, kept = frozenset({event.message_id}), frozenset(file.id for file in event.attachments)
            if message is not None and has_same_blocks(event, message):
                kept |= ids  # a code block has its message's id as attachment id
        else:
            return
        meant = {event.channel_id, *ids, *cases.cases_of_messages(ids)}
        yield from (DropFiles(each, ids, kept) for each in sorted(meant) if cases.has_files(each))

    def has_same_blocks(event: Edited, message: Message) -> bool:
        # Discord also reports an edit when it adds a preview.
        before = history.version_at(message, snowflake_at(event.at))
        return before is not None and blocks_in(before) == blocks_in(message)

    def blocks_in(message: Message) -> list[str]:
        texts = (each.text for each in candidates_in(message, 0, block_lines=rules.block_lines))
        return [text for text in texts if text is not None]

    return of


def unopened_threads(cases: ThreadFiles, history: History) -> Callable[[Outcome], Iterator[CloseThread]]:
    """Return a function that finds threads that were to be opened for an answer, and will not be."""

    def of(outcome: Outcome) -> Iterator[CloseThread]:
        part = outcome.part
        if part.place.is_thread or outcome.result in {OutcomeKind.REPLIED, OutcomeKind.HELD}:
            return
        if cases.has_files(part.last.id) and not history.knows(part.last.id):
            yield CloseThread(part.last.id)

    return of


THREADS_AT_ONCE = 1_000
"""The files of one thread are read one after another. Threads wait for the turns of their people; no file is downloaded
before its turn.
"""
NOTES_AT_ONCE = 16
"""The notes of one thread are posted one after another."""

Work = IngestJob | Deletion


class HandledWork(NamedTuple):
    case_id: int
    result: IngestResult | None = None


def evidence(
    events: Observable[Event],
    gathered: Observable[Inquiry],
    outcomes: Observable[Outcome],
    parts: EvidenceParts | None,
    rules: EvidenceRules,
) -> Observable[IngestResult]:
    """Emit each file when it can be searched, by words and by vectors, or has failed.

    posted   --f1-f2--------f3-----|      all of one thread: in their order
    read     ------f1---f2---------|      searchable by words; then the vectors follow, `embed_at_once` at a time
    closed   -----------------c----|      reading f3 is cancelled, then the collection is deleted
    results  ---------f1----f2f3---|
    """
    if parts is None:
        return rx.empty()
    notes = parts.notes
    jobs = candidates(events, gathered, parts, rules).pipe(
        concat_map_iterable(lambda candidate: begin(parts.cases, candidate)), fork("files")
    )
    work: Observable[Work] = rx.merge(jobs, deletions(events, outcomes, parts, rules))
    read = work.pipe(read_and_delete(parts), fork("read files"))
    return rx.merge(
        read.pipe(add_vectors(parts, rules)),
        rx.merge(
            jobs.pipe(ops.map(lambda job: Note(job.case_id, partial(notes.on_begin, job)))),
            read.pipe(
                ops.map(by_message(parts.cases)),
                ops.map(lambda files: Note(files.case_id, partial(notes.on_end, files))),
            ),
            reopenings(events, parts.cases, rules).pipe(
                ops.map(lambda case_id: Note(case_id, partial(notes.on_reopen, case_id)))
            ),
        ).pipe(notify),
    )


def candidates(
    events: Observable[Event], gathered: Observable[Inquiry], parts: EvidenceParts, rules: EvidenceRules
) -> Observable[Candidate]:
    """Emit the files posted in threads that the bot serves, and the files of questions that it is about to answer.

    posted      --m1----m2-----------|      m1 in a thread of the bot's, m2 elsewhere
    gathered    ----------q----------|      q asks in a channel, with a file, or in a thread new to the bot
    candidates  --f1------f2---------|
    """

    def posted(event: Posted) -> Iterator[Candidate]:
        message = event.message
        place = parts.history.place(message.channel_id)
        ours = (
            place.owner_id == parts.people.bot_id
            or parts.posts.has_posted_in(place.id)
            or parts.cases.has_files(place.id)
        )
        if place.is_thread and ours:
            yield from of(message, place.id, opener_of(place))

    def asked(inquiry: Inquiry) -> Iterator[Candidate]:
        case_id = inquiry.case_id
        is_new = inquiry.reply_place_id is None
        opener_id = inquiry.part.author.id if is_new else opener_of(parts.history.place(case_id))
        for message in inquiry.messages:
            in_part = message.id in inquiry.part.message_ids
            # The message that a thread was opened on has the thread's id.
            if in_part or case_id in {message.channel_id, message.id}:
                yield from of(message, case_id, opener_id)

    def opener_of(thread: Place) -> int | None:
        if thread.owner_id == parts.people.bot_id:
            return parts.posts.opener_of(thread.id)
        # Anybody may open a thread on somebody's question, whose message has the thread's id.
        begun_on = None if thread.parent_id is None else parts.history.in_memory(thread.parent_id, thread.id)
        return thread.owner_id if begun_on is None or begun_on.author.is_bot else begun_on.author.id

    def of(message: Message, case_id: int, opener_id: int | None) -> Iterator[Candidate]:
        closed = parts.history.knows(case_id) and is_closed(parts.history.place(case_id), rules.solved_tags)
        if not closed and not parts.withheld(message):
            yield from candidates_in(message, case_id, opener_id=opener_id, block_lines=rules.block_lines)

    return rx.merge(
        events.pipe(of_type(Posted), concat_map_iterable(posted)), gathered.pipe(concat_map_iterable(asked))
    )


def begin(cases: ThreadFiles, candidate: Candidate) -> tuple[IngestJob, ...]:
    job = cases.begin(candidate)
    return () if job is None else (job,)


def read_and_delete(parts: EvidenceParts) -> Callable[[Observable[Work]], Observable[IngestResult]]:
    """Read files and delete them, for one thread in the order of the items."""
    ingest = chunk(parts.ingest_services)
    discarding = discard(parts.ingest_services.store, parts.cases, parts.forget_answers)

    async def handle(work: Work) -> HandledWork:
        if not isinstance(work, IngestJob):
            await discarding(work)
            return HandledWork(work.case_id)
        result = await ingest(work)
        parts.cases.finish(work)
        return HandledWork(work.case_id, result)

    def failed(work: Work, error: Exception) -> HandledWork:
        if not isinstance(work, IngestJob):
            log.error("evidence: thread %d: not deleted", work.case_id, exc_info=error)
            return HandledWork(work.case_id)
        if work.token.error is None:
            log.error("evidence: attachment %d is left out", work.candidate.attachment.id, exc_info=error)
        parts.cases.finish(work)
        return HandledWork(work.case_id, IngestResult(job=work, is_new=False))

    def token_of(work: Work) -> CancelToken | None:
        return work.token if isinstance(work, IngestJob) else None

    handling = map_async(
        handle,
        on_failure=failed,
        max_concurrent=THREADS_AT_ONCE,
        token=token_of,
        gauge=operator_gauge(parts.gauge, "chunk"),
        watch=operator_watch(parts.gauge, "chunk"),
    )

    def operator(source: Observable[Work]) -> Observable[IngestResult]:
        return source.pipe(
            serialize_by_key(
                lambda work: work.case_id,
                handling,
                key_of_result=lambda done: done.case_id,
                max_active=THREADS_AT_ONCE,
            ),
            concat_map_iterable(lambda done: () if done.result is None else (done.result,)),
        )

    return operator


def add_vectors(
    parts: EvidenceParts, rules: EvidenceRules
) -> Callable[[Observable[IngestResult]], Observable[IngestResult]]:
    """Give files their vectors, if there is an embedder."""
    if parts.embedder is None:
        return lambda read: read

    def failed(result: IngestResult, error: Exception) -> IngestResult:
        if result.job.token.error is None:
            attachment_id = result.job.candidate.attachment.id
            log.error("evidence: attachment %d: keyword search only", attachment_id, exc_info=error)
        return result

    return map_async(
        embed(parts.ingest_services.store, parts.embedder),
        on_failure=failed,
        max_concurrent=rules.embed_at_once,
        token=lambda result: result.job.token,
        gauge=operator_gauge(parts.gauge, "embed"),
        watch=operator_watch(parts.gauge, "embed"),
    )


def by_message(cases: ThreadFiles) -> Callable[[IngestResult], MessageFiles]:
    """Return a function that groups each file with the files of its message that were read before it.

    read      --a1--a2--b1--a3--|      three files of message a, one of b in another thread
    grouped   --a---a---B---A---|      A and B: all files of their message, `is_complete`
    """
    incomplete: dict[tuple[int, int], tuple[IngestResult, ...]] = {}

    def grouped(result: IngestResult) -> MessageFiles:
        file = result.job.candidate
        key = (file.case_id, file.message_id)
        results = (*incomplete.pop(key, ()), result)
        complete = all(each.message_id != file.message_id for each in cases.unread(file.case_id))
        if not complete:
            incomplete[key] = results
        return MessageFiles(results, complete)

    return grouped


class Note(NamedTuple):
    case_id: int
    post: Callable[[], Coroutine[Any, Any, None]]


def notify(notes: Observable[Note]) -> Observable[IngestResult]:
    """Post notes, those of one thread in their order. Emits nothing."""

    async def post(note: Note) -> int:
        await note.post()
        return note.case_id

    def failed(note: Note, error: Exception) -> int:
        log.error("evidence: people were not notified", exc_info=error)
        return note.case_id

    posting = map_async(post, on_failure=failed, max_concurrent=NOTES_AT_ONCE)
    return notes.pipe(
        serialize_by_key(
            lambda note: note.case_id, posting, key_of_result=lambda case_id: case_id, max_active=NOTES_AT_ONCE
        ),
        concat_map_iterable(lambda _: ()),
    )
