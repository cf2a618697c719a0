"""The pages: the data they read, their templates and headers, one handler for each, and the two forms that correct the
team's views.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Protocol

from aiohttp import web
from jinja2 import Environment, PackageLoader, StrictUndefined
from yarl import URL

from dashboard import flow, views
from dashboard.access import AdmittedRequest
from dashboard.display import DisplayRules
from dashboard.meter import FlowMeter
from dashboard.views import KnownSource
from model.processes import Fleet
from reporting.cost import Costs
from reporting.report import find_gaps, is_gap
from services.knowledge import Search
from services.team import LibraryUnwritable, Overview, corrections
from services.telemetry import PartOutcome


class Team(Protocol):
    """The team's library as the dashboard reads and corrects it."""

    async def overview(self) -> Overview:
        """Return the topics and their pairs. Raises OSError."""
        ...

    def address(self, qa_id: str) -> str | None:
        """Return the Discord address of a pair."""
        ...

    async def correct(self, action: str, qa_id: str) -> str:
        """`remove` or `restore` a pair, as `--kb` does. Returns a line about it.

        Raises:
            CorrectionRefused: there is nothing to correct.
            LibraryUnwritable, OSError: it could not be written.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardData:
    """The data that the pages read.

    Attributes:
        entries: gives the outcomes of the last parts, oldest first.
        costs: gives the calls of models in the last days; its argument is the number of days.
        known_sources: gives the sources of the knowledge base.
        may_correct: True if the team's library may be corrected here; else its pages are read-only.
        now: gives seconds since 1970, in the time of the stream.
        fleet: gives the state of all processes; None: there is only this one, and no page about processes.
    """

    meter: FlowMeter
    entries: Callable[[], Awaitable[Sequence[PartOutcome]]]
    costs: Callable[[int], Awaitable[Costs]]
    known_sources: Callable[[], Awaitable[Sequence[KnownSource]]]
    search: Search
    team: Team
    may_correct: bool
    now: Callable[[], float]
    fleet: Callable[[], Awaitable[Fleet]] | None = None


POLICY = (
    "default-src 'self'; base-uri 'none'; object-src 'none'; form-action 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # `no-referrer` would take the origin from our own forms
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}
TYPES = {"app.js": "text/javascript", "style.css": "text/css", "icon.svg": "image/svg+xml"}


@cache
def static_files() -> Mapping[str, bytes]:
    folder = resources.files("dashboard") / "static"
    return {name: (folder / name).read_bytes() for name in TYPES}


@cache
def templates() -> Environment:
    return Environment(
        loader=PackageLoader("dashboard"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def static_version() -> str:
    """Hash the static files; their addresses contain it, so that browsers may cache them."""
    return hashlib.sha256(b"".join(static_files().values())).hexdigest()[:12]


def render_page(template: str, status: int = 200, **values: object) -> web.Response:
    text = templates().get_template(template).render(version=static_version(), **values)
    return web.Response(text=text, status=status, content_type="text/html", charset="utf-8", headers=HEADERS)


def static_file(name: str) -> web.Response:
    headers = {**HEADERS, "Cache-Control": "public, max-age=31536000, immutable"}
    return web.Response(body=static_files()[name], content_type=TYPES[name], charset="utf-8", headers=headers)


def redirect(path: str) -> web.Response:
    """Redirect to another page."""
    return web.Response(status=303, headers={**HEADERS, "Location": path})


LONGEST_QUERY = 1_000


class Pages:
    def __init__(self, sources: DashboardData, showing: DisplayRules) -> None:
        self._sources = sources
        self._showing = showing
        self._picture = flow.picture()
        self._grouping = asyncio.Lock()  # grouping takes a thread for seconds: one at a time

    def now_json(self) -> str:
        """Return the content of one live event as JSON."""
        view = flow.now_view(self._sources.meter, self._showing, self._sources.now())
        cells = {name: each._asdict() for name, each in view.cells.items()}
        rows = [each._asdict() for each in view.in_hand]
        return json.dumps({"cells": cells, "ends": view.ends, "in_hand": rows, "at": view.at})

    async def now(self, _request: web.Request, visit: AdmittedRequest) -> web.Response:
        view = flow.now_view(self._sources.meter, self._showing, self._sources.now())
        return self._page("now.html", visit, "now", view=view, picture=self._picture)

    async def answers(self, request: web.Request, visit: AdmittedRequest) -> web.Response:
        query, result = _asked(request, "q"), _asked(request, "result")
        rows = views.answer_rows(await self._sources.entries(), self._showing, query, result)
        at = min(max(0, _number(request, "from")), len(rows))
        before, after = max(0, at - views.SHOWN), at + views.SHOWN
        return self._page(
            "answers.html",
            visit,
            "answers",
            rows=rows[at:after],
            count=len(rows),
            query=query,
            result=result,
            results=views.result_kinds(),
            newer=_address("/answers", q=query, result=result, **{"from": str(before)}) if at else "",
            older=_address("/answers", q=query, result=result, **{"from": str(after)}) if after < len(rows) else "",
        )

    async def answer(self, request: web.Request, visit: AdmittedRequest) -> web.Response:
        entry = views.find_answer(await self._sources.entries(), request.match_info["id"])
        if entry is None:
            return missing("It is not among the last ones any more, or never was.", "/answers")
        took = self._sources.meter.steps_of(entry.message_ids)
        view = views.answer_view(entry, took, self._showing)
        return self._page("answer.html", visit, "answers", view=view, is_gap=is_gap(entry))

    async def gaps(self, _request: web.Request, visit: AdmittedRequest) -> web.Response:
        async with self._grouping:
            found = await find_gaps(await self._sources.entries(), None)
        shown = [views.gap_view(gap, self._showing) for gap in found]
        return self._page("gaps.html", visit, "gaps", views=shown, count=sum(view.count for view in shown))

    async def knowledge(self, request: web.Request, visit: AdmittedRequest) -> web.Response:
        entries, query, gap = await self._sources.entries(), _asked(request, "q"), _asked(request, "gap")
        asked = views.find_answer(entries, gap) if gap else None
        words = asked.question if asked is not None else query
        found = await self._sources.search.find(words) if words else None
        used = views.uses(entries)
        known = await self._sources.known_sources()
        team = views.team_view(await self._sources.team.overview(), used, self._showing)
        return self._page(
            "knowledge.html",
            visit,
            "knowledge",
            query=self._showing.text(words) if asked is not None else query,
            from_gap=asked is not None,
            found=None if found is None else views.search_view(found, self._showing),
            sources=views.source_rows(known, used, self._sources.now()),
            team=team,
            may_correct=self._sources.may_correct,
        )

    async def topic(self, request: web.Request, visit: AdmittedRequest) -> web.Response:
        team = self._sources.team
        view = views.topic_view(await team.overview(), request.match_info["name"], team.address, self._showing)
        if view is None:
            return missing("There is no such topic any more.", "/knowledge")
        return self._page("topic.html", visit, "knowledge", view=view, may_correct=self._sources.may_correct)

    async def cost(self, _request: web.Request, visit: AdmittedRequest) -> web.Response:
        view = views.cost_view(await self._sources.costs(views.DAYS), self._showing)
        return self._page("cost.html", visit, "cost", view=view, days=views.DAYS)

    async def processes(self, _request: web.Request, visit: AdmittedRequest) -> web.Response:
        if self._sources.fleet is None:
            return missing("One process does all of the work.", "/")
        view = views.fleet_view(await self._sources.fleet())
        return self._page("processes.html", visit, "processes", view=view)

    def _page(self, template: str, visit: AdmittedRequest, section: str, **values: Any) -> web.Response:
        texts, several = self._showing.texts, self._sources.fleet is not None
        return render_page(template, visit=visit, section=section, texts=texts, several=several, **values)


def missing(text: str, back: str) -> web.Response:
    return render_page("message.html", 404, title="Not found", text=text, back=back)


def _asked(request: web.Request, name: str) -> str:
    return request.query.get(name, "").strip()[:LONGEST_QUERY]


def _number(request: web.Request, name: str) -> int:
    given = _asked(request, name)
    return int(given[:9]) if given.isascii() and given.isdigit() else 0


def _address(path: str, **query: str) -> str:
    return str(URL.build(path=path, query={name: value for name, value in query.items() if value}))


log = logging.getLogger(__name__)


class CorrectionPages:
    def __init__(self, sources: DashboardData, showing: DisplayRules) -> None:
        self._sources = sources
        self._showing = showing

    async def ask(self, request: web.Request, visit: AdmittedRequest) -> web.Response:
        """Show the page that asks for confirmation."""
        qa_id, action = request.match_info["id"], request.match_info["action"]
        held = await self._sources.team.overview()
        topic = _topic_of(held, qa_id, action)
        if topic is None or not self._sources.may_correct:
            return missing(f"There is nothing to {action}.", "/knowledge")
        pair = next((pair for each in held.topics.values() for pair in each.pairs if pair.id == qa_id), None)
        shown = None if pair is None else views.pair_view(pair, held, self._sources.team.address, self._showing)
        return self._page("confirm.html", visit, qa_id=qa_id, action=action, topic=topic, pair=shown)

    async def correct(self, request: web.Request, visit: AdmittedRequest) -> web.Response:
        qa_id, action = request.match_info["id"], request.match_info["action"]
        if not self._sources.may_correct:
            return missing(f"There is nothing to {action}.", "/knowledge")
        try:
            told = await self._sources.team.correct(action, qa_id)
        except corrections.CorrectionRefused as refused:
            return self._page("corrected.html", visit, 409, told=str(refused), qa_id="", undo="")
        except (LibraryUnwritable, OSError) as error:
            log.error("dashboard: %s was not %sd: %s", qa_id, action, error)  # noqa: TRY400 (one line for the operator)
            return self._page("corrected.html", visit, 500, told=f"It was not written: {error}", qa_id="", undo="")
        log.info("dashboard: %s", told)
        undo = "restore" if action == "remove" else "remove"
        return self._page("corrected.html", visit, told=told, qa_id=qa_id, undo=undo)

    def _page(self, template: str, visit: AdmittedRequest, status: int = 200, **values: object) -> web.Response:
        texts, several = self._showing.texts, self._sources.fleet is not None
        return render_page(template, status, visit=visit, section="knowledge", texts=texts, several=several, **values)


def _topic_of(held: Overview, qa_id: str, action: str) -> str | None:
    """The topic that a pair can be removed from, or restored to (empty: it had none); None: `action` is impossible."""
    if action == "remove":
        return next(
            (name for name, topic in held.topics.items() if any(pair.id == qa_id for pair in topic.pairs)), None
        )
    return next((topic or "" for pair_id, topic in held.removed if pair_id == qa_id), None)
