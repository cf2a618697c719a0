"""What is kept of the answers, and where: nothing else in these files is touched, and no write is left half done."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Generator, Mapping
from pathlib import Path
from types import FrameType

from commands.setting_up.answers import WrongAnswer
from services.storage import files
from settings import (
    Settings,
    SettingsError,
    begun_model,
    find,
    from_dotenv,
    load,
    local_file,
    variables_of,
    with_values,
    with_variables,
)

HEADER = "# What is set here wins over config.yaml, key by key; docs/configuration.md lists every key.\n"


class OperatorFiles:
    """The files that hold what an operator has set: config.local.yaml, .env, and the list of pages.

    Answers are tried at once and written by `write`, each file atomically; secrets go into .env, for its owner alone.
    """

    def __init__(self, config: Path) -> None:
        self.config = config
        self.local, self.env = local_file(config), config.with_name(".env")
        self.written: list[Path] = []
        self._values: dict[tuple[str, ...], object] = {}
        self._links: list[str] = []

    @property
    def settings(self) -> Settings:
        """Give the settings as they will be after writing. Raises SettingsError."""
        return load(self.config, answers=self._values, setting_up=True)

    @property
    def begun_model(self) -> dict[str, str]:
        """Give what is set of a model that still lacks a required value."""
        return begun_model(self.config)

    def tried(self, values: Mapping[str, object]) -> Settings:
        """The settings with `values`, by key. Raises WrongAnswer: they cannot be."""
        try:
            return load(self.config, answers={**self._values, **paths(values)}, setting_up=True)
        except SettingsError as error:
            raise WrongAnswer(str(error).removeprefix("this answer: ")) from None

    def keep(self, values: Mapping[str, object]) -> None:
        self._values |= paths(values)

    def list_pages(self, lines: list[str]) -> None:
        """Add `lines` to the list of pages, unless they are there."""
        self._links += lines

    def write(self) -> list[str]:
        """Write what was kept. Gives the variables of the environment that win over it. Raises OSError."""
        links = self.settings.kb.links_file_path
        with signals_delayed():
            self._write_values()
            self._write_links(links)
        names = {path: "__".join(["APP", *(word.upper() for word in path)]) for path in self._values}
        winning = [name for name in variables_of(os.environ) if any(covers(name, mine) for mine in names.values())]
        self._values, self._links = {}, []
        return winning

    def _write_values(self) -> None:
        there = {each.path for each in from_dotenv(self.env)}
        variables: dict[tuple[str, ...], str | None] = {}
        values: dict[tuple[str, ...], object] = {}
        for path, value in self._values.items():
            key = find(path)
            if value is None:  # a model is taken away, with its key
                if any(each[: len(path)] == path for each in there):
                    variables[path] = None
                values[path] = None
            elif (key is not None and key.secret) or path in there:
                as_text = key is not None and key.as_text
                variables[path] = str(value) if as_text else json.dumps(value)
            else:
                values[path] = value
        if variables:
            text = text_of(self.env)
            if text:
                self.env.chmod(0o600)
            self._replace(self.env, with_variables(text, variables))
        if values:
            self._replace(self.local, with_values(text_of(self.local) or HEADER, values))

    def _write_links(self, path: Path) -> None:
        text = text_of(path)
        known = {line.strip() for line in text.splitlines()}
        new = [line for line in dict.fromkeys(self._links) if line not in known]
        if new:
            begun = text if not text or text.endswith("\n") else f"{text}\n"
            self._replace(path, begun + "".join(f"{line}\n" for line in new))

    def _replace(self, path: Path, text: str) -> None:
        if text != text_of(path):
            files.replace(path, text.encode())
            if path not in self.written:
                self.written.append(path)


def paths(values: Mapping[str, object]) -> dict[tuple[str, ...], object]:
    return {tuple(key.split(".")): value for key, value in values.items()}


def covers(name: str, mine: str) -> bool:
    """Tell whether one environment variable sets the same key as another, or one above or below it."""
    return name == mine or name.startswith(f"{mine}__") or mine.startswith(f"{name}__")


def text_of(path: Path) -> str:
    """The text of a file; empty where there is none. Raises OSError."""
    try:
        return path.read_text("utf-8-sig")
    except FileNotFoundError:
        return ""


@contextlib.contextmanager
def signals_delayed() -> Generator[None]:
    """Delay Ctrl-C and SIGTERM until the block is done, because several files belong together."""
    came: list[int] = []

    def later(number: int, _frame: FrameType | None) -> None:
        came.append(number)

    before = {number: signal.signal(number, later) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in came[:1]:
            signal.raise_signal(number)
