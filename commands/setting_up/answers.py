"""Reads the answers of `--init` from a terminal or from a file, and writes them into config.local.yaml, .env and the
list of pages.
"""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import signal
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Protocol, TypeVar, cast

from rich.console import Console
from rich.text import Text

from assembly import Unusable
from services.knowledge import LINE_FORMS
from services.storage import files
from settings import (
    Settings,
    SettingsError,
    edit_dotenv,
    edit_yaml,
    find_key,
    load,
    local_file,
    names_of_variables,
    partial_model,
    read_dotenv,
    read_yaml,
)
from sinks.terminal import one_line, visible_lines

T = TypeVar("T")

KEYS = {
    "discord_token": "the bot's token, or `later`",
    "team_roles": "names or ids of roles whose holders answer for the team",
    "team_people": "ids of users who do",
    "data_dir": "the folder for everything that the bot keeps",
    "documentation": ", ".join(
        ["a folder, and addresses: `https://…`", *(f"`{form.word} https://…`" for form in LINE_FORMS)]
    ),
    "published_at": "where that folder is published on the web, or `none`",
    "model_base_url": "the address of an OpenAI-compatible endpoint, or `none`",
    "model_api_key": "its key, or `none`",
    "model_name": "the model's name there",
    "build_index": "true to build the index at the end",
    "first_question": "what to ask at the end",
}
"""What a file of answers may say."""

SEVERAL = {"team_roles", "team_people", "documentation"}
"""Those that may be a list."""
AGREED = {"build_index"}
"""Those that are true or false."""

LATER, NONE = "later", "none"
WORDS = {LATER, NONE}
"""Answers that are no secret, also where one is asked for."""


@dataclass(frozen=True, slots=True)
class Question:
    """`key`: its name in a file of answers, one of `KEYS`."""

    key: str
    text: str
    secret: bool = False


class WrongAnswer(Exception):
    """An answer cannot be used; one line that says why, without repeating a secret."""


class Answers(Protocol):
    """`interactive`: somebody is there, and can be asked again."""

    interactive: bool

    def ask(self, question: Question, check: Callable[[str], T], default: str = "") -> T:
        """What `check` makes of the answer; of `default`, where there is none. `check` raises WrongAnswer."""
        ...

    def ask_for_all(self, question: Question, check: Callable[[str], T]) -> list[T]:
        """The same for each of several answers; empty where there is none."""
        ...

    def agrees(self, question: Question, *, default: bool) -> bool: ...


