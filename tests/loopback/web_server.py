"""A web server on loopback that serves what it is told, path by path."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from aiohttp import web

import clock

Play = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class WebServer:
    """Plays `paths[path]`, 404 where there is none. Works on a virtual loop, too: it serves where time is real."""

    paths: dict[str, Play] = field(default_factory=dict[str, Play])
    tls: ssl.SSLContext | None = None
    seen: list[tuple[str, Mapping[str, str]]] = field(default_factory=list[tuple[str, Mapping[str, str]]])
    """Paths with their queries, and headers."""
    body_bytes: int = 0
    """What all bodies had together, as far as they were written."""
    port: int = 0
    _runner: web.AppRunner | None = None

    @property
    def origin(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        await clock.run_in_real_time(self._start)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._runner is not None
        await clock.run_in_real_time(self._runner.cleanup)

    async def _start(self) -> None:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self.tls).start()
        self.port = self._runner.addresses[0][1]

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        self.seen.append((request.path_qs, request.headers.copy()))
        play = self.paths.get(request.path)
        if play is None:
            return web.Response(status=404, text="there is no such page")
        response = await play(request)
        if isinstance(response, web.Response) and isinstance(response.body, bytes):
            self.body_bytes += len(response.body)
        return response

    def count(self, path: str) -> int:
        return sum(seen == path for seen, _ in self.seen)


def page(body: bytes | str, content_type: str | None = "text/html; charset=utf-8", **headers: str) -> Play:
    """A page as it stands; None: it does not say what it is."""
    data = body.encode() if isinstance(body, str) else body
    named = {name.replace("_", "-"): value for name, value in headers.items()}

    async def play(_: web.Request) -> web.StreamResponse:
        if content_type is None:
            response = web.Response(body=data, headers=named)
            # aiohttp puts in a type where there is none; this is the last moment at which it can be taken out.
            response.headers["Content-Type"] = ""
            return response
        return web.Response(body=data, headers={**named, "Content-Type": content_type})

    return play


def kept(body: str, etag: str | None, last_modified: str | None = None) -> Play:
    """A page that answers 304 to whoever has it."""

    async def play(request: web.Request) -> web.StreamResponse:
        headers = {name: value for name, value in (("ETag", etag), ("Last-Modified", last_modified)) if value}
        asked = request.headers
        if (etag and asked.get("If-None-Match") == etag) or (
            last_modified and "If-None-Match" not in asked and asked.get("If-Modified-Since") == last_modified
        ):
            return web.Response(status=304, headers=headers)
        return web.Response(body=body.encode(), headers={**headers, "Content-Type": "text/html"})

    return play


def status(code: int, **headers: str) -> Play:
    async def play(_: web.Request) -> web.StreamResponse:
        return web.Response(status=code, headers=headers, text=f"status {code}")

    return play


def redirect(to: str, code: int = 302) -> Play:
    return status(code, Location=to)


async def hang(_: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


async def drop(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


def stream(
    *chunks: bytes, pause: float = 0, repeat: int = 1, cut: bool = False, length: int | None = None, **headers: str
) -> Play:
    """Chunk by chunk, `repeat` times over, without a length unless one is given; `cut`: breaks off in the middle."""

    async def play(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={name.replace("_", "-"): value for name, value in headers.items()})
        response.content_type = "text/html"
        response.content_length = length
        await response.prepare(request)
        for _ in range(repeat):
            for chunk in chunks:
                await response.write(chunk)
                await asyncio.sleep(pause)
        if cut:
            assert request.transport is not None
            request.transport.abort()
        return response

    return play
