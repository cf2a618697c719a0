"""Builds reports and costs from the data folder, and posts the weekly report to a channel."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from assembly.answering import open_embedder, server_libraries
from assembly.running import in_background
from assembly.team import team_paths
from clock import DAY, HOUR, now, rfc3339, run_blocking
from model.messages import snowflake_at
from model.source_ids import is_document
from reporting import reading
from reporting.cost import Costs, Price, Prices, costs
from reporting.document import summary
from reporting.reading import DismissedQuestions, TimeSpan, VotedQuestion
from reporting.report import (
    MAX_ABOUT_CHARS,
    CapturedConversation,
    Embed,
    Knowledge,
    Report,
    build_report,
    lessons_among,
    team_answer,
)
from services.assistant import remove_foreign_links
from services.conversations import WorkCancelled, read_posts
from services.discord import PAGE_SIZE, Fetcher, LookupFailed, Poster, PostFailed, escape_markup, split
from services.knowledge import Library
from services.llm import read_token_days
from services.search.embedding import EmbeddingFailed
from services.storage import DataFolder, Record, files, in_thread, read_object
from services.team import LibraryUnusable, Pair, overview
from services.telemetry import PartOutcome
from settings import LLMSettings, Settings

log = logging.getLogger(__name__)


async def report_from_folder(settings: Settings, period: TimeSpan, *, guild_id: int | None = None) -> Report:
    """Build the report of a period from the data folder. `guild_id`: only for this server (costs without a channel are
    those of all servers).

    Raises:
        OSError: the data folder cannot be read.
        LibraryUnusable: the team library is damaged.
    """
    folder = DataFolder(settings.app.data_dir)
    ended = await in_thread(reading.read_outcomes, folder.outcomes, period)
    votes = await in_thread(reading.read_downvoted, folder.feedback, period)
    if guild_id is not None:
        ended = [entry for entry in ended if entry.guild_id == guild_id]
        votes = await in_thread(_about, votes, ended, folder.posts)
    pages, captured, by_message = list[str](), dict[str, CapturedConversation](), dict[int, CapturedConversation]()
    lessons = dict[int | None, list[Pair]]()
    for library in _libraries(settings, guild_id):
        pages += [entry.id for entry in await library.index() if is_document(entry.id)]
    for owner in settings.servers if guild_id is None else [settings.servers.owner_of(guild_id)]:
        team = settings.servers[owner]
        found = await in_thread(overview, team_paths(team), team.kb.qa_raw_last_processed_id, now())
        filed = [
            (pair, CapturedConversation(pair.id, name, pair.turns[0].text[:MAX_ABOUT_CHARS]))
            for name, topic in found.topics.items()
            for pair in topic.pairs
        ]
        captured |= {pair.id: each for pair, each in filed}
        by_message |= {message_id: each for pair, each in filed for message_id in pair.message_ids}
        lessons[owner] = lessons_among(pair for pair, _ in filed)
    token_days = (await in_thread(read_token_days, folder.token_days)).days
    dismissed = await in_thread(DismissedQuestions(folder.dismissed).read)

    async def build(embed: Embed | None) -> Report:
        return await build_report(
            ended,
            period,
            voted_down=votes,
            knowledge=Knowledge(pages, captured, by_message, lessons, dismissed),
            token_days=token_days,
            prices=prices_of(settings),
            embed=embed,
            owner_of=settings.servers.owner_of,
        )

    async with open_embedder(settings.search.embeddings) as embedder:
        try:
            return await build(None if embedder is None else embedder.embed)
        except EmbeddingFailed as error:
            log.warning("search.embeddings: %s; questions are grouped by their words", error)
            return await build(None)


def _libraries(settings: Settings, guild_id: int | None) -> list[Library]:
    """Return the libraries whose pages a report counts: shared and own ones of `guild_id`, or all."""
    own = server_libraries(settings, for_team=True).map(lambda each: each.own)
    if guild_id is None:
        return list(own.values())
    return [own.default, own[guild_id]] if guild_id in own else [own.default]


def _about(votes: Sequence[VotedQuestion], ended: Sequence[PartOutcome], posts: Path) -> list[VotedQuestion]:
    """Return the votes about answers to the questions of `ended`. Blocking."""
    asked = {entry.message_ids[-1] for entry in ended}
    answers = {post.message_id for post in read_posts(posts) if post.last_asked_id in asked}
    return [vote for vote in votes if vote.message_id in answers]


def read_costs(settings: Settings, period: TimeSpan) -> Costs:
    """Add up the cost of a period. Blocking. Raises OSError."""
    folder = DataFolder(settings.app.data_dir)
    days = read_token_days(folder.token_days).days
    return costs(days, reading.read_outcomes(folder.outcomes, period), period, prices_of(settings))


def prices_of(settings: Settings) -> Prices:
    answering, knowledge = settings.ai_response.llm, settings.kb.llm
    return Prices(_price(answering), _price(knowledge or answering))


def _price(llm: LLMSettings | None) -> Price | None:
    price = None if llm is None else llm.price_per_million
    return None if price is None or not (price.prompt or price.completion) else Price(price.prompt, price.completion)


WEEK = 7 * DAY
LOOK_SECONDS = HOUR
POSTED_GAPS = 8
"""At most so many groups of questions are posted: they fit into a message."""
SEARCHED_PAGES = 20
AHEAD_SECONDS = HOUR
"""Our clock may be this far ahead of Discord's, from which message ids are made."""


