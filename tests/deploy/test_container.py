"""Dockerfile, .dockerignore and compose.yaml say the same as Makefile, locks and settings. No image is built here."""

from __future__ import annotations

import fnmatch
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from assembly.running import CANCELLED_GRACE_SECONDS
from settings import Settings, load
from tests.loopback.served import serving
from tests.loopback.web_server import WebServer

ROOT = Path(__file__).parents[2]
USER = "millrace"


def instructions() -> list[tuple[str, str]]:
    """Each instruction of the Dockerfile and what it says, in one line."""
    lines = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if not line.startswith("#")]
    text = "\n".join(lines).replace("\\\n", "")
    return [
        (name, " ".join(rest.split())) for name, _, rest in (line.partition(" ") for line in text.split("\n") if line)
    ]


def said(name: str) -> list[str]:
    return [rest for instruction, rest in instructions() if instruction == name]


def environment() -> dict[str, str]:
    return dict(pair.split("=", 1) for rest in said("ENV") for pair in shlex.split(rest))


def copied() -> list[str]:
    """Return the names that .dockerignore lets into the context: all of it is copied."""
    return [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]


def extras() -> dict[str, list[str]]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def service() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]["bot"]


def test_the_image_installs_the_lock_with_the_commands_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text()
    pip = re.search(r"^PIP = \$\(BIN\)/(python .*)$", makefile, re.MULTILINE)
    assert pip is not None
    assert re.search(
        r"^\$\(VENV\)/runtime: requirements/runtime\.txt .*\n(?:\t.*\n)*\t@\$\(PIP\) -r \$<$", makefile, re.MULTILINE
    )
    assert "$(PYTHON) -m venv $(VENV)" in makefile
    assert f"python3 -m venv .venv && .venv/bin/{pip[1]} -r requirements/runtime.txt" in said("RUN")
    # As the target of extras does.
    assert "@$(PIP) -c requirements/development.txt $$($(BIN)/python deploy/extras.py $*)" in makefile
    (installed,) = [rest for rest in said("RUN") if "deploy/extras.py" in rest]
    assert installed == (
        "python3 deploy/extras.py $EXTRAS > extras.txt && "
        f".venv/bin/{pip[1]} -c requirements/development.txt -r extras.txt"
    )


def listed(*names: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "deploy/extras.py", *names]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_image_takes_the_extras_of_the_project_and_no_others() -> None:
    assert listed(*extras()).stdout.splitlines() == [line for each in extras().values() for line in each]
    assert listed().returncode == 0
    unknown = listed("pdf", "ntas")
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert unknown.stderr == "there is no extra 'ntas'; known are browser, chroma, mcp, nats, pdf\n"
    assert said("ARG") == [f'EXTRAS="{" ".join(sorted(extras().keys() - {"browser"}))}"', "EXTRAS", "EXTRAS"]


def test_the_image_holds_the_product_and_nothing_else() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = set(project["tool"]["importlinter"]["root_packages"])
    files = {"LICENSE", "app.py", "config.yaml", "pyproject.toml", "deploy/extras.py", "deploy/health.py"}
    files |= {"requirements/runtime.txt", "requirements/development.txt"}
    assert sorted(copied()) == sorted(packages | files)
    assert all((ROOT / path).exists() for path in copied())
    assert said("COPY")[-2:] == ["--from=packages /app/.venv .venv", ". ."]


