"""Runs the bot: Discord's gateway through the graph and back, until it is stopped."""

from __future__ import annotations

import argparse
import asyncio
import logging
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from assembly.answering import AS_CONFIGURED, ModelOptions
from assembly.bot import TeamDesk, gateway_for, maintain_evidence, open_discord, record_dispatches, warn_if_unreachable
from assembly.data_folder import autosave, lock_data_folder, read_state
from assembly.health import HealthMonitor, alert_parts
from assembly.knowledge import keep_all_knowledge_current, keep_search_current
from assembly.opening import LIVE, REHEARSAL, open_bot
from assembly.reports import post_weekly_reports
from assembly.running import (
    GraphRun,
    collect_garbage_less_often,
    in_background,
    meters_of,
    run_async,
    serving,
    shorten_thread_switches,
    stop_signal,
    use_one_malloc_arena,
)
from assembly.slash_commands import slash_commands
from clock import now
from commands.arguments import DONE, FAILED, requires_nats_extra
from model.processes import ROLES
from operators.screen import decode
from services.discord import GatewayHealth
from services.discord.live import watch_presses
from services.llm import import_client
from services.telemetry import raise_descriptor_limit
from settings import Settings, discord_token
from sinks.results import journal
from streams.gateway import observable
from streams.graph import graph

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LiveOptions:
    dry_run: bool = False
    record: Path | None = None
    models: ModelOptions = AS_CONFIGURED


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Run the bot, or its roles over NATS. Returns the exit code."""
    if not settings.local:
        return play_roles(settings, options)
    return live(
        settings, LiveOptions(options.dry_run, options.record, ModelOptions(options.llm_record, options.llm_replay))
    )


def live(settings: Settings, options: LiveOptions) -> int:
    """Run the bot until SIGINT or SIGTERM. Returns the exit code: 0 drained, 1 cut off."""
    token = discord_token(settings)
    _prepare_process()
    with lock_data_folder(settings, "app.py"):
        return run_async(run_bot(settings, options, token))


def play_roles(settings: Settings, options: argparse.Namespace) -> int:
    """Run the chosen roles between the streams of NATS. Raises Unusable: the extra is missing."""
    _prepare_process()
    with requires_nats_extra():
        from assembly.distributed.roles import run_roles  # noqa: PLC0415 (nothing of it is imported for one process)
    run_async(run_roles(settings, options.role or ROLES, options.shards))
    return DONE


def _prepare_process() -> None:
    collect_garbage_less_often()
    shorten_thread_switches()
    use_one_malloc_arena()
    raise_descriptor_limit()


async def run_bot(settings: Settings, options: LiveOptions, token: str) -> int:
    """Run the bot on the running loop until it is stopped. A rehearsal (dry run) posts nothing, and keeps neither
    captures nor watermarks; knowledge base and files of threads are kept up to date as usual.
    """
    rehearsal = options.dry_run or settings.app.dry_run
    health = GatewayHealth(now())
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        stopped = stack.enter_context(stop_signal())
        monitor = HealthMonitor(settings)
        monitor.watch_gateway(health)
        await enter(monitor.watching_errors())
        meters = meters_of(settings, health=monitor)
        discord = await enter(open_discord(settings, is_rehearsal=rehearsal))
        state = read_state(settings, is_durable=not rehearsal, on_tokens=meters.tokens)
        mode = REHEARSAL if rehearsal else LIVE
        models = replace(options.models, on_duration=meters.on_duration, on_call=meters.on_call)
        bot = await enter(open_bot(settings, mode, state, discord, models, meters.gauge))
        parts = bot.assemble(state, [*meters.results, journal, state.record.add])
        slash, alerting = None, None
        if not rehearsal:
            alerting = alert_parts(
                settings, monitor, partial(monitor.sample, state.budgets), discord.poster, meters.incidents
            )
            await enter(autosave(state))
            await enter(post_weekly_reports(settings, discord.poster, discord.fetcher))
            slash = await enter(slash_commands(discord.client, settings, parts, bot.llm, bot.documents))
            watch_presses(discord.client, TeamDesk(lambda _draft_id: state.drafts, parts.services.people))
        add_pages = None
        if meters.flow is not None:
            from assembly.dashboard import address_of, dashboard_pages  # noqa: PLC0415 (templates, which nothing else needs)

            add_pages = dashboard_pages(settings, parts, meters.flow, health=partial(monitor.sample, state.budgets))
            log.info("the dashboard is at %s", address_of(settings.metrics))
        ready, problem = (lambda: None if health.connected else "not connected yet"), lambda: health.problem(now())
        await enter(serving(settings.metrics, meters, problem, ready=ready, add_pages=add_pages))
        arrivals = await enter(
            maintain_evidence(settings, bot.documents, discord.client, discord.fetcher, state.is_withheld)
        )
        gateway = gateway_for(settings, token, discord, parts, health=health, arrivals=arrivals, slash=slash)
        dispatches = await enter(record_dispatches(observable(gateway), options.record, settings, discord, parts))
        if models.replay is None and (bot.llm or bot.knowledge_llm):
            await enter(in_background(asyncio.to_thread(import_client)))
        await enter(in_background(warn_if_unreachable(settings)))
        events = dispatches.pipe(decode(discord.decoder))
        services = replace(parts.services, alerts=alerting)
        run = GraphRun(graph(events, services, parts.sinks, parts.rules), services.in_flight)
        async with (
            keep_all_knowledge_current(settings, bot.knowledge_llm, state.usages, meters),
            keep_search_current(
                [server.search for server in bot.servers.values()], settings.kb.runtime_refresh_tick_seconds
            ),
        ):
            await asyncio.wait({stopped, run.finished}, return_when=asyncio.FIRST_COMPLETED)
        gateway.stop()
        drained = await run.drain(settings.app.shutdown_grace_seconds)
        if gateway.refusal is not None:
            raise gateway.refusal
        return DONE if drained else FAILED
