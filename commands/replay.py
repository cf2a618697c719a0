"""`--replay`: recorded messages through the same graph, on a virtual clock."""

from __future__ import annotations

import asyncio
import logging
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from reactivex.subject import Subject
from streams.recording import dispatches, first_time

from clock import VirtualLoop
from commands.assembling import assemble, library_of
from commands.running import Running
from commands.thinking import assistant_for
from model.outcomes import End
from operators.decode import decode
from services.dispatches import Dispatch
from services.llm.image_sources import RecordedImages
from services.rehearsal import Rehearsal
from settings import Settings
from sinks.in_order import InOrder
from sinks.json_lines import JsonLines
from sinks.tally import Tally
from sinks.terminal import Terminal
from streams.graph import graph

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


def replay(settings: Settings, options: ReplayOptions) -> int:
    """Play a recording or export; print what happens. Gives the exit code.

    Raises:
        BadRecording: the file holds nothing to play.
    """
    with ExitStack() as stack:
        data = options.data or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="millrace-replay-")))
        start = first_time(options.file)
        factory = lambda: VirtualLoop(start, speed=options.speed)  # noqa: E731
        runner = stack.enter_context(asyncio.Runner(loop_factory=factory))
        return runner.run(_replay(settings.rehearsed_in(data), options))


async def _replay(settings: Settings, options: ReplayOptions) -> int:
    library = library_of(settings)
    images = RecordedImages(attachments_beside(options.file)) if settings.ai_response.llm_enable_image else None
    tally = Tally()
    async with assistant_for(
        settings.ai_response, library, record=options.llm_record, replay=options.llm_replay
    ) as assistant:

        def ended(end: End) -> None:
            tally.add(end)
            in_order.add(end)

        parts = assemble(
            settings,
            assistant=assistant,
            library=library,
            poster=Rehearsal(),
            ends=ended,
            images=images,
            durable=False,
        )
        writer = JsonLines(sys.stdout) if options.as_json else Terminal(console(), parts.services.history.name_of)
        in_order = InOrder(writer.write)
        source: Subject[Dispatch] = Subject()
        events = source.pipe(decode(), counted(tally))
        running = Running(graph(events, parts.services, parts.sinks, parts.rules), parts.services.in_hand)
        async for dispatch in dispatches(options.file):
            source.on_next(dispatch)
        source.on_completed()
        # On a virtual clock patience costs nothing: whatever still runs is waited for, and bounded by its own limits.
        finished = await running.drain(PATIENCE_SECONDS)
        in_order.flush()
        writer.finish(tally)
        if options.data is not None:
            await save(parts)
    return 0 if finished and not tally.failed else 1
