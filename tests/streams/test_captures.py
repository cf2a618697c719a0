from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest
from reactivex import operators as ops
from reactivex.subject import Subject

import streams.captures
from assembly.data_folder import read_state
from assembly.graph_parts import DiscordAPI, GraphParts, ServerParts, assemble, capture_parts
from assembly.team import curation_parts
from benchmarks.evaluation import data
from clock import VirtualLoop, now
from dataflow import of_type
from model.events import Event, Posted
from model.messages import Author, Destination, Message
from model.outcomes import Outcome, OutcomeKind, Reason, Result
from model.servers import Servers
from operators.screen import decode
from services.assistant.answering import Assistant
from services.assistant.inquiry import CaptureJob
from services.conversations.context import Context, ContextRules
from services.conversations.in_flight import WorkCancelled
from services.conversations.posts import Posts
from services.conversations.routing import Router, RouteRules
from services.discord.dispatches import Dispatch
from services.discord.protocols import DryRunPoster, LookupFailed
from services.knowledge import LibrarySearch
from services.knowledge.library import Library
from services.team.archive import Pair
from services.team.archive_files import pairs_in, week_files
from services.team.captures import RecentCaptures
from settings import Settings, load
from sinks.team import RawArchive
from streams.captures import captures
from streams.graph import graph
from streams.recording import dispatches, first_time
from tests.searching import ScriptedSearch
from tests.talk import ANN, BEN, PRIVATE, STAFF, THREAD, SmallFetcher, Talk

RECORDINGS = data.folder() / "recordings"


def job(talk: Talk, *messages: Message) -> CaptureJob:
    return CaptureJob(talk.part(*messages))


async def outcomes_of(talk: Talk, archive: RawArchive, *given: CaptureJob, may_wait: bool = True) -> list[Outcome]:
    source: Subject[CaptureJob] = Subject()
    done: asyncio.Future[list[Outcome]] = asyncio.get_running_loop().create_future()
    context = Context(talk.history, talk.people, talk.tracker, ContextRules())
    captures(source, context, archive.keep, may_wait=may_wait).pipe(of_type(Outcome), ops.to_list()).subscribe(
        done.set_result, done.set_exception
    )
    for each in given:
        source.on_next(each)
    source.on_completed()
    return await done


def archive_in(folder: Path) -> RawArchive:
    return RawArchive(folder, RecentCaptures(pairs_in(folder, 2)))


def texts(pair: Pair) -> list[str]:
    return [turn.text for turn in pair.turns]


async def test_lessons_are_stored_in_order_although_their_look_ups_take_different_times(tmp_path: Path) -> None:
    talk = Talk()
    given: list[CaptureJob] = []
    for number in range(40):
        asked = talk.says(Author(100 + number, f"asker {number}"), f"{number}?")
        given.append(job(talk, talk.says(STAFF, f"{number}!", to=asked)))

    class Slow(Context):
        async def replies(self, messages: Sequence[Message]) -> Sequence[Message]:  # pyright: ignore[reportIncompatibleMethodOverride] (the tests give tuples)
            await asyncio.sleep(messages[0].id % 7)
            return await super().replies(messages)

    source: Subject[CaptureJob] = Subject()
    done: asyncio.Future[list[Outcome]] = asyncio.get_running_loop().create_future()
    slow = Slow(talk.history, talk.people, talk.tracker, ContextRules())
    captures(source, slow, archive_in(tmp_path).keep).pipe(of_type(Outcome), ops.to_list()).subscribe(done.set_result)
    for each in given:
        source.on_next(each)
    source.on_completed()
    assert {outcome.result for outcome in await done} == {OutcomeKind.CAPTURED}
    assert [texts(pair)[0] for pair in pairs_in(tmp_path, 1)] == [f"{number}?" for number in range(40)]


