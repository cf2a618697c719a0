"""`--dashboard` shows what a data folder holds as pages, read only. Nothing runs, and nothing is written."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import AsyncExitStack

from aiohttp import web

from assembly.dashboard import address_of, pages_of_folder
from assembly.running import run_async, stop_signal
from assembly.sources import temporary_index
from commands.arguments import DONE, check_data_dir
from services.telemetry.exporter import CannotListen, serve_metrics
from settings import Settings

LOOPBACK = "127.0.0.1"


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Serve the pages until Ctrl-C. Returns the exit code."""
    if options.data is None:
        check_data_dir(settings.app.data_dir)
    else:
        check_data_dir(options.data, "--data")
        settings = settings.for_replay(options.data)
    with temporary_index(settings) as indexed:
        return run_async(_serve(indexed, is_replay=options.data is not None))


async def _serve(settings: Settings, *, is_replay: bool) -> int:
    # Without a token only this machine may look, whatever the bot's metrics do.
    host = settings.metrics.host if settings.dashboard.has_login else LOOPBACK
    async with AsyncExitStack() as stack:
        stopped = stack.enter_context(stop_signal())
        add_pages = await stack.enter_async_context(pages_of_folder(settings, is_replay=is_replay))
        port = await _listen(stack, host, settings.metrics.port, add_pages)
        where = address_of(settings.metrics.model_copy(update={"host": host, "port": port}))
        print(f"{settings.app.data_dir} is shown at {where} (read only; Ctrl-C ends it)", flush=True)  # noqa: T201 (the command's output)
        await stopped
    return DONE


async def _listen(stack: AsyncExitStack, host: str, port: int, add_pages: Callable[[web.Application], object]) -> int:
    """Serve at `port`, or at a free one if it is taken, such as by the bot. Returns the port. Raises CannotListen."""

    async def listen(wanted: int) -> int:
        server = serve_metrics(host, wanted, lambda: None, bytes, add_pages=add_pages)
        return await stack.enter_async_context(server)

    try:
        return await listen(port)
    except CannotListen:
        return await listen(0)
