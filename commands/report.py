"""`--report` prints questions, votes, teaching and cost of a period; `--usage` prints the cost alone."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from assembly.reports import read_costs, report_from_folder
from assembly.running import run_async
from commands.arguments import check_data_dir
from reporting.document import Block, cost_document, document, markdown, page, show
from reporting.reading import TimeSpan, end_of_replay
from services.storage import DataFolder, files
from settings import Settings

WEEK, MONTH = 7.0, 30.0
"""Days."""


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
    settings, period = choose_period(settings, days or WEEK, data)
    blocks = list(document(run_async(report_from_folder(settings, period, guild_id=guild_id))))
    if html is not None:
        files.replace(html, page(blocks).encode())
    print_blocks(blocks)
    return 0


def usage(settings: Settings, days: float | None, data: Path | None = None) -> int:
    """Print the calls of models in the last `days` (default: 30), and their cost. Returns the exit code."""
    settings, period = choose_period(settings, days or MONTH, data)
    print_blocks([*cost_document(read_costs(settings, period))])
    return 0


def choose_period(settings: Settings, days: float | None, data: Path | None) -> tuple[Settings, TimeSpan]:
    """Return the settings of a report and its period: the last `days` (None: all) until now, or those of the replay in
    the folder `data`. Raises Unusable: there is no data folder.
    """
    check_data_dir(data or settings.app.data_dir, "" if data is None else "--data")
    until = time.time()
    if data is not None:
        settings = settings.for_replay(data)
        until = end_of_replay(DataFolder(data).outcomes, DataFolder(data).feedback) or until
    return settings, TimeSpan(0.0 if days is None else until - days * 86_400, until)


def print_blocks(blocks: Sequence[Block]) -> None:
    """Print a report: on a terminal as tables, otherwise as Markdown."""
    if sys.stdout.isatty():
        show(blocks, Console())
    else:
        print(markdown(blocks), end="")  # noqa: T201 (the command's output)
