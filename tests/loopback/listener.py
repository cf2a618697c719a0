"""The HTTP side: reads requests, keeps a list of them, lets them fail as ordered, and passes them on."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any

from aiohttp import BodyPartReader, web

from tests.loopback import rest_application, rest_interactions, rest_messages, rest_reactions, rest_threads
from tests.loopback.failures import Failure, Script
from tests.loopback.gateway import Gateway
from tests.loopback.payloads import Payload
from tests.loopback.refusals import Refused, not_found, unauthorized
from tests.loopback.rest import Answer, Call, Upload
from tests.loopback.state import State

API = "/api/v10"
_TABLES = (
    rest_application.routes,
    rest_interactions.routes,
    rest_messages.routes,
    rest_reactions.routes,
    rest_threads.routes,
)
_BY_TOKEN = ("/interactions/", "/webhooks/")
"""Paths that hold a token of their own; the bot's does not go along."""


@dataclass
class Request:
    """A request as it arrived."""

    method: str
    path: str
    """Below `/api/v10`."""
    at: float
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    body: object = None
    """Its JSON."""
    status: int | None = None
    """What it was answered with; None while it is under way, or when the connection was cut."""


class Listener:
    """One port for REST, downloads and the gateway (at `/`)."""

    def __init__(self, state: State, gateway: Gateway, token: str) -> None:
        self._state = state
        self._gateway = gateway
        self.token = token
        self._closing = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self.script = Script()
        self.requests: list[Request] = []
        self.downloads: list[Request] = []
        self.unknown: list[Request] = []
        """Requests for routes that do not exist here."""
        self.errors: list[Exception] = []
        """What this server itself got wrong, or was sent and does not understand."""

    async def start(self) -> int:
        """Listen on a free port of 127.0.0.1 and give it."""
        app = web.Application(client_max_size=32 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", self._serve)
        app.on_response_prepare.append(self._date)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        self._closing.set()  # releases requests that are made to wait
        if self._runner is not None:
            await self._runner.cleanup()

    async def _date(self, _request: web.Request, response: web.StreamResponse) -> None:
        response.headers["Date"] = formatdate(self._state.clock(), usegmt=True)

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        path = request.path.removeprefix(API)
        body, uploads = await _read(request)
        record = Request(request.method, path, self._state.clock(), dict(request.query), body)
        if path.startswith("/attachments/"):
            self.downloads.append(record)
        elif path != "/":
            self.requests.append(record)
        failure = self.script.take(request.method, path)
        if failure is not None and not failure.after_effect:
            await self._wait(failure.delay)
        response: web.StreamResponse | None = None
        if failure is None or failure.only_delays or failure.after_effect:
            response = await self._respond(request, Call(request.method, path, request.query, body, uploads), record)
        if failure is not None and failure.after_effect:
            await self._wait(failure.delay)
        if failure is not None and not failure.only_delays:
            response = _fail(request, failure)
        assert response is not None
        record.status = None if failure is not None and failure.drop else response.status
        return response

    async def _wait(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._closing.wait(), None if math.isinf(seconds) else seconds)
        except TimeoutError:
            return

    async def _respond(self, request: web.Request, call: Call, record: Request) -> web.StreamResponse:
        if call.path == "/":
            return await self._follow(request)
        if call.path.startswith("/attachments/"):
            return self._download(call)
        try:
            return _json(200, self._answer(request, call, record))
        except Refused as refused:
            return _json(refused.status, refused.body)
        except Exception as error:  # noqa: BLE001 (kept for the end of the test; discord.py would just try again)
            self.errors.append(error)
            return _json(500, {"message": "500: Internal Server Error", "code": 0})

    async def _follow(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self._gateway.serve(request)
        except ConnectionError:
            raise  # the client has gone, as clients do
        except Exception as error:
            self.errors.append(error)
            raise

    def _answer(self, request: web.Request, call: Call, record: Request) -> Answer:
        own = call.path.startswith(_BY_TOKEN)
        if not own and request.headers.get("Authorization") != f"Bot {self.token}":
            raise unauthorized()
        for table in _TABLES:
            found = table.match(call.method, call.path)
            if found is not None and request.path.startswith(API):
                handler, names = found
                return handler(self._state, Call(call.method, call.path, call.query, call.body, call.uploads, names))
        self.unknown.append(record)
        raise not_found()

    def _download(self, call: Call) -> web.Response:
        """An attachment, while its address is good."""
        number = call.path.split("/")[3]
        file = self._state.files.get(int(number)) if number.isdecimal() else None
        fresh = (
            int(call.query.get("ex", "0"), 16) > self._state.clock()
            and call.query.get("hm") == f"{self._state.file_key:x}"
        )
        if file is None or not fresh:
            return web.Response(status=404, text="This content is no longer available.")
        return web.Response(
            body=file.content, headers={"Content-Type": file.content_type or "application/octet-stream"}
        )


async def _read(request: web.Request) -> tuple[object, dict[str, Upload]]:
    if not request.can_read_body:
        return None, {}
    if request.content_type != "multipart/form-data":
        text = await request.text()
        return (json.loads(text) if text else None), {}
    body: object = None
    uploads: dict[str, Upload] = {}
    async for part in await request.multipart():
        assert isinstance(part, BodyPartReader)
        name = part.name or ""
        if name == "payload_json":
            body = json.loads(await part.text())
        else:
            number = name.removeprefix("files[").removesuffix("]")
            uploads[number] = Upload(part.filename or "unknown", bytes(await part.read()))
    return body, uploads


def _json(status: int, body: Payload | list[Payload] | None, headers: Mapping[str, str] | None = None) -> web.Response:
    if body is None:
        return web.Response(status=204, headers=headers)
    # Bytes, because aiohttp adds a charset to text, and discord.py takes nothing but the bare media type for JSON.
    data = json.dumps(body).encode()
    return web.Response(status=status, body=data, headers={**(headers or {}), "Content-Type": "application/json"})


def _fail(request: web.Request, failure: Failure) -> web.Response:
    if failure.drop:
        if request.transport is not None:
            request.transport.abort()
        return web.Response()
    assert failure.status is not None
    body: dict[str, Any] = {"message": f"{failure.status}: as ordered", "code": 0}
    return _json(failure.status, body if failure.body is None else dict(failure.body), failure.headers)
