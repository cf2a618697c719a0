"""compose.nats.yaml and deploy/nats say the same as compose.yaml, the command line and the settings; three real servers
with that configuration are one. No image is built or fetched here.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import subprocess
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from app import parser
from assembly.running import CANCELLED_GRACE_SECONDS
from model.processes import ROLES
from settings import Settings, SettingsError, load
from tests.deploy.test_container import environment
from tests.loopback.nats_server import binary
from tests.transport.conftest import collected
from transport.address import ServersUnusable
from transport.connection import AWAY_ERRORS, Address, connect, streams_of
from transport.streams import LOG, Layout, create_streams

__all__ = ["collected"]

ROOT = Path(__file__).parents[2]
SERVERS = ("nats-1", "nats-2", "nats-3")
CONFIGURATION = ROOT / "deploy" / "nats" / "server.conf"
WITHIN = 60.0
TOKEN = "x9Kp-27qLw-sz81-Bv"

needs_server = pytest.mark.skipif(binary() is None, reason="nats-server is not here")


def composed(name: str = "compose.nats.yaml") -> dict[str, Any]:
    return yaml.safe_load((ROOT / name).read_text())


def roles() -> dict[str, dict[str, Any]]:
    return {name: each for name, each in composed()["services"].items() if name not in SERVERS}


def test_each_role_has_its_service_and_those_with_one_writer_have_somebody_who_takes_over() -> None:
    played = {name: parser().parse_args(each["command"]).role for name, each in roles().items()}
    assert played == {**{role: (role,) for role in ROLES}, "dashboard": ("worker",)}
    counts = {name: each.get("deploy", {}).get("replicas", 1) for name, each in roles().items()}
    assert counts == {"gateway": 1, "worker": 2, "dashboard": 1, "team": 2, "knowledge": 2}


def test_a_role_may_do_as_little_as_the_bot_alone() -> None:
    bot = composed("compose.yaml")["services"]["bot"]
    same = ("build", "image", "init", "restart", "env_file", "stop_grace_period", "read_only", "tmpfs", "cap_drop")
    for each in roles().values():
        for key in (*same, "security_opt", "mem_limit", "pids_limit", "logging"):
            assert each[key] == bot[key], key
        assert {"command", "networks", "depends_on", "environment", "volumes", *same} >= each.keys() - {
            "security_opt", "mem_limit", "pids_limit", "logging", "deploy", "profiles", "ports",
        }  # fmt: skip
        (bound,) = [volume for volume in each["volumes"] if not isinstance(volume, str)]
        assert bound in bot["volumes"]
        assert each["depends_on"] == {server: {"condition": "service_healthy"} for server in SERVERS}


def test_the_dashboard_is_asked_for_and_seen_from_this_machine_alone(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text((ROOT / "config.yaml").read_text())
    reached = {name: each["ports"] for name, each in roles().items() if "ports" in each}
    assert reached == {"dashboard": ["127.0.0.1:9090:9090"]}
    service = roles()["dashboard"]
    assert service["profiles"] == ["dashboard"]
    told = environment() | service["environment"]
    with pytest.raises(SettingsError, match=r"dashboard\.token"):
        load(config, told)
    settings = load(config, told | {"APP__DASHBOARD__TOKEN": TOKEN})
    assert settings.dashboard.enabled


def test_roles_wait_longer_for_the_end_than_the_program_takes_for_it() -> None:
    for each in roles().values():
        assert int(each["stop_grace_period"].removesuffix("s")) > (
            Settings().app.shutdown_grace_seconds + CANCELLED_GRACE_SECONDS
        )


def test_all_are_told_of_the_same_servers(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text((ROOT / "config.yaml").read_text())
    for each in roles().values():
        settings = load(config, environment() | each["environment"] | {"APP__DASHBOARD__TOKEN": TOKEN})
        assert settings.transport == ",".join(f"nats://{server}:4222" for server in SERVERS)
        assert settings.nats.replicas == len(SERVERS)
    assert [f'"nats://{server}:6222"' for server in SERVERS] == [
        line.strip() for line in CONFIGURATION.read_text().splitlines() if line.strip().startswith('"nats://')
    ]


def test_a_server_has_its_name_its_store_and_its_check_and_is_not_reached_from_outside() -> None:
    services, networks = composed()["services"], composed()["networks"]
    for name in SERVERS:
        server = services[name]
        assert server["environment"] == {"NATS_NAME": name}
        assert server["volumes"] == [f"{name}:/data", "./deploy/nats:/etc/nats:ro"]
        assert server["command"] == ["-c", f"/etc/nats/{CONFIGURATION.name}"]
        assert server["healthcheck"]["test"][-1] == "http://127.0.0.1:8222/healthz"
        assert (server["read_only"], server["cap_drop"]) == (True, ["ALL"])
        assert server["networks"] == ["nats"]
        assert not server.get("ports")
    assert networks["nats"] == {"internal": True}
    assert set(composed()["volumes"]) == {*SERVERS, *ROLES}


class Cluster:
    """Three servers with the configuration of deploy/nats, but for addresses and stores."""

    def __init__(self, root: Path) -> None:
        ports = iter(free_ports(3 * len(SERVERS)))
        self.ports = {name: (next(ports), next(ports), next(ports)) for name in SERVERS}
        self._root = root
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def urls(self) -> Sequence[str]:
        return [f"nats://127.0.0.1:{client}" for client, _, _ in self.ports.values()]

    def configuration(self, name: str) -> Path:
        client, route, checks = self.ports[name]
        text = CONFIGURATION.read_text()
        changes = {
            "0.0.0.0:4222": f"127.0.0.1:{client}",
            "0.0.0.0:6222": f"127.0.0.1:{route}",
            "127.0.0.1:8222": f"127.0.0.1:{checks}",
            '"/data"': f'"{self._root / name}"',
            **{f"{each}:6222": f"127.0.0.1:{self.ports[each][1]}" for each in SERVERS},
        }
        for old, new in changes.items():
            assert old in text
            text = text.replace(old, new)
        path = self._root / f"{name}.conf"
        path.write_text(text)
        return path

    def start(self) -> None:
        program = binary()
        assert program is not None
        for name in SERVERS:
            with (self._root / f"{name}.log").open("ab") as log:
                self._processes[name] = subprocess.Popen(
                    [program, "-c", self.configuration(name)],
                    stdout=log,
                    stderr=log,
                    env={**os.environ, "NATS_NAME": name},
                )
        until(lambda: all(self.healthy(name) for name in SERVERS))

    def healthy(self, name: str) -> bool:
        """As the health check of the container asks."""
        assert self._processes[name].poll() is None, (self._root / f"{name}.log").read_text()
        checks = http.client.HTTPConnection("127.0.0.1", self.ports[name][2], timeout=5)
        try:
            checks.request("GET", "/healthz")
            return checks.getresponse().status == http.client.OK
        except OSError:
            return False
        finally:
            checks.close()

    def kill(self, name: str) -> None:
        process = self._processes.pop(name)
        process.kill()
        process.wait()

    def end(self) -> None:
        for name in list(self._processes):
            self.kill(name)


def free_ports(count: int) -> list[int]:
    """Each another one."""
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in held:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in held]


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + WITHIN
    while not condition():
        assert time.monotonic() < end, "it does not come about"
        time.sleep(0.05)


@pytest.fixture
def cluster(tmp_path: Path) -> Generator[Cluster]:
    made = Cluster(tmp_path)
    try:
        made.start()
        yield made
    finally:
        made.end()


@needs_server
@pytest.mark.real_time
@pytest.mark.slow
async def test_three_servers_are_one_and_the_loss_of_any_is_survived(cluster: Cluster) -> None:
    client = await connect(Address(tuple(cluster.urls)), "test")
    end = time.monotonic() + WITHIN
    while True:
        try:
            await create_streams(client, Layout(replicas=len(SERVERS)))
            break
        except (ServersUnusable, *AWAY_ERRORS):  # they have not found each other yet
            assert time.monotonic() < end, "they do not become one"
    streams = streams_of(client)
    info = await streams.stream_info(LOG)
    assert info.config.num_replicas == len(SERVERS)

    async def publish(text: bytes) -> None:
        while time.monotonic() < end + WITHIN:
            # No leader yet, not known everywhere yet, or the connection was to the one that is gone.
            with contextlib.suppress(*AWAY_ERRORS):
                await streams.publish("log.p00.done", text, timeout=1)
                return
        pytest.fail("nobody takes it")

    await publish(b"before")
    assert info.cluster is not None
    assert info.cluster.leader is not None
    cluster.kill(info.cluster.leader)
    await publish(b"after")
    assert (await streams.get_msg(LOG, 1)).data == b"before"
    await client.close()
