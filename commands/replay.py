"""`--replay`: recorded messages through the same graph, on a virtual clock."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from reactivex.subject import Subject

from clock import VirtualLoop
from commands.assembling import Parts, assemble, library_of
from commands.running import Running
from commands.thinking import Thinking
from model.events import Event, Posted
from model.outcomes import End
from operators.decode import decode
from services import state
from services.dispatches import Dispatch
from services.llm.image_sources import RecordedImages
from services.rehearsal import Rehearsal
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
