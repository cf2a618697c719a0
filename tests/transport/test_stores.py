"""The stores of the product, over a plain folder and over one that lives in the log: the same bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path

import pytest

from clock import VirtualLoop
from model.events import Reaction
from model.servers import Servers
from services.conversations.posts import Outbox, Post, Posts, StartedReply
from services.discord.protocols import DryRunPoster
from services.storage import DataFolder, files
from services.team.captures import RecentCaptures
from sinks.feedback import Feedback
from sinks.results import OutcomeRecord
from sinks.team import RawArchive
from tests.services.team.pairs import added, captured, store
from tests.services.team.pairs import opened as opened_library
from tests.services.telemetry.test_ended import plain
from tests.sinks.test_archive import capture
from tests.sinks.test_record import at
from tests.talk import ANN, START, THREAD, people_of
from tests.transport.folders import contents, copied, opened
from transport.connection import FileConnection
from transport.folder_log import LogJournal

pytestmark = pytest.mark.real_time

POST = Post(50.0, 7, THREAD.id, THREAD.id, ANN.id, 6, opened_thread=False, question="How?", sources=("kb:a",))


async def archive(folder: DataFolder) -> None:
    raw = RawArchive(folder.team_raw, RecentCaptures([]), lambda: START, places=folder.places)
    await asyncio.gather(*(raw.keep(capture(number)) for number in (1, 2, 3)))


async def posts(folder: DataFolder) -> None:
    kept = Posts(path=folder.posts)
    for _ in range(2):
        await kept.add(POST)


async def outbox(folder: DataFolder) -> None:
    replies = [StartedReply(replace(POST, last_asked_id=asked), ("First.", "Second."), (asked,), 7) for asked in (5, 6)]
    kept = Outbox(folder.outbox)
    for reply in replies:
        await kept.begin(reply)
    await kept.end(replies[0])


async def feedback(folder: DataFolder) -> None:
    files.replace(folder.feedback_key, b"a" * 64)
    people = people_of(frozenset(), frozenset(), None)
    kept = Feedback(
        folder, Posts([POST]), people, DryRunPoster(), "🆘", Servers({None: None}), keeps_votes=True, infers_votes=True
    )
    for added_ in (True, False):
        await kept.handle(Reaction(60.0, THREAD.id, POST.message_id, ANN.id, "👍", added_))


async def record(folder: DataFolder) -> None:
    kept = OutcomeRecord(folder.outcomes, plain, keep_days=1)
    for seconds in (START - 5 * 86_400, START, START + 1):
        kept.add(at(seconds))
        await kept.save()


async def library(folder: DataFolder) -> None:
    pairs = [captured(number) for number in range(1, 5)]
    store(folder.root, *pairs)
    kept = opened_library(folder.root)
    for number, pair in enumerate(pairs):
        kept.decide(added(pair, f"topic-{number % 2}"))
    for topic in kept.undescribed_topics():
        kept.describe(topic, f"About {topic.name}", "key")


def play(work: Callable[[DataFolder], Coroutine[None, None, None]], root: Path) -> None:
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(START)) as runner:
        runner.run(work(DataFolder(root)))


@pytest.mark.parametrize("work", [archive, posts, outbox, feedback, record, library])
async def test_a_store_writes_the_same_and_all_of_it_is_in_the_log(
    file_connection: FileConnection, tmp_path: Path, work: Callable[[DataFolder], Coroutine[None, None, None]]
) -> None:
    await asyncio.to_thread(play, work, tmp_path / "plain")
    log = await opened(file_connection)
    with files.use_journal(tmp_path / "kept", LogJournal(file_connection, log)):
        await asyncio.to_thread(play, work, tmp_path / "kept")
    assert contents(tmp_path / "kept") == contents(tmp_path / "plain") != {}
    assert await copied(file_connection, log, tmp_path / "copy") == contents(tmp_path / "plain")
