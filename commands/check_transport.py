"""Whether a command and its options go with the transport."""

from __future__ import annotations

import argparse

from assembly import Unusable
from settings import EMBEDDED, Settings

COMMANDS_ON_DATA_FOLDER = {
    "ask",
    "eval",
    "import",
    "regen",
    "backup",
    "restore",
    "kb",
    "report",
    "usage",
    "init_kb",
    "mcp",
}
"""Commands that work on the data folder, which lies in the log where the transport is NATS."""


def transport_problems(settings: Settings, *, rehearsal: bool) -> list[str]:
    """List settings of the bot that do not work with the transport, one line each with the remedy. `rehearsal`: the
    bot is to post nothing.
    """
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
        for option in ("role", "shards", "export", "adopt"):
            if getattr(options, option) is not None:
                raise Unusable(f"--{option} needs servers of NATS: set transport to nats://…, or leave it out")
        return
    if command in COMMANDS_ON_DATA_FOLDER:
        raise Unusable(
            f"--{command.replace('_', '-')} works on files: take them out of NATS with --export DIR, and run it with "
            "transport: local and app.data_dir: DIR; --adopt DIR brings them back"
        )
    if command == "bot" and (wrong := transport_problems(settings, rehearsal=options.dry_run or settings.app.dry_run)):
        raise Unusable(wrong[0])
    for option in ("record", "llm_record", "llm_replay"):
        if command == "bot" and getattr(options, option) is not None:
            raise Unusable(f"--{option.replace('_', '-')} needs transport: local; leave it out")
