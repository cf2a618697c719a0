"""The whole bot at one glance.

    messages ─┬─ quiet ─ batches ─┬─ from users ─ answers ──────────────▶ replies
              │                   ├─ from team ── lessons ─┬────────────▶ archive
              │                   │                        └ integrated ▶ knowledge
              │                   └─ links ── pages ── summaries ───────▶ library
              └─ (bots are dropped)

Nothing here does any work: this file only says what flows where.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

import reactivex as rx
from reactivex import Observable
from reactivex import operators as ops

from benchmarks.baseline.answers import answers
from benchmarks.baseline.conversation import batches, links
from benchmarks.baseline.lessons import integrated, lessons
from benchmarks.baseline.map_async import map_async
from benchmarks.baseline.model import Batch, Lesson, Message, Role, Turn
from benchmarks.baseline.ports import Assistant, Scribe, Web
from benchmarks.baseline.supervised import fork, supervised

T = TypeVar("T")
Sink = Callable[[T], Coroutine[Any, Any, None]]

QUIET_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Services:
    assistant: Assistant
    scribe: Scribe
    web: Web


@dataclass(frozen=True, slots=True)
class Sinks:
    """Where each stream ends; awaited once per item, one at a time, in order."""

    replies: Sink[Turn]
    archive: Sink[Lesson]
    knowledge: Sink[Lesson]
    library: Sink[str]


def graph(messages: Observable[Message], services: Services, sinks: Sinks) -> Observable[None]:
    """Wire the bot. Completes when `messages` has, and all work is done.

    A `fork` stands wherever two branches part: what comes before it runs once
    per message, not once per branch.
    """
    spoken = batches(messages.pipe(ops.filter(by_people)), QUIET_SECONDS).pipe(fork("batches"))
    from_users = spoken.pipe(ops.filter(by("user")))
    from_team = spoken.pipe(ops.filter(by("team")))

    learned = lessons(from_team, services.scribe).pipe(fork("lessons"))
    summaries = links(spoken).pipe(
        map_async(services.web.fetch, max_concurrent=8),
        map_async(services.scribe.summarize, max_concurrent=2),
    )

    return rx.merge(
        answers(from_users, services.assistant).pipe(into(sinks.replies), supervised("answers")),
        learned.pipe(into(sinks.archive), supervised("archive")),
        integrated(learned, services.scribe).pipe(into(sinks.knowledge), supervised("knowledge")),
        summaries.pipe(into(sinks.library), supervised("library")),
    )


def into(sink: Sink[T]) -> Callable[[Observable[T]], Observable[None]]:
    return map_async(sink, max_concurrent=1)


def by(role: Role) -> Callable[[Batch], bool]:
    return lambda batch: batch.role == role


def by_people(message: Message) -> bool:
    return message.role != "bot"