Reporter = Callable[[TimeSpan, int], Awaitable[Report]]
"""Builds the report of a period for the server of that id. Raises OSError, LibraryUnusable."""


class _StartedReport(NamedTuple):
    """A report that may be posted in part: the end of its period, and the hashes of its first pieces."""

    until: float
    marks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WeeklyReport:
    """Posts the report to a channel once a week.

    Before each piece is posted, `path` says which. After a crash, pieces that are in the channel are not posted again.
    `path`: the file with the ends of the last report's period and of the one being posted; never their texts.
    """

    channel_id: int
    path: Path
    poster: Poster
    fetcher: Fetcher
    report: Reporter

    async def keep_posting(self) -> None:
        """Post each week until cancelled. A failed post is logged, and tried again after an hour.

        Raises WorkCancelled: another process posts it.
        """
        while True:
            try:
                await self.post_if_due()
            except (OSError, PostFailed, LookupFailed, LibraryUnusable) as error:
                log.error("report.channel_id: the report was not posted: %s", error)  # noqa: TRY400 (for the operator)
            except WorkCancelled:
                raise
            except Exception:
                log.exception("report.channel_id: the report was not posted")
            await asyncio.sleep(LOOK_SECONDS)

    async def post_if_due(self) -> bool:
        """Post the report of the time since the last one, if that is a week ago. The first week begins with the first
        start. Returns True if it was posted.

        Raises OSError, PostFailed, LookupFailed, WorkCancelled, and as `report`.
        """
        known, at = await in_thread(read_object, self.path), now()
        since, begun = known.get("until"), _begun_in(known)
        if not isinstance(since, int | float) or since > at:
            await self._note(_noted_until(at))
            return False
        until = at if begun is None else begun.until
        if until - since < WEEK:
            return False
        place = await self.fetcher.place(self.channel_id)
        if place is None or place.guild_id is None:
            raise LookupFailed(f"there is no channel {self.channel_id} that the bot can see")
        # A record does not say who could read what was asked.
        report = await self.report(TimeSpan(since, until), place.guild_id)
        pieces = split(render_message(report, with_questions=not place.viewable))
        marks = [] if begun is None else await self._posted_marks(begun)
        for number, piece in enumerate(pieces[len(marks) :], len(marks)):
            marks.append(_mark(piece))
            # Before each piece: if another process has taken over, the write is refused.
            await self._note({**_noted_until(since), "begun": {"until": until, "pieces": marks}})
            await self.poster.send(self.channel_id, piece, nonce=f"{int(since):x}-week-{number}")
        await self._note(_noted_until(until))
        return True

    async def _posted_marks(self, begun: _StartedReport) -> list[str]:
        """Return the hashes of the pieces that were posted. Raises LookupFailed."""
        after, written = snowflake_at(begun.until - AHEAD_SECONDS), set[str]()
        for _ in range(SEARCHED_PAGES):
            page = await self.fetcher.messages(self.channel_id, after=after)
            written |= {_mark(message.text) for message in page if message.author.is_bot}
            if len(page) < PAGE_SIZE:
                break
            after = page[-1].id
        count = max((number for number, mark in enumerate(begun.marks, 1) if mark in written), default=0)
        return list(begun.marks[:count])  # earlier pieces that somebody has deleted were posted as well

    async def _note(self, content: Record) -> None:
        await run_blocking(files.replace, self.path, json.dumps(content).encode() + b"\n")


