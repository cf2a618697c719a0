from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

from assembly import Unusable
from assembly.running import Meters, meters_of, serving
from settings import MetricsSettings, Settings

REPOSITORY = Path(__file__).parents[2]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def test_without_a_port_nothing_is_measured() -> None:
    meters = meters_of(Settings())
    assert meters == Meters()
    assert (meters.result, meters.gauge, meters.on_duration, meters.tokens, meters.fetched, meters.flow) == (None,) * 6
    assert meters.results == []
    async with serving(MetricsSettings(), meters, lambda: None):
        pass


def test_without_a_port_nothing_is_imported_for_it() -> None:
    code = "import sys, assembly.running; print([name for name in sys.modules if 'prometheus' in name])"
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.real_time
async def test_what_was_told_to_the_meters_is_served() -> None:
    port = free_port()
    trouble: str | None = None
    settings = Settings(metrics=MetricsSettings(port=port))
    meters, waits = meters_of(settings), "not connected yet"
    async with (
        serving(settings.metrics, meters, lambda: trouble, ready=lambda: waits or None),
        aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session,
    ):
        assert meters.gauge is not None
        meters.gauge("quiet_window", 3)
        async with session.get("/metrics") as response:
            assert response.status == 200
            assert response.headers["Content-Type"].startswith("text/plain; version=")
            assert "open_batches 3.0" in await response.text()
        async with session.get("/healthz") as response:
            assert (response.status, await response.text()) == (200, "ok\n")
        async with session.get("/readyz") as response:
            assert (response.status, await response.text()) == (503, "not connected yet\n")
        waits = ""
        async with session.get("/readyz") as response:
            assert (response.status, await response.text()) == (200, "ok\n")
        trouble = "the gateway has been silent for 181 s"
        async with session.get("/healthz") as response:
            assert (response.status, await response.text()) == (503, f"{trouble}\n")
        async with session.get("/readyz") as response:
            assert (response.status, await response.text()) == (503, f"{trouble}\n")


@pytest.mark.real_time
@pytest.mark.parametrize("host", ["127.0.0.1", "192.0.2.1", "nowhere.invalid"])
async def test_a_port_that_cannot_be_had_is_one_line_that_names_the_key(host: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        settings = Settings(metrics=MetricsSettings(port=port, host=host))
        served = serving(settings.metrics, meters_of(settings), lambda: None)
        with pytest.raises(Unusable, match=rf"^metrics\.port: cannot listen on {host}:{port} \([^()]+\); choose") as it:
            await served.__aenter__()
        assert "\n" not in str(it.value)


@pytest.mark.real_time
async def test_an_address_that_this_machine_does_not_have_is_said_to_be_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.13 tells nothing but the list of addresses."""

    async def create_server(*_given: object, **_named: object) -> None:
        raise OSError("could not bind on any address out of [('192.0.2.1', 9464)]")

    monkeypatch.setattr(asyncio.get_running_loop(), "create_server", create_server)
    settings = Settings(metrics=MetricsSettings(port=9464, host="192.0.2.1"))
    with pytest.raises(Unusable, match=r"192\.0\.2\.1:9464 \(this machine has no such address\); choose"):
        async with serving(settings.metrics, meters_of(settings), lambda: None):
            pass
