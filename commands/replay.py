"""`--replay`: sends recorded messages through the same graph as live ones, on a virtual clock."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from reactivex import operators as ops
from rich.console import Console

from assembly.answering import AS_CONFIGURED, ModelOptions
from assembly.data_folder import read_state
from assembly.graph_parts import DiscordAPI
from assembly.opening import REPLAY, open_bot
from assembly.running import Meters, collect_garbage_less_often, meters_of, play, serving, terminated_as_interrupted
from assembly.sources import temporary_index
from assembly.team import FailedCurations
from clock import VirtualLoop, now, rfc3339, with_bounded_shutdown
from commands.arguments import DONE, FAILED
from commands.progress import explain_interruption
from reporting.reading import end_of_replay
from services.discord import DryRunPoster, RecordedAttachments
from services.storage import DataFolder, temporary_folder
from services.telemetry import number_of
from settings import Settings
from sinks.results import JsonLines, OrderedOutcomes, ResultCounts
from sinks.terminal import PipedConsole, Terminal
from streams.graph import graph
from streams.recording import RecordedVotes, first_time

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """The options of a replay.

    Attributes:
        data: the data folder to work in; None: a temporary one, removed at the end.
        speed: relative to real time; None: as fast as possible.
    """

    file: Path
    data: Path | None = None
    speed: float | None = None
    as_json: bool = False
    models: ModelOptions = AS_CONFIGURED


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Run `--replay`. Returns the exit code."""
    chosen = ReplayOptions(
        options.replay, options.data, options.speed, options.json, ModelOptions(options.llm_record, options.llm_replay)
    )
    with terminated_as_interrupted():  # so that its temporary folder is removed
        return replay(settings, chosen)


def replay(settings: Settings, options: ReplayOptions, console: Console | None = None) -> int:
    """Play a recording or export and print the results, on `console` or else on stdout. Returns the exit code."""
    collect_garbage_less_often()
    with ExitStack() as stack:
        data = options.data or stack.enter_context(temporary_folder())
        start = first_time(options.file)
        warn_if_repeated(data, start)
        settings = stack.enter_context(temporary_index(settings))
        runner = stack.enter_context(
            asyncio.Runner(loop_factory=lambda: with_bounded_shutdown(VirtualLoop(start, speed=options.speed)))
        )
        tally = ResultCounts()
        stack.enter_context(explain_interruption(lambda: how_far(tally)))
        return runner.run(_replay(settings.for_replay(data), options, console or PipedConsole(), tally))


def how_far(tally: ResultCounts) -> str:
    """Say how many messages were replayed, and until when."""
    until = "" if tally.latest_at is None else f", until {rfc3339(tally.latest_at)[:16].replace('T', ' ')}"
    return f"{number_of(tally.messages, 'message')} replayed{until}"


def warn_if_repeated(data: Path, start: float) -> None:
    """Warn if a data folder holds outcomes or votes that are newer than the start of a recording. Raises OSError."""
    folder = DataFolder(data)
    end = end_of_replay(folder.outcomes, folder.feedback)
    if end is not None and end > start:
        log.warning("--data: %s holds a replay of this time: --report counts both; a new folder holds one alone", data)


async def _replay(settings: Settings, options: ReplayOptions, console: Console, tally: ResultCounts) -> int:
    count = FailedCurations()
    attachments = RecordedAttachments(options.file.with_name(f"{options.file.name}.attachments"))
    discord = DiscordAPI(poster=DryRunPoster(), attachments=attachments)
    # The dashboard is of use only if time passes.
    meters = meters_of(settings) if options.speed and settings.dashboard.enabled else Meters()
    state = read_state(
        settings, is_durable=False, is_replay=True, keeps_reports=options.data is not None, on_tokens=meters.tokens
    )
    async with AsyncExitStack() as stack:
        bot = await stack.enter_async_context(open_bot(settings, REPLAY, state, discord, options.models, meters.gauge))
        parts = bot.assemble(state)
        answers_by = backend(settings, options.models.replay)
        if meters.flow is not None:
            from assembly.dashboard import address_of, dashboard_pages  # noqa: PLC0415 (templates, which nothing else needs)

            pace = options.speed or 1
            add_pages = dashboard_pages(settings, parts, meters.flow, pace=pace)
            shown = serving(settings.metrics, meters, lambda: None, add_pages=add_pages, pace=pace)
            await stack.enter_async_context(shown)
            answers_by = f"dashboard at {address_of(settings.metrics)}; {answers_by}"
        headline, name_of = f"Replaying {options.file.name}", parts.services.history.name_of
        uncut = not console.is_terminal and "COLUMNS" not in os.environ
        lines = JsonLines(sys.stdout) if options.as_json else None
        out = lines or Terminal(console, name_of, headline, answers_by, now(), uncut=uncut)
        in_order = OrderedOutcomes(out.write)
        sinks = replace(
            parts.sinks, results=[tally.add, in_order.add, *meters.results, state.record.add], on_decided=count.add
        )
        votes = RecordedVotes(parts.services.posts)
        finished = await play(
            options.file,
            through=lambda events: graph(events.pipe(ops.map(votes.redirect)), parts.services, sinks, parts.rules),
            in_flight=parts.services.in_flight,
            counts=tally,
        )
        in_order.flush()
        out.finish(tally)
        all_filed = True
        for server in bot.servers.values():
            all_filed = await count.all_of(server.captures.curation) and all_filed
        if options.data is not None:
            await state.save()
    if not tally.adds_up:
        messages = number_of(tally.messages, "message")
        log.error("the accounting does not add up: %s received, but %s", messages, tally.summary())
    return DONE if finished and tally.adds_up and not tally.has_failures and all_filed else FAILED


def backend(settings: Settings, recorded: Path | None) -> str:
    """Describe where the answers of this replay come from: a model, recorded exchanges, or quotes."""
    if recorded is not None:
        return f"answers from the exchanges in {recorded.name}"
    llm = settings.ai_response.llm
    if llm is None:
        return "no language model configured: answers are quotes from the knowledge base"
    return f"answers by {llm.model}"
