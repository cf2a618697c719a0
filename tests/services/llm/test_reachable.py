from __future__ import annotations

import sys
from asyncio import create_subprocess_exec
from asyncio.subprocess import PIPE

import pytest

import clock
from services.llm.resilience import why_unreachable
from tests.loopback import llm_scenes as scenes
from tests.loopback.llm_server import LLMServer
from tests.services.llm.asking import KEY, settings_of


async def test_an_endpoint_that_lists_its_models_is_reachable() -> None:
    async with LLMServer() as server:
        begun = clock.now()
        assert await why_unreachable(settings_of(server.base_url + "/")) is None
        assert server.others[0].headers["Authorization"] == f"Bearer {KEY}"
        assert await why_unreachable(settings_of(server.base_url, api_key="")) is None
        assert "Authorization" not in server.others[1].headers
        assert clock.now() == begun


@pytest.mark.parametrize(
    ("scene", "says"),
    [
        (scenes.status(401), "does not accept the key (HTTP 401); check api_key"),
        (scenes.status(404), "does not list its models (HTTP 404); check base_url"),
        (scenes.status(500), "(HTTP 500)"),
        (scenes.html(), "no JSON; check base_url"),
        (scenes.hang(), "did not answer within 0.2 s"),
        (scenes.drop(), "cannot be reached"),
    ],
    ids=["401", "404", "500", "html", "hang", "drop"],
)
async def test_what_is_wrong_is_one_sentence(scene: scenes.Scene, says: str) -> None:
    """22: and the key is not in it."""
    limit = 0.2 if "0.2 s" in says else 5
    async with LLMServer(models=scene) as server:
        because = await why_unreachable(settings_of(server.base_url), timeout_seconds=limit)
    assert because is not None
    assert because.startswith("LLM m at 127.0.0.1")
    assert says in because
    assert KEY not in because


async def test_an_endpoint_that_is_busy_is_reachable() -> None:
    async with LLMServer(models=scenes.status(429)) as server:
        assert await why_unreachable(settings_of(server.base_url)) is None


@pytest.mark.parametrize(
    "base_url", ["http://127.0.0.1:9/v1", "http://me:hunter2@127.0.0.1:9/v1", "nonsense", "ftp://x"]
)
async def test_an_address_where_nobody_is_is_unreachable(base_url: str) -> None:
    because = await why_unreachable(settings_of(base_url))
    assert because is not None
    assert "check base_url" in because
    assert "hunter2" not in because


@pytest.mark.real_time
async def test_the_loopback_server_runs_by_hand() -> None:
    running = await create_subprocess_exec(
        sys.executable, "-m", "tests.loopback.llm_server", "--mode", "good", stdout=PIPE
    )
    assert running.stdout is not None
    base_url = (await running.stdout.readline()).decode().strip()
    assert await why_unreachable(settings_of(base_url)) is None
    running.terminate()
    await running.communicate()
