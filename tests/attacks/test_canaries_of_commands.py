"""No command prints, logs, sends or keeps a secret, however it fails."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

import app
from settings import Settings
from tests.attacks.test_canaries import FAILURES
from tests.loopback import llm_scenes as scenes
from tests.loopback.llm_server import LLMServer
from tests.root_logger import logging_restored

__all__ = ["logging_restored"]

SECRETS = {
    "discord.token": "MTE3NTk0ODYyMzg3MjAwMDAwMQ.canary.canary-of-discord-abcdefgh",
    "ai_response.llm.api_key": "canary-of-answering",
    "kb.llm.api_key": "canary-of-knowledge",
    "documents.synthesis_llm.api_key": "canary-of-synthesis",
    "documents.embeddings.api_key": "canary-of-document-embeddings",
    "search.embeddings.api_key": "canary-of-search-embeddings",
}
UNRELATED = "canary-of-the-environment"
CANARY = "canary-of-"
"""In each of them, and in nothing else."""
ASKED = SECRETS.keys() - {"discord.token"}
"""The keys of endpoints that commands ask here."""
QUESTION = "How do I install Lanternfish?"


@pytest.fixture(scope="module")
def model() -> Iterator[LLMServer]:
    """A loopback model that commands can ask which run on a loop of their own."""
    loop, server = asyncio.new_event_loop(), LLMServer()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result(10)
    yield server
    asyncio.run_coroutine_threadsafe(server.__aexit__(None, None, None), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def secret(key: str) -> dict[str, str]:
    return {"api_key": SECRETS[f"{key}.api_key"]}


@dataclass(frozen=True)
class Operator:
    """Somebody at a terminal, with a configuration that is full of secrets."""

    folder: Path
    model: LLMServer
    capsys: pytest.CaptureFixture[str]

    def configured(self, **sections: dict[str, Any]) -> Operator:
        llm = {"base_url": self.model.base_url, "model": "m", "timeout_seconds": 1.0, "max_retries": 0}
        embeddings = {"base_url": self.model.base_url, "model": "e"}
        plain: dict[str, dict[str, Any]] = {
            "discord": {"token": SECRETS["discord.token"], "team_member_ids": [902]},
            "ai_response": {"llm": llm | secret("ai_response.llm")},
            "kb": {"llm": llm | secret("kb.llm"), "settle_minutes": 0},
            "documents": {
                "synthesis_llm": llm | secret("documents.synthesis_llm"),
                "embeddings": embeddings | secret("documents.embeddings"),
            },
            "search": {"embeddings": embeddings | secret("search.embeddings")},
            "logging": {"level": "DEBUG"},
        }
        merged = {name: plain.get(name, {}) | sections.get(name, {}) for name in {*plain, *sections}}
        self.config.write_text(yaml.safe_dump(merged))
        return self

    @property
    def config(self) -> Path:
        return self.folder / "config.yaml"

    @property
    def export(self) -> Path:
        return self.folder / "export.json"

    def runs(self, *arguments: str) -> tuple[int, str]:
        """The exit code, and all that was printed."""
        try:
            code = app.main(["--config", str(self.config), *arguments])
        except SystemExit as end:
            code = int(str(end.code))
        out, err = self.capsys.readouterr()
        return code, out + err

    @property
    def questions(self) -> Path:
        return self.folder / "questions.yaml"

    def kept(self) -> Iterator[tuple[str, str]]:
        """Every file but those in which the operator has written the secrets."""
        for path in self.folder.rglob("*"):
            if (
                path.is_file()
                and path not in {self.config, self.export, self.questions}
                and "sources" not in path.parts
            ):
                yield str(path.relative_to(self.folder)), path.read_bytes().decode(errors="replace")

    def leaks(self, *printed: str) -> list[str]:
        asked = [json.dumps(seen.body) for seen in self.model.requests]
        outputs = [*(("printed", each) for each in printed), *(("asked", each) for each in asked), *self.kept()]
        return [
            f"{where}: …{text[max(text.find(CANARY) - 60, 0) :][:120]}" for where, text in outputs if CANARY in text
        ]


@pytest.fixture
def operator(
    tmp_path: Path, model: LLMServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Operator:
    monkeypatch.setenv("UNRELATED_SECRET", UNRELATED)
    sources = tmp_path / "data" / "knowledge-base" / "sources"
    sources.mkdir(parents=True)
    pasted = " and ".join(SECRETS.values())
    (sources / "install.md").write_text(f"# Install\n\nInstall Lanternfish with {pasted} in its configuration.\n")
    (sources.parent / "index.txt").write_text("kb:install.md\nHow to install Lanternfish.\n")
    (tmp_path / "export.json").write_text(json.dumps(export(pasted)))
    model.seen.clear()
    model.others.clear()
    model.otherwise = scenes.good()
    operator = Operator(tmp_path, model, capsys).configured()
    asked = {"question": f"{QUESTION} With {pasted}?", "source": "install.md", "words": pasted}
    operator.questions.write_text(yaml.safe_dump({"questions": [asked]}))
    return operator


def export(pasted: str) -> dict[str, Any]:
    """A question and the team's answer, in which somebody has pasted every secret."""
    said = [("311", f"{QUESTION} My configuration: {pasted}"), ("902", f"Leave out {pasted}, then it works.")]
    return {
        "guild": {"id": "1", "name": "G"},
        "channel": {"id": "17", "type": "GuildTextChat", "name": "help"},
        "messages": [
            {
                "id": str(1481080340800864257 + number),
                "type": "Reply" if number else "Default",
                "timestamp": f"2026-03-11T00:0{number}:30.389+00:00",
                "content": text,
                "author": {"id": author, "name": f"n{author}", "isBot": False},
                "attachments": [],
                "embeds": [],
                "mentions": [],
                **({"reference": {"messageId": "1481080340800864257", "channelId": "17"}} if number else {}),
            }
            for number, (author, text) in enumerate(said)
        ],
    }


