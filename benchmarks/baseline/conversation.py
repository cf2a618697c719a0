"""From single messages to what one person had to say."""

from __future__ import annotations

from reactivex import Observable
from reactivex import operators as ops

from benchmarks.baseline.model import Batch, Link, Message
from benchmarks.baseline.present import spread
from benchmarks.baseline.quiet_window import quiet_window


def batches(messages: Observable[Message], quiet: float) -> Observable[Batch]:
    return messages.pipe(quiet_window(quiet, who_and_where), ops.map(as_batch))


def who_and_where(message: Message) -> tuple[int, int]:
    return message.channel, message.author


def as_batch(messages: list[Message]) -> Batch:
    return Batch(tuple(messages))


def links(batches: Observable[Batch]) -> Observable[Link]:
    return batches.pipe(spread(links_in))


def links_in(batch: Batch) -> list[Link]:
    return [Link(w) for m in batch.messages for w in m.text.split() if w.startswith("http")]
