"""`--replay`: recorded messages through the same graph, on a virtual clock."""

from __future__ import annotations

import asyncio
import logging
import sys
import tempfile
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from reactivex import operators as ops
from reactivex.subject import Subject
from rich.console import Console

from assembly.documents import documents_for
from assembly.graph_parts import Learning, assemble, library_of, save, secrets_of
from assembly.indexing import SearchableWhenAsked
from assembly.llm import askers_for, assistant_of, tool_limits
from assembly.running import Running, collect_rarely
from assembly.team import CurationCount
from assembly.temporary_index import with_an_index
from clock import VirtualLoop
from model.outcomes import Result
from operators.decode import decode
from services.discord import Dispatch, RecordedAttachments, Rehearsal
from services.documents import document_redactors
from services.llm import AttachedImages
from services.telemetry import number_of
from settings import Settings
from sinks.in_order import InOrder
from sinks.json_lines import JsonLines
from sinks.tally import Tally
from sinks.terminal import Terminal
from streams.graph import graph
from streams.recording import dispatches, first_time

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    file: Path
    data: Path | None = None
    """The data folder to work in; None: a temporary one, removed at the end."""
    speed: float | None = None
    """How many times as fast as it was; None: as fast as it goes."""
    as_json: bool = False
    llm_record: Path | None = None
    llm_replay: Path | None = None


def replay(settings: Settings, options: ReplayOptions, console: Console | None = None) -> int:
    """Play a recording or export; print what happens, on `console` or else on stdout. Gives the exit code.

    Raises:
        BadRecording: the file holds nothing to play.
    """
    collect_rarely()
    with ExitStack() as stack:
        data = options.data or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="millrace-replay-")))
        start = first_time(options.file)
        settings = stack.enter_context(with_an_index(settings))
        runner = stack.enter_context(asyncio.Runner(loop_factory=partial(VirtualLoop, start, speed=options.speed)))
        return runner.run(_replay(settings.rehearsed_in(data), options, console or Console()))


PATIENCE_SECONDS = 30 * 86_400.0
"""Virtual: whatever still runs when the recording ends is waited for; its own limits bound it."""


async def _replay(settings: Settings, options: ReplayOptions, console: Console) -> int:
    library = library_of(settings)
    attachments = RecordedAttachments(options.file.with_name(f"{options.file.name}.attachments"))
    tally = Tally()
    record, answers_from = options.llm_record, options.llm_replay
    async with AsyncExitStack() as stack:
        askers = await stack.enter_async_context(askers_for(settings, record=record, replay=answers_from))
        documents = await stack.enter_async_context(
            documents_for(
                settings,
                askers.answering,
                attachments,
                redactors=document_redactors(secrets_of(settings)),
                record=record,
                replay=answers_from,
                rehearsed=True,
            )
        )

        # Without a model, nothing but the thread's files and the asker's runbooks is looked up in
        # (services.assistant.extractive.looking_up).
        if documents is not None and askers.answering is not None:
            documents.before_asking = SearchableWhenAsked(settings, documents, library)

        def ended(end: Result) -> None:
            tally.add(end)
            in_order.add(end)

        filed = CurationCount()
        parts = assemble(
            settings,
            assistant=assistant_of(settings.ai_response, library, askers.answering, tool_limits(settings.documents)),
            library=library,
            poster=Rehearsal(),
            ends=ended,
            images=AttachedImages(attachments) if settings.ai_response.llm_enable_image else None,
            durable=False,
            documents=documents,
            learning=Learning(askers.knowledge, to_the_end=True),
        )
        writer = (
            JsonLines(sys.stdout)
            if options.as_json
            else Terminal(console, parts.services.history.name_of, f"Replaying {options.file.name}", backend(settings))
        )
        in_order = InOrder(writer.write)
        source: Subject[Dispatch] = Subject()
        events = source.pipe(decode(), ops.do_action(tally.hear))
        sinks = replace(parts.sinks, decided=filed.add)
        running = Running(graph(events, parts.services, sinks, parts.rules), parts.services.in_flight)
        async for dispatch in dispatches(options.file):
            source.on_next(dispatch)
        source.on_completed()
        finished = await running.drain(PATIENCE_SECONDS)
        in_order.flush()
        writer.finish(tally)
        sorted_out = await filed.all_of(parts.services.curation)
        if options.data is not None:
            await save(parts)
    if not tally.adds_up:
        log.error(
            "the accounting does not add up: %s heard, but %s", number_of(tally.messages, "message"), tally.summary()
        )
    return 0 if finished and tally.adds_up and not tally.failed and sorted_out else 1


def backend(settings: Settings) -> str:
    """Who answers, for people."""
    llm = settings.ai_response.llm
    if llm is None:
        return "no language model configured: answers are quotes from the knowledge base"
    return f"answers by {llm.model}"
