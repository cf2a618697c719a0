"""The one thing that the dashboard does: take a captured conversation out of its topic, and put it back."""

from __future__ import annotations

import logging

from aiohttp import web

from dashboard import knowledge, rendering
from dashboard.pages import missing
from dashboard.showing import DisplayRules
from dashboard.sources import DashboardData
from dashboard.visits import AdmittedRequest
from services.team import LibraryUnwritable, Overview, corrections

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
        shown = None if pair is None else knowledge.pair_view(pair, held, self._sources.team.address, self._showing)
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
        return rendering.page(
            template, status, visit=visit, section="knowledge", texts=texts, several=several, **values
        )


def _topic_of(held: Overview, qa_id: str, action: str) -> str | None:
    """The topic that a conversation is in, or was taken from (it may be none, which is empty); None: it is not that."""
    if action == "remove":
        return next(
            (name for name, topic in held.topics.items() if any(pair.id == qa_id for pair in topic.pairs)), None
        )
    return next((topic or "" for pair_id, topic in held.removed if pair_id == qa_id), None)
