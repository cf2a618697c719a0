"""Loopback servers for tests of whole commands, which run an event loop of their own and leave it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TypeVar

from tests.loopback.web_server import WebServer

S = TypeVar("S")


@contextmanager
def served(server: AbstractAsyncContextManager[S]) -> Generator[S]:
    """`server` on a loop in a thread of its own, for as long as the block runs."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="loopback server")
    thread.start()
    try:
        entered = asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result()
        try:
            yield entered
        finally:
            asyncio.run_coroutine_threadsafe(server.__aexit__(None, None, None), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def serving() -> Generator[WebServer]:
    """A `WebServer`, served so."""
    with served(WebServer()) as server:
        yield server
