"""Whether the options fit together and the configuration, before anything is done."""

from __future__ import annotations

import argparse
from pathlib import Path

from assembly.errors import Unusable
from settings import Settings

COMMANDS = ("check", "init_kb", "replay", "import", "regen", "ask", "forget", "kb")
"""Without any of them, the bot runs."""

KB = {"list": None, "show": "TOPIC", "remove": "QA_ID", "restore": "QA_ID"}
"""The actions of `--kb`, and what each takes."""

WITH = {
    "data": ("replay",),
    "speed": ("replay",),
    "json": ("replay",),
    "restart": ("regen",),
    "record": ("bot",),
    "llm_record": ("replay", "ask", "init_kb", "regen", "bot"),
    "llm_replay": ("replay", "ask", "init_kb", "regen", "bot"),
}
"""The commands that heed an option."""


def command_of(options: argparse.Namespace) -> str:
    """The name of the chosen command; `bot` for none."""
    return next((name for name in COMMANDS if _given(options, name)), "bot")


def check_combination(options: argparse.Namespace) -> None:
    """Refuse options that would be ignored.

    Raises:
        Unusable: names both.
    """
    command = command_of(options)
    for option, commands in WITH.items():
        if _given(options, option) and command not in commands:
            raise Unusable(f"--{option.replace('_', '-')} works only {_with(commands)}; leave it out")
    if options.ask is not None and not options.ask.strip():
        raise Unusable('--ask needs a question: --ask "How do I install it?"')
    if options.kb is not None:
        check_kb(*options.kb)


def check_kb(action: str, *names: str) -> None:
    """Raises Unusable: `--kb` has no such action, or needs other arguments."""
    if action not in KB:
        forms = " | ".join(f"{known} {what}" if what else known for known, what in KB.items())
        raise Unusable(f"--kb {action}: write --kb {forms}")
    if (what := KB[action]) is None and names:
        raise Unusable(f"--kb {action} takes nothing more")
    if what is not None and len(names) != 1:
        raise Unusable(f"--kb {action} needs one {what}")


def check_files(settings: Settings, options: argparse.Namespace) -> None:
    """Raises Unusable: a file or folder must not be used, or cannot; names the option."""
    llm_record, llm_replay = options.llm_record, options.llm_replay
    if llm_record is not None:
        llm = (settings.kb.llm if options.init_kb or options.regen else None) or settings.ai_response.llm
        if llm_replay is None and llm is None:
            raise Unusable("--llm-record: there is no LLM to record; set ai_response.llm")
        if llm_replay is not None and llm_record.resolve() == llm_replay.resolve():
            raise Unusable("--llm-record: is the file of --llm-replay; name another one")
    if options.data is not None:
        check_folder(options.data, settings.app.data_dir)


def check_folder(folder: Path, live: Path) -> None:
    """Make `folder` for a replay, unless it exists. Raises Unusable: it is the bot's own (pitfall 50), or a file."""
    place = folder.resolve()
    if place == live.resolve() or live.resolve() in place.parents:
        raise Unusable(f"--data: {folder} belongs to the bot (app.data_dir); a replay works in a folder of its own")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = "it is a file" if folder.is_file() else error.strerror
        raise Unusable(f"--data: {folder} cannot be used as a folder ({reason}); name another one") from None


def named_by(error: OSError, settings: Settings, options: argparse.Namespace) -> str | None:
    """The option or key that names the file which could not be opened; None: none does."""
    named = {
        "--replay": options.replay,
        "--record": options.record,
        "--llm-record": options.llm_record,
        "app.data_dir": settings.app.data_dir,
    }
    for name, path in named.items():
        if path is not None and error.filename in {str(path), str(path / ".lock")}:
            return name
    return None


def _given(options: argparse.Namespace, name: str) -> bool:
    value: object = getattr(options, name)
    return value is not None and value is not False


def _with(commands: tuple[str, ...]) -> str:
    if commands == ("bot",):
        return "while the bot runs"
    return "with " + " or ".join(f"--{name.replace('_', '-')}" for name in commands if name != "bot")
