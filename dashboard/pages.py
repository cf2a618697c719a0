"""The pages: their templates and headers, and one handler for each."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib import resources
from typing import Any, Generic, TypeVar

from aiohttp import web
from jinja2 import Environment, PackageLoader, StrictUndefined
from yarl import URL

from dashboard import flow, overview, views
from dashboard.access import AdmittedRequest
from dashboard.data import DashboardData
from dashboard.display import DisplayRules, minute, whole_duration
from dashboard.flow import StepDuration
from dashboard.forms import (
    decide,
    draft_view,
    lesson_form,
    question_to_fill_in,
    refuse_private_wording,
)
from model.permissions import Act
from reporting.reading import TimeSpan, VotedQuestion
from reporting.report import Gap, answered_by_lessons, find_gaps, is_gap
from services.storage import in_thread
from services.team import (
    MAX_ANSWER_CHARS,
    MAX_QUESTION_CHARS,
    LessonRefused,
    LibraryUnusable,
    LibraryUnwritable,
    Overview,
    removals,
)

log = logging.getLogger(__name__)

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
    if name not in TYPES:
        return web.Response(text="There is no such file.\n", status=404, headers=HEADERS)
    headers = {**HEADERS, "Cache-Control": "public, max-age=31536000, immutable"}
    return web.Response(body=static_files()[name], content_type=TYPES[name], charset="utf-8", headers=headers)


def redirect(path: str) -> web.Response:
    """Redirect to another page."""
    return web.Response(status=303, headers={**HEADERS, "Location": path})


LONGEST_QUERY = 1_000
_NO_GAP = (
    "This question is no gap any more, or was dropped from the record, so nobody knows for which server an answer would"
    " be. Nothing is stored: use /teach there, or --kb add."
)
_NOT_FILLED_IN = (
    "No question is filled in, as it is told to everybody: it was asked where not everybody can read it, or has been"
    " deleted or changed since. Write it in your own words."
)
HEALTH_SECONDS, ACTIVITY_SECONDS, GROUPS_SECONDS, STEPS_SECONDS = 5.0, 30.0, 5.0, 30.0
"""How long the pages show what was read once."""

T = TypeVar("T")


@dataclass(slots=True)
class _Recent(Generic[T]):
    """Reads something at most once in `seconds` of real time, and once for several pages that ask together."""

    read: Callable[[], Awaitable[T]]
    seconds: float
    _known: tuple[float, T] | None = None
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def get(self, *, anew: bool = False) -> T:
        """Return it; `anew`: as it is now."""
        async with self._reading:
            if anew or self._known is None or time.monotonic() - self._known[0] > self.seconds:
                self._known = (time.monotonic(), await self.read())
            return self._known[1]


class Gaps:
    """The gaps among the last questions, with what was dismissed and what the team has answered since."""

    def __init__(self, data: DashboardData, rules: DisplayRules) -> None:
        self._data = data
        self._rules = rules
        self._groups = _Recent(self._find, GROUPS_SECONDS)  # grouping takes a thread for seconds
        self._team = _Recent(data.team.overview, ACTIVITY_SECONDS)

    async def _find(self) -> Sequence[Gap]:
        return await find_gaps(await self._data.history.last(), None, self._data.owner_of)

    async def views(self) -> tuple[list[views.GapView], list[views.GapView]]:
        """Return the gaps, those with the most open questions first, and the dismissed ones."""
        found, team = await self._groups.get(), await self._team.get()
        answered = await in_thread(answered_by_lessons, found, {None: views.lessons(team)}, self._data.owner_of)
        topics = views.topics_by_pair(team)
        lessons = {message_id: topics[lesson.id] for message_id, lesson in answered.items()}
        answers = {**lessons, **views.topics_by_message(team)}
        dismissed = await self._data.dismissed.read()
        shown = [(gap.is_dismissed(dismissed), views.gap_view(gap, self._rules, answers)) for gap in found]
        left = sorted((view for is_out, view in shown if not is_out), key=lambda view: -view.open)
        return left, [view for is_out, view in shown if is_out]

    async def find(self, gap_id: str) -> Gap | None:
        """Return the gap with this question."""
        found = await self._groups.get()
        return next((gap for gap in found if any(views.id_of(entry) == gap_id for entry in gap.questions)), None)


class Pages:
    def __init__(self, data: DashboardData, rules: DisplayRules) -> None:
        self._data = data
        self._rules = rules
        self._picture = flow.picture()
        self._gaps = Gaps(data, rules)
        self._health = _Recent(self._read_health, HEALTH_SECONDS)
        self._activity = _Recent(self._read_activity, ACTIVITY_SECONDS)
        self._steps = _Recent(self._read_steps, STEPS_SECONDS)

    async def now_json(self, *, has_steps: bool = False) -> str:
        """Return the content of one live event as JSON. `has_steps`: with what is to be done next."""
        now = self._now_view()
        if now is None:
            return "{}"
        health = await self._health.get()
        cells = {name: each._asdict() for name, each in now.cells.items()}
        rows = [each._asdict() for each in now.in_progress]
        known: dict[str, object] = {"cells": cells, "ends": now.ends, "in_progress": rows, "at": now.at}
        if health is not None:
            known["health"] = {**asdict(health), "rows": [each._asdict() for each in health.rows]}
        if has_steps:
            with contextlib.suppress(OSError, LibraryUnusable):  # then the page keeps those that it has
                steps = overview.with_troubles(health, await self._steps.get())
                known["steps"] = [each._asdict() for each in steps]
        return json.dumps(known)

    def _now_view(self) -> flow.NowView | None:
        meter = self._data.meter
        return None if meter is None else flow.now_view(meter, self._rules, self._data.now())

    async def _read_health(self) -> overview.HealthView | None:
        read, now = self._data.health, self._data.now
        if read is None:
            return None
        return overview.health_view(await read(), self._rules, now(), has_model=self._data.has_model)

    async def _read_activity(self) -> tuple[overview.ActivityView, Sequence[VotedQuestion]]:
        period = overview.period_of(self._data.now())
        votes = await self._data.history.votes(period)
        return overview.activity_view(await self._data.history.of(period), votes, period), votes

    async def _read_steps(self) -> list[overview.NextStep]:
        """Read what can be done next, without what is to be done about troubles."""
        data, steps, gaps = self._data, list[overview.NextStep](), list[views.GapView]()
        entries, known = await data.history.last(), await data.known_sources()
        has_knowledge = True
        try:
            gaps = [gap for gap in (await self._gaps.views())[0] if gap.open]
            has_knowledge = bool(known) or bool((await data.team.overview()).captured)
        except (OSError, LibraryUnusable) as error:  # what is well and what is not is shown all the same
            steps.append(overview.NextStep("See why the team's library cannot be read", "/knowledge", str(error)))
        if data.health is not None:
            steps += overview.first_steps(has_knowledge=has_knowledge, was_asked=bool(entries))
        votes = (await self._activity.get())[1]
        drafts = [] if data.drafts is None else [each.held_at for each in await data.drafts.waiting()]
        return steps + overview.next_steps(gaps, known, votes, entries, self._rules, data.now(), drafts)

    async def overview(self, _request: web.Request, visit: AdmittedRequest) -> web.Response:
        activity, health = (await self._activity.get())[0], await self._health.get()
        steps = overview.with_troubles(health, await self._steps.get(anew=True))
        at = minute(self._data.now())
        return self._page("overview.html", visit, "overview", health=health, activity=activity, steps=steps, at=at)

    async def flow(self, _request: web.Request, visit: AdmittedRequest) -> web.Response:
        view = self._now_view()
        if view is None:
            return self.missing(visit, "Nothing runs here: this page shows a running bot.", "/")
        return self._page("flow.html", visit, "flow", view=view, picture=self._picture)

    async def answers(self, request: web.Request, visit: AdmittedRequest) -> web.Response:
        query, chosen = _parameter(request, "q"), _parameter(request, "show")
        entries, votes = await self._data.history.last(), await self._data.history.votes(ALL_TIME)
        found = views.part_rows(entries, self._rules, query, votes, self._durations_of)
        counts = {name: sum(row.group == name for row in found) for name in views.GROUPS} | {"all": len(found)}
        chosen = chosen if chosen in views.GROUPS else views.REPLIES
        rows = [row for row in found if chosen in (row.group, "all")]
        shown = _PageOfRows.of(request, rows, "/answers", q=query, show=chosen)
        groups = [
            (_address("/answers", q=query, show=name), title, counts[name], name == chosen)
            for name, title in views.GROUPS.items()
        ]
        now, drafts = self._data.now(), self._data.drafts
        waiting = None if drafts is None else await drafts.waiting()
        return self._page(
            "answers.html",
            visit,
            "answers",
            shown=shown,
            groups=groups,
            query=query,
            chosen=chosen,
            since=minute(entries[0].at) if entries else "",
            most=len(entries),
            waiting=None if waiting is None else len(waiting),
            waiting_for=whole_duration(now - waiting[0].held_at) if waiting else "",
        )

    async def drafts(self, request: web.Request, visit: AdmittedRequest) -> web.Response:
        """Show the drafts; after a form, also what has become of it."""
        drafts = self._data.drafts
        if drafts is None:
            return self.missing(visit, "No answer waits for approval: ai_response.approval is off.", "/answers")
        told = await decide(request, visit, drafts, self._rules) if request.method == "POST" else ""
        shown = [draft_view(each, self._rules, self._data.now()) for each in await drafts.waiting()]
        may_decide = visit.operator.may(Act.DRAFTS)
        return self._page("drafts.html", visit, "drafts", views=shown, told=told, may_decide=may_decide)

    async def answer(self, request: web.Request, visit: AdmittedRequest) -> web.Response:
        entry = views.find_part(await self._data.history.last(), request.match_info["id"])
        if entry is None:
            return self.missing(visit, "It is not among the last ones any more, or never was.", "/answers")
        votes = await self._data.history.votes(ALL_TIME)
        vote = next((each for each in votes if views.is_about(each, entry)), None)
        view = views.part_view(entry, self._durations_of(entry.message_ids), self._rules, vote)
        return self._page("answer.html", visit, "answers", view=view, is_gap=is_gap(entry))

    def _durations_of(self, message_ids: tuple[int, ...]) -> Sequence[StepDuration]:
        return () if self._data.meter is None else self._data.meter.durations_of(message_ids)

    async def gaps(self, request: web.Request, visit: AdmittedRequest) -> web.Response:
        found, dismissed = await self._gaps.views()
        count, allowed = sum(view.count for view in found), visit.operator.may(Act.GAPS)
        may_correct = allowed and self._data.may_correct
        may_teach = allowed and self._data.teacher is not None
        return self._page(
            "gaps.html",
            visit,
            "gaps",
            shown=_PageOfRows.of(request, found, "/gaps"),
            dismissed=dismissed,
            count=count,
            asked=bool(await self._data.history.last()),
            may_correct=may_correct,
            may_teach=may_teach,
        )

    async def ask_answer(self, request: web.Request, visit: AdmittedRequest) -> web.Response:
        """Show the form for an answer to a gap."""
        gap, teacher = await self._gaps.find(request.match_info["id"]), self._data.teacher
        if gap is None:
            return self.missing(visit, _NO_GAP, "/gaps")
        given, said = dict[str, str](), ""
        if self._rules.texts and teacher is not None:
            given["question"] = self._rules.text(await question_to_fill_in(gap, teacher))
            said = "" if given["question"] else _NOT_FILLED_IN
        return self._answer_form(visit, request, gap, said, given)

    async def teach(self, request: web.Request, visit: AdmittedRequest) -> web.Response:
        gap, sent = await self._gaps.find(request.match_info["id"]), await request.post()
        teacher, given = self._data.teacher, {name: str(text) for name, text in sent.items()}
        if teacher is None or gap is None:
            return self._answer_form(visit, request, gap, _NO_GAP, given, 422)
        try:
            form = await in_thread(lesson_form, given, gap)
            # The words may be those of another gap, or of a question that is none.
            await refuse_private_wording(form.question, [*gap.questions, *await self._data.history.last()], teacher)
            told, is_filed = await teacher.teach(form, visit.operator.name)
        except LessonRefused as refused:
            return self._answer_form(visit, request, gap, str(refused), given, 422)
        who = visit.operator.name
        log.info("dashboard: %s: an answer to the gap of question %s: %s", who, request.match_info["id"], told)
        if is_filed and self._data.may_correct:
            told = f"{told} {await self._dismiss_answered(gap, who)}"
        return self.message(visit, 200, "Answered", told, "/gaps")

    async def _dismiss_answered(self, gap: Gap, who: str) -> str:
        """Dismiss a gap that was answered. Returns a sentence about it."""
        try:
            await self._data.dismissed.change("dismiss", gap.asked_ids, who)
        except OSError as error:
            return f"The gap is not dismissed: {error}."
        return "The gap is dismissed."

    def _answer_form(
        self,
        visit: AdmittedRequest,
        request: web.Request,
        gap: Gap | None,
        said: str,
        given: Mapping[str, str],
        status: int = 200,
    ) -> web.Response:
        if self._data.teacher is None:
            return self.missing(visit, "Nothing can be taught here.", "/gaps")
        values = {name: given.get(name, "") for name in ("question", "answer", "author")}
        most, gap_id = (MAX_QUESTION_CHARS, MAX_ANSWER_CHARS), request.match_info["id"]
        only_in = None if gap is None else self._data.owner_of(gap.questions[0].guild_id)
        more = {"most": most, "gap_id": gap_id, "only_in": only_in}
        return self._page("teach.html", visit, "gaps", status, said=said, **more, **values)

    async def dismiss(self, request: web.Request, visit: AdmittedRequest) -> web.Response:
        """Dismiss or restore a gap."""
        action, gap = request.match_info["action"], await self._gaps.find(request.match_info["id"])
        if gap is None or not self._data.may_correct:
            return self.missing(visit, f"There is nothing to {action}.", "/gaps")
        who = visit.operator.name
        try:
            await self._data.dismissed.change(action, gap.asked_ids, who)
        except OSError as error:
            log.error("dashboard: the gap of question %s: not %sed: %s", request.match_info["id"], action, error)  # noqa: TRY400 (one line for the operator)
            return self.message(visit, 500, "Not written", f"The gap stays as it is: {error}", "/gaps")
        log.info("dashboard: %s: the gap of question %s: %s", who, request.match_info["id"], action)
        return redirect("/gaps#dismissed" if action == "dismiss" else "/gaps")

    async def knowledge(self, request: web.Request, visit: AdmittedRequest) -> web.Response:
        entries, query, gap = await self._data.history.last(), _parameter(request, "q"), _parameter(request, "gap")
        state, filtered = _parameter(request, "state"), _parameter(request, "source")
        asked = views.find_part(entries, gap) if gap else None
        words = asked.question if asked is not None else query
        found = await self._data.search.find(words) if words else None
        used = views.uses(entries)
        known = await self._data.known_sources()
        team = views.team_view(await self._data.team.overview(), used, self._rules)
        known_rows = views.source_rows(known, used, self._data.now())
        rows = views.chosen_sources(known_rows, filtered, state)
        return self._page(
            "knowledge.html",
            visit,
            "knowledge",
            query=self._rules.text(words) if asked is not None else query,
            from_gap=asked is not None,
            found=None if found is None else views.search_view(found, self._rules),
            shown=_PageOfRows.of(request, rows, "/knowledge", "sources", source=filtered, state=state),
            count=len(known_rows),
            failing=sum(row.has_trouble for row in known_rows),
            filtered=filtered,
            state=state,
            filters=views.SOURCE_FILTERS,
            team=team,
            may_correct=self._may_correct(visit),
        )

    async def topic(self, request: web.Request, visit: AdmittedRequest) -> web.Response:
        team = self._data.team
        view = views.topic_view(await team.overview(), request.match_info["name"], team.address, self._rules)
        if view is None:
            return self.missing(visit, "There is no such topic any more.", "/knowledge")
        return self._page("topic.html", visit, "knowledge", view=view, may_correct=self._may_correct(visit))

    def _may_correct(self, visit: AdmittedRequest) -> bool:
        return self._data.may_correct and visit.operator.may(Act.CONVERSATIONS)

    async def audit(self, request: web.Request, visit: AdmittedRequest) -> web.Response:
        history = self._data.history
        rows = views.audit_rows(await history.audit(), await history.last(), self._rules)
        return self._page("audit.html", visit, "audit", shown=_PageOfRows.of(request, rows, "/audit"))

    async def cost(self, _request: web.Request, visit: AdmittedRequest) -> web.Response:
        view = views.cost_view(await self._data.costs(views.DAYS), self._rules)
        return self._page("cost.html", visit, "cost", view=view, days=views.DAYS)

    async def processes(self, _request: web.Request, visit: AdmittedRequest) -> web.Response:
        if self._data.fleet is None:
            return self.missing(visit, "One process does all of the work.", "/")
        view = views.fleet_view(await self._data.fleet())
        return self._page("processes.html", visit, "processes", view=view)

    def _page(
        self, template: str, visit: AdmittedRequest | None, section: str, status: int = 200, **values: Any
    ) -> web.Response:
        data = self._data
        return render_page(
            template,
            status,
            visit=visit,
            section=section,
            texts=self._rules.texts,
            several=data.fleet is not None,
            runs=data.meter is not None,
            has_drafts=data.drafts is not None,
            notice=data.notice,
            **values,
        )

    def message(self, visit: AdmittedRequest | None, status: int, title: str, text: str, back: str) -> web.Response:
        return self._page("message.html", visit, "", status, title=title, text=text, back=back)

    def missing(self, visit: AdmittedRequest, text: str, back: str) -> web.Response:
        return self.message(visit, 404, "Not found", text, back)

    async def nowhere(self, _request: web.Request, visit: AdmittedRequest) -> web.Response:
        return self.missing(visit, "There is no such page.", "/")

    # Corrections

    async def ask_correction(self, request: web.Request, visit: AdmittedRequest) -> web.Response:
        """Show the page that asks for confirmation."""
        qa_id, action = request.match_info["id"], request.match_info["action"]
        team = await self._data.team.overview()
        topic = _topic_of(team, qa_id, action)
        if topic is None or not self._data.may_correct:
            return self.missing(visit, f"There is nothing to {action}.", "/knowledge")
        pair = next((pair for each in team.topics.values() for pair in each.pairs if pair.id == qa_id), None)
        shown = None if pair is None else views.pair_view(pair, team, self._data.team.address, self._rules)
        return self._page("confirm.html", visit, "knowledge", qa_id=qa_id, action=action, topic=topic, pair=shown)

    async def correct(self, request: web.Request, visit: AdmittedRequest) -> web.Response:
        qa_id, action = request.match_info["id"], request.match_info["action"]
        if not self._data.may_correct:
            return self.missing(visit, f"There is nothing to {action}.", "/knowledge")
        status, undo = 200, "restore" if action == "remove" else "remove"
        try:
            told = await self._data.team.correct(action, qa_id, visit.operator.name)
            log.info("dashboard: %s: %s", visit.operator.name, told)
        except removals.RemovalRefused as refused:
            status, told, qa_id, undo = 409, str(refused), "", ""
        except (LibraryUnwritable, OSError) as error:
            log.error("dashboard: %s was not %sd: %s", qa_id, action, error)  # noqa: TRY400 (one line for the operator)
            status, told, qa_id, undo = 500, f"It was not written: {error}", "", ""
        return self._page("corrected.html", visit, "knowledge", status, told=told, qa_id=qa_id, undo=undo)


@dataclass(frozen=True, slots=True)
class _PageOfRows:
    """Some of many rows. `first`, `last`: the numbers of its rows, from 1; `newer`, `older`: the other pages."""

    rows: Sequence[Any]
    count: int
    first: int
    last: int
    newer: str
    older: str

    @classmethod
    def of(cls, request: web.Request, rows: Sequence[Any], path: str, fragment: str = "", **query: str) -> _PageOfRows:
        """Choose the rows from the number in the request's `from`; `query`: the other parameters."""
        at = min(max(0, _number(request, "from")), len(rows))
        before, after = max(0, at - views.ROWS_PER_PAGE), at + views.ROWS_PER_PAGE

        def address(start: int) -> str:
            return _address(path, fragment, **query, **{"from": str(start)})

        last = min(after, len(rows))
        newer, older = address(before) if at else "", address(after) if after < len(rows) else ""
        return cls(rows[at:last], len(rows), min(at + 1, last), last, newer, older)


ALL_TIME = TimeSpan(0.0, float("inf"))


def _parameter(request: web.Request, name: str) -> str:
    return request.query.get(name, "").strip()[:LONGEST_QUERY]


def _number(request: web.Request, name: str) -> int:
    given = _parameter(request, name)
    return int(given[:9]) if given.isascii() and given.isdigit() else 0


def _address(path: str, fragment: str = "", **query: str) -> str:
    given = {name: value for name, value in query.items() if value}
    return str(URL.build(path=path, query=given, fragment=fragment))


def _topic_of(team: Overview, qa_id: str, action: str) -> str | None:
    """Return the topic to remove a pair from or restore it to (empty: it had none); None: `action` is impossible."""
    if action == "remove":
        return next(
            (name for name, topic in team.topics.items() if any(pair.id == qa_id for pair in topic.pairs)), None
        )
    return next((topic or "" for pair_id, topic in team.removed if pair_id == qa_id), None)
