"""How long the fakes of either bot take, in virtual seconds, and what they say."""

from __future__ import annotations

import asyncio

LLM_SECONDS = 2.0
DISK_SECONDS = 0.01
QUIET_SECONDS = 60.0

SOURCE_ID = "guides/setup.md"
SOURCE_TEXT = "The token is set in config.yaml. " * 60
ANSWER = "The token is set in config.yaml, below `worker`; restart the service afterwards."


async def think() -> None:
    """Wait as long as a model takes."""
    await asyncio.sleep(LLM_SECONDS)


async def read() -> None:
    """Wait as long as a file takes."""
    await asyncio.sleep(DISK_SECONDS)
