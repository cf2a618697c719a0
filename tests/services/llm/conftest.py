from __future__ import annotations

from collections.abc import AsyncIterator
from importlib import import_module

import pytest
import pytest_asyncio

from services.llm.resilience import ChatEndpoint
from tests.loopback.llm_server import LLMServer
from tests.services.llm.asking import settings_of

# It takes long, and belongs to no call whose time a test looks at.
import_module("services.llm.chat")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared() -> AsyncIterator[tuple[LLMServer, ChatEndpoint]]:
    """Making a client reads the certificates, which takes 0.1 s and more: once is enough."""
    async with LLMServer() as server:
        endpoint = ChatEndpoint(settings_of(server.base_url))
        yield server, endpoint
        await endpoint.aclose()


@pytest.fixture
def server(shared: tuple[LLMServer, ChatEndpoint]) -> LLMServer:
    server, _ = shared
    server.script.clear()
    server.seen.clear()
    return server


@pytest.fixture
def endpoint(shared: tuple[LLMServer, ChatEndpoint]) -> ChatEndpoint:
    return shared[1]
