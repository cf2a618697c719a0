"""What passes `--check` starts, and what a start refuses does not pass."""

from __future__ import annotations

import contextlib
import json
import socket
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import reactivex as rx

import app
import commands.live
from services.storage import lock
from tests.commands.conftest import SECRET_TOKEN
from tests.services.team.pairs import added, captured, opened, store


class Started(Exception):
    """The bot has come as far as to where its work begins."""


@pytest.fixture
def starts(config: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int | None]:
    """Starts the bot: None where its work begins, else the exit code of the refusal."""

    @asynccontextmanager
    async def reached(*_: object) -> AsyncGenerator[None]:
        raise Started
        yield

    async def quiet(_: object) -> None:
        pass

    def silent(_gateway: object) -> rx.Observable[Any]:
        return rx.never()

    monkeypatch.setattr(commands.live, "observable", silent)
    monkeypatch.setattr(commands.live, "keep_search_current", reached)
    monkeypatch.setattr(commands.live, "warn_if_unreachable", quiet)

    def start() -> int | None:
        begun: list[bool] = []

        def live(settings: Any, options: Any) -> int:
            try:
                return original(settings, options)
            except Started:
                begun.append(True)
                return 0

        original = commands.live.live
        with monkeypatch.context() as patch:
            patch.setattr(commands.live, "live", live)
            code = app.main(["--config", str(config)])
        return None if begun else code

    return start


@dataclass
class Broken:
    """A configuration, as YAML below the token; `around`: what is the case meanwhile; `says`: of the line."""

    yaml: str = ""
    says: str = ""
    token: str = SECRET_TOKEN
    before: Callable[[Path], object] = field(default=lambda _data: None)
    around: Callable[[Path], contextlib.AbstractContextManager[object]] = field(
        default=lambda _data: contextlib.nullcontext()
    )


def a_folder(*names: str) -> Callable[[Path], object]:
    return lambda data: [(data / name).mkdir(parents=True) for name in names]


def a_file(name: str, text: str = "") -> Callable[[Path], object]:
    def make(data: Path) -> None:
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_text(text)

    return make


def filed(data: Path) -> None:
    """A library with a filed pair, whose archive has gone."""
    store(data, captured(1))
    opened(data).decide(added(captured(1), "light"))
    for path in (data / "team-knowledge" / "raw").glob("*.txt"):
        path.unlink()


def decided(data: Path) -> None:
    store(data, captured(1))
    opened(data).decide(added(captured(1), "light"))
    (data / "team-knowledge" / "decisions.jsonl").unlink()


@contextlib.contextmanager
def listening(_data: Path) -> Generator[None]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 47_811))
        taken.listen()
        yield


CASES = {
    "nothing": Broken(),
    "an unknown key": Broken("kb: {sorces_dir: x}\n", "kb.sorces_dir"),
    "an impossible value": Broken("app: {shutdown_grace_seconds: -1}\n", "shutdown_grace_seconds"),
    "no token": Broken(token="", says="discord.token"),
    "a placeholder": Broken(token="REPLACE_ME", says="discord.token"),
    "a token with a blank": Broken(token="two words", says="discord.token"),
    "a data folder that is a file": Broken("app: {data_dir: config.yaml}\n", "app.data_dir"),
    "a data folder below a file": Broken("app: {data_dir: config.yaml/data}\n", "app.data_dir"),
    "a folder in the place of the lock": Broken(before=a_folder(".lock"), says="app.data_dir"),
    "a data folder in use": Broken(around=lambda data: lock(data, "app.py --regen"), says="in use by app.py --regen"),
    "a folder in the place of the counts": Broken(before=a_folder("state/usage.json"), says="usage.json"),
    "a folder in the place of the posts": Broken(before=a_folder("state/posts.jsonl"), says="posts.jsonl"),
    "a folder in the place of the state": Broken(before=a_folder("team-knowledge/state.json"), says="state.json"),
    "a damaged state": Broken(before=a_file("team-knowledge/state.json", "{"), says="state.json"),
    "a cursor from the future": Broken("kb: {qa_raw_last_processed_id: qa_99991231_235959}\n", "more than a day newer"),
    "an archive that is away": Broken(before=filed, says="is the folder mounted"),
    "decisions that are away": Broken(before=decided, says="decisions.jsonl"),
    "a port in use": Broken("metrics: {port: 47811}\n", "metrics", around=listening),
    "a browser that is not installed": Broken("kb: {web_fetch_renderer: browser}\n", "make extra-browser"),
    "a log that cannot be written": Broken("logging: {file: {path: config.yaml/bot.log}}\n"),
    "an odd counts file": Broken(before=a_file("state/usage.json", json.dumps({"day": "x"}))),
    "no documents": Broken("kb: {sources_dir: data/empty}\n", before=a_folder("empty")),
}


@pytest.mark.parametrize("name", CASES)
def test_what_passes_starts_and_what_does_not_is_refused(
    config: Path,
    starts: Callable[[], int | None],
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Pitfall 70."""
    case = CASES[name]
    monkeypatch.setitem(sys.modules, "playwright.async_api", None)
    monkeypatch.delitem(sys.modules, "services.knowledge.web.browser", raising=False)
    config.write_text(f"discord:\n  token: '{case.token}'\n  team_member_ids: [902]\n{case.yaml}")
    case.before(config.parent / "data")
    with case.around(config.parent / "data"):
        checked = app.main(["--config", str(config), "--check"])
        told = capsys.readouterr()
        started = starts()
    assert (checked == 0) == (started is None), told.out
    assert (started is None) == (case.says == ""), "the case is what it says"
    assert case.says in told.out + told.err
    assert "Traceback" not in told.err
