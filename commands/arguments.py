"""The command line: the tables of commands and options, from which `--help`, the checks of combinations and the choice
of a module are made, and their parsers; exit codes, and checks of several commands. Imports nothing heavy.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from assembly import Unusable
from model.processes import ROLES

DONE, FAILED, UNUSABLE = 0, 1, 2
"""Exit codes: done; finished with failures or cut off; not started, as configuration or input cannot be used."""


@contextmanager
def requires_nats_extra() -> Generator[None]:
    """Turn a missing `nats` package during an import into Unusable."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "nats":
            raise
        raise Unusable("transport: nats needs the extra: run `make extra-nats`, or set transport: local") from None


def check_path_given(option: str, path: Path, what: str) -> None:
    """Refuse an empty path, such as that of an unset shell variable. `what`: file or folder. Raises Unusable."""
    if path == Path():
        raise Unusable(f"{option} needs the name of a {what}")


def check_data_dir(root: Path, option: str = "") -> None:
    """Refuse a data folder that does not exist. `option`: what names it; empty: the configuration. Raises Unusable."""
    if not root.is_dir():
        right = "the right one" if option else "this the right --config"
        key, asked = option or "app.data_dir", f"is {'it ' if option else ''}{right}?"
        raise Unusable(f"{key}: {root} is no folder, so nothing is kept there; {asked}")


def visible(text: str) -> str:
    """Return `text` in one line, with each invisible character replaced by U+FFFD."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def print_error(line: str, code: int = FAILED) -> int:
    """Print a line for whoever waits, on stderr. Returns `code`."""
    print(f"app.py: {' '.join(line.split())}", file=sys.stderr)  # noqa: T201 (the one line that the user reads)
    return code


def print_interrupted(line: str = "interrupted") -> int:
    """Print a line for whoever has pressed Ctrl-C, below the `^C` of a terminal. Returns the exit code."""
    if sys.stderr.isatty():
        print(file=sys.stderr)  # noqa: T201 (as above)
    return print_error(line)


def parse_roles(text: str) -> tuple[str, ...]:
    """Parse a list of roles, such as `gateway,worker`, for argparse."""
    asked = [each.strip() for each in text.split(",")]
    if unknown := [each for each in asked if each not in ROLES]:
        raise argparse.ArgumentTypeError(f"there is no role {unknown[0]!r}: write some of {','.join(ROLES)}")
    return tuple(role for role in ROLES if role in asked)


MAX_SHARDS = 100_000  # no bot has so many

_SHARDS = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?/([0-9]{1,9})", re.ASCII)


def parse_shards(text: str) -> tuple[range, int]:
    """Parse a range of shards for argparse: `0-15/64` is shards 0 to 15 of 64, `3/64` is one shard."""
    found = _SHARDS.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError("write the first and the last shard and how many there are: 0-15/64, or 3/64")
    first, last, count = int(found[1]), int(found[2] or found[1]), int(found[3])
    if not 0 < count <= MAX_SHARDS:
        raise argparse.ArgumentTypeError(f"there are 1 to {MAX_SHARDS:,} shards in all, not {count}: 0-15/64")
    if last < first:
        raise argparse.ArgumentTypeError(f"the first shard comes first: {last}-{first}/{count}")
    if last >= count:
        raise argparse.ArgumentTypeError(f"shards are counted from 0: the last of {count} is {count - 1}")
    return range(first, last + 1), count


def parse_positive(text: str) -> float:
    """Parse a number above zero for argparse."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError("write a number above 0, such as 1 or 60")
    return number


def parse_count(text: str) -> int:
    """Parse a whole number above zero for argparse."""
    if not (text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS and int(text)):
        raise argparse.ArgumentTypeError("write a whole number above 0, such as 14")
    return int(text)


MAX_DIGITS = 9
MAX_DAYS = 36_525.0


