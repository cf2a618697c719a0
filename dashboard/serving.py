"""The dashboard's routes on an aiohttp application, the access check before each, and the stream of live events."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from aiohttp import web
from yarl import URL

from dashboard.access import COOKIE, AccessControl, AdmittedRequest, is_same_origin
from dashboard.data import DashboardData
from dashboard.display import DisplayRules
from dashboard.flow import FlowMeter
from dashboard.pages import HEADERS, Pages, redirect, render_page, static_file
from model.permissions import Act, refusal
from services.team import LibraryUnusable
from services.telemetry.exporter import CONNECTIONS, peer_of

EVERY_SECONDS = 0.25
HEARTBEAT_SECONDS = 10.0
"""An event is sent at least so often, so that a closed page is noticed."""
MAX_STREAMS = 20
"""The most pages with a stream of events."""


class EventStream:
    def __init__(
        self,
        meter: FlowMeter,
        content: Callable[..., Awaitable[str]],
        pace: float,
        is_admitted: Callable[[AdmittedRequest], bool],
    ) -> None:
        """`content`: makes one event, as JSON; its `has_steps`: with what is to be done next. `pace`: how
        many seconds of the loop are one real second. `is_admitted`: returns True as long as the visitor may look.
        """
        self._meter = meter
        self._content = content
        self._pace = pace
        self._is_admitted = is_admitted
        self._open: set[asyncio.Event] = set()
        self._closing = False

    async def events(self, request: web.Request, visit: AdmittedRequest) -> web.StreamResponse:
        if not is_same_origin(request.headers):  # else a page of another origin could take all places
            return web.Response(text="This is for pages of this dashboard.\n", status=403, headers=HEADERS)
        if len(self._open) >= MAX_STREAMS or self._closing:
            return web.Response(text="Too many pages are open.\n", status=503, headers=HEADERS)
        response = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
        changed = asyncio.Event()
        self._open.add(changed)
        self._meter.on_change.append(changed.set)
        try:
            await response.prepare(request)
            while not self._closing and self._is_admitted(visit):
                changed.clear()
                content = await self._content(has_steps="steps" in request.query)
                await response.write(f"data: {content}\n\n".encode())
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(HEARTBEAT_SECONDS * self._pace):
                        await changed.wait()
                if not self._closing:
                    await asyncio.sleep(EVERY_SECONDS * self._pace)
        except ConnectionError:
            pass  # the page was closed
        finally:
            self._meter.on_change.remove(changed.set)
            self._open.discard(changed)
        return response

    def recheck(self) -> None:
        """End the streams of visitors who have logged out."""
        for changed in self._open:
            changed.set()

    async def close(self, _application: web.Application) -> None:
        """End all streams, so that the server can close."""
        self._closing = True
        self.recheck()


Handler = Callable[[web.Request, AdmittedRequest], Awaitable[web.StreamResponse]]
log = logging.getLogger(__name__)

BEARER = "Bearer "
_FORM_TYPE = re.compile(r"application/x-www-form-urlencoded(?: ?; ?charset=\"?utf-8\"?)?", re.IGNORECASE)
"""The type of a form, as browsers and programs send it. It is compared as it is: aiohttp takes most of a second to
parse a long one, and decodes by whatever Python calls a charset.
"""


def add_pages(
    application: web.Application,
    data: DashboardData,
    rules: DisplayRules,
    access: AccessControl,
    *,
    pace: float = 1.0,
) -> None:
    """Add the dashboard's routes. `pace`: how many seconds of the loop are one real second; 1, but in a replay."""
    pages, live = Pages(data, rules), None
    if data.meter is not None:
        live = EventStream(
            data.meter,
            pages.now_json,
            pace,
            lambda visit: not visit.session or access.operator_in(visit.session) is not None,
        )
        application.on_shutdown.append(live.close)

    async def log_out(_request: web.Request, visit: AdmittedRequest) -> web.StreamResponse:
        access.end_session(visit.session)
        if live is not None:
            live.recheck()
        answer = redirect("/login")
        answer.del_cookie(COOKIE, path="/")
        return answer

    def get(path: str, handler: Handler, act: Act = Act.LOOK) -> web.RouteDef:
        return web.get(path, _check_access(handler, access, pages, act), allow_head=path != "/events")

    def post(path: str, handler: Handler, act: Act) -> web.RouteDef:
        return web.post(path, _check_access(handler, access, pages, act))

    log_in = _check_host(partial(_log_in, access=access), access, pages)
    application.add_routes(
        [
            get("/", pages.overview),
            get("/flow", pages.flow),
            get("/events", pages.nowhere if live is None else live.events),
            get("/answers", pages.answers),
            get("/answers/{id}", pages.answer),
            get("/drafts", pages.drafts),
            post("/drafts/{id:[0-9]{1,20}}/{action:post|edit|discard|keep}", pages.drafts, Act.DRAFTS),
            get("/gaps", pages.gaps),
            post("/gaps/{id}/{action:dismiss|restore}", pages.dismiss, Act.GAPS),
            get("/gaps/{id}/answer", pages.ask_answer, Act.GAPS),
            post("/gaps/{id}/answer", pages.teach, Act.GAPS),
            get("/knowledge", pages.knowledge),
            get("/knowledge/topics/{name}", pages.topic),
            get("/knowledge/pairs/{id}/{action:remove|restore}", pages.ask_correction, Act.CONVERSATIONS),
            post("/knowledge/pairs/{id}/{action:remove|restore}", pages.correct, Act.CONVERSATIONS),
            get("/audit", pages.audit, Act.AUDIT),
            get("/cost", pages.cost),
            get("/processes", pages.processes),
            web.get("/login", log_in),
            web.post("/login", log_in),
            post("/logout", log_out, Act.LOOK),
            web.get("/static/{name}", _check_host(_static, access, pages)),
            web.route("*", "/{other:.*}", _check_access(pages.nowhere, access, pages, Act.LOOK)),
        ]
    )


