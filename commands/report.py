"""`--report` prints questions, votes, teaching and cost of a period; `--usage` prints the cost alone."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from rich.console import Console

from assembly import Unusable
from assembly.reports import read_costs, report_from_folder
from assembly.running import run_async
from reporting.document import Block, cost_document, document, markdown, page, show
from reporting.reading import TimeSpan, read_newest
from services.storage import DataFolder, files
from settings import Settings

WEEK, MONTH = 7.0, 30.0
"""Days."""
LAST, MOMENT = 100, 0.001
"""The number of entries whose latest is the end of a replay; the seconds after it that are included."""


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Run `--report` or `--usage`. Returns the exit code."""
    if options.usage:
        return usage(settings, options.since, options.data)
    return report(settings, options.since, options.html, options.data, options.guild)


def report(
    settings: Settings, days: float | None, html: Path | None, data: Path | None = None, guild_id: int | None = None
) -> int:
    """Print the report of the last `days` (default: a week), on a terminal as tables. Returns the exit code.

    `html`: also write a page to this file; `data`: report the last days of the replay in this folder; `guild_id`: only
    of this server.
    """
    settings, period = _choose_period(settings, days or WEEK, data)
    blocks = list(document(run_async(report_from_folder(settings, period, guild_id=guild_id))))
    if html is not None:
        files.replace(html, page(blocks).encode())
    _print(blocks)
    return 0


def usage(settings: Settings, days: float | None, data: Path | None = None) -> int:
    """Print the calls of models in the last `days` (default: 30), and their cost. Returns the exit code."""
    settings, period = _choose_period(settings, days or MONTH, data)
    _print([*cost_document(read_costs(settings, period))])
    return 0


def _choose_period(settings: Settings, days: float, data: Path | None) -> tuple[Settings, TimeSpan]:
    root, key = (settings.app.data_dir, "app.data_dir") if data is None else (data, "--data")
    if not root.is_dir():
        raise Unusable(f"{key}: {root} is no folder, so nothing is kept there; is it the right one?")
    until = time.time()
    if data is not None:
        settings = settings.for_replay(data)
        ends = [entry.at for entry in read_newest(DataFolder(data).outcomes, LAST)]
        until = max(ends) + MOMENT if ends else until
    return settings, TimeSpan(until - days * 86_400, until)


def _print(blocks: list[Block]) -> None:
    if sys.stdout.isatty():
        show(blocks, Console())
    else:
        print(markdown(blocks), end="")  # noqa: T201 (the command's output)
