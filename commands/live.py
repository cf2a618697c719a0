"""The bot, running: from the gateway through the graph to Discord, until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reactivex import Observable
from reactivex import operators as ops

from assembly.autosave import saved_soon
from assembly.documents import documents_for
from assembly.graph_parts import Learning, assemble, library_of, save, secrets_of
from assembly.indexing import kept_searchable
from assembly.knowledge import kept_up_to_date
from assembly.llm import askers_for, assistant_of, endpoint_settings, tool_limits
from assembly.metrics import measuring
from assembly.retention import kept_tidy
from assembly.running import Running, collect_rarely, yield_often
from assembly.slash import slash_commands
from clock import now
from model.messages import Message
from model.outcomes import Result
from operators.decode import decode
from services.discord import Attachments, CDNAttachments, Dispatch, Health, Poster, Rehearsal
from services.discord.live import Client, DiscordPoster, RestFetcher
from services.discord.wire import Decoder
from services.documents import document_redactors
from services.llm import MAX_IMAGE_BYTES, AttachedImages, import_client, unreachable_because
from services.storage import lock
from settings import Settings, usable_token
from sinks.journal import journal
from streams.gateway import Gateway, observable
from streams.graph import graph
from streams.recorder import Download, Recorder

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LiveOptions:
    dry_run: bool = False
    record: Path | None = None
    llm_record: Path | None = None
    llm_replay: Path | None = None


def live(settings: Settings, options: LiveOptions) -> int:
    """Run the bot until SIGINT or SIGTERM. Gives the exit code: 0 drained, 1 cut off.

    Raises:
        SettingsError: there is no token.
        FolderBusy: another process writes the data folder.
        GatewayRefused: Discord refuses the token or an intent.
    """
    token = usable_token(settings)
    collect_rarely()
    yield_often()
    with lock(settings.app.data_dir, "app.py"):
        return asyncio.run(run_bot(settings, options, token))


async def run_bot(settings: Settings, options: LiveOptions, token: str) -> int:
    """One life of the bot on the running loop.

    Raises:
        GatewayRefused: Discord refuses the token or an intent.
    """
    discord, answering = settings.discord, settings.ai_response
    library = library_of(settings)
    decoder = Decoder()
    async with AsyncExitStack() as stack:
        stopped = stack.enter_context(stop_signal())
        health = Health(now())
        meters = await stack.enter_async_context(measuring(settings.metrics, lambda: health.problem(now())))
        askers = await stack.enter_async_context(
            askers_for(settings, record=options.llm_record, replay=options.llm_replay, observe=meters.observe)
        )
        client = await stack.enter_async_context(connected_later(feedback=discord.feedback))
        fetcher = RestFetcher(client.http, place=decoder.place)
        rehearsed = options.dry_run or settings.app.dry_run
        poster: Poster = Rehearsal() if rehearsed else DiscordPoster(client.http)
        attachments = CDNAttachments(
            timeout_seconds=answering.image_download_timeout_seconds, max_retries=answering.image_download_max_retries
        )

        def ended(end: Result) -> None:
            meters.end(end)
            journal(end)

        documents = await stack.enter_async_context(
            documents_for(
                settings,
                askers.answering,
                attachments,
                redactors=document_redactors(secrets_of(settings)),
                record=options.llm_record,
                replay=options.llm_replay,
                observe=meters.observe,
            )
        )
        save_wanted = asyncio.Event()
        parts = assemble(
            settings,
            assistant=assistant_of(answering, library, askers.answering, tool_limits(settings.documents)),
            library=library,
            poster=poster,
            ends=ended,
            fetcher=fetcher,
            images=AttachedImages(attachments) if answering.llm_enable_image else None,
            gauge=meters.gauge,
            tokens=meters.tokens,
            durable=not rehearsed,
            seen_changed=save_wanted.set,
            documents=documents,
            # What is only rehearsed leaves no trace.
            learning=None if rehearsed else Learning(askers.knowledge),
            captures_kept=not rehearsed,
        )
        services = parts.services
        slash = None
        # In a rehearsal nothing is answered: nothing is saved as answered, and no commands are offered.
        if not rehearsed:
            await stack.enter_async_context(saved_soon(save_wanted, lambda: save(parts)))
            for_team = None
            if settings.kb.internal_topics:
                all_of_it = library_of(settings, for_team=True)
                limits = tool_limits(settings.documents)
                for_team = assistant_of(answering, all_of_it, askers.answering, limits), all_of_it
            slash = await stack.enter_async_context(
                slash_commands(client, settings, parts, save_wanted.set, documents, for_team)
            )

        tidy = await stack.enter_async_context(
            kept_tidy(settings.documents, documents, parts.toolbox, client, fetcher, parts.withheld)
        )

        def met(guild_id: int, at: float) -> None:
            services.seen.met(guild_id, at)
            if slash is not None:
                slash.arrived(guild_id)
            tidy.arrived()

        gateway = Gateway(
            client,
            token,
            health=health,
            fetcher=fetcher,
            marks=services.seen.below,
            met=met,
            introduce=services.people.look_up,
            catch_up_minutes=discord.catch_up_minutes,
            allowlist=discord.channel_allowlist,
            denylist=discord.channel_denylist,
        )
        dispatches = observable(gateway)
        if options.record is not None:
            dispatches = await stack.enter_async_context(
                recorded(dispatches, options.record, parts.withheld, whole(attachments, settings))
            )
        if options.llm_replay is None and (askers.answering or askers.knowledge):
            await stack.enter_async_context(meanwhile(asyncio.to_thread(import_client)))
        await stack.enter_async_context(meanwhile(warn_if_unreachable(settings)))
        running = Running(
            graph(dispatches.pipe(decode(decoder)), services, parts.sinks, parts.rules), services.in_flight
        )
        async with (
            kept_up_to_date(settings, askers.knowledge, services.usage, meters=meters),
            kept_searchable(settings, documents, library, lambda: [guild.id for guild in client.guilds]),
        ):
            await asyncio.wait({stopped, running.finished}, return_when=asyncio.FIRST_COMPLETED)
        gateway.stop()
        drained = await running.drain(settings.app.shutdown_grace_seconds)
        if gateway.refusal is not None:
            raise gateway.refusal
        return 0 if drained else 1


@asynccontextmanager
async def connected_later(*, feedback: bool) -> AsyncGenerator[Client]:
    """A client that the gateway connects; closed last, so that answers under way can still be posted."""
    client = Client(feedback=feedback)
    try:
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def recorded(
    dispatches: Observable[Dispatch], path: Path, opted_out: Callable[[Message], bool], download: Download
) -> AsyncGenerator[Observable[Dispatch]]:
    """The same dispatches, written to a recording as they come by."""
    recorder = Recorder(path, opted_out=opted_out, download=download)
    try:
        yield dispatches.pipe(ops.do_action(recorder.write))
    finally:
        await recorder.close()


def whole(attachments: Attachments, settings: Settings) -> Download:
    """Whatever a replay may want to read: pictures, and files that count as evidence."""
    limit = max(MAX_IMAGE_BYTES, settings.documents.max_file_bytes)
    return lambda attachment: attachments.content(attachment, limit)


@asynccontextmanager
async def meanwhile(work: Coroutine[Any, Any, None]) -> AsyncGenerator[None]:
    """Do `work` beside the block; given up at its end."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def warn_if_unreachable(settings: Settings) -> None:
    """The bot starts all the same: an endpoint may come back."""
    llm = settings.ai_response.llm
    if llm is None:
        log.warning("ai_response.llm is not set: answers are quotes from the knowledge base")
        return
    reason = await unreachable_because(endpoint_settings(llm))
    if reason is not None:
        log.warning("ai_response.llm: %s; questions stay unanswered until it is back", reason)


@contextmanager
def stop_signal() -> Generator[asyncio.Future[None]]:
    """Done when the process is told to stop; from the start on, so that no stop is met with a traceback."""
    loop = asyncio.get_running_loop()
    stopped: asyncio.Future[None] = loop.create_future()

    def stop() -> None:
        if not stopped.done():
            log.info("stopping: what is in hand is finished first")
            stopped.set_result(None)

    signals = (signal.SIGINT, signal.SIGTERM)
    for number in signals:
        loop.add_signal_handler(number, stop)
    try:
        yield stopped
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
