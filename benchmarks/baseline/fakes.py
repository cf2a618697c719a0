"""Answers after a virtual while, the same every time."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.baseline.model import Batch, Lesson, Link, Turn
from benchmarks.pauses import ANSWER, SOURCE_ID, SOURCE_TEXT, read, think


class YesAssistant:
    async def gate(self, turn: Turn) -> Turn | None:
        await think()
        return replace(turn, query=turn.batch.text)

    async def select(self, turn: Turn) -> Turn | None:
        await think()
        return replace(turn, source_id=SOURCE_ID)

    async def load(self, turn: Turn) -> Turn:
        await read()
        return replace(turn, source=SOURCE_TEXT)

    async def generate(self, turn: Turn) -> Turn:
        await think()
        return replace(turn, answer=ANSWER)

    async def verify(self, turn: Turn) -> Turn | None:
        await think()
        return turn


class QuickScribe:
    async def describe_images(self, batch: Batch) -> Batch:
        await read()
        return batch

    async def extract(self, batch: Batch) -> Lesson | None:
        await think()
        return Lesson(batch, "What was asked", batch.text)

    async def integrate(self, lesson: Lesson) -> Lesson:
        await think()
        return lesson

    async def summarize(self, page: str) -> str:
        await think()
        return page


class NoWeb:
    async def fetch(self, link: Link) -> str:
        await think()
        return link.url
