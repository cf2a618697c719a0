"""Whether a command and its options go with the transport."""

from __future__ import annotations

import argparse

from assembly import Unusable
from settings import EMBEDDED, Settings

ON_FILES = {"ask", "eval", "import", "regen", "backup", "restore", "kb", "report", "usage", "init_kb", "mcp"}
"""Commands that work on the data folder, which lies in the log where the transport is NATS."""


def misfits(settings: Settings, *, rehearsal: bool) -> list[str]:
    """Settings that do not go with the transport of the bot, a line each, with the remedy. `rehearsal`: it is to be
    one.
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
    """Raises Unusable: a command, an option or a setting does not go with the transport; names the remedy."""
    if settings.local:
        for option in ("role", "shards", "export", "adopt"):
            if getattr(options, option) is not None:
                raise Unusable(f"--{option} needs servers of NATS: set transport to nats://…, or leave it out")
        return
    if command in ON_FILES:
        raise Unusable(
            f"--{command.replace('_', '-')} works on files: take them out of NATS with --export DIR, and run it with "
            "transport: local and app.data_dir: DIR; --adopt DIR brings them back"
        )
    if command == "bot" and (wrong := misfits(settings, rehearsal=options.dry_run or settings.app.dry_run)):
        raise Unusable(wrong[0])
    for option in ("record", "llm_record", "llm_replay"):
        if command == "bot" and getattr(options, option) is not None:
            raise Unusable(f"--{option.replace('_', '-')} needs transport: local; leave it out")