def parse_days(text: str) -> float:
    """Parse a time such as 7d, 12h or 4w for argparse. Returns days."""
    unit = {"h": 1 / 24, "d": 1.0, "w": 7.0}.get(text[-1:])
    if unit is None:
        raise argparse.ArgumentTypeError("write a time such as 7d, 12h or 4w")
    number = parse_positive(text[:-1]) * unit
    if number > MAX_DAYS:
        raise argparse.ArgumentTypeError(f"{text} is more than a hundred years; write a time such as 7d, 12h or 4w")
    return number


def parse_id(of: str, text: str) -> int:
    """Parse an id of Discord for argparse. `of`: user or server."""
    from model.messages import is_snowflake  # noqa: PLC0415 (loads Pydantic, and --help answers at once)

    if not is_snowflake(text):
        raise argparse.ArgumentTypeError(f"write the id of a Discord {of}, such as 1458745245675032710")
    return int(text)


LOCAL, NATS = "local", "nats"
"""The transports that a command or option may need."""
Value = Mapping[str, Any]
"""The arguments of `argparse` about a value."""

BOT = "bot"
"""The name for running without a command."""

FLAG: Value = {"action": "store_true"}
FILE: Value = {"type": Path, "metavar": "FILE"}
FOLDER: Value = {"type": Path, "metavar": "DIR"}
USER_ID: Value = {"type": partial(parse_id, "user"), "metavar": "USER_ID"}
FILE_OR_NONE: Value = {**FILE, "nargs": "?", "const": True}


class Command(NamedTuple):
    """A command. Only one can be given.

    Attributes:
        module: the module in `commands` whose `run` runs it.
        transport: the transport that it needs: `local` if it works on the data folder; None: any.
    """

    module: str
    help: str
    value: Value = FLAG
    transport: str | None = None


class Option(NamedTuple):
    """An option of commands.

    Attributes:
        group: the title above it in `--help`.
        commands: the commands that use it; empty: all.
        transport: the transport that the bot needs for it; None: any.
    """

    group: str
    help: str
    value: Value
    commands: tuple[str, ...] = ()
    transport: str | None = None


COMMANDS: Mapping[str, Command] = {
    "check": Command("check", "check whether everything is in place, then exit"),
    "init": Command("setting_up", "set the bot up, question by question, or with the answers in FILE", FILE_OR_NONE),
    "init_kb": Command("init_kb", "update the knowledge base, then exit", transport=LOCAL),
    "replay": Command("replay", "play a recording or an export on a virtual clock", FILE),
    "import": Command(
        "import_captures", "learn from the team's answers in recordings or exports", {**FILE, "nargs": "+"}, LOCAL
    ),
    "regen": Command("regen", "rebuild the team library from the raw archive", transport=LOCAL),
    "ask": Command("ask", "answer one question here, with the path to the answer", {"metavar": "QUESTION"}, LOCAL),
    "eval": Command("evaluating", "ask your own questions, and judge the answers", FILE_OR_NONE, transport=LOCAL),
    "report": Command("report", "what was asked and not answered, votes, cost", transport=LOCAL),
    "usage": Command("report", "tokens and their price, by step, day and channel", transport=LOCAL),
    "dashboard": Command("dashboard", "show what the data folder holds as pages, read only", transport=LOCAL),
    "forget": Command("forget", "remove what is stored about a person", USER_ID),
    "backup": Command("backup", "copy the data folder, also while the bot runs", FILE, transport=LOCAL),
    "restore": Command("backup", "bring a backup back, into an empty data folder", FILE, transport=LOCAL),
    "export": Command("export", "with NATS: make a data folder of what is there", FOLDER, transport=NATS),
    "adopt": Command("export", "with NATS: take over what a data folder holds", FOLDER, transport=NATS),
    "kb": Command(
        "kb",
        "team knowledge: list | show TOPIC | remove QA_ID | restore QA_ID | add [FILE] | edit QA_ID [FILE]",
        {"nargs": "*", "metavar": ("ACTION", "NAME")},
    ),
    "mcp": Command(
        "mcp_server",
        "serve search, answers and posted files to assistants (Model Context Protocol), over stdio or HTTP",
        {"nargs": "?", "const": "stdio", "choices": ("stdio", "http")},
    ),
}

