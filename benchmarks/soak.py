"""Weeks of a server in one run: what grows, what is left over, and whether everything was counted once.

`python -m benchmarks.soak [--days N] [--messages-a-day N] [--grown DAY DAY]`

The whole program as a replay wires it, with files read in processes, captures filed, the knowledge base kept up to
date, and state saved, on the virtual loop. The model, Discord and the web are made up (`benchmarks.soak_world`).
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import sys
import tempfile
import threading
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import reactivex as rx
from reactivex import operators as ops
from reactivex.subject import Subject

from assembly.answering import library_of, open_search
from assembly.data_folder import autosave, read_state
from assembly.documents import documents_for
from assembly.graph_parts import DiscordAPI, ServerParts, assemble, capture_parts
from assembly.running import REPLAY_DRAIN_SECONDS, GraphRun, collect_garbage_less_often, use_one_malloc_arena
from assembly.sources import source_kinds
from assembly.team import curation_parts
from benchmarks.day import DAY_SECONDS, START, team_ids
from benchmarks.soak_figures import Soaked, by_kind, children, open_files, outcomes_in, read_lines, resident_mb
from benchmarks.soak_grown import Grown
from benchmarks.soak_world import PAGES, Files, Forgetful, MoodyAssistant, Server, SmallWeb, dispatches
from benchmarks.verdicts import verdict
from clock import VirtualLoop, now, run_in_real_time
from dataflow import supervise
from model.outcomes import Result
from model.servers import Servers
from operators.screen import decode
from services.assistant.extractive import ExtractiveDescriber
from services.discord.dispatches import Dispatch
from services.knowledge import SourceRecords, WebFetchers
from services.telemetry.exporter import Metrics
from settings import AnswerSettings, DiscordSettings, DocumentSettings, Settings
from sinks.knowledge import CacheAndIndex
from sinks.results import JsonLines, OrderedOutcomes, ResultCounts
from streams.graph import graph
from streams.knowledge import KnowledgeParts, knowledge
from streams.ticks import ticks

WARM_DAYS = 3
MAX_GROWTH = 1.1
SETTLED_DAYS, LATE_DAYS, MAX_LATE_GROWTH = 10, 50, 1.05
UPDATE_SECONDS = 3600.0
STAYING = ("real_time", "run_blocking", "asyncio_")
"""How the names of threads begin that wait for work as long as the program lives."""


def main() -> int:
    cli = argparse.ArgumentParser(description=__doc__)
    cli.add_argument("--days", type=int, default=30)
    cli.add_argument("--messages-a-day", type=int, default=5_000)
    cli.add_argument(
        "--grown", type=int, nargs=2, metavar="DAY", help="what grew in memory from one day's end to another's"
    )
    options = cli.parse_args()
    logging.basicConfig(level=logging.CRITICAL)
    collect_garbage_less_often()  # as the bot does
    use_one_malloc_arena()
    begun = time.monotonic()
    show = partial(print, flush=True)
    look = Grown(options.grown[0], options.grown[1], show).look if options.grown else _no_look
    seen = soak(options.days, options.messages_a_day, show=show, look=look)
    print(f"{seen.summary}\n{seen.files} files in threads, {time.monotonic() - begun:.0f} s")
    return judge(seen)


def judge(seen: Soaked) -> int:
    counts = (
        f"outcomes: {by_kind(seen.lines)} in lines, {by_kind(seen.summed)} in the summary, "
        f"{by_kind(seen.metrics)} in Prometheus"
    )
    requirements = [
        (not seen.left, f"left over: {', '.join(seen.left) or 'nothing'}"),
        (seen.finished and seen.adds_up, f"every message has one end: {seen.summary.get('messages')} messages"),
        (seen.lines == seen.summed == seen.metrics, counts),
    ]
    if len(seen.rss_mb) > WARM_DAYS:
        first, last = seen.rss_mb[WARM_DAYS - 1], seen.rss_mb[-1]
        grown = f"{last / first:.2f} x, {MAX_GROWTH} at most wanted"
        memory = f"memory: {last:.0f} MB at the end, {first:.0f} MB after {WARM_DAYS} days: {grown}"
        requirements.append((last <= MAX_GROWTH * first, memory))
    if len(seen.rss_mb) > LATE_DAYS:
        settled, late = seen.rss_mb[SETTLED_DAYS - 1], seen.rss_mb[LATE_DAYS - 1]
        grown = f"{late / settled:.2f} x, {MAX_LATE_GROWTH} at most wanted"
        memory = f"memory: {late:.0f} MB after {LATE_DAYS} days, {settled:.0f} MB after {SETTLED_DAYS}: {grown}"
        requirements.append((late <= MAX_LATE_GROWTH * settled, memory))
    return verdict(*requirements)


def _no_look(_day: int) -> None:
    """Nobody wants to know."""


def soak(
    days: int, per_day: int, *, show: Callable[[str], object] = lambda _: None, look: Callable[[int], None] = _no_look
) -> Soaked:
    """Run it, in a folder for temporary files of its own. `look` is called at the end of each day."""
    seen, children_before = Soaked(), children()
    with tempfile.TemporaryDirectory(prefix="millrace-soak-") as folder:
        temporary = Path(folder, "temporary")
        temporary.mkdir()
        usual, tempfile.tempdir = tempfile.tempdir, str(temporary)
        warm_up()
        files_before, threads_before = open_files(), set(threading.enumerate())
        try:
            with asyncio.Runner(loop_factory=lambda: VirtualLoop(START)) as runner:
                runner.run(_soak(Path(folder), days, per_day, seen, show, look))
        finally:
            tempfile.tempdir = usual
        gc.collect()
        seen.left += [f"{count} x {name}" for name, count in (open_files() - files_before).items()]
        new_threads = set(threading.enumerate()) - threads_before
        seen.left += [f"thread {each.name}" for each in new_threads if not each.name.startswith(STAYING)]
        seen.left += [f"temporary {path.name}" for path in temporary.iterdir()]
    seen.left += [f"process {pid}" for pid in children() - children_before]
    return seen


def warm_up() -> None:
    """Start the loop for calls to the outside, which stays."""

    async def call() -> None:
        await run_in_real_time(partial(asyncio.sleep, 0))

    with asyncio.Runner(loop_factory=lambda: VirtualLoop(START)) as runner:
        runner.run(call())


async def _soak(
    folder: Path,
    days: int,
    per_day: int,
    seen: Soaked,
    show: Callable[[str], object],
    look: Callable[[int], None],
) -> None:
    settings = settings_in(folder)
    tally, metrics, lines = ResultCounts(), Metrics(), folder / "lines.jsonl"
    loop = asyncio.get_running_loop()
    source: Subject[Dispatch] = Subject()
    server = Server(source.on_next)
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        out = JsonLines(stack.enter_context(lines.open("w", encoding="utf-8")))
        in_order = OrderedOutcomes(out.write)
        library = library_of(settings)
        documents = await enter(documents_for(settings, None, Files(), None))
        search = await enter(open_search(settings, library, None, read_only=False))
        state = read_state(settings, on_tokens=metrics.tokens)
        curation = curation_parts(settings, None, state.usages.default, metrics.gauge)
        results: Sequence[Callable[[Result], object]] = (tally.add, in_order.add, metrics.count_result)
        parts = assemble(
            settings,
            state=state,
            servers=Servers(
                {
                    None: ServerParts(
                        settings=settings,
                        assistant=MoodyAssistant(),
                        library=library,
                        search=search,
                        captures=capture_parts(settings, state, curation=curation, finish_all=True),
                    )
                }
            ),
            api=DiscordAPI(poster=server, fetcher=Forgetful()),
            documents=documents,
            gauge=metrics.gauge,
            results=results,
        )
        await enter(autosave(state))
        stack.callback(server.close)
        events = source.pipe(decode(), ops.do_action(tally.observe))
        run = GraphRun(graph(events, parts.services, parts.sinks, parts.rules), parts.services.in_flight)
        async with kept_up_to_date(settings):
            coming = dispatches(days, per_day)
            following = next(coming, None)
            for day in range(1, days + 1):
                ends = START + day * DAY_SECONDS
                while following is not None and following.at < ends:
                    await until(following.at)
                    source.on_next(following)
                    following = next(coming, None)
                await until(ends)
                seen.rss_mb.append(resident_mb())
                show(f"day {day}: {seen.rss_mb[-1]:.0f} MB, {tally.messages} messages")
                look(day)
        server.close()
        source.on_completed()
        seen.finished = await run.drain(REPLAY_DRAIN_SECONDS)
        in_order.flush()
        out.finish(tally)
        seen.files = len(list(settings.app.data_dir.rglob("case_*.sqlite")))
        seen.adds_up = tally.adds_up
    seen.rss_mb.append(resident_mb())
    seen.lines, seen.summary = read_lines(lines)
    seen.metrics = outcomes_in(metrics)
    current = asyncio.current_task()
    seen.left += [f"task {task.get_name()}" for task in asyncio.all_tasks() if task is not current]
    timers = loop._scheduled  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]  # noqa: SLF001 (asyncio has no public list of timers)
    seen.left += [f"timer {timer}" for timer in timers if not timer.cancelled()]  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]


def settings_in(folder: Path) -> Settings:
    settings = Settings(
        discord=DiscordSettings(team_member_ids=team_ids()),
        ai_response=AnswerSettings(enable_verification=True),
        documents=DocumentSettings(),
    ).resolve_paths(folder)
    kb = settings.kb
    kb.sources_dir.mkdir(parents=True)
    for number in range(10):
        text = f"# Setting {number}\n\nThe token of worker {number} is set in config.yaml.\n"
        (kb.sources_dir / f"setting-{number}.md").write_text(text * 20)
    kb.links_file_path.write_text("".join(f"https://docs.example/{number}\n" for number in range(PAGES)))
    return settings


@asynccontextmanager
async def kept_up_to_date(settings: Settings) -> AsyncGenerator[None]:
    """As `assembly.knowledge` does it, without watching the folder, which is the operating system's business."""
    kb = settings.kb
    source_records = SourceRecords(kb.index_cache_path, source_kinds(kb, WebFetchers(SmallWeb())))
    parts = KnowledgeParts(
        source_records=source_records,
        describer=ExtractiveDescriber(),
        files=CacheAndIndex(source_records, kb.index_path),
        descriptions_at_once=kb.summarization_concurrency,
        describe_seconds=settings.ai_response.graph_timeout_seconds,
    )
    subscription = (
        knowledge(rx.merge(ticks(UPDATE_SECONDS), rx.never()), parts).pipe(supervise("knowledge")).subscribe()
    )
    try:
        yield
    finally:
        subscription.dispose()
        await parts.files.save()


async def until(due: float) -> None:
    await asyncio.sleep(max(0.0, due - now()))


if __name__ == "__main__":
    sys.exit(main())