async def test_captures_of_one_question_become_one_conversation_over_a_restart(tmp_path: Path) -> None:
    """Pitfall 15."""
    talk = Talk()
    asked = talk.says(ANN, "Why?", second=-20)
    first = talk.says(STAFF, "Because.", to=asked, second=-10)
    await outcomes_of(talk, archive_in(tmp_path), job(talk, first))
    # What was said before the restart is not followed any more. Discord still has it.
    talk = Talk(fetcher=SmallFetcher(asked, first))
    second = talk.says(STAFF, "Also,", to=first, second=50)
    talk.says(BEN, "By the way,", second=60)
    third = talk.says(STAFF, "and this.", second=100)
    await outcomes_of(talk, archive_in(tmp_path), job(talk, second), job(talk, third))
    pairs = pairs_in(tmp_path, 1)
    assert {pair.conversation_id for pair in pairs} == {f"reply_{asked.id}"}
    assert texts(pairs[-1]) == ["Why?", "Because.", "Also,", "and this."]


async def test_what_the_team_says_to_nobody_teaches_nothing(tmp_path: Path) -> None:
    talk = Talk()
    talk.says(STAFF)
    [outcome] = await outcomes_of(talk, archive_in(tmp_path), job(talk, talk.says(STAFF, "And so on.")))
    assert (outcome.result, outcome.reason) == (OutcomeKind.SKIPPED, Reason.NOTHING_TO_LEARN)


async def test_a_failure_is_the_outcome_of_its_lesson_alone(tmp_path: Path) -> None:
    fetcher = SmallFetcher()
    talk = Talk(fetcher=fetcher)
    fetcher.broken = LookupFailed("403", is_passing=False)
    old = Talk().says(ANN, "Why?", second=-500)
    talk.says(BEN, "How?", place=THREAD)
    fails = job(talk, talk.says(STAFF, to=old))
    [outcome] = await outcomes_of(talk, archive_in(tmp_path), fails)
    assert (outcome.result, outcome.reason) == (OutcomeKind.FAILED, "LookupFailed at extract")
    fetcher.broken = None
    [outcome] = await outcomes_of(talk, archive_in(tmp_path), job(talk, talk.says(STAFF, place=THREAD)))
    assert outcome.result is OutcomeKind.CAPTURED


