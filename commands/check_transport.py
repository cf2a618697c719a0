"""Whether a command and its options go with the transport."""

from __future__ import annotations

import argparse

from assembly import Unusable

ON_FILES = {"ask", "eval", "import", "regen", "backup", "restore", "kb", "report", "usage", "init_kb", "mcp"}
"""Commands that work on the data folder, which lies in the log where the transport is NATS."""


def check_transport(options: argparse.Namespace, command: str, *, local: bool, rehearsal: bool) -> None:
    """`rehearsal`: whether `app.dry_run` is set.

    Raises:
        Unusable: a command or an option does not go with the transport; names the remedy.
    """
    if local:
        for option in ("role", "shards", "export", "adopt"):
            if getattr(options, option) is not None:
                raise Unusable(f"--{option} needs servers of NATS: set transport to nats://…, or leave it out")
        return
    if command in ON_FILES:
        raise Unusable(
            f"--{command.replace('_', '-')} works on files: take them out of NATS with --export DIR, and run it with "
            "transport: local and app.data_dir: DIR; --adopt DIR brings them back"
        )
    if command == "bot" and (rehearsal or options.dry_run):
        raise Unusable(
            "app.dry_run: a rehearsal needs transport: local: over NATS it would take messages from those who answer"
        )
    for option in ("record", "llm_record", "llm_replay"):
        if command == "bot" and getattr(options, option) is not None:
            raise Unusable(f"--{option.replace('_', '-')} needs transport: local; leave it out")
