"""Checks the combination of options, runs the chosen command, and turns errors into one line and an exit code."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import logging
import os
import sys
from collections.abc import Callable, Generator, Mapping
from pathlib import Path

from assembly import Unusable
from commands.arguments import (
    BOT,
    COMMANDS,
    FAILED,
    LOCAL,
    NATS,
    OPTIONS,
    UNUSABLE,
    flag,
    print_error,
    print_interrupted,
)
from model.processes import UserError
from services.redaction import Redactor
from services.storage import DamagedIds, FolderBusy, remedy
from services.telemetry import logs
from settings import EMBEDDED, Settings, SettingsError, load


def transport_problems(settings: Settings, *, rehearsal: bool) -> list[str]:
    """Return a line with the remedy for each setting that the transport cannot do. `rehearsal`: nothing is posted."""
    found: list[str] = []
    if settings.local:
        return found
    if rehearsal:
        found.append(
            "app.dry_run: a rehearsal needs transport: local: over NATS it would take messages from those who answer"
        )
    if settings.documents.enabled and settings.documents.store != EMBEDDED:
        found.append(
            "documents.store: over NATS files are kept in its buckets: set it to embedded, or transport: local"
        )
    return found


def check_transport(options: argparse.Namespace, command: str, settings: Settings) -> None:
    """Refuse a command, option or setting that does not work with the transport. Raises Unusable, with the remedy."""
    if settings.local:
        for name, each in {**OPTIONS, **COMMANDS}.items():
            if each.transport == NATS and _is_given(options, name):
                raise Unusable(f"{flag(name)} needs servers of NATS: set transport to nats://…, or leave it out")
        return
    if command != BOT:
        if COMMANDS[command].transport == LOCAL:
            raise Unusable(
                f"{flag(command)} works on files: take them out of NATS with --export DIR, and run it with "
                "transport: local and app.data_dir: DIR; --adopt DIR brings them back"
            )
        return
    if wrong := transport_problems(settings, rehearsal=options.dry_run or settings.app.dry_run):
        raise Unusable(wrong[0])
    for name, option in OPTIONS.items():
        if option.transport == LOCAL and _is_given(options, name):
            raise Unusable(f"{flag(name)} needs transport: local; leave it out")


KB: Mapping[str, tuple[str, ...]] = {
    "list": (),
    "show": ("TOPIC",),
    "remove": ("QA_ID",),
    "restore": ("QA_ID",),
    "add": ("[FILE]",),
    "edit": ("QA_ID", "[FILE]"),
}
"""The actions of `--kb`, with their arguments; one in brackets may be left out."""


def chosen_command(options: argparse.Namespace) -> str:
    """Return the name of the chosen command; `bot` for none."""
    return next((name for name in COMMANDS if _is_given(options, name)), BOT)


def check_combination(options: argparse.Namespace) -> None:
    """Refuse options that would be ignored. Raises Unusable, which names both."""
    command = chosen_command(options)
    for name, option in OPTIONS.items():
        if option.commands and command not in option.commands and _is_given(options, name):
            raise Unusable(f"{flag(name)} works only {_with_commands(option.commands)}; leave it out")
    if options.ask is not None and not options.ask.strip():
        raise Unusable('--ask needs a question: --ask "How do I install it?"')
    if options.eval is not None:
        check_eval(options)
    if options.kb is not None:
        check_kb(*options.kb)
        if options.conflicts and options.kb[0] != "list":
            raise Unusable("--conflicts works only with --kb list; leave it out")
        for name in ("question", "answer", "author"):
            if options.kb[0] not in {"add", "edit"} and _is_given(options, name):
                raise Unusable(f"{flag(name)} works only with --kb add and --kb edit; leave it out")


def check_eval(options: argparse.Namespace) -> None:
    """Refuse `--eval` without a file of questions, or with options that do not go together. Raises Unusable."""
    if options.from_votes is None:
        if options.eval is True:
            raise Unusable("--eval needs a file of questions: --eval questions.yaml; --eval --from-votes makes one")
        for option in ("since", "data"):
            if _is_given(options, option):
                raise Unusable(f"{flag(option)}: with --eval works only together with --from-votes; leave it out")
        return
    if options.eval is not True:
        raise Unusable("--eval: with --from-votes no file is read; write --eval --from-votes FILE")
    for option in ("json", "baseline", "save", "llm_record", "llm_replay"):
        if _is_given(options, option):
            raise Unusable(f"{flag(option)} works only with --eval FILE; leave it out")


def check_kb(action: str = "", *names: str) -> None:
    """Refuse `--kb` without an action, with an unknown one, or with wrong arguments. Raises Unusable."""
    if action not in KB:
        forms = " | ".join(" ".join((known, *what)) for known, what in KB.items())
        raise Unusable(f"{f'--kb {action}'.rstrip()}: write --kb {forms}")
    taken = KB[action]
    if not taken and names:
        raise Unusable(f"--kb {action} takes nothing more")
    if not sum(not each.startswith("[") for each in taken) <= len(names) <= len(taken):
        if taken[-1].startswith("["):
            raise Unusable(f"--kb {action}: write --kb {' '.join((action, *taken))}")
        raise Unusable(f"--kb {action} needs one {taken[0]}")


def check_files(settings: Settings, options: argparse.Namespace) -> None:
    """Refuse files and folders that a command must not use. Raises Unusable, which names the option."""
    llm_record, llm_replay = options.llm_record, options.llm_replay
    if llm_record is not None:
        if llm_replay is None and not asks_a_model(settings, chosen_command(options)):
            raise Unusable("--llm-record: there is no LLM to record; set ai_response.llm")
        if llm_replay is not None and llm_record.resolve() == llm_replay.resolve():
            raise Unusable("--llm-record: is the file of --llm-replay; name another one")
    if options.data is not None and options.replay is not None:
        check_folder(options.data, settings.app.data_dir)


def check_guild(settings: Settings, options: argparse.Namespace) -> None:
    """Refuse a `--guild` that is not in `guilds`. Raises Unusable."""
    if options.guild is not None and options.report is False and options.guild not in settings.servers:
        known = ", ".join(map(str, settings.servers.own)) or "none"
        raise Unusable(f"--guild {options.guild}: no such server in guilds (there are: {known}); without it all others")


def asks_a_model(settings: Settings, command: str) -> bool:
    """Return True if a command uses one of the configured models."""
    answering, knowledge = settings.ai_response.llm, settings.kb.llm
    match command:
        case "ask" | "eval":
            models = [answering]
        case "init_kb" | "regen":
            models = [answering, knowledge]
        case _:
            models = [answering, knowledge, settings.documents.synthesis_llm]
    return any(llm is not None for llm in models)


def check_folder(folder: Path, live: Path) -> None:
    """Make `folder` for a replay, unless it exists. Raises Unusable: it is the bot's own (pitfall 50), or a file."""
    path = folder.resolve()
    if path == live.resolve() or live.resolve() in path.parents:
        raise Unusable(f"--data: {folder} belongs to the bot (app.data_dir); a replay works in a folder of its own")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = "it is a file" if folder.is_file() else error.strerror
        raise Unusable(f"--data: {folder} cannot be used as a folder ({reason}); name another one") from None