async def test_while_discord_cannot_be_asked_a_capture_waits_for_it_but_not_for_ever(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    old = Talk().says(ANN, "Why?", second=-500)
    fetcher = SmallFetcher(old)
    talk = Talk(fetcher=fetcher)
    given = job(talk, talk.says(STAFF, to=old))
    fetcher.broken = LookupFailed("500")
    [outcome] = await outcomes_of(talk, archive_in(tmp_path), given)
    assert (outcome.result, outcome.reason) == (OutcomeKind.FAILED, "LookupFailed at extract")
    assert caplog.messages[0] == "a capture waits: 500; tried again in 1 s"
    waiting = asyncio.create_task(outcomes_of(talk, archive_in(tmp_path), given))
    await asyncio.sleep(300)
    fetcher.broken = None
    [outcome] = await waiting
    assert outcome.result is OutcomeKind.CAPTURED
    assert [texts(pair)[0] for pair in pairs_in(tmp_path)] == ["Why?"]


async def test_in_a_replay_a_capture_does_not_wait_for_discord(tmp_path: Path) -> None:
    fetcher, old = SmallFetcher(), Talk().says(ANN, "Why?", second=-500)
    fetcher.broken = LookupFailed("500")
    talk = Talk(fetcher=fetcher)
    given, began = job(talk, talk.says(STAFF, to=old)), now()
    [outcome] = await outcomes_of(talk, archive_in(tmp_path), given, may_wait=False)
    assert (outcome.result, outcome.reason) == (OutcomeKind.FAILED, "LookupFailed at extract")
    assert now() == began


async def test_while_the_disk_is_full_captures_wait_and_each_is_stored_once_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Pitfall 7: nothing is half-written, lost or stored twice, whichever call finds the disk full."""
    for call in ("open", "write", "fsync"):
        talk, raw = Talk(), archive_in(tmp_path / call)
        asked = talk.says(ANN, "Why?")
        stored = job(talk, talk.says(STAFF, "Because.", to=asked))
        await outcomes_of(talk, raw, stored)
        before = pairs_in(tmp_path / call)
        asked_by_others = [talk.says(Author(100 + number, f"asker {number}"), f"{number}?") for number in range(3)]
        given = [job(talk, talk.says(STAFF, "So!", to=each)) for each in asked_by_others]
        full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        with monkeypatch.context() as patch:

            def refuse(*_: object, full: OSError = full) -> int:
                raise full

            patch.setattr(os, call, refuse)
            waiting = asyncio.ensure_future(outcomes_of(talk, raw, *given))
            await asyncio.sleep(3600)
            assert not waiting.done()
        assert pairs_in(tmp_path / call) == before
        assert [outcome.result for outcome in await waiting] == [OutcomeKind.CAPTURED] * 3
        assert [texts(pair)[0] for pair in pairs_in(tmp_path / call)] == ["Why?", "0?", "1?", "2?"]
    told = [message for message in caplog.messages if "No space left on device; make room" in message]
    assert told
    assert all("\n" not in message and "tried again in" in message for message in told)
    assert "Traceback" not in caplog.text


async def test_a_capture_that_waits_for_room_is_called_off_by_a_shutdown(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It has no outcome that would move a mark: the next start captures it."""
    talk = Talk()
    (tmp_path / "raw").touch()
    asked = talk.says(ANN)
    given = job(talk, talk.says(STAFF, to=asked))
    waiting = asyncio.ensure_future(outcomes_of(talk, RawArchive(tmp_path / "raw", RecentCaptures()), given))
    await asyncio.sleep(60)
    given.token.cancel(WorkCancelled(Reason.SHUTDOWN))
    [outcome] = await waiting
    assert (outcome.result, outcome.reason) == (OutcomeKind.CANCELLED, Reason.SHUTDOWN)
    assert "Not a directory; something else has its name: move that away" in caplog.text
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("together", [1, 2])
async def test_a_shutdown_lets_a_write_that_has_begun_finish_and_calls_off_the_rest(
    together: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pitfall 8. What waits for the flush before has reached the archive too, and is stored."""
    monkeypatch.setattr(streams.captures, "STORED_AT_ONCE", together)
    talk = Talk()
    asked = talk.says(ANN)
    one, two = (job(talk, talk.says(STAFF, to=asked)) for _ in range(2))
    raw = archive_in(tmp_path)
    began = asyncio.Event()

    async def keep(capture: object) -> Outcome:
        began.set()
        await asyncio.sleep(3)
        return await raw.keep(capture)  # pyright: ignore[reportArgumentType] (handed through)

    source: Subject[CaptureJob] = Subject()
    done: asyncio.Future[list[Outcome]] = asyncio.get_running_loop().create_future()
    context = Context(talk.history, talk.people, talk.tracker, ContextRules())
    captures(source, context, keep).pipe(of_type(Outcome), ops.to_list()).subscribe(done.set_result, done.set_exception)
    source.on_next(one)
    source.on_next(two)
    source.on_completed()
    await began.wait()
    for each in (one, two):
        each.token.cancel(WorkCancelled(Reason.SHUTDOWN))
    assert [(outcome.result, outcome.reason) for outcome in await done] == [
        (OutcomeKind.CAPTURED, None),
        (OutcomeKind.CANCELLED, Reason.SHUTDOWN) if together == 1 else (OutcomeKind.CAPTURED, None),
    ]


async def test_each_capture_is_told_in_the_log_without_its_text(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    talk = Talk()
    asked = talk.says(ANN, "a secret question")
    [outcome] = await outcomes_of(talk, archive_in(tmp_path), job(talk, talk.says(STAFF, to=asked)))
    assert f"qa_pair_captured {outcome.qa_id}: reply_{asked.id}, 2 messages" in caplog.messages
    assert "a secret question" not in caplog.text


async def test_private_talk_reaches_no_archive(tmp_path: Path) -> None:
    """Pitfall 47."""
    talk = Talk()
    router = Router(talk.people, talk.history, talk.team, Posts(), talk.tracker, Servers({None: RouteRules()}))
    asked = talk.says(ANN, "my address", place=PRIVATE)
    decision = await router.route(talk.part(talk.says(STAFF, place=PRIVATE, to=asked)))
    assert decision.to is Destination.NOTHING
    assert week_files(tmp_path) == []


async def test_a_capture_is_on_the_disk_however_long_everything_else_takes(tmp_path: Path) -> None:
    """Pitfall 7."""
    stuck = asyncio.Event()

    class Stuck:
        async def gate(self, *given: object, **named: object) -> None:
            stuck.set()
            await asyncio.Event().wait()

    ends: list[Result] = []
    settings = configured(tmp_path, [str(STAFF.id)], tmp_path, reply_mode="all")
    parts = assembled(settings, ends, cast("Assistant", Stuck()))
    source: Subject[Event] = Subject()
    subscription = graph(source, parts.services, parts.sinks, parts.rules).subscribe()
    talk = Talk()
    asked = talk.says(ANN, "Why?", second=0)
    for message in (talk.says(BEN, "And how?", second=1), asked, talk.says(STAFF, "Because.", to=asked, second=2)):
        source.on_next(Posted(asyncio.get_running_loop().time(), message))
    await stuck.wait()
    await asyncio.sleep(1)
    [pair] = pairs_in(settings.kb.team_raw_dir, 1)
    assert texts(pair) == ["Why?", "Because."]
    assert pair.id in {end.qa_id for end in ends if isinstance(end, Outcome)}
    subscription.dispose()


# Whole recordings


class Silent:
    """Nobody is to be asked in these replays."""


def configured(data: Path, staff: Sequence[str], tmp_path: Path, reply_mode: str = "off") -> Settings:
    config = tmp_path / "config.yaml"
    ids = json.dumps(list(staff))
    config.write_text(f"discord:\n  reply_mode: '{reply_mode}'\n  team_member_ids: {ids}\n")
    return load(config, {}).for_replay(data)


def assembled(settings: Settings, ends: list[Result], assistant: Assistant) -> GraphParts:
    state = read_state(settings, is_durable=False)
    curation = curation_parts(settings, None, state.usages.default)
    return assemble(
        settings,
        state=state,
        servers=Servers(
            {
                None: ServerParts(
                    settings=settings,
                    assistant=assistant,
                    library=cast("Library", Silent()),
                    search=cast("LibrarySearch", ScriptedSearch()),
                    captures=capture_parts(settings, state, curation=curation, finish_all=True),
                )
            }
        ),
        api=DiscordAPI(poster=DryRunPoster()),
        results=[ends.append],
    )


def replayed(recording: Path, settings: Settings) -> list[Result]:
    ends: list[Result] = []

    async def play() -> None:
        parts = assembled(settings, ends, cast("Assistant", Silent()))
        source: Subject[Dispatch] = Subject()
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        graph(source.pipe(decode()), parts.services, parts.sinks, parts.rules).subscribe(
            on_error=done.set_exception, on_completed=lambda: done.set_result(None)
        )
        async for dispatch in dispatches(recording):
            source.on_next(dispatch)
        source.on_completed()
        await done

    with asyncio.Runner(loop_factory=lambda: VirtualLoop(first_time(recording))) as runner:
        runner.run(play())
    return ends


@pytest.mark.parametrize("name", ["stripe-0", "rust-2"])
def test_two_replays_of_a_real_chat_write_the_same_archive(name: str, tmp_path: Path) -> None:
    recording = RECORDINGS / f"{name}.jsonl"
    if not recording.exists():
        pytest.skip(f"no annotated recordings here; {data.VARIABLE} names their folder")
    staff = json.loads((RECORDINGS / f"{name}.gold.json").read_text())["staff"].values()
    archives: list[dict[str, bytes]] = []
    for run in ("one", "two"):
        settings = configured(tmp_path / run, list(staff), tmp_path)
        ends = replayed(recording, settings)
        captured = [end for end in ends if isinstance(end, Outcome) and end.result is OutcomeKind.CAPTURED]
        assert not [end for end in ends if isinstance(end, Outcome) and end.result is OutcomeKind.FAILED]
        pairs = pairs_in(settings.kb.team_raw_dir, 99)
        # A part that an earlier capture holds already, since its conversation had gone on, is not stored again.
        stored = list(dict.fromkeys(end.qa_id for end in captured))
        assert [pair.id for pair in pairs if pair.id in stored] == stored
        # The others are conversations that were captured, and whose answer somebody doubted afterwards.
        conversations: set[str] = set()
        for pair in pairs:
            assert pair.id in stored or (pair.doubted_ids and pair.conversation_id in conversations)
            conversations.add(pair.conversation_id)
        assert settings.kb.team_raw_dir.is_relative_to(tmp_path / run)
        archives.append({path.name: path.read_bytes() for path in week_files(settings.kb.team_raw_dir)})
    assert len(archives[0]) > 0
    assert archives[0] == archives[1]
