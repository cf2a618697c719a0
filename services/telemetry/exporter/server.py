"""`/metrics` and `/healthz`, for Prometheus and for whoever restarts what hangs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from aiohttp import web

GRACE_SECONDS = 1.0
"""How long a scrape may go on while the server closes."""


class CannotListen(Exception):
    """The address cannot be had: one readable line that names the keys."""


@asynccontextmanager
async def serve_metrics(
    host: str, port: int, health: Callable[[], str | None], render: Callable[[], bytes], content_type: str
) -> AsyncGenerator[int]:
    """Serve while the block runs; gives the port, which is a free one where `port` is 0.

    `health` says in a few words what is wrong, or None: then `/healthz` answers 200 and `ok`, else 503 and the words.
    `render` makes the content of `/metrics`.

    Raises:
        CannotListen: the port is taken, or the address is not one of this machine.
    """

    async def metrics(_request: web.Request) -> web.Response:
        return web.Response(body=render(), headers={"Content-Type": content_type})

    async def healthz(_request: web.Request) -> web.Response:
        trouble = health()
        return web.Response(text=f"{trouble or 'ok'}\n", status=200 if trouble is None else 503)

    application = web.Application()
    application.add_routes([web.get("/metrics", metrics), web.get("/healthz", healthz)])
    # Scrapes every few seconds are nothing to log.
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=GRACE_SECONDS)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            raise CannotListen(
                f"metrics.port: cannot listen on {host}:{port} ({_reason(error)}); "
                "choose another metrics.port or metrics.host, or 0 to switch it off"
            ) from None
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def _reason(error: OSError) -> str:
    # asyncio puts the whole story, address included, where others have the system's word.
    text = (error.strerror or str(error)).rpartition("] ")[2]
    return text.rpartition("): ")[2]
