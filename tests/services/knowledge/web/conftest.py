from __future__ import annotations

from collections.abc import AsyncIterator
from importlib import import_module

import pytest

from tests.loopback.web_server import WebServer
from tests.readers import idle_readers, kept_readers

__all__ = ["idle_readers", "kept_readers"]

# It takes seconds, and belongs to no fetch whose time a test looks at.
import_module("trafilatura")


@pytest.fixture
async def server() -> AsyncIterator[WebServer]:
    async with WebServer() as server:
        yield server
