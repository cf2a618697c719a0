"""The dashboard's routes on an aiohttp application, the access check before each, and the stream of live events."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web

from dashboard.access import COOKIE, AccessControl, AdmittedRequest, is_same_origin
from dashboard.display import DisplayRules
from dashboard.meter import FlowMeter
from dashboard.pages import HEADERS, TYPES, CorrectionPages, DashboardData, Pages, redirect, render_page, static_file
from services.team import LibraryUnusable
from services.telemetry.exporter import CONNECTIONS, peer_of

EVERY_SECONDS = 0.25
HEARTBEAT_SECONDS = 10.0
"""An event is sent at least so often, so that a closed page is noticed."""
STREAMS = 20
"""The most pages with a stream of events."""


class EventStream:
    def __init__(
        self, meter: FlowMeter, content: Callable[[], str], pace: float, is_admitted: Callable[[AdmittedRequest], bool]
    ) -> None:
        """`content`: makes one event, as JSON. `pace`: seconds of the loop in a real one. `is_admitted`: returns True
        as long as the visitor may look.
        """
        self._meter = meter
        self._content = content
        self._pace = pace
        self._is_admitted = is_admitted
        self._open: set[asyncio.Event] = set()
        self._closing = False

    async def events(self, request: web.Request, visit: AdmittedRequest) -> web.StreamResponse:
        if len(self._open) >= STREAMS or self._closing:
            return web.Response(text="Too many pages are open.\n", status=503, headers=HEADERS)
        response = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
        changed = asyncio.Event()
        self._open.add(changed)
        self._meter.changed.append(changed.set)
        try:
            await response.prepare(request)
            while not self._closing and self._is_admitted(visit):
                changed.clear()
                await response.write(f"data: {self._content()}\n\n".encode())
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(HEARTBEAT_SECONDS * self._pace):
                        await changed.wait()
                if not self._closing:
                    await asyncio.sleep(EVERY_SECONDS * self._pace)
        except ConnectionError:
            pass  # the page was closed
        finally:
            self._meter.changed.remove(changed.set)
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
FORM = "application/x-www-form-urlencoded"


def add_pages(
    application: web.Application,
    sources: DashboardData,
    showing: DisplayRules,
    access: AccessControl,
    *,
    pace: float = 1.0,
) -> None:
    """Add the dashboard's routes. `pace`: seconds of the loop in a real one; others than 1 in a replay."""
    pages, correcting = Pages(sources, showing), CorrectionPages(sources, showing)
    live = EventStream(
        sources.meter, pages.now_json, pace, lambda visit: not visit.session or access.is_valid(visit.session)
    )

    async def log_in(request: web.Request) -> web.StreamResponse:
        return await _log_in(request, access)

    async def log_out(_request: web.Request, visit: AdmittedRequest) -> web.StreamResponse:
        access.end_session(visit.session)
        live.recheck()
        answer = redirect("/login")
        answer.del_cookie(COOKIE, path="/")
        return answer

    def get(path: str, handler: Handler) -> web.RouteDef:
        return web.get(path, _guarded(handler, access), allow_head=False)

    def post(path: str, handler: Handler) -> web.RouteDef:
        return web.post(path, _guarded(handler, access))

    application.add_routes(
        [
            get("/", pages.now),
            get("/events", live.events),
            get("/answers", pages.answers),
            get("/answers/{id}", pages.answer),
            get("/gaps", pages.gaps),
            get("/knowledge", pages.knowledge),
            get("/knowledge/topics/{name}", pages.topic),
            get("/knowledge/pairs/{id}/{action:remove|restore}", correcting.ask),
            post("/knowledge/pairs/{id}/{action:remove|restore}", correcting.correct),
            get("/cost", pages.cost),
            get("/processes", pages.processes),
            web.get("/login", _at_home(log_in, access), allow_head=False),
            web.post("/login", _at_home(log_in, access)),
            post("/logout", log_out),
            web.get("/static/{name}", _at_home(_static, access), allow_head=False),
        ]
    )
    application.on_shutdown.append(live.close)