_EVALUATION, _REPLAY, _RUNNING, _MODEL = "with --eval", "with --replay", "while running", "the language model"
_REPORT, _TEACHING = "with --report and --usage", "with --kb add and --kb edit"
_ASKING = ("replay", "ask", "eval", "init_kb", "regen", BOT)

OPTIONS: Mapping[str, Option] = {
    "conflicts": Option("with --kb list", "only conversations that contradict each other", FLAG, ("kb",)),
    "question": Option(_TEACHING, "the question, instead of FILE", {"metavar": "TEXT"}, ("kb",)),
    "answer": Option(_TEACHING, "the answer to it", {"metavar": "TEXT"}, ("kb",)),
    "author": Option(
        _TEACHING,
        "who answers, so that --forget USER_ID removes it (nobody)",
        USER_ID,
        ("kb",),
    ),
    "data": Option(
        _REPLAY,
        "the data folder to work in (a temporary one); --report, --dashboard and --eval --from-votes read it",
        FOLDER,
        ("replay", "report", "usage", "dashboard", "eval"),
    ),
    "speed": Option(
        _REPLAY,
        "N times real time; 1 is real time (as fast as possible)",
        {"type": parse_positive, "metavar": "N"},
        ("replay",),
    ),
    "json": Option(_REPLAY, "print one JSON object a line; with --eval, too", FLAG, ("replay", "eval")),
    "baseline": Option(_EVALUATION, "compare with the run that FILE keeps", FILE, ("eval",)),
    "save": Option(_EVALUATION, "keep the run, also one that is cut off", FILE, ("eval",)),
    "from_votes": Option(_EVALUATION, "write a file of questions, made of what people voted", FILE_OR_NONE, ("eval",)),
    "since": Option(
        _REPORT,
        "how far back: 7d, 12h or 4w (a week, or 30 days)",
        {"type": parse_days, "metavar": "7d"},
        ("report", "usage", "eval"),
    ),
    "html": Option(_REPORT, "write the report as a page, too", FILE, ("report",)),
    "guild": Option(
        "with --ask, --eval, --import, --kb and --report",
        "a server with knowledge of its own (guilds in the configuration)",
        {"type": partial(parse_id, "server"), "metavar": "ID"},
        ("ask", "eval", "import", "kb", "report"),
    ),
    "keep": Option(
        "with --backup",
        "then delete older backups, of the names that differ in the date only, but for the newest N in all",
        {"type": parse_count, "metavar": "N"},
        ("backup",),
    ),
    "restart": Option("with --regen", "start over instead of resuming a rebuild that was cut off", FLAG, ("regen",)),
    "record": Option(_RUNNING, "record the live stream", FILE, (BOT,), LOCAL),
    "role": Option(
        _RUNNING,
        "with NATS: some of gateway,worker,team,knowledge (all of them)",
        {"type": parse_roles, "metavar": "ROLES"},
        (BOT,),
        NATS,
    ),
    "shards": Option(
        _RUNNING,
        "with NATS: this gateway's share of the shards",
        {"type": parse_shards, "metavar": "0-15/64"},
        (BOT,),
        NATS,
    ),
    "dry_run": Option(_RUNNING, "never post: log what would be posted", FLAG),
    "llm_record": Option(_MODEL, "append each exchange with the model to FILE", FILE, _ASKING, LOCAL),
    "llm_replay": Option(_MODEL, "answer from recorded exchanges, without network", FILE, _ASKING, LOCAL),
}


def flag(name: str) -> str:
    """Write a command or option as on the command line, such as `--init-kb`."""
    return f"--{name.replace('_', '-')}"
