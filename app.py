"""Millrace: the command line, and the life cycle of a run."""

from __future__ import annotations

import signal

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # As in `sigint_ends_at_once`, which gives the handler back: the imports below take a while, too.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import argparse
import codecs
import contextlib
import gc
import json
import os
import sys
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import NoReturn

from commands.arguments import COMMANDS, OPTIONS, UNUSABLE, flag
from model.processes import VERSION


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code. What a user can cause is one line on stderr."""
    replace_closed_streams()
    escape_on_stdout()
    options = parser().parse_args(arguments)
    # Pydantic would look through all installed packages for plugins, for 0.06 s. There are none.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    with contextlib.ExitStack() as starting:
        starting.enter_context(garbage_collection_off())
        try:
            with sigint_ends_at_once():
                # Only now, so that --help answers at once.
                from commands.dispatch import run  # noqa: PLC0415
        except ModuleNotFoundError as error:
            if (Path(__file__).parent / (error.name or "").partition(".")[0]).exists():
                raise  # one of our own
            remedy = "run it with .venv/bin/python, which `make demo` sets up"
            print(f"app.py: this Python has no package {error.name}: {remedy}", file=sys.stderr)  # noqa: T201 (the one line that the user reads)
            return UNUSABLE
        if options.ask is None:
            starting.close()
            return run(options)
        # A single question is over before there is much garbage, and nothing looks for it on the way out.
        code = run(options)
        gc.freeze()
        return code


def replace_closed_streams() -> None:
    """Open the null device for each standard stream that is closed (`>&-`). Otherwise a file that is opened later gets
    its number, and what is printed goes into that file.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 (until the process ends)


ESCAPED = "millrace.escaped"
"""The name by which streams find `escaped`."""


def escape_on_stdout() -> None:
    """Have letters that the encoding of stdout lacks written as JSON escapes them, which is right in lines of JSON too.
    Names of files and what people wrote may hold any letter, and a terminal or a cron job may speak ASCII.
    """
    codecs.register_error(ESCAPED, escaped)
    reconfigure = getattr(sys.stdout, "reconfigure", None)  # None: it is no stream of the system
    if reconfigure is not None:
        reconfigure(errors=ESCAPED)


def escaped(error: UnicodeError) -> tuple[str, int]:
    """Escape the letters of an error of encoding: `codecs.register_error` says in which form."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


@contextlib.contextmanager
def sigint_ends_at_once() -> Generator[None]:
    """Let Ctrl-C end the program without a traceback during the block, while there is nothing to clean up."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # else the caller has a handler
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        # Python never begins with SIG_DFL: it is what the top of this file has set.
        signal.signal(signal.SIGINT, signal.default_int_handler if before is signal.SIG_DFL else before)


@contextlib.contextmanager
def garbage_collection_off() -> Generator[None]:
    """Switch garbage collection off during the block: it took a tenth of `--ask`."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def parser() -> argparse.ArgumentParser:
    cli = Parser(
        prog="app.py",
        description="Millrace answers questions in Discord from a knowledge base, or stays silent. "
        "Without one of the commands below it runs the bot.",
    )
    cli.add_argument(
        "--config", type=Path, default=Path("config.yaml"), metavar="FILE", help="the configuration (config.yaml)"
    )
    cli.add_argument("--version", action="version", version=f"millrace {VERSION}", help="print the version, then exit")
    commands = cli.add_argument_group("commands").add_mutually_exclusive_group()
    for name, command in COMMANDS.items():
        commands.add_argument(flag(name), help=command.help, **command.value)
    groups = {title: cli.add_argument_group(title) for title in dict.fromkeys(each.group for each in OPTIONS.values())}
    for name, option in OPTIONS.items():
        groups[option.group].add_argument(flag(name), help=option.help, **option.value)
    return cli


class Parser(argparse.ArgumentParser):
    """Reports an error in one line, without the usage above it."""

    def error(self, message: str) -> NoReturn:
        self.exit(UNUSABLE, f"{self.prog}: {message.removeprefix('argument ')}; see --help\n")


if __name__ == "__main__":
    done = main()
    from clock import exit_process

    exit_process(done)
