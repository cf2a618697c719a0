"""Reads the answers of `--init` from a terminal or a file, and writes them into the operator's files."""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import signal
import sys
import textwrap
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
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
    find_key,
    load,
    local_file,
    names_of_variables,
    partial_models,
    read_dotenv,
    read_yaml,
    variable_name,
)
from settings.editing import edit_dotenv, edit_yaml
from sinks.terminal import printable_line, visible_lines

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
"""The keys of a file of answers, with their descriptions."""

LIST_KEYS = {"team_roles", "team_people", "documentation"}
"""The keys that may have a list."""
FLAG_KEYS = {"build_index"}
"""The keys that are true or false."""

LATER, NONE = "later", "none"
WORDS = {LATER, NONE}
"""Answers to questions for secrets that are no secrets."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question of the wizard. `key`: its name in a file of answers, one of `KEYS`."""

    key: str
    text: str
    secret: bool = False


class WrongAnswer(Exception):
    """An answer cannot be used. The message is one line with the reason, and contains no secret."""


class Answers(Protocol):
    """A source of answers. `interactive`: True if somebody can be asked again."""

    interactive: bool

    def ask(self, question: Question, check: Callable[[str], T], default: str = "") -> T:
        """Return the result of `check` for the answer, or for `default` without one. `check` may raise WrongAnswer."""
        ...

    def ask_for_all(self, question: Question, check: Callable[[str], T]) -> list[T]:
        """Return the results of `check` for several answers; an empty list if there is none."""
        ...

    def ask_yes_no(self, question: Question, *, default: bool) -> bool: ...


class WizardOutput:
    """Prints lines of the wizard in which text from outside cannot colour, move or clear anything. At a terminal, lines
    break between words; an address or a path is never broken, so that it can be copied.
    """

    def __init__(self, console: Console) -> None:
        self.console = console

    def head(self, text: str) -> None:
        self.console.print()
        self._print(text, "bold")

    def say(self, text: str) -> None:
        self._print(" ".join(visible_lines(text)))  # indented as it is

    def good(self, text: str) -> None:
        self._print(f"✓ {printable_line(text)}", "green", 1)

    def bad(self, text: str) -> None:
        self._print(f"✗ {printable_line(text)}", "bold red", 1)

    def warn(self, text: str) -> None:
        self._print(f"! {printable_line(text)}", "yellow", 1)

    def wrap(self, text: str) -> list[str]:
        """Break a text into lines that fit the terminal."""
        width = self.console.width if self.console.is_terminal else sys.maxsize
        return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]

    def _print(self, text: str, style: str = "", styled: int | None = None) -> None:
        """Print a text. `styled`: so many characters at its beginning have the style; None: all."""
        for number, line in enumerate(self.wrap(text)):
            shown = Text(line)
            if style and (number == 0 or styled is None):
                shown.stylize(style, 0, styled)
            self.console.print(shown, soft_wrap=True, highlight=False)


class TerminalAnswers:
    """Somebody at a terminal. Wrong answers are explained in one line, and asked again."""

    interactive = True

    def __init__(self, output: WizardOutput) -> None:
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401, PLC0415  # pyright: ignore[reportUnusedImport] (arrow keys in `input`)
        self._output = output

    def ask(self, question: Question, check: Callable[[str], T], default: str = "") -> T:
        shown = "as it is" if question.secret and default not in WORDS else printable_line(default)
        kept = f" [{shown}]" if default else ""
        while True:
            try:
                *above, last = self._output.wrap(f"{question.text}{kept}:")
                for line in above:
                    self._output.say(line)
                given = self._read(f"{last} ", secret=question.secret)
                with self._output.console.status("one moment …"):
                    return check(given or default)
            except WrongAnswer as error:
                self._output.bad(str(error))

    def ask_for_all(self, question: Question, check: Callable[[str], T]) -> list[T]:
        found: list[T] = []

        def one(text: str) -> T | None:
            return check(text) if text else None

        while (answer := self.ask(question, one)) is not None:
            found.append(answer)
        return found

    def ask_yes_no(self, question: Question, *, default: bool) -> bool:
        words = {"y": True, "yes": True, "n": False, "no": False, "": default}

        def parse(text: str) -> bool:
            if text.lower() not in words:
                raise WrongAnswer("write y or n")
            return words[text.lower()]

        return self.ask(Question(question.key, f"{question.text} ({'Y/n' if default else 'y/N'})"), parse)

    def _read(self, prompt: str, *, secret: bool) -> str:
        try:
            given = (getpass.getpass(prompt) if secret else input(prompt)).strip()
        except EOFError:  # Ctrl-D
            raise KeyboardInterrupt from None
        except UnicodeDecodeError:
            raise WrongAnswer("this is not UTF-8 text") from None
        return check_visible(given)


