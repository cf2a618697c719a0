"""Puts a report together from what the data folder holds."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from assembly.answering import library_of, server_library
from assembly.searching import open_embedder
from assembly.team import team_places
from clock import now
from reporting import gaps, reading
from reporting.cost import Costs, Price, Prices, costs
from reporting.reading import TimeSpan, Voted
from reporting.report import TAUGHT_TITLE, Knowledge, Report, Taught
from reporting.report import report as build
from services.conversations import read_posts
from services.knowledge import Library
from services.llm import read_token_days
from services.search.embedding import EmbeddingFailed
from services.storage import DataFolder, in_thread
from services.team import overview
from services.telemetry import Ended
from settings import LLMSettings, Settings

log = logging.getLogger(__name__)


async def reported(settings: Settings, period: TimeSpan, *, guild_id: int | None = None) -> Report:
    """Build the report of a period from the data folder. `guild_id`: only for this server (costs that belong to no
    channel are those of all).

    Raises:
        OSError: the data folder cannot be read.
        LibraryUnusable: what the team has taught is damaged.
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
    """Give the libraries that a report counts pages of: shared and own ones of `guild_id`, or all."""
    shared = library_of(settings, for_team=True)
    own = {each: server_library(settings, each, shared, for_team=True)[0] for each in settings.servers}
    if guild_id is None:
        return [shared, *own.values()]
    return [shared, own[guild_id]] if guild_id in own else [shared]


def _teams(settings: Settings, guild_id: int | None) -> list[Settings]:
    """Give the settings of each team whose conversations the report lists."""
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
