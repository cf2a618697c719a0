"""Puts a report together from what the data folder holds, and posts one a week."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from assembly.answering import library_of, server_library
from assembly.running import in_background
from assembly.searching import open_embedder
from assembly.team import team_places
from clock import now, rfc3339, run_blocking
from model.messages import Place
from reporting import gaps, reading
from reporting.cost import Costs, Price, Prices, costs
from reporting.document import summary
from reporting.reading import TimeSpan, Voted
from reporting.report import TAUGHT_TITLE, Knowledge, Report, Taught
from reporting.report import report as build
from services.conversations import read_posts
from services.discord import LookupFailed, Poster, PostFailed, inert, split
from services.knowledge import Library
from services.llm import read_token_days
from services.search.embedding import EmbeddingFailed
from services.storage import DataFolder, files, in_thread, read_object
from services.team import overview
from services.telemetry import Ended
from settings import LLMSettings, Settings

WEEK = 7 * 86_400.0
LOOK_SECONDS = 3600.0
POSTED_GAPS = 8
"""So many groups of questions fit into a message."""

log = logging.getLogger(__name__)

PlaceOf = Callable[[int], Coroutine[Any, Any, Place | None]]
"""What Discord says of a channel, by its id. Raises LookupFailed."""


async def reported(settings: Settings, period: TimeSpan, *, guild_id: int | None = None) -> Report:
    """What happened in the period; `guild_id`: in that server only, but for what all channels cost together.

    Raises:
        OSError: the data folder cannot be read.
    """
    folder = DataFolder(settings.app.data_dir)
    ended = await in_thread(reading.entries, folder.outcomes, period)
    votes = await in_thread(reading.voted_down, folder.feedback, period)
    if guild_id is not None:
        ended = [entry for entry in ended if entry.guild_id == guild_id]
        votes = await in_thread(_about, votes, ended, folder.posts)
    pages, taught = list[str](), dict[str, Taught]()
    for library in _libraries(settings, guild_id):
        pages += [entry.id for entry in await library.index() if entry.id.startswith("kb:")]
    for team in _teams(settings, guild_id):
        found = await in_thread(overview, team_places(team), team.kb.qa_raw_last_processed_id, now())
        taught |= {
            pair.id: Taught(pair.id, name, pair.turns[0].text[:TAUGHT_TITLE])
            for name, topic in found.topics.items()
            for pair in topic.pairs
        }
    token_days = (await in_thread(read_token_days, folder.token_days)).days

    async def put_together(embed: gaps.Embed | None) -> Report:
        return await build(
            ended,
            period,
            voted_down=votes,
            knowledge=Knowledge(pages, taught),
            token_days=token_days,
            prices=prices_of(settings),
            embed=embed,
        )

    async with open_embedder(settings.search.embeddings) as embedder:
        try:
            return await put_together(None if embedder is None else embedder.embed)
        except EmbeddingFailed as error:
            log.warning("search.embeddings: %s; questions are grouped by their words", error)
            return await put_together(None)


def _libraries(settings: Settings, guild_id: int | None) -> list[Library]:
    """What is answered from: in a server, or in all of them together."""
    shared = library_of(settings, for_team=True)
    own = {each: server_library(settings, each, shared, for_team=True)[0] for each in settings.servers}
    if guild_id is None:
        return [shared, *own.values()]
    return [shared, own[guild_id]] if guild_id in own else [shared]


def _teams(settings: Settings, guild_id: int | None) -> list[Settings]:
    """Those whose teaching a server tells of: its own, or what the others share; None: all."""
    if guild_id is None:
        return [settings, *settings.servers.values()]
    return [settings.servers.get(guild_id, settings)]


def _about(votes: Sequence[Voted], ended: Sequence[Ended], posts: Path) -> list[Voted]:
    """The votes about answers to these questions. Blocking."""
    asked = {entry.message_ids[-1] for entry in ended}
    answers = {post.message_id for post in read_posts(posts) if post.last_asked_id in asked}
    return [vote for vote in votes if vote.message_id in answers]


def read_costs(settings: Settings, period: TimeSpan) -> Costs:
    """Blocking. Raises OSError."""
    folder = DataFolder(settings.app.data_dir)
    days = read_token_days(folder.token_days).days
    return costs(days, reading.entries(folder.outcomes, period), period, prices_of(settings))


def prices_of(settings: Settings) -> Prices:
    answering, knowledge = settings.ai_response.llm, settings.kb.llm
    return Prices(_price(answering), _price(knowledge or answering))


def _price(llm: LLMSettings | None) -> Price | None:
    price = None if llm is None else llm.price_per_million
    return None if price is None or not (price.prompt or price.completion) else Price(price.prompt, price.completion)


@asynccontextmanager
async def reporting_weekly(settings: Settings, poster: Poster, place_of: PlaceOf) -> AsyncGenerator[None]:
    """Post what happened to `report.channel_id` once a week while the block runs; nothing where it is not set.

    A post that fails is a line of log, and is tried again after an hour.
    """
    channel_id = settings.report.channel_id
    if channel_id is None:
        yield
        return

    async def keep_reporting() -> None:
        while True:
            try:
                await report_if_due(settings, channel_id, poster, place_of)
            except (OSError, PostFailed, LookupFailed) as error:
                log.error("report.channel_id: the report was not posted: %s", error)  # noqa: TRY400 (for the operator)
            await asyncio.sleep(LOOK_SECONDS)

    async with in_background(keep_reporting()):
        yield


async def report_if_due(settings: Settings, channel_id: int, poster: Poster, place_of: PlaceOf) -> bool:
    """Post the report of the time since the last one, if that is a week ago. The first week begins with the
    first start.

    Raises OSError, PostFailed, LookupFailed.
    """
    path, at = DataFolder(settings.app.data_dir).last_report, now()
    since = (await in_thread(read_object, path)).get("until")
    if not isinstance(since, int | float) or since > at:
        await run_blocking(files.replace, path, _mark(at))
        return False
    if at - since < WEEK:
        return False
    place = await place_of(channel_id)
    if place is None or place.guild_id is None:
        raise LookupFailed(f"there is no channel {channel_id} that the bot can see")
    found = await reported(settings, TimeSpan(since, at), guild_id=place.guild_id)
    for number, piece in enumerate(split(posted(found))):
        await poster.send(channel_id, piece, nonce=f"{int(since):x}-week-{number}")
    await run_blocking(files.replace, path, _mark(at))
    return True


def _mark(at: float) -> bytes:
    return json.dumps({"until": at, "at": rfc3339(at)}).encode() + b"\n"


def posted(report: Report) -> str:
    """What is said in Discord: the counts, and what was asked most without an answer."""
    said = [f"**The last week.** {inert(summary(report))}"]
    if report.gaps:
        said.append("**Asked, and not answered**")
        for gap in report.gaps[:POSTED_GAPS]:
            links = " ".join(f"[{at}](<{entry.link}>)" for at, entry in enumerate(gap.asked[:3], 1) if entry.link)
            said.append(f"- {inert(gap.question[:150])} ({len(gap.asked)}) {links}".rstrip())
    if report.voted_down:
        said.append(f"**Voted down**: {', '.join(inert(each.question[:100]) for each in report.voted_down[:3])}")
    if report.taught:
        said.append(f"**Taught by the team**: {len(report.taught)} conversations")
    if calls := sum(spent.calls for spent in report.costs.channels.values()):
        said.append(f"**Calls to models**: {calls}, for what was asked here")
    return "\n".join(said)
