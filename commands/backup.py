"""`--backup FILE` copies the data folder as it is at one moment; `--restore FILE` restores it into an empty folder."""

from __future__ import annotations

import argparse
import contextlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

from rich.filesize import decimal

from assembly import Unusable
from assembly.backup_order import copy_order, files_not_in_backup
from assembly.running import terminated_as_interrupted
from clock import rfc3339
from commands.arguments import DONE, FAILED, check_data_dir, check_path_given, print_interrupted, visible
from commands.progress import Count, show_progress
from services.storage import lock
from services.storage.backups import BackupRefused, BadBackup, CopyProgress, FolderInUse, back_up, prune, series_of
from services.storage.backups import restore as restore_files
from services.telemetry import number_of
from settings import Settings

NOT_FORGOTTEN = (
    "What --forget or /privacy forget removes stays in the backups that were made before, and comes back with them: "
    "delete these, or forget again after a restore."
)

BACK_AGAIN = (
    "Whoever has asked to be forgotten, or has opted out, since then is back: forget them again. "
    "--check tells whether everything else is in place."
)


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Run `--backup` or `--restore`. Returns the exit code."""
    with terminated_as_interrupted():
        if options.restore is not None:
            return restore(settings, options.restore)
        return backup(settings, options.backup, options.keep)


def backup(settings: Settings, file: Path, keep: int | None = None) -> int:
    """Copy the data folder into `file`, and print the result. Returns the exit code: 1 if a database is damaged.

    `keep`: how many backups of the series of `file` stay; None: all.
    """
    check_path_given("--backup", file, "file")
    if keep is not None and series_of(Path(os.path.realpath(file)).name) is None:
        raise Unusable(f"--keep: the name of {file} has no number in it that tells backups apart; put the date into it")
    root = Path(os.path.realpath(settings.app.data_dir))  # as the order of the copy has it
    check_data_dir(root)
    count = CopyProgress()
    try:
        with _show_count(count):
            made = back_up(root, file, copy_order(settings), rfc3339(time.time()), count)
    except BackupRefused as refused:
        raise Unusable(f"--backup: {file} {refused}") from None
    except KeyboardInterrupt:
        return print_interrupted(f"interrupted; nothing was written to {file}")
    _print(f"{root}: {_sum(count)} copied to {file} ({decimal(made.size)}).")
    _print_list("Not in it:", [*made.left_out, *files_not_in_backup(settings)])
    _print_list("Damaged, and not in it:", made.damaged)
    _print(NOT_FORGOTTEN)
    if keep is not None:
        _prune(file, keep, whole=not made.damaged)
    return FAILED if made.damaged else DONE


def _prune(file: Path, keep: int, *, whole: bool) -> None:
    """Delete older backups of the series of `file`, and print which; none if `file` lacks a database (not `whole`)."""
    if not whole:
        _print("No older backup was deleted, as this one lacks what is damaged.")
        return
    pruned = prune(file, keep)
    names = ", ".join(map(visible, pruned.deleted)) or "none"
    _print(f"Older backups deleted (--keep {keep}): {names}.")
    _print_list("No backups that can be used, and left there:", pruned.left)


def restore(settings: Settings, file: Path) -> int:
    """Restore `file` into the data folder, and print what was restored. Returns the exit code."""
    check_path_given("--restore", file, "file")
    root = settings.app.data_dir
    count = CopyProgress()
    if not file.is_file():
        raise Unusable(f"--restore: {file} is no file; name a backup")
    try:
        with _show_count(count), lock(root, "app.py --restore"):
            manifest = restore_files(file, root, count)
    except FolderInUse as use:
        there = f"{root} is not empty (it holds {visible(str(use))})"
        raise Unusable(f"app.data_dir: {there}; move what is there away, or set another app.data_dir") from None
    except BadBackup as bad:
        raise Unusable(f"--restore: {file} {visible(str(bad))}") from None
    except KeyboardInterrupt:
        return print_interrupted(f"interrupted; nothing was restored to {root}")
    _print(f"{root}: {_sum(count)} restored, as of {manifest.made_at}.")
    _print_list("Not in backups:", [*files_not_in_backup(settings)])
    _print(BACK_AGAIN)
    return DONE


def _show_count(count: CopyProgress) -> contextlib.AbstractContextManager[None]:
    """Show the progress while the block runs."""
    return show_progress(lambda: Count(count.files, count.total, "file", decimal(count.size)))


def _sum(count: CopyProgress) -> str:
    return f"{number_of(count.files, 'file')}, {decimal(count.size)}"


def _print_list(title: str, lines: Sequence[str]) -> None:
    if lines:
        _print("\n".join([title, *(f"  {visible(line)}" for line in lines)]))


def _print(text: str) -> None:
    print(text)  # noqa: T201 (the command's output)