@pytest.mark.slow
def test_what_the_image_holds_is_enough(tmp_path: Path) -> None:
    """The program as it lies there, and a data folder elsewhere."""
    program = tmp_path / "app"
    for path in copied():
        target = program / path
        target.parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / path).is_dir() else shutil.copy
        copy(ROOT / path, target)
    sources = tmp_path / "data" / "knowledge-base" / "sources"
    sources.mkdir(parents=True)
    (sources / "install.md").write_text("# Install\n\nRun `lanternfish setup` and follow what it says.\n")
    names = {"PATH": os.environ["PATH"], "APP__APP__DATA_DIR": str(tmp_path / "data"), "PYTHONDONTWRITEBYTECODE": "1"}
    said_last = ""
    for arguments in (["--init-kb"], ["--ask", "How do I install Lanternfish?"]):
        command = [sys.executable, "app.py", *arguments]
        done = subprocess.run(command, cwd=program, env=names, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        said_last = done.stdout
    assert "lanternfish setup" in said_last
    names |= {"APP__TRANSPORT": "nats://127.0.0.1:9", "APP__DISCORD__TOKEN": "MTE3.aaaaaa.bbbbbbbbbbbbbbbbbbbb"}
    done = subprocess.run(
        [sys.executable, "app.py", "--role", "worker"],
        cwd=program,
        env=names,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.endswith("(connection refused): check the port, and that the server runs\n")


def test_the_context_is_what_is_copied_so_that_no_secret_can_get_into_an_image() -> None:
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert rules[0] == "*"
    assert all(rule.startswith("!") for rule in rules if rule[0] != "*")
    assert all(fnmatch.fnmatch(path, "*.pyc") or path == "**/__pycache__" for path in rules if path[0] == "*" != path)


def test_the_base_is_one_plain_image_of_a_python_that_is_supported_and_both_stages_have_it() -> None:
    base, *stages = said("FROM")
    assert stages == ["base AS packages", "base"]
    version = re.fullmatch(r"python:(3\.\d+)-slim@sha256:[0-9a-f]{64} AS base", base)
    assert version is not None
    others = re.search(r"^OTHERS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert others is not None
    assert version[1] in others[1].split()


def test_the_bot_is_not_root_and_owns_what_it_writes_and_nothing_else() -> None:
    assert said("USER") == [USER]
    assert instructions().index(("USER", USER)) > max(n for n, (name, _) in enumerate(instructions()) if name == "RUN")
    (made,) = [rest for rest in said("RUN") if "useradd" in rest]
    assert "--uid 10001" in made
    assert f"--mode 700 --owner {USER} /data /backups" in made
    assert said("VOLUME") == ['["/data", "/backups"]']
    assert not [rest for rest in said("COPY") if "--chown" in rest]


def test_the_environment_of_the_image_is_one_that_the_settings_take(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text((ROOT / "config.yaml").read_text())
    settings = load(config, environment())
    assert settings.app.data_dir == Path("/data")
    assert settings.kb.sources_dir == Path("/data/knowledge-base/sources")
    assert settings.metrics.port == 9090
    assert settings.metrics.host == "127.0.0.1"


def test_the_command_and_the_health_check_are_there() -> None:
    assert said("ENTRYPOINT") == ['["python", "app.py"]']
    assert said("HEALTHCHECK")[0].endswith('CMD ["python", "deploy/health.py"]')
    assert environment()["PATH"].startswith("/app/.venv/bin:")
    assert said("WORKDIR") == ["/app"]


def test_compose_gives_it_what_it_writes_and_nothing_else() -> None:
    bot = service()
    assert bot["read_only"] is True
    assert bot["cap_drop"] == ["ALL"]
    assert bot["security_opt"] == ["no-new-privileges:true"]
    assert bot["env_file"] == ".env"
    writable = {each.split(":")[0]: each.split(":")[1] for each in bot["volumes"] if isinstance(each, str)}
    assert writable == {"data": environment()["APP__APP__DATA_DIR"], "backups": "/backups"}
    assert set(yaml.safe_load((ROOT / "compose.yaml").read_text())["volumes"]) == set(writable)
    (bound,) = [each for each in bot["volumes"] if not isinstance(each, str)]
    assert (bound["target"], bound["read_only"]) == ("/app/config.local.yaml", True)
    assert bound["bind"] == {"create_host_path": False}
    assert (bot["mem_limit"], bot["pids_limit"], bot["init"]) == ("2g", 512, True)
    assert [each.partition(":")[0] for each in bot["tmpfs"]] == ["/tmp"]  # noqa: S108 (of the container)


def test_compose_waits_longer_for_the_end_than_the_bot_takes_for_it() -> None:
    seconds = int(service()["stop_grace_period"].removesuffix("s"))
    assert seconds > Settings().app.shutdown_grace_seconds + CANCELLED_GRACE_SECONDS


def check(port: int) -> tuple[int, str]:
    """The health check, with a proxy in the environment that answers nobody."""
    command = [sys.executable, "deploy/health.py"]
    variables = {"APP__METRICS__PORT": str(port), "http_proxy": "http://127.0.0.1:9"}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout.strip()


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1), (404, 1)])
def test_the_health_check_asks_whether_the_gateway_is_alive(status: int, code: int) -> None:
    with serving() as server:
        answer(server, status)
        assert check(server.port) == (code, "as it says")


def test_nobody_at_the_port_is_not_healthy() -> None:
    code, line = check(9)
    assert code == 1
    assert line.startswith("no answer at port 9: ")


def answer(server: WebServer, status: int) -> None:
    async def healthz(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text="as it says\n")

    server.paths["/healthz"] = healthz
