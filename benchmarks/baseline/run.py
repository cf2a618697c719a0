"""One replay of a recording through the baseline."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from benchmarks.baseline.app import run
from benchmarks.baseline.fakes import NoWeb, QuickScribe, YesAssistant
from benchmarks.baseline.graph import Services, Sinks
from benchmarks.baseline.model import Batch, Lesson, Turn, read
from benchmarks.baseline.replay import replay
from benchmarks.baseline.virtual_loop import VirtualLoop
from benchmarks.measuring import Digest, Figures


def baseline(path: Path, team: frozenset[int]) -> Figures:
    digest = Digest()

    def add(kind: str, batch: Batch, text: str) -> None:
        at = asyncio.get_running_loop().time()
        ids = [str(message.id) for message in batch.messages]
        channel = str(batch.messages[0].channel)
        line = {"at": at, "outcome": kind, "channel_id": channel, "message_ids": ids, "text": text}
        digest.add(kind, json.dumps(line, ensure_ascii=False))

    async def reply(turn: Turn) -> None:
        add("replied", turn.batch, turn.answer)

    async def archive(lesson: Lesson) -> None:
        add("captured", lesson.batch, lesson.answer)

    async def forget(_: object) -> None: ...

    sinks = Sinks(replies=reply, archive=archive, knowledge=forget, library=forget)
    services = Services(YesAssistant(), QuickScribe(), NoWeb())
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        assert runner.run(run(replay(read(path, team)), services, sinks))
    return digest.figures()