COMMANDS: dict[str, tuple[str, ...]] = {
    "check": ("--check",),
    "init-kb": ("--init-kb", "--llm-record", "{}/init.jsonl"),
    "ask": ("--ask", f"{QUESTION} With {SECRETS['kb.llm.api_key']}?", "--llm-record", "{}/ask.jsonl"),
    "eval": ("--eval", "{}/questions.yaml", "--save", "{}/run.jsonl", "--llm-record", "{}/eval.jsonl"),
    "replay": ("--replay", "{}/export.json", "--json", "--data", "{}/replayed", "--llm-record", "{}/replay.jsonl"),
    "import": ("--import", "{}/export.json"),
    "regen": ("--regen", "--llm-record", "{}/regen.jsonl"),
    "kb": ("--kb", "list"),
    "forget": ("--forget", "311"),
}
"""In an order in which each has something to do."""


def run(operator: Operator, *names: str) -> dict[str, tuple[int, str]]:
    """What became of these commands."""
    filled = {name: [each.replace("{}", str(operator.folder)) for each in COMMANDS[name]] for name in names}
    return {name: operator.runs(*arguments) for name, arguments in filled.items()}


@pytest.mark.parametrize("failure", ["nothing", *FAILURES])
def test_no_command_tells_a_secret_when_the_model(operator: Operator, failure: str) -> None:
    """Pitfall 22: also where people have pasted the secrets into pages and messages."""
    operator.model.otherwise = FAILURES.get(failure, scenes.good())
    ended = run(operator, *COMMANDS)
    assert {name for name, (_, printed) in ended.items() if "Traceback" in printed} == set()
    assert operator.leaks(*(printed for _, printed in ended.values())) == []
    assert ended["import"][0] == 0
    sent = {seen.headers["Authorization"].removeprefix("Bearer ") for seen in operator.model.requests}
    asked = {key for key, value in SECRETS.items() if value in sent}
    assert asked == (ASKED if failure == "nothing" else ASKED - {"search.embeddings.api_key"})