class WizardOutput:
    """Prints lines of the wizard in which text from outside cannot colour, move or clear anything."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def head(self, text: str) -> None:
        self.console.print()
        self._line(Text(text, "bold"))

    def say(self, text: str) -> None:
        self._line(Text(" ".join(visible_lines(text))))  # indented as it is

    def good(self, text: str) -> None:
        self._line(Text.assemble(("✓ ", "green"), one_line(text)))

    def bad(self, text: str) -> None:
        self._line(Text.assemble(("✗ ", "bold red"), one_line(text)))

    def warn(self, text: str) -> None:
        self._line(Text.assemble(("! ", "yellow"), one_line(text)))

    def _line(self, text: Text) -> None:
        # Not wrapped, so that addresses can be copied.
        self.console.print(text, soft_wrap=True, highlight=False)


class TerminalAnswers:
    """Somebody at a terminal. Wrong answers are explained in one line, and asked again."""

    interactive = True

    def __init__(self, tell: WizardOutput) -> None:
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401, PLC0415  # pyright: ignore[reportUnusedImport] (arrow keys in `input`)
        self._tell = tell

    def ask(self, question: Question, check: Callable[[str], T], default: str = "") -> T:
        shown = "as it is" if question.secret and default not in WORDS else one_line(default)
        kept = f" [{shown}]" if default else ""
        while True:
            try:
                given = self._read(f"{question.text}{kept}: ", secret=question.secret)
                with self._tell.console.status("one moment …"):
                    return check(given or default)
            except WrongAnswer as error:
                self._tell.bad(str(error))

    def ask_for_all(self, question: Question, check: Callable[[str], T]) -> list[T]:
        found: list[T] = []

        def one(text: str) -> T | None:
            return check(text) if text else None

        while (answer := self.ask(question, one)) is not None:
            found.append(answer)
        return found

    def agrees(self, question: Question, *, default: bool) -> bool:
        words = {"y": True, "yes": True, "n": False, "no": False, "": default}

        def meant(text: str) -> bool:
            if text.lower() not in words:
                raise WrongAnswer("write y or n")
            return words[text.lower()]

        return self.ask(Question(question.key, f"{question.text} ({'Y/n' if default else 'y/N'})"), meant)

    def _read(self, prompt: str, *, secret: bool) -> str:
        try:
            given = (getpass.getpass(prompt) if secret else input(prompt)).strip()
        except EOFError:  # Ctrl-D
            raise KeyboardInterrupt from None
        except UnicodeDecodeError:
            raise WrongAnswer("this is not UTF-8 text") from None
        return presentable(given)


def presentable(given: str) -> str:
    """Give the answer back; raises WrongAnswer where it contains invisible characters."""
    if not given.isprintable():
        raise WrongAnswer("this holds invisible characters")
    return given


class FileAnswers:
    """Takes answers from a YAML file. A missing key leaves the setting as it is; a wrong answer ends the command."""

    interactive = False

    def __init__(self, path: Path) -> None:
        """Raises SettingsError or Unusable: it cannot be read, or holds what nobody asks for."""
        self._draft = read_yaml(path, option="--init")
        known = ", ".join(KEYS)
        for name in self._draft.values:
            if name not in KEYS:
                # Whatever else it is may be a secret that slipped to where a key belongs.
                shown = f"{name} " if isinstance(name, str) and name.isidentifier() and len(name) < MOST_LETTERS else ""
                raise Unusable(f"{self._where(name)}: {shown}is none of the answers; known are {known}")
        if not self._draft.values:
            raise Unusable(f"{path}: there are no answers in it; known are {known}")
        # All of them now: some are needed only after others were written.
        for key in KEYS:
            if key in AGREED:
                self._agreed(key)
            else:
                self._given(key)

    def ask(self, question: Question, check: Callable[[str], T], default: str = "") -> T:
        given = self._given(question.key)
        return self._checked(question.key, ", ".join(given) if given else default, check)

    def ask_for_all(self, question: Question, check: Callable[[str], T]) -> list[T]:
        return [self._checked(question.key, text, check) for text in self._given(question.key)]

    def agrees(self, question: Question, *, default: bool) -> bool:  # noqa: ARG002 (what is left out is not done)
        return self._agreed(question.key)

    def _checked(self, key: str, text: str, check: Callable[[str], T]) -> T:
        try:
            return check(text)
        except WrongAnswer as error:
            raise self._wrong(key, str(error)) from None

    def _agreed(self, key: str) -> bool:
        given: object = self._draft.values.get(key)
        if given is not None and not isinstance(given, bool):
            raise self._wrong(key, "it must be true or false")
        return given is True

    def _given(self, key: str) -> list[str]:
        given: object = self._draft.values.get(key)
        if given is None:
            return []
        several = cast("Sequence[object]", given) if key in SEVERAL and isinstance(given, list) else [given]
        return [self._checked(key, self._text(key, each).strip(), presentable) for each in several]

    def _text(self, key: str, given: object) -> str:
        if key == "documentation" and isinstance(given, dict) and len(cast("dict[object, object]", given)) == 1:
            # `sitemap: https://…` without quotes
            ((name, value),) = cast("dict[object, object]", given).items()
            return f"{name}: {value}"
        if isinstance(given, str) or (isinstance(given, int) and not isinstance(given, bool)):
            return str(given)
        raise self._wrong(key, "it must be text, or a list of texts" if key in SEVERAL else "it must be text")

    def _wrong(self, key: str, why: str) -> Unusable:
        # No colon after the key: what follows "token:" is taken for a secret, and redacted.
        return Unusable(f"{self._where(key)}: {key} cannot be used: {why}")

    def _where(self, key: Any) -> str:
        return self._draft.where([key])


MOST_LETTERS = 30
"""Of a name that is repeated in an error."""


LOCAL_CONFIG_HEADER = "# What is set here wins over config.yaml, key by key; docs/configuration.md lists every key.\n"


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
    def partial_model(self) -> dict[str, str]:
        """Give what is set of a model that still lacks a required value."""
        return partial_model(self.config)

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
        winning = [
            name for name in names_of_variables(os.environ) if any(covers(name, mine) for mine in names.values())
        ]
        self._values, self._links = {}, []
        return winning

    def _write_values(self) -> None:
        there = {each.path for each in read_dotenv(self.env)}
        variables: dict[tuple[str, ...], str | None] = {}
        values: dict[tuple[str, ...], object] = {}
        for path, value in self._values.items():
            key = find_key(path)
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
            self._replace(self.env, edit_dotenv(text, variables))
        if values:
            self._replace(self.local, edit_yaml(text_of(self.local) or LOCAL_CONFIG_HEADER, values))

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