@asynccontextmanager
async def post_weekly_reports(
    settings: Settings, poster: Poster, fetcher: Fetcher, report: Reporter | None = None
) -> AsyncGenerator[None]:
    """Post to `report.channel_id`, if set, for as long as the block runs. `report`: None: from the data folder."""
    if settings.report.channel_id is None:
        yield
        return

    async def report_of_folder(period: TimeSpan, guild_id: int) -> Report:
        return await report_from_folder(settings, period, guild_id=guild_id)

    weekly = WeeklyReport(
        channel_id=settings.report.channel_id,
        path=DataFolder(settings.app.data_dir).last_report,
        poster=poster,
        fetcher=fetcher,
        report=report or report_of_folder,
    )
    async with in_background(weekly.keep_posting()):
        yield


def _noted_until(until: float) -> Record:
    return {"until": until, "at": rfc3339(until)}


def _begun_in(known: Record) -> _StartedReport | None:
    try:
        begun = known["begun"]
        return _StartedReport(float(begun["until"]), tuple(map(str, begun["pieces"])))
    except (KeyError, TypeError, ValueError):
        return None


def _mark(piece: str) -> str:
    """Hash a piece of a report without its white space, which Discord may change."""
    return hashlib.sha256(" ".join(piece.split()).encode()).hexdigest()


def render_message(report: Report, *, with_questions: bool) -> str:
    """Write the report as a Discord message: the counts, and the questions most often asked without an answer.
    `with_questions`: what was asked is named.
    """
    lines = [f"**The last week.** {escape_markup(summary(report))}"]
    lines += _questions(report) if with_questions else ["Questions are named where only the team sees this report."]
    if report.captured:
        lines.append(f"**Taught by the team**: {len(report.captured)} conversations")
    if calls := sum(spent.calls for spent in report.costs.channels.values()):
        lines.append(f"**Calls to models**: {calls}, for what was asked here")
    return "\n".join(lines)


def _questions(report: Report) -> Iterator[str]:
    if report.gaps:
        yield "**Asked, and not answered**"
    for gap in report.gaps[:POSTED_GAPS]:
        links = " ".join(f"[{at}](<{entry.link}>)" for at, entry in enumerate(gap.questions[:3], 1) if entry.link)
        answered = any(team_answer(entry, report.answered_since) is not None for entry in gap.questions)
        since = "; the team has answered since" if answered else ""
        yield f"- {_quoted(gap.title, 150)} ({len(gap.questions)}{since}) {links}".rstrip()
    if report.voted_down:
        yield f"**Voted down**: {', '.join(_quoted(each.question, 100) for each in report.voted_down[:3])}"


def _quoted(question: str, most: int) -> str:
    """Return the beginning of a question, without markup and addresses: the bot posts it under its own name."""
    return escape_markup(remove_foreign_links(question[:most], ()).strip())
