"""Millrace: the command line, and the life cycle of a run."""

from __future__ import annotations

import argparse
import contextlib
import gc
import signal
import sys
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import NoReturn

from commands.arguments import UNUSABLE
from model.processes import VERSION


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code. What a user can cause is one line on stderr."""
    options = parser().parse_args(arguments)
    try:
        with sigint_ends_at_once(), garbage_collection_off():
            # Only now, so that --help answers at once.
            from commands.dispatch import run  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (Path(__file__).parent / (error.name or "").partition(".")[0]).exists():
            raise  # one of our own
        remedy = "run it with .venv/bin/python, which `make demo` sets up"
        print(f"app.py: this Python has no package {error.name}: {remedy}", file=sys.stderr)  # noqa: T201 (the one line that the user reads)
        return UNUSABLE

    return run(options)


@contextlib.contextmanager
def sigint_ends_at_once() -> Generator[None]:
    """Let Ctrl-C end the program without a traceback during the block, while there is nothing to clean up."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # else the caller has a handler
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def garbage_collection_off() -> Generator[None]:
    """Switch garbage collection off during the block. Imports leave little garbage, and looking for it took a tenth of
    the start of `--ask`.
    """
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
    commands.add_argument("--check", action="store_true", help="check whether everything is in place, then exit")
    commands.add_argument(
        "--init",
        type=Path,
        nargs="?",
        const=True,
        metavar="FILE",
        help="set the bot up, question by question, or with the answers in FILE",
    )
    commands.add_argument("--init-kb", action="store_true", help="update the knowledge base, then exit")
    commands.add_argument(
        "--replay", type=Path, metavar="FILE", help="play a recording or an export on a virtual clock"
    )
    commands.add_argument(
        "--import", type=Path, nargs="+", metavar="FILE", help="learn from the team's answers in recordings or exports"
    )
    commands.add_argument("--regen", action="store_true", help="rebuild the team library from the raw archive")
    commands.add_argument("--ask", metavar="QUESTION", help="answer one question here, with the path to the answer")
    commands.add_argument(
        "--eval", type=Path, nargs="?", const=True, metavar="FILE", help="ask your own questions, and judge the answers"
    )
    commands.add_argument("--report", action="store_true", help="what was asked and not answered, votes, cost")
    commands.add_argument("--usage", action="store_true", help="tokens and their price, by step, day and channel")
    commands.add_argument("--forget", type=user_id, metavar="USER_ID", help="remove what is stored about a person")
    commands.add_argument("--backup", type=Path, metavar="FILE", help="copy the data folder, also while the bot runs")
    commands.add_argument("--restore", type=Path, metavar="FILE", help="bring a backup back, into an empty data folder")
    commands.add_argument("--export", type=Path, metavar="DIR", help="with NATS: make a data folder of what is there")
    commands.add_argument("--adopt", type=Path, metavar="DIR", help="with NATS: take over what a data folder holds")
    commands.add_argument(
        "--kb",
        nargs="+",
        metavar=("ACTION", "NAME"),
        help="team knowledge: list | show TOPIC | remove QA_ID | restore QA_ID",
    )
    commands.add_argument(
        "--mcp",
        nargs="?",
        const="stdio",
        choices=("stdio", "http"),
        help="serve search, answers and posted files to assistants (Model Context Protocol), over stdio or HTTP",
    )
    kb = cli.add_argument_group("with --kb list")
    kb.add_argument("--conflicts", action="store_true", help="only conversations that contradict each other")
    replay = cli.add_argument_group("with --replay")
    replay.add_argument(
        "--data", type=Path, metavar="DIR", help="the data folder to work in (a temporary one); --report reads it"
    )
    replay.add_argument(
        "--speed", type=positive, metavar="N", help="N times real time; 1 is real time (as fast as possible)"
    )
    replay.add_argument("--json", action="store_true", help="print one JSON object a line; with --eval, too")
    evaluation = cli.add_argument_group("with --eval")
    evaluation.add_argument("--baseline", type=Path, metavar="FILE", help="compare with the run that FILE keeps")
    evaluation.add_argument("--save", type=Path, metavar="FILE", help="keep the run, also one that is cut off")
    evaluation.add_argument(
        "--from-votes",
        type=Path,
        nargs="?",
        const=True,
        metavar="FILE",
        help="write a file of questions, made of what people voted",
    )
    report = cli.add_argument_group("with --report and --usage")
    report.add_argument("--since", type=days, metavar="7d", help="how far back: 7d, 12h or 4w (a week, or 30 days)")
    report.add_argument("--html", type=Path, metavar="FILE", help="write the report as a page, too")
    server = cli.add_argument_group("with --ask, --eval, --import, --kb and --report")
    server.add_argument(
        "--guild", type=server_id, metavar="ID", help="a server with knowledge of its own (guilds in the configuration)"
    )
    regen = cli.add_argument_group("with --regen")
    regen.add_argument(
        "--restart", action="store_true", help="start over instead of resuming a rebuild that was cut off"
    )
    live = cli.add_argument_group("while running")
    live.add_argument("--record", type=Path, metavar="FILE", help="record the live stream")
    live.add_argument(
        "--role", type=roles, metavar="ROLES", help="with NATS: some of gateway,worker,team,knowledge (all of them)"
    )
    live.add_argument("--shards", type=shards, metavar="0-15/64", help="with NATS: this gateway's share of the shards")
    live.add_argument("--dry-run", action="store_true", help="never post: log what would be posted")
    llm = cli.add_argument_group("the language model")
    llm.add_argument("--llm-record", type=Path, metavar="FILE", help="append each exchange with the model to FILE")
    llm.add_argument("--llm-replay", type=Path, metavar="FILE", help="answer from recorded exchanges, without network")
    return cli


class Parser(argparse.ArgumentParser):
    """Reports an error in one line, without the usage above it."""

    def error(self, message: str) -> NoReturn:
        self.exit(UNUSABLE, f"{self.prog}: {message.removeprefix('argument ')}; see --help\n")


def positive(text: str) -> float:
    """A number above zero, for argparse."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError("write a number above 0, such as 1 or 60")
    return number


def days(text: str) -> float:
    """A number of days from 7d, 12h or 4w, for argparse."""
    unit = {"h": 1 / 24, "d": 1.0, "w": 7.0}.get(text[-1:])
    if unit is None:
        raise argparse.ArgumentTypeError("write a time such as 7d, 12h or 4w")
    return positive(text[:-1]) * unit


def roles(text: str) -> tuple[str, ...]:
    """Parse the value of `--role`, such as `gateway,worker`, for argparse."""
    from commands.arguments import roles_of  # noqa: PLC0415

    return roles_of(text)


def shards(text: str) -> tuple[range, int]:
    """Parse the value of `--shards`, such as `0-15/64`, for argparse."""
    from commands.arguments import shards_of  # noqa: PLC0415

    return shards_of(text)


def user_id(text: str) -> int:
    """A Discord id, for argparse."""
    return _id(text, "user")


def server_id(text: str) -> int:
    """Parse the id of a Discord server for argparse."""
    return _id(text, "server")


def _id(text: str, of: str) -> int:
    # Not int() alone, which accepts signs, underscores and the digits of other scripts.
    if not (text.isascii() and text.isdigit() and 0 < int(text[:21]) < 1 << 64):
        raise argparse.ArgumentTypeError(f"write the id of a Discord {of}, such as 1458745245675032710")
    return int(text)


if __name__ == "__main__":
    done = main()
    from clock import leave

    leave(done)
