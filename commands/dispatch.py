"""From parsed options to a command; from what can go wrong to one readable line and an exit code."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable

from assembly.errors import Unusable
from assembly.redaction import redactor_of
from assembly.running import terminated_as_interrupted
from commands.ask import ask
from commands.check import check
from commands.forget import forget
from commands.importing import import_files
from commands.init_kb import init_kb
from commands.kb import team_knowledge
from commands.options import check_combination, check_files, command_of, named_by
from commands.regenerating import regen
from commands.replay import ReplayOptions, replay
from services.discord import BadRecording, GatewayRefused
from services.llm import UnreadableExchanges
from services.redaction import Redactor
from services.storage import FolderBusy, remedy
from services.team import LibraryUnusable, LibraryUnwritable
from services.telemetry import logs
from settings import Settings, SettingsError, load

FAILED, UNUSABLE = 1, 2
CANNOT_START = (SettingsError, Unusable, BadRecording, FolderBusy, GatewayRefused, UnreadableExchanges, LibraryUnusable)
"""Each says in one line what to do."""

log = logging.getLogger(__name__)


def run(options: argparse.Namespace) -> int:
    """The exit code of the command that `options` (see `app.parser`) name."""
    redact = Redactor().text
    try:
        check_combination(options)
        settings = load(options.config)
        redact = redactor_of(settings).text
        configure_logging(settings, redact, bot=command_of(options) == "bot")
        check_files(settings, options)
        return guarded(settings, options, redact)
    except SettingsError as error:
        return say(str(error), UNUSABLE)  # names keys and how to set them, never values
    except CANNOT_START as error:
        return say(redact(str(error)), UNUSABLE)


def guarded(settings: Settings, options: argparse.Namespace, redact: Callable[[str], str]) -> int:
    """Run the command. Gives its exit code, or that of the error that ended it."""
    try:
        code = command(settings, options)
        sys.stdout.flush()
    except CANNOT_START:
        raise
    except BrokenPipeError:
        return quietly_cut_off()
    except KeyboardInterrupt:
        return say("interrupted", FAILED)
    except LibraryUnwritable as error:
        return say(redact(str(error)), FAILED)
    except OSError as error:
        option = named_by(error, settings, options)
        where = error.filename if option is None else f"{option}: {error.filename}"
        line = (error.strerror or str(error)) if where is None else f"{where}: {error.strerror}; {remedy(error)}"
        return say(redact(line), FAILED if option is None else UNUSABLE)
    except Exception:
        # The log takes secrets out of tracebacks; Python's own report of an error does not.
        log.critical("this is a bug; please report it together with these lines", exc_info=True)
        return FAILED
    return code


def command(settings: Settings, options: argparse.Namespace) -> int:
    llm = {"record": options.llm_record, "replay": options.llm_replay}
    commands: dict[str, Callable[[], int]] = {
        "check": lambda: check(settings),
        "init_kb": lambda: init_kb(settings, **llm),
        "forget": lambda: forget(settings, options.forget),
        "kb": lambda: team_knowledge(settings, *options.kb),
        "import": lambda: import_files(settings, getattr(options, "import")),
        "regen": lambda: regen(settings, restart=options.restart, **llm),
        "replay": lambda: run_replay(settings, options),
        "ask": lambda: ask(settings, options.ask, **llm),
        "bot": lambda: run_bot(settings, options),
    }
    return commands[command_of(options)]()


def run_replay(settings: Settings, options: argparse.Namespace) -> int:
    data, speed, as_json = options.data, options.speed, options.json
    with terminated_as_interrupted():  # so that its temporary folder is removed
        return replay(
            settings, ReplayOptions(options.replay, data, speed, as_json, options.llm_record, options.llm_replay)
        )


def run_bot(settings: Settings, options: argparse.Namespace) -> int:
    # discord.py takes over a second to import, and nobody else needs it.
    from commands.live import LiveOptions, live  # noqa: PLC0415

    return live(settings, LiveOptions(options.dry_run, options.record, options.llm_record, options.llm_replay))


def configure_logging(settings: Settings, redact: Callable[[str], str], *, bot: bool) -> None:
    """As configured for the bot. Other commands have output of their own: they log warnings only, unless the level is
    DEBUG, and leave the log file to the bot, which may be writing it.
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


def say(line: str, code: int) -> int:
    print(f"app.py: {' '.join(line.split())}", file=sys.stderr)  # noqa: T201 (the one line that the user reads)
    return code


def quietly_cut_off() -> int:
    """The reader of the output has gone (`| head`): the interpreter must not try to flush it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FAILED
