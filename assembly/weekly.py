"""The report of the week, which is posted once: also over a crash, and where another process goes on with it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from assembly.reports import reported
from assembly.running import in_background
from clock import now, rfc3339, run_blocking
from model.messages import snowflake_at
from reporting.document import summary
from reporting.reading import TimeSpan
from reporting.report import Report
from services.conversations import CalledOff
from services.discord import Fetcher, LookupFailed, Poster, PostFailed, inert, split
from services.storage import DataFolder, Record, files, in_thread, read_object
from services.team import LibraryUnusable
from settings import Settings

WEEK = 7 * 86_400.0
LOOK_SECONDS = 3600.0
POSTED_GAPS = 8
"""So many groups of questions fit into a message."""
PAGE, PAGES = 100, 20
AHEAD_SECONDS = 3600.0
"""So far our clock may be ahead of Discord's, by which messages have their ids."""

log = logging.getLogger(__name__)

Reporter = Callable[[TimeSpan, int], Awaitable[Report]]
"""What happened in a period, in the server of that id. Raises OSError, LibraryUnusable."""


class _Begun(NamedTuple):
    """A report that may be in the channel in part: until when it tells, and the marks of its first pieces."""

    until: float
    marks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WeeklyReport:
    """Posts what happened to a channel once a week.

    Before each piece `path` says which report is on its way. What then stands in the channel is not posted again after
    a crash.

    Attributes:
        path: until when the last report told, and that of the one that is being posted; never what it says.
    """

    channel_id: int
    path: Path
    poster: Poster
    fetcher: Fetcher
    report: Reporter

    async def keep_posting(self) -> None:
        """Until cancelled. A post that fails is a line of log, and is tried again after an hour.

        Raises CalledOff: another process posts it.
        """
        while True:
            try:
                await self.post_if_due()
            except (OSError, PostFailed, LookupFailed, LibraryUnusable) as error:
                log.error("report.channel_id: the report was not posted: %s", error)  # noqa: TRY400 (for the operator)
            except CalledOff:
                raise
            except Exception:
                log.exception("report.channel_id: the report was not posted")
            await asyncio.sleep(LOOK_SECONDS)

    async def post_if_due(self) -> bool:
        """Post the report of the time since the last one, if that is a week ago. The first week begins with the first
        start.

        Raises OSError, PostFailed, LookupFailed, CalledOff, and as `report`.
        """
        known, at = await in_thread(read_object, self.path), now()
        since, begun = known.get("until"), _begun_in(known)
        if not isinstance(since, int | float) or since > at:
            await self._note(_told(at))
            return False
        until = at if begun is None else begun.until
        if until - since < WEEK:
            return False
        place = await self.fetcher.place(self.channel_id)
        if place is None or place.guild_id is None:
            raise LookupFailed(f"there is no channel {self.channel_id} that the bot can see")
        pieces = split(posted(await self.report(TimeSpan(since, until), place.guild_id)))
        marks = [] if begun is None else await self._there(begun)
        for number, piece in enumerate(pieces[len(marks) :], len(marks)):
            marks.append(_mark(piece))
            # Each time: where another process has taken this over, it is refused.
            await self._note({**_told(since), "begun": {"until": until, "pieces": marks}})
            await self.poster.send(self.channel_id, piece, nonce=f"{int(since):x}-week-{number}")
        await self._note(_told(until))
        return True

    async def _there(self, begun: _Begun) -> list[str]:
        """The marks of the pieces that stand in the channel. Raises LookupFailed."""
        after, written = snowflake_at(begun.until - AHEAD_SECONDS), set[str]()
        for _ in range(PAGES):
            page = await self.fetcher.messages(self.channel_id, limit=PAGE, after=after)
            written |= {_mark(message.text) for message in page if message.author.is_bot}
            if len(page) < PAGE:
                break
            after = page[-1].id
        count = max((number for number, mark in enumerate(begun.marks, 1) if mark in written), default=0)
        return list(begun.marks[:count])  # what somebody has deleted since was posted as well

    async def _note(self, content: Record) -> None:
        await run_blocking(files.replace, self.path, json.dumps(content).encode() + b"\n")


@asynccontextmanager
async def reporting_weekly(
    settings: Settings, poster: Poster, fetcher: Fetcher, report: Reporter | None = None
) -> AsyncGenerator[None]:
    """Post to `report.channel_id` for as long as the block runs; nothing where it is not set. `report`: None: from what
    the data folder of `settings` holds.
    """
    if settings.report.channel_id is None:
        yield
        return

    async def of_the_folder(period: TimeSpan, guild_id: int) -> Report:
        return await reported(settings, period, guild_id=guild_id)

    weekly = WeeklyReport(
        channel_id=settings.report.channel_id,
        path=DataFolder(settings.app.data_dir).last_report,
        poster=poster,
        fetcher=fetcher,
        report=report or of_the_folder,
    )
    async with in_background(weekly.keep_posting()):
        yield


def _told(until: float) -> Record:
    return {"until": until, "at": rfc3339(until)}


def _begun_in(known: Record) -> _Begun | None:
    try:
        begun = known["begun"]
        return _Begun(float(begun["until"]), tuple(map(str, begun["pieces"])))
    except (KeyError, TypeError, ValueError):
        return None


def _mark(piece: str) -> str:
    """Hash a piece of a report without its white space, which Discord may change."""
    return hashlib.sha256(" ".join(piece.split()).encode()).hexdigest()


def posted(report: Report) -> str:
    """Write the report as a Discord message: the counts, and the questions most often asked without an answer."""
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
