"""A knowledge base about an invented program, and somebody who evaluates it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app import main

QUESTIONS = """
questions:
  - question: How do I install Lanternfish?
    source: install.md
  - question: Which port does Lanternfish listen on?
    words: port 7480
  - question: Which wine goes with fish?
    silence: true
"""
PAGES = {
    "install.md": "# Install\n\nInstall Lanternfish with `lanternfish setup` and follow what it says.\n",
    "ports.md": "# Ports\n\nLanternfish listens on port 7480. No other port has to be open.\n",
}


class Operator:
    """Types commands, and reads what they print."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.config = folder / "config.yaml"
        self.questions = folder / "questions.yaml"
        self._capsys = capsys
        sources = folder / "data" / "knowledge-base" / "sources"
        sources.mkdir(parents=True)
        for name, text in PAGES.items():
            (sources / name).write_text(text)
        index = "\n\n".join(f"kb:{name}\n{text.splitlines()[-1]}" for name, text in PAGES.items())
        (sources.parent / "index.txt").write_text(f"{index}\n")
        self.configure()
        self.asks()

    def configure(self, **sections: dict[str, Any]) -> None:
        # JSON is YAML.
        self.config.write_text(json.dumps({"search": {"embeddings": "none"}, **sections}))

    def asks(self, text: str = "") -> None:
        """Write the file of questions; `text`: what it says besides them."""
        self.questions.write_text(f"{text}{QUESTIONS}")

    def arguments(self, *more: object) -> list[str]:
        return ["--config", str(self.config), "--eval", str(self.questions), *map(str, more)]

    def evaluates(self, *more: object) -> tuple[int, str, str]:
        """The exit code, and what was printed on stdout and stderr."""
        code = main(self.arguments(*more))
        out, err = self._capsys.readouterr()
        return code, out, err

    def rows(self, *more: object) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """What `--json` prints: the questions, and the summary."""
        *lines, last = map(json.loads, self.evaluates("--json", *more)[1].splitlines())
        return lines, last["summary"]

    def files(self) -> dict[str, bytes]:
        data = self.folder / "data"
        return {str(path.relative_to(data)): path.read_bytes() for path in data.rglob("*") if path.is_file()}


@pytest.fixture
def operator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Operator:
    return Operator(tmp_path, capsys)
