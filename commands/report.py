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
from clock import DAY
from commands.arguments import DONE, check_data_dir
from reporting.document import Block, cost_document, document, markdown, page, show
from reporting.reading import TimeSpan, end_of_replay
from services.storage import DataFolder, files
from settings import Settings

WEEK, MONTH = 7.0, 30.0
"""Days."""


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Run `--report`, for a week by default, or `--usage`, for 30 days. Returns the exit code."""
    settings, period = choose_period(settings, options.since or (MONTH if options.usage else WEEK), options.data)
    if options.usage:
        print_blocks(list(cost_document(read_costs(settings, period))))
        return DONE
    blocks = list(document(run_async(report_from_folder(settings, period, guild_id=options.guild))))
    if options.html is not None:
        files.replace(options.html, page(blocks).encode())
    print_blocks(blocks)
    return DONE


def choose_period(settings: Settings, days: float | None, data: Path | None) -> tuple[Settings, TimeSpan]:
    """Return the settings of a report and its period: the last `days` (None: all) until now, or those of the replay in
    the folder `data`. Raises Unusable: there is no data folder.
    """
    check_data_dir(data or settings.app.data_dir, "" if data is None else "--data")
    until = time.time()
    if data is not None:
        settings = settings.for_replay(data)
        until = end_of_replay(DataFolder(data).outcomes, DataFolder(data).feedback) or until
    return settings, TimeSpan(0.0 if days is None else until - days * DAY, until)


def print_blocks(blocks: Sequence[Block]) -> None:
    """Print a report: on a terminal as tables, otherwise as Markdown."""
    if sys.stdout.isatty():
        show(blocks, Console())
    else:
        print(markdown(blocks), end="")  # noqa: T201 (the command's output)