@pytest.mark.parametrize("style", ["text", "json"])
def test_no_traceback_holds_a_secret(operator: Operator, style: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pitfall 22."""

    def fails(settings: Settings) -> int:
        raise ValueError(settings.discord.token.get_secret_value())

    def broken(settings: Settings, *_: object, **__: object) -> int:
        try:
            return fails(settings)
        except ValueError as error:
            raise RuntimeError(f"with {SECRETS['kb.llm.api_key']} in {vars(settings)}") from error

    operator.configured(logging={"level": "DEBUG", "format": style})
    monkeypatch.setattr("commands.ask.ask", broken)
    code, printed = operator.runs("--ask", QUESTION)
    assert code == 1
    assert "this is a bug" in printed
    assert "RuntimeError" in printed
    assert operator.leaks(printed) == []


def unclosed(text: str) -> str:
    return text.replace("token: ", 'token: "', 1)


def misplaced(text: str) -> str:
    return text.replace("  token: ", "  team_member_ids: ", 1)


def as_key(text: str) -> str:
    return text.replace("  token: ", "  ", 1).replace("abcdefgh", "abcdefgh: 1", 1)


def as_list(text: str) -> str:
    return text.replace("api_key: canary", "api_key: [canary, x]\n    model: canary")


def with_blank(text: str) -> str:
    return text.replace("api_key: canary-of-", "api_key: x canary-of-")


def at_the_top(text: str) -> str:
    return text + f"{SECRETS['kb.llm.api_key']}\n"


def in_an_address(text: str) -> str:
    return text.replace("base_url: http://", f"base_url: http://me:{SECRETS['kb.llm.api_key']}@")


@pytest.mark.parametrize(
    "broken",
    [unclosed, misplaced, as_key, as_list, with_blank, at_the_top, in_an_address],
    ids=lambda each: each.__name__,
)
@pytest.mark.parametrize("command", ["--check", "--init-kb"])
def test_a_configuration_that_is_refused_is_not_repeated(
    operator: Operator, broken: Callable[[str], str], command: str
) -> None:
    """Pitfalls 22 and 45."""
    text = operator.config.read_text()
    operator.config.write_text(broken(text))
    assert operator.config.read_text() != text
    code, printed = operator.runs(command)
    assert code == 2
    assert operator.leaks(printed) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("APP__DISCORD", SECRETS["discord.token"]),
        ("APP__DISCORD__TEAM_MEMBER_IDS", SECRETS["discord.token"]),
        ("APP__AI_RESPONSE__LLM__VRAM_LIMIT", SECRETS["ai_response.llm.api_key"]),
        ("APP__KB__LLM__BASE_URL", SECRETS["kb.llm.api_key"]),
        ("APP__KB__LLM__API_KEY", f"two {SECRETS['kb.llm.api_key']}"),
    ],
)
def test_a_variable_that_is_refused_is_not_repeated(
    operator: Operator, name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pitfalls 22 and 45."""
    monkeypatch.setenv(name, value)
    code, printed = operator.runs("--check")
    assert code == 2
    assert operator.leaks(printed.lower()) == []


@pytest.mark.parametrize(
    "path",
    [
        "knowledge-base/index.txt",
        "state/seen.json",
        "team-knowledge/decisions.jsonl",
        "team-knowledge/state.json",
        "knowledge-base/index-cache.json",
        ".lock",
    ],
)
@pytest.mark.parametrize("odd", ["a folder", "nonsense"])
def test_files_that_cannot_be_read_are_not_repeated(operator: Operator, path: str, odd: str) -> None:
    """Pitfall 22."""
    file = operator.folder / "data" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    if odd == "a folder":
        file.mkdir()
    else:
        file.write_text(f"\x00{{{SECRETS['discord.token']}\n")
    printed = "".join(printed for _, printed in run(operator, "check", "ask", "regen", "kb").values())
    assert CANARY not in printed
    assert not [each for each in operator.leaks() if each.startswith("asked")]
    assert "Traceback" not in printed


def test_the_search_finds_what_is_planted(operator: Operator) -> None:
    assert operator.leaks("fine") == []
    assert len(operator.leaks(f"is {UNRELATED}")) == 1
    (operator.folder / "data" / "kept.txt").write_text(SECRETS["discord.token"])
    assert len(operator.leaks()) == 1
