"""`--regen`: rebuilds the team library from the raw archive, beside the library in use."""

from __future__ import annotations

import argparse
import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from reactivex import operators as ops
from rich.console import Console

from assembly import Unusable
from assembly.answering import AS_CONFIGURED, ModelOptions, open_llm
from assembly.data_folder import count_tokens, lock_data_folder
from assembly.reports import prices_of
from assembly.running import collect_garbage_less_often, run_async, terminated_as_interrupted
from assembly.team import curating_key, curator_of, open_team, team_paths, topic_describer_of
from clock import from_rfc3339, now, rfc3339, utc_clock
from commands.arguments import DONE, FAILED
from commands.progress import Count, Spending, explain_interruption, show_progress
from operators.prefetching import PrefetchServices
from services.assistant import description_key
from services.llm import Asker, PrefetchingAsker, Usage
from services.storage import DataFolder, files, in_thread
from services.team import (
    Action,
    Decision,
    DecisionLog,
    LibraryBuild,
    RebuildPlan,
    TeamLibrary,
    archive_files,
    open_library,
    rebuilding,
)
from services.telemetry import number_of
from settings import Settings
from streams.curation import CurationServices, NewDescription
from streams.regeneration import GivenUp, RebuildProgress, RebuildRules, regeneration

log = logging.getLogger(__name__)


