"""Assistants, and what they are served from."""

from __future__ import annotations

from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import pytest
import yaml

from tests.commands.conftest import SECRET_TOKEN

TOPIC = """\
--- QA ---
id: qa_20260201_031057.000000
timestamp: 2026-02-01T03:10:57.000000Z
said_at: 2026-02-01T03:09:41.120000Z
User: Does the Lanternfish daemon run on Windows 11?
Team: Not yet. Use WSL until version 5.
"""
LONG = "".join(f"Step {number}: turn the lantern by {number} degrees.\n" for number in range(2_000))


class WithoutExtra(pytest.Module):
    """A module of tests that cannot be imported here."""

    def collect(self) -> NoReturn:
        pytest.skip("needs the extra `mcp`: make extra-mcp", allow_module_level=True)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    if find_spec("mcp") is not None:
        return None
    return WithoutExtra.from_parent(parent, path=module_path)  # pyright: ignore[reportUnknownMemberType] (pytest's own)


@pytest.fixture
def knowing(config: Path) -> Path:
    """A configuration with documents, a topic of the team's, and one that is for the team only."""
    return with_knowledge(config)


def with_knowledge(config: Path) -> Path:
    data = config.parent / "data"
    sources, team = data / "knowledge-base" / "sources", data / "team-knowledge"
    (sources / "long.md").write_text(f"# Turning\n\n{LONG}")
    # What nobody sees, and a secret of the configuration.
    hidden = "Calibrate the \u202elamp\u202c with \U000e0041 `lampctl`."
    (sources / "odd.md").write_text(f"# Calibration\n\n{hidden}\n\nThe bot's token is {SECRET_TOKEN}.\n")
    (sources.parent / "index.txt").write_text(
        "kb:install.md\nHow to install Lanternfish with lanternfish setup.\n\n"
        "kb:long.md\nHow to turn the lantern, step by step.\n\n"
        "kb:odd.md\nHow to calibrate the lamp.\n"
    )
    (team / "topics").mkdir(parents=True)
    (team / "topics" / "windows.txt").write_text(TOPIC)
    (team / "topics" / "secret-prices.txt").write_text(TOPIC.replace("Windows 11", "discount of whalefood"))
    (team / "index-team.txt").write_text(
        "team:windows.txt\nWhether it runs on Windows.\n\nteam:secret-prices.txt\nThe discount of whalefood.\n"
    )
    with_sections(config, kb={"internal_topics": ["secret-prices"]}, search={"embeddings": "none"})
    return config


def with_sections(config: Path, **sections: object) -> None:
    """Lay sections over a configuration."""
    config.with_name("config.local.yaml").write_text(
        yaml.safe_dump(
            {**(yaml.safe_load(local.read_text()) if (local := _local(config)).exists() else {}), **sections}
        )
    )


def _local(config: Path) -> Path:
    return config.with_name("config.local.yaml")


@pytest.fixture
def traces(knowing: Path) -> Generator[None]:
    """The data folder is the same afterwards: names, contents, sizes and times (pitfall 50)."""
    before = traces_in(knowing.parent / "data")
    yield
    assert traces_in(knowing.parent / "data") == before


def traces_in(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    return {
        str(path.relative_to(folder)): (
            path.stat().st_mtime_ns,
            path.stat().st_size,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in sorted(folder.rglob("*"))
    }