def _at_home(
    handler: Callable[[web.Request], Awaitable[web.StreamResponse]], access: AccessControl
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """Wrap a handler so that it answers only requests with an allowed `Host`."""

    async def asked(request: web.Request) -> web.StreamResponse:
        if not access.is_allowed_host(request.headers.get("Host", "")):
            text = "This is not the name of this server. Open it as http://127.0.0.1 or http://localhost.\n"
            return web.Response(text=text, status=421, headers=HEADERS)
        try:
            return await handler(request)
        except Unreadable:
            return web.Response(text="This is no form of this dashboard.\n", status=400, headers=HEADERS)
        except ConnectionError:
            raise  # whoever asked is gone
        except (OSError, LibraryUnusable) as error:
            log.error("dashboard: %s", error)  # noqa: TRY400 (one line for the operator)
            return render_page("message.html", 500, title="Not read", text=str(error), back="/")

    return asked


def _guarded(handler: Handler, access: AccessControl) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def guarded(request: web.Request) -> web.StreamResponse:
        if access.token and request.headers.get("Authorization", "").startswith(BEARER):
            return await _by_header(request, handler, access)
        cookie = request.cookies.get(COOKIE)
        session = access.session_of(cookie)
        if session is None:
            if request.method != "GET" or request.path == "/events":
                return web.Response(text="Log in first.\n", status=401, headers=HEADERS)
            return redirect("/login")
        if request.method == "POST":
            form = await _form(request)
            if not is_same_origin(request.headers) or not access.has_form_key(session, str(form.get("key", ""))):
                return render_page("message.html", 403, title="Not sent", text=_STRANGE_FORM, back="/")
        if access.token:  # without one, everybody has a session who asks for it
            _let_in(request)
        answer = await handler(
            request, AdmittedRequest(session, access.form_key(session), logged_in=bool(access.token))
        )
        if session != cookie and not answer.prepared:
            _set_cookie(request, answer, session)
        return answer

    return _at_home(guarded, access)


async def _by_header(request: web.Request, handler: Handler, access: AccessControl) -> web.StreamResponse:
    """Answer a program that sends the token as a Bearer header. No browser does this by itself: forms need no key."""
    address = _address(request)
    wait = access.seconds_to_wait(address)
    if not access.accepts_token(request.headers["Authorization"].removeprefix(BEARER).strip(), address):
        if wait > 0:
            return _slower(wait)
        return web.Response(text="This is not the token.\n", status=401, headers=HEADERS)
    _let_in(request)
    return await handler(request, AdmittedRequest("", "", logged_in=False))


_STRANGE_FORM = "This form was not sent from a page of this dashboard, or that page is too old. Open it again."


async def _log_in(request: web.Request, access: AccessControl) -> web.StreamResponse:
    if not access.token:
        return redirect("/")
    if request.method != "POST":
        return render_page("login.html", wrong=False)
    address, form = _address(request), await _form(request)
    wait = access.seconds_to_wait(address)
    if not is_same_origin(request.headers) or not access.accepts_token(str(form.get("token", "")), address):
        return _slower(wait) if wait > 0 else render_page("login.html", 401, wrong=True)
    _let_in(request)
    answer = redirect("/")
    _set_cookie(request, answer, access.begin_session())
    return answer


class Unreadable(Exception):
    """The request's body is not a form of the dashboard."""


async def _form(request: web.Request) -> Mapping[str, object]:
    """Raises Unreadable."""
    if request.content_type != FORM:
        raise Unreadable
    try:
        form = await request.post()
    except (ValueError, LookupError, web.RequestPayloadError) as error:  # an encoding, its name, or how it was cut up
        raise Unreadable from error
    if (connections := request.app.get(CONNECTIONS)) is not None:
        connections.on_request_read(peer_of(request))
    return form


def _let_in(request: web.Request) -> None:
    if (connections := request.app.get(CONNECTIONS)) is not None:
        connections.on_login(peer_of(request))


async def _static(request: web.Request) -> web.StreamResponse:
    name = request.match_info["name"]
    if name not in TYPES:
        return web.Response(text="There is no such file.\n", status=404, headers=HEADERS)
    return static_file(name)


def _slower(wait: float) -> web.Response:
    headers = {**HEADERS, "Retry-After": str(round(wait + 0.5))}
    return web.Response(text="Too many wrong tokens: try again later.\n", status=429, headers=headers)


def _set_cookie(request: web.Request, answer: web.StreamResponse, session: str) -> None:
    # A client that forges this header only harms itself.
    secure = request.secure or request.headers.get("X-Forwarded-Proto", "") == "https"
    answer.set_cookie(COOKIE, session, path="/", httponly=True, samesite="Strict", secure=secure)


def _address(request: web.Request) -> str:
    return request.remote or ""
