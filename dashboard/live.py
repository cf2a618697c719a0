"""Server-sent events: what the meter tells, a few times a second at most."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from aiohttp import web

from dashboard.meter import FlowMeter
from dashboard.rendering import HEADERS
from dashboard.visits import AdmittedRequest

EVERY_SECONDS = 0.25
HEARTBEAT_SECONDS = 10.0
"""So that a closed page is noticed."""
STREAMS = 20
"""Pages that are kept fresh at the same time."""


class EventStream:
    def __init__(
        self, meter: FlowMeter, content: Callable[[], str], pace: float, may_look: Callable[[AdmittedRequest], bool]
    ) -> None:
        """`content`: one event, as JSON. `pace`: how many seconds of the loop pass in a real one. `may_look`: whether
        somebody who was let in still may.
        """
        self._meter = meter
        self._content = content
        self._pace = pace
        self._may_look = may_look
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
            while not self._closing and self._may_look(visit):
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

    def look_again(self) -> None:
        """Somebody has logged out: streams of theirs end now."""
        for changed in self._open:
            changed.set()

    async def close(self, _application: web.Application) -> None:
        """End all streams, so that the server can close."""
        self._closing = True
        self.look_again()
