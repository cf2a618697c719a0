"""The pages that only show something."""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web
from yarl import URL

from dashboard import answers, cost, flow, gaps, knowledge, processes, rendering
from dashboard.showing import DisplayRules
from dashboard.sources import DashboardData
from dashboard.visits import AdmittedRequest
from reporting.gaps import gaps as grouped
from reporting.gaps import is_gap

LONGEST_QUERY = 1_000


class Pages:
    def __init__(self, sources: DashboardData, showing: DisplayRules) -> None:
        self._sources = sources
        self._showing = showing
        self._picture = flow.picture()

    def now_json(self) -> str:
        """Give the content of one live event as JSON."""
        view = flow.now_view(self._sources.meter, self._showing, self._sources.now())
        cells = {name: each._asdict() for name, each in view.cells.items()}
        rows = [each._asdict() for each in view.in_hand]
        return json.dumps({"cells": cells, "ends": view.ends, "in_hand": rows, "at": view.at})

    async def now(self, _request: web.Request, visit: AdmittedRequest) -> web.Response:
        view = flow.now_view(self._sources.meter, self._showing, self._sources.now())
        return self._page("now.html", visit, "now", view=view, picture=self._picture)

    async def answers(self, request: web.Request, visit: AdmittedRequest) -> web.Response:
        query, result = _asked(request, "q"), _asked(request, "result")
        rows = answers.rows(await self._sources.entries(), self._showing, query, result)
        at = min(max(0, _number(request, "from")), len(rows))
        before, after = max(0, at - answers.SHOWN), at + answers.SHOWN
        return self._page(
            "answers.html",
            visit,
            "answers",
            rows=rows[at:after],
            count=len(rows),
            query=query,
            result=result,
            results=answers.results(),
            newer=_address("/answers", q=query, result=result, **{"from": str(before)}) if at else "",
            older=_address("/answers", q=query, result=result, **{"from": str(after)}) if after < len(rows) else "",
        )

    async def answer(self, request: web.Request, visit: AdmittedRequest) -> web.Response:
        entry = answers.find(await self._sources.entries(), request.match_info["id"])
        if entry is None:
            return missing("It is not among the last ones any more, or never was.", "/answers")
        took = self._sources.meter.steps_of(entry.message_ids)
        view = answers.view(entry, took, self._showing)
        return self._page("answer.html", visit, "answers", view=view, is_gap=is_gap(entry))

    async def gaps(self, _request: web.Request, visit: AdmittedRequest) -> web.Response:
        found = await grouped(await self._sources.entries(), None)
        views = [gaps.view(gap, self._showing) for gap in found]
        return self._page("gaps.html", visit, "gaps", views=views, count=sum(view.count for view in views))

    async def knowledge(self, request: web.Request, visit: AdmittedRequest) -> web.Response:
        entries, query, gap = await self._sources.entries(), _asked(request, "q"), _asked(request, "gap")
        asked = answers.find(entries, gap) if gap else None
        words = asked.question if asked is not None else query
        found = await self._sources.search.find(words) if words else None
        used = knowledge.uses(entries)
        held = await self._sources.held()
        team = knowledge.team_view(await self._sources.team.overview(), used, self._showing)
        return self._page(
            "knowledge.html",
            visit,
            "knowledge",
            query=self._showing.text(words) if asked is not None else query,
            from_gap=asked is not None,
            found=None if found is None else knowledge.search_view(found, self._showing),
            sources=knowledge.source_rows(held, used, self._sources.now()),
            team=team,
            may_correct=self._sources.may_correct,
        )

    async def topic(self, request: web.Request, visit: AdmittedRequest) -> web.Response:
        team = self._sources.team
        view = knowledge.topic_view(await team.overview(), request.match_info["name"], team.address, self._showing)
        if view is None:
            return missing("There is no such topic any more.", "/knowledge")
        return self._page("topic.html", visit, "knowledge", view=view, may_correct=self._sources.may_correct)

    async def cost(self, _request: web.Request, visit: AdmittedRequest) -> web.Response:
        view = cost.view(await self._sources.costs(cost.DAYS), self._showing)
        return self._page("cost.html", visit, "cost", view=view, days=cost.DAYS)

    async def processes(self, _request: web.Request, visit: AdmittedRequest) -> web.Response:
        if self._sources.fleet is None:
            return missing("One process does all of the work.", "/")
        view = processes.view(await self._sources.fleet())
        return self._page("processes.html", visit, "processes", view=view)

    def _page(self, template: str, visit: AdmittedRequest, section: str, **values: Any) -> web.Response:
        texts, several = self._showing.texts, self._sources.fleet is not None
        return rendering.page(template, visit=visit, section=section, texts=texts, several=several, **values)


def missing(text: str, back: str) -> web.Response:
    return rendering.page("message.html", 404, title="Not found", text=text, back=back)


def _asked(request: web.Request, name: str) -> str:
    return request.query.get(name, "").strip()[:LONGEST_QUERY]


def _number(request: web.Request, name: str) -> int:
    given = _asked(request, name)
    return int(given[:9]) if given.isascii() and given.isdigit() else 0


def _address(path: str, **query: str) -> str:
    return str(URL.build(path=path, query={name: value for name, value in query.items() if value}))