def find_option(error: OSError, settings: Settings, options: argparse.Namespace) -> str | None:
    """Return the option or key that names the file of an error; None: there is no such option."""
    paths = {
        "--replay": options.replay,
        "--record": options.record,
        "--save": options.save,
        "--from-votes": options.from_votes if isinstance(options.from_votes, Path) else None,
        "--llm-record": options.llm_record,
        "app.data_dir": settings.app.data_dir,
    }
    for name, path in paths.items():
        if path is not None and error.filename in {str(path), str(path / ".lock")}:
            return name
    return None


def _is_given(options: argparse.Namespace, name: str) -> bool:
    value: object = getattr(options, name)
    return value is not None and value is not False


def _with_commands(commands: tuple[str, ...]) -> str:
    if commands == (BOT,):
        return "while the bot runs"
    return "with " + " or ".join(flag(name) for name in commands if name != BOT)


log = logging.getLogger(__name__)


def run(options: argparse.Namespace) -> int:
    """Run the command that `options` (see `app.parser`) name, and return its exit code."""
    redact = Redactor().text
    try:
        check_combination(options)
        settings = load(options.config, setting_up=_is_given(options, "init"))
        redact = Redactor(settings.secrets).text
        with private_umask():
            configure_logging(settings, redact, bot=chosen_command(options) == BOT)
            check_files(settings, options)
            check_guild(settings, options)
            check_transport(options, chosen_command(options), settings)
            return run_guarded(settings, options, redact)
    except SettingsError as error:
        return print_error(str(error), UNUSABLE)  # names keys and how to set them, never values
    except (FolderBusy, DamagedIds) as error:  # of a part that can be lifted out, so they are no `UserError`
        return print_error(redact(str(error)), UNUSABLE)
    except UserError as error:
        return print_error(redact(str(error)), error.exit_code)
    except KeyboardInterrupt:
        return print_interrupted()


@contextlib.contextmanager
def private_umask() -> Generator[None]:
    """Make new files readable only by their owner during the block; existing files keep their permissions."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def run_guarded(settings: Settings, options: argparse.Namespace, redact: Callable[[str], str]) -> int:
    """Run the command. Returns its exit code, or that of the error that ended it."""
    try:
        chosen = chosen_command(options)
        # The other modules are not imported: discord.py alone takes over a second.
        module = importlib.import_module(f"commands.{'live' if chosen == BOT else COMMANDS[chosen].module}")
        code: int = module.run(settings, options)
        sys.stdout.flush()
    except (UserError, FolderBusy, DamagedIds):
        raise
    except BrokenPipeError:
        return handle_broken_pipe()
    except KeyboardInterrupt as stopped:
        return print_interrupted(f"interrupted: {stopped}" if stopped.args else "interrupted")
    except OSError as error:
        option = find_option(error, settings, options)
        where = error.filename if option is None else f"{option}: {error.filename}"
        line = (error.strerror or str(error)) if where is None else f"{where}: {error.strerror}; {remedy(error)}"
        return print_error(redact(line), FAILED if option is None else UNUSABLE)
    except Exception:
        # The log takes secrets out of tracebacks; Python's own report of an error does not.
        log.critical("this is a bug; please report it together with these lines", exc_info=True)
        return FAILED
    return code


def configure_logging(settings: Settings, redact: Callable[[str], str], *, bot: bool) -> None:
    """Set up the log. Commands other than the bot log warnings only (unless the level is DEBUG) and do not write the
    log file, which the bot may have open.
    """
    chosen = settings.logging
    quiet = not bot and chosen.level == "INFO"
    logs.configure(
        level="WARNING" if quiet else chosen.level,
        style=chosen.format,
        file=chosen.file.path if bot else None,
        backup_count=chosen.file.rotation.backup_count,
        redact=redact,
    )


def handle_broken_pipe() -> int:
    """Keep the interpreter from flushing the output at exit, as its reader has gone (`| head`). Returns FAILED."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FAILED
