"""Opens the bot's side of Discord, and the work that runs beside the graph: recording, resuming and sweeping files, and
the decisions of people who press the buttons in the review channel.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import discord
import reactivex as rx
from reactivex import Observable
from reactivex import operators as ops
from reactivex.subject import Subject

from assembly.answering import endpoint_settings
from assembly.documents import Documents, solved_tags
from assembly.graph_parts import DiscordAPI, GraphParts
from clock import HOUR, now
from dataflow import map_async, supervise
from model.messages import Attachment, Author, Message
from operators.evidence import CloseThread, Threads, chunk, discard, last_upload_time, sweep, withdraw_missing
from services.conversations import UNKNOWN_DRAFT, Draft, DraftAction, Drafts, People
from services.discord import (
    CDNAttachments,
    Decoder,
    Dispatch,
    DryRunPoster,
    GatewayHealth,
    LookupFailed,
)
from services.discord.live import (
    Client,
    CrowdedChannels,
    DiscordPoster,
    DiscordReviews,
    ForbiddenPlaces,
    LiveAccess,
    Press,
    RestFetcher,
)
from services.discord.slash import CommandRegistry
from services.documents import PLACE_ID, candidates_in
from services.documents.store import Document, State, StoreUnavailable, protocol
from services.llm import MAX_IMAGE_BYTES, why_unreachable
from settings import Settings
from sinks.drafts import why_too_late
from streams.gateway import Gateway, GatewayHooks, GatewayRules
from streams.recording import Recorder
from streams.ticks import ticks

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscordParts(DiscordAPI):
    """The API of a connected bot, with its client."""

    client: Client
    decoder: Decoder
    fetcher: RestFetcher  # pyright: ignore[reportGeneralTypeIssues] (a connected bot has one)
    attachments: CDNAttachments  # pyright: ignore[reportGeneralTypeIssues] (likewise)
    refusals: Sequence[ForbiddenPlaces]  # what Discord has refused to read and to write


@asynccontextmanager
async def open_discord(settings: Settings, *, is_rehearsal: bool) -> AsyncGenerator[DiscordParts]:
    """Open a client, which the gateway connects later, until the end of the block. `is_rehearsal`: nothing is
    posted.
    """
    answering = settings.ai_response
    client, decoder = Client(feedback=settings.discord.feedback), Decoder()
    reading, posting, crowded = ForbiddenPlaces(), ForbiddenPlaces(), CrowdedChannels()
    fetcher = RestFetcher(client.http, decode_place=decoder.place, forbidden=reading)
    try:
        yield DiscordParts(
            client=client,
            decoder=decoder,
            fetcher=fetcher,
            poster=DryRunPoster() if is_rehearsal else DiscordPoster(client.http, forbidden=posting, crowded=crowded),
            reviews=None if is_rehearsal else DiscordReviews(DiscordPoster(client.http), fetcher, client),
            access=LiveAccess(client, posting, crowded),
            refusals=(reading, posting),
            attachments=CDNAttachments(
                timeout_seconds=answering.image_download_timeout_seconds,
                max_retries=answering.image_download_max_retries,
            ),
        )
    finally:
        await client.close()


def gateway_for(
    settings: Settings,
    token: str,
    discord: DiscordParts,
    parts: GraphParts,
    *,
    health: GatewayHealth,
    arrivals: Subject[None],
    slash: CommandRegistry | None,
) -> Gateway:
    """Return the source of dispatches, not connected yet. It tells `arrivals` and `slash` of each guild that comes."""

    def arrived(guild_id: int, at: float) -> None:
        parts.state.watermarks.note_guild(guild_id, at)
        if slash is not None:
            slash.register_in(guild_id)
        arrivals.on_next(None)

    def access_changed() -> None:
        for refused in discord.refusals:
            refused.clear()

    return Gateway(
        discord.client,
        token,
        fetcher=discord.fetcher,
        watermarks=parts.state.watermarks.by_place,
        rules=gateway_rules(settings),
        hooks=GatewayHooks(on_guild=arrived, look_up=parts.services.people.look_up, access_changed=access_changed),
        health=health,
    )


def gateway_rules(settings: Settings, most_waiting: int | None = None) -> GatewayRules:
    chosen = settings.discord
    return GatewayRules(
        catch_up_minutes=chosen.catch_up_minutes,
        allowlist=frozenset(chosen.channel_allowlist),
        denylist=frozenset(chosen.channel_denylist),
        team_channels=settings.team_channels,
        most_waiting=most_waiting,
    )


@asynccontextmanager
async def record_dispatches(
    dispatches: Observable[Dispatch], path: Path | None, settings: Settings, discord: DiscordParts, parts: GraphParts
) -> AsyncGenerator[Observable[Dispatch]]:
    """Pass dispatches on and write them, with attachments, to the recording at `path`; None: nothing is recorded.
    Raises BadRecording: the recording cannot be written.
    """
    if path is None:
        yield dispatches
        return
    # A replay may read pictures, and files that count as evidence.
    limit = max(MAX_IMAGE_BYTES, settings.documents.max_file_bytes)

    async def download(attachment: Attachment) -> bytes:
        return await discord.attachments.content(attachment, limit)

    recorder = Recorder(path, opted_out=parts.state.is_opted_out, download=download)
    try:
        yield dispatches.pipe(ops.do_action(recorder.write))
    finally:
        await recorder.close(settings.app.shutdown_grace_seconds)


async def warn_if_unreachable(settings: Settings) -> None:
    """Log a warning if the model cannot be reached. The bot still starts: an endpoint may come back."""
    llm = settings.ai_response.llm
    if llm is None:
        log.warning("ai_response.llm is not set: answers are quotes from the knowledge base")
        return
    reason = await why_unreachable(endpoint_settings(llm))
    if reason is not None:
        log.warning("ai_response.llm: %s; questions stay unanswered until it is back", reason)


@asynccontextmanager
async def maintain_evidence(
    settings: Settings,
    documents: Documents | None,
    client: discord.Client,
    fetcher: RestFetcher,
    withheld: Callable[[Message], bool],
) -> AsyncGenerator[Subject[None]]:
    """Finish reading files that a crash cut off, and delete files of closed threads, for as long as the block runs.

    Yields a subject to be called as each server arrives: before that, its threads are not known.
    """
    arrivals: Subject[None] = Subject()
    if documents is None:
        yield arrivals
        return
    async with sweep_regularly(settings, documents, has_left_server(client), fetcher, arrivals):
        documents.background.tasks.start(resume_reading(documents, fetcher, withheld))
        yield arrivals


@asynccontextmanager
async def sweep_regularly(
    settings: Settings,
    documents: Documents,
    left: Callable[[int], bool],
    fetcher: RestFetcher,
    begin: Observable[None],
) -> AsyncGenerator[None]:
    """Sweep, and delete the files of deleted messages, with the first item of `begin` and every `documents.sweep_hours`
    after it, while the block runs.
    """
    chosen, remove = settings.documents, discard(documents.store, documents.cases, documents.answers.purge)

    async def close(case_id: int) -> None:
        documents.cases.close(case_id)
        await remove(CloseThread(case_id, may_reopen=True))

    sweep_threads = sweep(
        documents.store,
        Threads(left=left, active=active_in(fetcher), find=fetcher.place),
        close,
        solved_tags=solved_tags(chosen),
        grace_seconds=chosen.evidence_grace_hours * HOUR,
        unopened_seconds=settings.ai_response.approval_minutes * 60,
    )
    delete_missing = withdraw_missing(documents.store, fetcher.message, remove)

    async def run(tick: object) -> int:
        await delete_missing()
        return await sweep_threads(tick)

    sweeps = begin.pipe(
        ops.take(1),
        ops.flat_map(lambda _: rx.merge(ticks(chosen.sweep_hours * HOUR), rx.never())),
        map_async(run, on_failure=log_failed_sweep, max_concurrent=1),
        supervise("sweep"),
    )
    with sweeps.subscribe(on_error=lambda error: log.critical("nothing is swept any more", exc_info=error)):
        yield


def log_failed_sweep(_: object, error: Exception) -> int:
    log.error("evidence: the sweep broke off", exc_info=error)
    return 0


def has_left_server(client: discord.Client) -> Callable[[int], bool]:
    """Make a function that returns True if the bot has left a server. It raises LookupFailed while that is unknown."""

    def left(guild_id: int) -> bool:
        away = [guild.id for guild in client.guilds if guild.unavailable]
        if away or not client.guilds:
            raise LookupFailed(f"servers {away} are away" if away else "no server has arrived yet")
        return guild_id not in {guild.id for guild in client.guilds}

    return left


def active_in(fetcher: RestFetcher) -> Callable[[int], Awaitable[Collection[int]]]:
    async def active(guild_id: int) -> Collection[int]:
        return {int(thread["id"]) for thread in await fetcher.active_threads(guild_id)}

    return active


async def resume_reading(
    documents: Documents, fetcher: RestFetcher, withheld: Callable[[Message], bool], idle_seconds: float = 0.0
) -> None:
    """Finish files that a crash left half read or without vectors. With `idle_seconds`, files changed since then are
    skipped, since another process may be reading them.
    """
    try:
        for name, doc in await documents.store.unfinished():
            if idle_seconds and last_upload_time([doc], ()) > now() - idle_seconds:
                continue
            await finish_reading(documents, fetcher, withheld, name, doc)
    except StoreUnavailable as error:
        log.warning("evidence: files whose reading was cut off stay unread: %s", error)


async def finish_reading(
    documents: Documents, fetcher: RestFetcher, withheld: Callable[[Message], bool], name: str, doc: Document
) -> None:
    """Finish one file that a crash left half read. Raises StoreUnavailable."""
    if doc.state is State.LEXICAL:
        documents.background.embed_soon(name, doc.doc_id)
    elif name.startswith(protocol.CASE_PREFIX):
        try:
            await read_again(documents, fetcher, withheld, name, doc)
        except LookupFailed as error:
            log.warning("evidence: a file whose reading was cut off stays unread: %s", error)


async def read_again(
    documents: Documents, fetcher: RestFetcher, withheld: Callable[[Message], bool], name: str, doc: Document
) -> None:
    """Read a file whose reading was cut off, from its message, which has fresh addresses."""
    case_id = int(name.removeprefix(protocol.CASE_PREFIX))
    place_id = int(doc.origin.extra.get(PLACE_ID, case_id))
    message = None if doc.origin.message_id is None else await fetcher.message(place_id, doc.origin.message_id)
    block_lines = documents.settings.code_block_min_lines if documents.settings.code_blocks else None
    files = () if message is None or withheld(message) else candidates_in(message, case_id, block_lines=block_lines)
    candidate = next((candidate for candidate in files if candidate.is_in(doc)), None)
    if candidate is None:
        await documents.store.delete_document(name, doc.doc_id)
        return
    job = documents.cases.begin(candidate)
    if job is None:
        return
    try:
        result = await chunk(documents.ingest_services)(job)
    finally:
        documents.cases.finish(job)
    if result.document is not None:
        documents.background.embed_soon(name, result.document.doc_id)


TEAM_ONLY = "Only the team decides about answers."


@dataclass(frozen=True, slots=True)
class TeamDesk:
    """`services.discord.live.ReviewDesk`, for the team of the server in which was asked. `drafts_with`: returns the
    drafts among which one is, by its id; None: it is unknown here.
    """

    drafts_with: Callable[[int], Drafts | None]
    people: People

    def refusal(self, press: Press) -> str | None:
        draft = self._find(press.button.draft_id)
        if draft is None:
            return UNKNOWN_DRAFT
        if not self.people.is_team(Author(press.user_id, "", role_ids=press.role_ids), draft.reply.guild_id):
            return TEAM_ONLY
        return why_too_late(draft)

    def text_of(self, draft_id: int) -> str:
        draft = self._find(draft_id)
        return "" if draft is None else draft.text

    async def decide(self, press: Press) -> str:
        button = press.button
        drafts = self.drafts_with(button.draft_id)
        if drafts is None:
            return UNKNOWN_DRAFT
        action, text = DraftAction(button.action), press.text or ""
        return await drafts.decide(button.draft_id, action, press.user_id, text, seen=button.version)

    def _find(self, draft_id: int) -> Draft | None:
        drafts = self.drafts_with(draft_id)
        return None if drafts is None else drafts.find(draft_id)
