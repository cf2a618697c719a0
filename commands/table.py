"""The tables of commands and options, from which `--help`, the checks of combinations and the choice of a module are
made. Imports nothing heavy, so that `--help` is quick.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from commands.arguments import (
    parse_count,
    parse_days,
    parse_positive,
    parse_roles,
    parse_server_id,
    parse_shards,
    parse_user_id,
)

LOCAL, NATS = "local", "nats"
"""The transports that a command or option may need."""
Value = Mapping[str, Any]
"""The arguments of `argparse` about a value."""

BOT = "bot"
"""The name for running without a command."""

FLAG: Value = {"action": "store_true"}
FILE: Value = {"type": Path, "metavar": "FILE"}
FOLDER: Value = {"type": Path, "metavar": "DIR"}
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
    "forget": Command("forget", "remove what is stored about a person", {"type": parse_user_id, "metavar": "USER_ID"}),
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
        {"type": parse_user_id, "metavar": "USER_ID"},
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
        {"type": parse_server_id, "metavar": "ID"},
        ("ask", "eval", "import", "kb", "report"),
    ),
    "keep": Option(
        "with --backup",
        "then delete older backups, of the names that differ in digits only, but for the newest N in all",
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