def check_visible(given: str) -> str:
    """Return the answer. Raises WrongAnswer: it contains invisible characters."""
    if not given.isprintable():
        raise WrongAnswer("this holds invisible characters")
    return given


class FileAnswers:
    """Takes answers from a YAML file. A missing key leaves the setting as it is; a wrong answer ends the command."""

    interactive = False

    def __init__(self, path: Path) -> None:
        """Raises SettingsError or Unusable: the file cannot be read, or has unknown keys."""
        self._draft = read_yaml(path, option="--init")
        known = ", ".join(KEYS)
        for name in self._draft.values:
            if name not in KEYS:
                # Any other name may be a secret in the position of a key.
                shown = f"{name} " if isinstance(name, str) and name.isidentifier() and len(name) < MAX_SHOWN else ""
                close = get_close_matches(str(name), KEYS, n=1)
                remedy = f"did you mean {close[0]}?" if close else f"known are {known}"
                raise Unusable(f"{self._where(name)}: {shown}is none of the answers; {remedy}")
        if not self._draft.values:
            raise Unusable(f"{path}: there are no answers in it; known are {known}")
        # All answers are checked now, as some are used only after others were written.
        for key in KEYS:
            if key in FLAG_KEYS:
                self._read_flag(key)
            else:
                self._read_texts(key)

    def ask(self, question: Question, check: Callable[[str], T], default: str = "") -> T:
        given = self._read_texts(question.key)
        if given or not default:
            return self._check(question.key, ", ".join(given), check)
        try:
            return check(default)
        except WrongAnswer as error:
            why = f"{question.key} is not in it, and what is set cannot be used: {error}"
            raise Unusable(f"{self._where(question.key)}: {why}") from None

    def ask_for_all(self, question: Question, check: Callable[[str], T]) -> list[T]:
        return [self._check(question.key, text, check) for text in self._read_texts(question.key)]

    def ask_yes_no(self, question: Question, *, default: bool) -> bool:  # noqa: ARG002 (what is left out is not done)
        return self._read_flag(question.key)

    def _check(self, key: str, text: str, check: Callable[[str], T]) -> T:
        try:
            return check(text)
        except WrongAnswer as error:
            raise self._wrong(key, str(error)) from None

    def _read_flag(self, key: str) -> bool:
        given: object = self._draft.values.get(key)
        if given is not None and not isinstance(given, bool):
            raise self._wrong(key, "it must be true or false")
        return given is True

    def _read_texts(self, key: str) -> list[str]:
        given: object = self._draft.values.get(key)
        if given is None:
            return []
        several = cast("Sequence[object]", given) if key in LIST_KEYS and isinstance(given, list) else [given]
        return [self._check(key, self._text(key, each).strip(), check_visible) for each in several]

    def _text(self, key: str, given: object) -> str:
        if key == "documentation" and isinstance(given, dict) and len(cast("dict[object, object]", given)) == 1:
            # `sitemap: https://…` without quotes
            ((name, value),) = cast("dict[object, object]", given).items()
            return f"{name}: {value}"
        if isinstance(given, str) or (isinstance(given, int) and not isinstance(given, bool)):
            return str(given)
        raise self._wrong(key, "it must be text, or a list of texts" if key in LIST_KEYS else "it must be text")

    def _wrong(self, key: str, why: str) -> Unusable:
        # No colon after the key: what follows "token:" is taken for a secret, and redacted.
        return Unusable(f"{self._where(key)}: {key} cannot be used: {why}")

    def _where(self, key: Any) -> str:
        return self._draft.where([key])


MAX_SHOWN = 30
"""The most characters of a name that is repeated in an error."""