@dataclass(slots=True)
class RebuildReport:
    """The result of a rebuild.

    Attributes:
        removed: the number of pairs that others made obsolete.
        resumed: the number of pairs that an earlier run had decided about.
        given_up: the reason why the library was left unchanged; empty: it was rebuilt.
    """

    plan: RebuildPlan
    spent: Spending
    actions: Counter[Action] = field(default_factory=Counter[Action])
    removed: int = 0
    resumed: int = 0
    topics: int = 0
    undescribed: int = 0
    given_up: str = ""

    def add(self, event: Decision | NewDescription) -> None:
        if isinstance(event, Decision):
            self.actions[event.action] += 1
            self.removed += len(event.remove_ids)

    @property
    def done(self) -> int:
        return self.actions[Action.ADDED] + self.actions[Action.SKIPPED] + self.actions[Action.FAILED]

    @property
    def count(self) -> Count:
        return Count(self.done, len(self.plan.tasks), "conversation", str(self.spent), "team library")

    @property
    def progress(self) -> str:
        """Describe the progress of the rebuild and how to continue it."""
        done = f"{self.done - self.actions[Action.FAILED]} of {number_of(len(self.plan.tasks), 'conversation')} done"
        return f"{done}; --regen continues from there, --regen --restart starts again"


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Run `--regen`: rebuild tier 2, replace the library by it, and print the result. Returns the exit code: 1 if a
    pair failed, or if the library was left unchanged, since the model or the disk failed.
    """
    models = ModelOptions(options.llm_record, options.llm_replay)
    collect_garbage_less_often()
    begun = list[RebuildReport]()
    failed = False
    with (
        terminated_as_interrupted(),
        lock_data_folder(settings, "app.py --regen"),
        # An interruption undoes only the library that is being rebuilt: those of servers before it are in use already.
        explain_interruption(
            lambda: "; ".join(
                ["the library that was being rebuilt is unchanged", *(each.progress for each in begun[-1:])]
            )
        ),
    ):
        for guild_id, each in settings.servers.items():
            work = rebuild(each, models, restart=options.restart, usage_settings=settings, on_start=begun.append)
            report = run_async(work)
            if guild_id is None or report.plan.pair_count:
                show(Console(), report, "" if guild_id is None else f"Server {guild_id}")
            failed |= bool(report.given_up or report.actions[Action.FAILED] or report.undescribed)
    return FAILED if failed else DONE


async def rebuild(
    settings: Settings,
    models: ModelOptions = AS_CONFIGURED,
    *,
    restart: bool,
    usage_settings: Settings | None = None,
    on_start: Callable[[RebuildReport], object] = lambda _: None,
) -> RebuildReport:
    """Rebuild one library on the running loop, for the holder of the lock. Returns the report.

    `settings`: those of the server. `restart`: do not resume an earlier run. `usage_settings`: those whose data folder
    counts the tokens; None: `settings`. `on_start`: receives the report at the start, before it is filled.
    """
    llm = settings.kb.llm or settings.ai_response.llm
    async with (
        count_tokens(usage_settings or settings) as usage,
        open_llm(settings, llm, models) as asker,
    ):
        describer = topic_describer_of(settings, asker, usage)
        time = utc_clock(asyncio.get_running_loop())
        # Repaired, and its cursors checked, before anything depends on it.
        await in_thread(open_team, settings, describer, time)
        build = LibraryBuild(DataFolder(settings.app.data_dir).regeneration, team_paths(settings))
        report = RebuildReport(await in_thread(plan_rebuild, build), Spending(usage, prices_of(settings)))
        on_start(report)
        if restart:
            await in_thread(build.clear)
        log.info("regeneration_started: %s", number_of(report.plan.conversation_count, "pair"))
        try:
            await build_library(settings, build, report, asker)
        except GivenUp as error:
            report.given_up = str(error)
            return report
        library = await in_thread(open_team, settings, describer, time)
        report.topics = len(library.topics)
        await in_thread(build.clear)
        log.info("regeneration_completed: %s", number_of(report.topics, "topic"))
    return report


def plan_rebuild(build: LibraryBuild) -> RebuildPlan:
    decisions = DecisionLog(build.live.decisions).read()
    found = rebuilding.plan(archive_files.pairs_in(build.live.raw), decisions)
    if not found.pair_count and any(decision.action is Action.ADDED for decision in decisions):
        raise Unusable(
            f"kb.team_raw_dir: {build.live.raw} holds no captured conversation, although there are topics; "
            "is the folder mounted, and the right one?"
        )
    return found


async def build_library(settings: Settings, build: LibraryBuild, report: RebuildReport, asker: Asker | None) -> None:
    """Build the whole library, and replace the one in use. Raises GivenUp."""
    most, usage = settings.kb.regeneration_concurrency, report.spent.usage
    ahead = None if asker is None or most == 1 else PrefetchingAsker(asker, most)
    describer = topic_describer_of(settings, ahead or asker, usage)
    # The classification of a pair depends on descriptions.
    key = description_key(curating_key(settings, by_model=asker is not None), describer.key)
    begun = await in_thread(build.begin, report.plan, key, rfc3339(now()))
    for decision, *_ in begun.decided:
        report.add(decision)
    report.resumed = report.done
    at = from_rfc3339(begun.at)
    library = await in_thread(
        open_library,
        build.paths,
        max_topic_chars=settings.kb.max_topic_chars,
        describer_key=describer.key,
        described_in=build.live.cache,
        time=lambda: at,
    )
    curator = curator_of(settings, ahead or asker, library)
    work = regeneration(
        report.plan.tasks,
        CurationServices(library, curator, describer, usage),
        RebuildRules(settings.ai_response.graph_timeout_seconds, most, begun.at),
        None if ahead is None else make_prefetch(settings, ahead, library, usage),
        RebuildProgress(report.resumed, begun.growth(report.plan)),
    )
    with show_progress(lambda: report.count):
        await work.pipe(ops.do_action(report.add), ops.last_or_default(None))
    report.topics = len(library.topics)
    report.undescribed = len(await in_thread(library.undescribed_topics))
    if report.done and report.done == report.actions[Action.FAILED]:
        raise GivenUp("not one conversation could be decided about")
    await in_thread(build.finish, report.plan, curator.actor, begun.at)
    try:
        await in_thread(build.adopt)
    except OSError as error:
        raise GivenUp(files.describe_error(error)) from error


def make_prefetch(settings: Settings, ahead: PrefetchingAsker, library: TeamLibrary, usage: Usage) -> PrefetchServices:
    curator = curator_of(settings, ahead.prefetcher, library)
    return PrefetchServices(ahead, curator, topic_describer_of(settings, ahead.prefetcher, usage), usage)


def show(console: Console, report: RebuildReport, title: str = "") -> None:
    if title:
        console.print(title, highlight=False, soft_wrap=True)
    plan, actions, usage = report.plan, report.actions, report.spent.usage
    prompt = sum(count for (_, kind), count in usage.tokens.items() if kind == "prompt")
    by_operators = plan.conversation_count - len(plan.tasks) - plan.wordless_count
    lines = [
        (plan.pair_count, "pairs read"),
        (plan.conversation_count, "kept, one for each conversation"),
        (actions[Action.ADDED], "added"),
        (actions[Action.SKIPPED] + plan.wordless_count, "skipped"),
        (by_operators + report.removed, f"removed, {by_operators} of them by operators or in Discord"),
        (actions[Action.FAILED], "failed"),
        (report.topics, "topics" + (f", {report.undescribed} not described yet" if report.undescribed else "")),
        (usage.calls.total(), "LLM calls"),
        (usage.tokens.total(), f"tokens, {prompt} of them in prompts"),
    ]
    for number, what in lines:
        console.print(f"{number:>9}  {what}", highlight=False, soft_wrap=True)
    if report.spent.money:
        console.print(f"{report.spent.money:>9.4f}  cost", highlight=False, soft_wrap=True)
    if report.resumed:
        known = number_of(report.resumed, "conversation")
        console.print(f"{known} had been decided about by an earlier run.", soft_wrap=True)
    if report.given_up:
        text = f"The library is unchanged: {report.given_up}. {report.progress}."
        console.print(text, soft_wrap=True, highlight=False, markup=False)