def _check_host(
    handler: Callable[[web.Request], Awaitable[web.StreamResponse]], access: AccessControl, pages: Pages
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """Wrap a handler so that it answers only requests with an allowed `Host`."""

    async def with_host_checked(request: web.Request) -> web.StreamResponse:
        if not access.is_allowed_host(request.headers):
            text = (
                "This is not the name of this server. Open it as http://127.0.0.1 or http://localhost; "
                "behind a proxy it needs dashboard.token.\n"
            )
            return web.Response(text=text, status=421, headers=HEADERS)
        try:
            return await handler(request)
        except UnreadableForm:
            return web.Response(text="This is no form of this dashboard.\n", status=400, headers=HEADERS)
        except ConnectionError:
            raise  # whoever asked is gone
        except (OSError, LibraryUnusable) as error:
            log.error("dashboard: %s", error)  # noqa: TRY400 (one line for the operator)
            return pages.message(None, 500, "Not read", str(error), "/")

    return with_host_checked


def _check_access(
    handler: Handler, access: AccessControl, pages: Pages, act: Act
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """Wrap a handler so that it answers only operators whose role may do `act`."""

    async def answer_if_allowed(request: web.Request, visit: AdmittedRequest) -> web.StreamResponse:
        if not visit.operator.may(act):
            return pages.message(visit, 403, "Not allowed", refusal(visit.operator, act), "/")
        return await handler(request, visit)

    async def with_access_checked(request: web.Request) -> web.StreamResponse:
        if access.operators and request.headers.get("Authorization", "").startswith(BEARER):
            return await _by_header(request, answer_if_allowed, access)
        return await _by_cookie(request, answer_if_allowed, access, pages)

    return _check_host(with_access_checked, access, pages)


async def _by_cookie(request: web.Request, handler: Handler, access: AccessControl, pages: Pages) -> web.StreamResponse:
    """Answer a browser that has a session; the others are asked to log in."""
    session = access.session_of(request.cookies.get(COOKIE))
    operator = None if session is None else access.operator_in(session)
    if session is None or operator is None:
        if request.method not in {"GET", "HEAD"} or request.path == "/events":
            return web.Response(text="Log in first.\n", status=401, headers=HEADERS)
        return redirect("/login" if request.path_qs == "/" else str(URL("/login").with_query(to=request.path_qs)))
    if request.method == "POST":
        form = await _form(request)
        if not is_same_origin(request.headers) or not access.has_form_key(session, str(form.get("key", ""))):
            return pages.message(None, 403, "Not sent", _STRANGE_FORM, "/")
    if access.operators:  # without any, everybody has a session
        _note_login(request)
    visit = AdmittedRequest(session, access.form_key(session), logged_in=bool(access.operators), operator=operator)
    return await handler(request, visit)


async def _by_header(request: web.Request, handler: Handler, access: AccessControl) -> web.StreamResponse:
    """Answer a program that sends a token as a Bearer header. No browser does this by itself: forms need no key."""
    address = request.remote or ""
    wait = access.seconds_to_wait(address)
    operator = access.find_operator(request.headers["Authorization"].removeprefix(BEARER).strip(), address)
    if operator is None:
        if wait > 0:
            return _too_many_tries(wait)
        return web.Response(text="This is not the token.\n", status=401, headers=HEADERS)
    _note_login(request)
    if request.method == "POST" and request.can_read_body:
        await _form(request)  # refuses what cannot be read
    return await handler(request, AdmittedRequest("", "", logged_in=False, operator=operator))


_STRANGE_FORM = "This form was not sent from a page of this dashboard, or that page is too old. Open it again."


async def _log_in(request: web.Request, access: AccessControl) -> web.StreamResponse:
    wanted = _own_page(request.query.get("to", ""))
    if not access.operators:
        return redirect(wanted)
    if request.method != "POST":
        return render_page("login.html", wrong=False, to=wanted)
    address, form = request.remote or "", await _form(request)
    wanted = _own_page(str(form.get("to", "")))
    wait = access.seconds_to_wait(address)
    operator = None
    if is_same_origin(request.headers):
        operator = access.find_operator(str(form.get("token", "")), address)
    if operator is None:
        return _too_many_tries(wait) if wait > 0 else render_page("login.html", 401, wrong=True, to=wanted)
    _note_login(request)
    answer = redirect(wanted)
    _set_cookie(request, answer, access.begin_session(operator))
    return answer


def _own_page(path: str) -> str:
    """Return the path of a page of this dashboard with its query; `/` for anything else, such as another server's."""
    # First of all, as the name of a server takes seconds to parse if it is long.
    if not path.startswith("/") or path.startswith("//") or len(path) > LONGEST_PATH:
        return "/"
    return "/" if "\\" in path or not path.isprintable() else str(URL(path))


LONGEST_PATH = 2_000


class UnreadableForm(Exception):
    """The request's body is not a form of the dashboard."""


async def _form(request: web.Request) -> Mapping[str, object]:
    """Return the fields of the form in a request. Raises UnreadableForm."""
    type_given = request.headers.get("Content-Type", "")
    if not _FORM_TYPE.fullmatch(type_given) or "Content-Encoding" in request.headers:  # nothing is decompressed
        raise UnreadableForm
    try:
        form = await request.post()
    except (ValueError, LookupError, web.RequestPayloadError) as error:  # an encoding, its name, or how it was cut up
        raise UnreadableForm from error
    if (connections := request.app.get(CONNECTIONS)) is not None:
        connections.on_request_read(peer_of(request))
    return form


def _note_login(request: web.Request) -> None:
    if (connections := request.app.get(CONNECTIONS)) is not None:
        connections.on_login(peer_of(request))


async def _static(request: web.Request) -> web.StreamResponse:
    return static_file(request.match_info["name"])


def _too_many_tries(wait: float) -> web.Response:
    headers = {**HEADERS, "Retry-After": str(round(wait + 0.5))}
    return web.Response(text="Too many wrong tokens: try again later.\n", status=429, headers=headers)


def _set_cookie(request: web.Request, answer: web.StreamResponse, session: str) -> None:
    # A client that forges this header only harms itself.
    secure = request.secure or request.headers.get("X-Forwarded-Proto", "") == "https"
    answer.set_cookie(COOKIE, session, path="/", httponly=True, samesite="Strict", secure=secure)
