"""`--export DIR` writes what NATS holds as a data folder; `--adopt DIR` loads a data folder into NATS."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assembly import Unusable
from assembly.running import run_async, terminated_as_interrupted
from commands.arguments import DONE, check_path_given, print_error, print_interrupted, requires_nats_extra
from commands.progress import Count, show_progress
from services.storage import lock
from services.storage.backups import DamagedDatabase
from services.telemetry import number_of
from settings import Settings
from sinks.terminal import printable_line

if TYPE_CHECKING:
    from transport.migration import MigrationProgress

Move = Callable[[Settings, Path, "MigrationProgress"], Coroutine[Any, Any, None]]

NOT_MOVED = "Not moved: recorded exchanges with models, and what is made of knowledge again (documents)."


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Run `--export` or `--adopt`. Returns the exit code."""
    with requires_nats_extra():
        from assembly.distributed import server_commands  # noqa: PLC0415 (nothing of it is imported for one process)
    moved = server_commands.MigrationProgress()
    with terminated_as_interrupted():
        if options.export is None:
            return adopt(settings, options.adopt, server_commands.adopt, moved)
        return export(settings, options.export, server_commands.export, moved)


def adopt(settings: Settings, folder: Path, move: Move, moved: MigrationProgress) -> int:
    """Load a data folder into NATS. Returns the exit code: 1 if a database is damaged."""
    check_path_given("--adopt", folder, "folder")
    if not folder.is_dir():
        raise Unusable(f"--adopt: {folder} is no folder; name a data folder, such as {settings.app.data_dir}")
    try:
        with _show_count(moved), lock(folder, "app.py --adopt"):
            run_async(move(settings, folder, moved))
    except DamagedDatabase as error:
        return print_error(
            printable_line(f"--adopt: {error}; mend or delete that file and adopt again, which does the rest")
        )
    except KeyboardInterrupt:
        return print_interrupted("interrupted; what was told stays, and --adopt again does the rest")
    _print(f"{folder}: {_sum(moved)} told to {settings.transport}.")
    _print(NOT_MOVED)
    what_now = f"keep {folder} as a backup elsewhere, or delete it: nobody is forgotten in it."
    _print(f"Changes are in NATS from now on: {what_now}")
    return DONE


def export(settings: Settings, folder: Path, move: Move, moved: MigrationProgress) -> int:
    """Write the data in NATS to a folder. Returns the exit code."""
    check_path_given("--export", folder, "folder")
    try:
        with _show_count(moved):
            run_async(move(settings, folder, moved))
    except KeyboardInterrupt:
        return print_interrupted(printable_line(f"interrupted; nothing was written to {folder}"))
    _print(f"{folder}: {_sum(moved)} from {settings.transport}.")
    _print(NOT_MOVED)
    if moved.messages or moved.captures:
        waiting = f"{number_of(moved.messages, 'message')}, {number_of(moved.captures, 'capture')} of team answers"
        _print(f"Not in it, since they are still on their way: {waiting}. Let the roles finish them, and export again.")
    _print(f"To work with it, set transport: local and app.data_dir: {folder}; --adopt {folder} brings it back.")
    return DONE


def _show_count(moved: MigrationProgress) -> AbstractContextManager[None]:
    """Show the progress while the block runs."""
    return show_progress(lambda: Count(len(moved.paths), None, "file"))


def _sum(moved: MigrationProgress) -> str:
    collections = number_of(moved.collections, "collection of documents", "collections of documents")
    return f"{number_of(len(moved.paths), 'file')} and {collections}"


def _print(text: str) -> None:
    print(printable_line(text))  # noqa: T201 (the command's output)
