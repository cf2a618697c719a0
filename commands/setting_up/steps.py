"""The questions in their order, what is kept when somebody stops, and what comes after the last one."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from assembly import Unusable
from assembly.running import terminated_as_interrupted
from commands.ask import ask
from commands.exit_codes import FAILED
from commands.init_kb import init_kb
from commands.setting_up.answers import Answers, FileAnswers, Question, TerminalAnswers, WizardOutput
from commands.setting_up.documents import ask_for_data_folder, ask_for_documents, shown
from commands.setting_up.keeping import OperatorFiles
from commands.setting_up.models import ask_for_model
from commands.setting_up.people import ask_for_discord, ask_for_team
from services.storage import FolderBusy
from settings import Settings, load

STEPS = (
    ("Discord", ask_for_discord),
    ("the team", ask_for_team),
    ("the data folder", ask_for_data_folder),
    ("the documentation", ask_for_documents),
    ("the model", ask_for_model),
)


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Run `--init`. Gives the exit code."""
    _ = settings  # read anew, file by file
    return set_up(options.config, None if options.init is True else options.init)


def set_up(config: Path, file: Path | None) -> int:
    """Ask, check and write. `file`: of answers, in place of somebody at the terminal. Gives the exit code.

    Raises:
        Unusable: there is no terminal, or an answer in `file` is wrong; nothing was written then.
        SettingsError: the configuration as it is cannot be read.
        KeyboardInterrupt: somebody has stopped; it has been said what is kept.
        OSError: a file cannot be written.
    """
    tell = WizardOutput(Console())
    if file is None and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Unusable("--init asks questions and there is no terminal: answer them in a file, with --init FILE")
    answers = TerminalAnswers(tell) if file is None else FileAnswers(file)
    own = OperatorFiles(config)
    with terminated_as_interrupted():
        _ask_everything(answers, own, tell)
        make_folder(load(config, setting_up=True).kb.sources_dir)
        tell.head("Done" if own.written else "Done: nothing has changed")
        for path in own.written:
            tell.good(f"{path} is written")
        code = _first_use(answers, config, tell)
    command = f"{shown(Path(sys.executable))} app.py" + ("" if config == Path("config.yaml") else f" --config {config}")
    tell.head("Next")
    tell.say(f"{command} --check     whether everything is in place")
    tell.say(f"{command} --dry-run   reads in Discord, posts nothing")
    tell.say(f"{command}             runs the bot; restart it where it runs already")
    return code


def _ask_everything(answers: Answers, own: OperatorFiles, tell: WizardOutput) -> None:
    done: list[str] = []
    try:
        for name, step in STEPS:
            step(answers, own, tell)
            done.append(name)
            # A file is taken as a whole or not at all.
            if answers.interactive or name == STEPS[-1][0]:
                for variable in own.write():
                    tell.warn(f"the environment variable {variable} wins over what was written: unset it")
    except KeyboardInterrupt:
        tell.console.print()
        tell.warn(stopped(done if answers.interactive else [], own.written))
        raise


def stopped(done: Sequence[str], written: Sequence[Path]) -> str:
    if not written:
        return "nothing was written; everything is as it was"
    return f"kept: {', '.join(done)} (in {', '.join(map(str, written))}); the rest is as it was, and --init goes on"


def make_folder(folder: Path) -> None:
    """Documents are looked for there, also where there are only pages."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _first_use(answers: Answers, config: Path, tell: WizardOutput) -> int:
    """Build the index and answer a question, where that is wanted. Gives the exit code."""
    code = 0
    if answers.agrees(Question("build_index", "Build the index now?"), default=True):
        try:
            code = init_kb(load(config, setting_up=True), record=None, replay=None)
        except (Unusable, FolderBusy) as error:
            tell.bad(str(error))
            code = FAILED
    question = answers.ask(Question("first_question", "A first question to the bot; Enter for none"), str)
    if question:
        code = max(code, ask(load(config, setting_up=True), question, record=None, replay=None))
    return code
