"""What only the running bot has: its side of Discord, and work beside the graph."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from reactivex import Observable
from reactivex import operators as ops
from reactivex.subject import Subject

from assembly.graph_parts import Parts
from assembly.llm import endpoint_settings
from model.messages import Attachment
from services.discord import CDNAttachments, Dispatch, Health, Poster, Rehearsal
from services.discord.live import Client, DiscordPoster, RestFetcher
from services.discord.slash import Commands
from services.discord.wire import Decoder
from services.llm import MAX_IMAGE_BYTES, unreachable_because
from settings import Settings
from streams.gateway import Gateway
from streams.recording import Recorder

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscordParts:
    client: Client
    decoder: Decoder
    fetcher: RestFetcher
    poster: Poster
    attachments: CDNAttachments


@asynccontextmanager
async def open_discord(settings: Settings, *, rehearsal: bool) -> AsyncGenerator[DiscordParts]:
    """A client that the gateway connects later, closed at the end of the block. `rehearsal`: nothing is posted."""
    answering = settings.ai_response
    client, decoder = Client(feedback=settings.discord.feedback), Decoder()
    try:
        yield DiscordParts(
            client=client,
            decoder=decoder,
            fetcher=RestFetcher(client.http, place=decoder.place),
            poster=Rehearsal() if rehearsal else DiscordPoster(client.http),
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
    parts: Parts,
    *,
    health: Health,
    arrivals: Subject[None],
    slash: Commands | None,
) -> Gateway:
    """The source of dispatches, not connected yet. As each guild arrives, `tidy` and `slash` are notified."""

    def arrived(guild_id: int, at: float) -> None:
        parts.state.seen.met(guild_id, at)
        if slash is not None:
            slash.arrived(guild_id)
        arrivals.on_next(None)

    return Gateway(
        discord.client,
        token,
        health=health,
        fetcher=discord.fetcher,
        marks=parts.state.seen.below,
        met=arrived,
        introduce=parts.services.people.look_up,
        catch_up_minutes=settings.discord.catch_up_minutes,
        allowlist=settings.discord.channel_allowlist,
        denylist=settings.discord.channel_denylist,
    )


@asynccontextmanager
async def recorded(
    dispatches: Observable[Dispatch], path: Path | None, settings: Settings, discord: DiscordParts, parts: Parts
) -> AsyncGenerator[Observable[Dispatch]]:
    """The same dispatches, written to the recording at `path` as they pass, with what people attach to messages.

    Raises:
        BadRecording: the recording cannot be written.
    """
    if path is None:
        yield dispatches
        return
    # A replay may read pictures, and files that count as evidence.
    limit = max(MAX_IMAGE_BYTES, settings.documents.max_file_bytes)

    async def download(attachment: Attachment) -> bytes:
        return await discord.attachments.content(attachment, limit)

    recorder = Recorder(path, opted_out=parts.state.withheld, download=download)
    try:
        yield dispatches.pipe(ops.do_action(recorder.write))
    finally:
        await recorder.close()


async def warn_if_unreachable(settings: Settings) -> None:
    """The bot starts all the same: an endpoint may come back."""
    llm = settings.ai_response.llm
    if llm is None:
        log.warning("ai_response.llm is not set: answers are quotes from the knowledge base")
        return
    reason = await unreachable_because(endpoint_settings(llm))
    if reason is not None:
        log.warning("ai_response.llm: %s; questions stay unanswered until it is back", reason)
