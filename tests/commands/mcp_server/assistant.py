"""An assistant: the package's own client, and what it reads."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client, types

from commands.mcp_server.protocol import make_server
from commands.mcp_server.serving import open_tools
from services.redaction import Redactor
from settings import load


@asynccontextmanager
async def assistant(config: Path) -> AsyncGenerator[Client]:
    """In memory, of a server as the command makes it."""
    settings = load(config)
    redact = Redactor(settings.secrets).documentation_text
    async with open_tools(settings) as tools, Client(make_server(tools, redact)) as client:
        yield client


async def call(client: Client, tool: str, **arguments: Any) -> types.CallToolResult:
    result = await client.call_tool(tool, arguments)
    assert isinstance(result, types.CallToolResult)
    return result


def words(result: types.CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    return content.text


def refusal(result: types.CallToolResult) -> str:
    """What is said of a call that was refused: one line, without data."""
    assert result.is_error
    assert result.structured_content is None
    assert "\n" not in words(result)
    return words(result)


def data(result: types.CallToolResult) -> dict[str, Any]:
    assert not result.is_error, words(result)
    return result.structured_content