LOCAL_CONFIG_HEADER = "# What is set here wins over config.yaml, which lists every key; a list wins as a whole.\n"


class OperatorFiles:
    """The files with the settings of the operator: config.local.yaml, .env, and the list of pages.

    Answers are checked at once and written by `write`, each file atomically; secrets go into .env, for its owner alone.
    """

    def __init__(self, config: Path) -> None:
        self.config = config
        self.local, self.env = local_file(config), config.with_name(".env")
        self.written: list[Path] = []
        self._values: dict[tuple[str, ...], object] = {}
        self._links: list[str] = []

    @property
    def settings(self) -> Settings:
        """The settings as they will be after writing. Raises SettingsError."""
        return load(self.config, answers=self._values, setting_up=True)

    @property
    def partial_models(self) -> dict[str, dict[str, str]]:
        """The incomplete models by their key, each with the texts that are set."""
        return partial_models(self.config)

    def try_values(self, values: Mapping[str, object]) -> Settings:
        """Return the settings with these values, by key. Raises WrongAnswer: they are not valid."""
        try:
            return load(self.config, answers={**self._values, **paths(values)}, setting_up=True)
        except SettingsError as error:
            raise WrongAnswer(str(error).removeprefix("this answer: ")) from None

    def keep(self, values: Mapping[str, object]) -> None:
        self._values |= paths(values)

    def add_to_links(self, lines: list[str]) -> None:
        """Add lines to the list of pages, unless it has them."""
        self._links += lines

    def write(self) -> list[str]:
        """Write the kept answers. Returns the environment variables that override them. Raises OSError."""
        links = self.settings.kb.links_file_path
        with delay_signals():
            self._write_values()
            self._write_links(links)
        mine = list(map(variable_name, self._values))
        overriding = [name for name in names_of_variables(os.environ) if any(covers(name, each) for each in mine)]
        self._values, self._links = {}, []
        return overriding

    def _write_values(self) -> None:
        in_env = {each.path for each in read_dotenv(self.env)}
        variables: dict[tuple[str, ...], str | None] = {}
        values: dict[tuple[str, ...], object] = {}
        for path, value in self._values.items():
            key = find_key(path)
            if value is None:  # a model is removed, with its key
                if any(each[: len(path)] == path for each in in_env):
                    variables[path] = None
                values[path] = None
            elif (key is not None and key.secret) or path in in_env:
                is_text = key is not None and key.is_text
                variables[path] = str(value) if is_text else json.dumps(value)
            else:
                values[path] = value
        if variables:
            text = read_text(self.env)
            if text:
                self.env.chmod(0o600)
            self._replace(self.env, edit_dotenv(text, variables))
        if values:
            self._replace(self.local, edit_yaml(read_text(self.local) or LOCAL_CONFIG_HEADER, values))

    def _write_links(self, path: Path) -> None:
        text = read_text(path)
        known = {line.strip() for line in text.splitlines()}
        new = [line for line in dict.fromkeys(self._links) if line not in known]
        if new:
            begun = text if not text or text.endswith("\n") else f"{text}\n"
            self._replace(path, begun + "".join(f"{line}\n" for line in new))

    def _replace(self, path: Path, text: str) -> None:
        if text != read_text(path):
            files.replace(path, text.encode())
            if path not in self.written:
                self.written.append(path)


def paths(values: Mapping[str, object]) -> dict[tuple[str, ...], object]:
    return {tuple(key.split(".")): value for key, value in values.items()}


def covers(name: str, mine: str) -> bool:
    """Return True if one environment variable sets the same key as another, or a key above or below it."""
    return name == mine or name.startswith(f"{mine}__") or mine.startswith(f"{name}__")


def read_text(path: Path) -> str:
    """Read a text file; an empty text if it does not exist. Raises OSError."""
    try:
        return path.read_text("utf-8-sig")
    except FileNotFoundError:
        return ""


@contextlib.contextmanager
def delay_signals() -> Generator[None]:
    """Delay Ctrl-C, SIGTERM and SIGHUP until the block is done, because several files belong together."""
    received: list[int] = []

    def remember(number: int, _frame: FrameType | None) -> None:
        received.append(number)

    before = {number: signal.signal(number, remember) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in received[:1]:
            signal.raise_signal(number)
