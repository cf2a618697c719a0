"""Filing captures under topics: what each costs, and whether the last cost more than the first.

`python -m benchmarks.team_library [--captures N]`
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.verdicts import verdict
from services import archive, files, qa_ids
from services.archive import Pair, Speaker, Turn
from services.data_folder import DataFolder
from services.decisions import Action, By, Decision
from services.team_library import TeamLibrary
from services.team_opening import open_library
from services.team_places import TeamPlaces

TOPICS = 20
SAMPLE = 50
MOST_MS = 1.6
MOST_GROWTH = 1.5
START = datetime(2026, 1, 1, tzinfo=UTC)
KEY = "benchmark"


def captures(count: int) -> Iterator[Pair]:
    """Conversations of four messages, about 700 characters each, half an hour apart."""
    chance = random.Random(1)  # noqa: S311 (the same text each time)
    words = [f"word{number}" for number in range(500)]
    for number in range(count):
        timestamp = f"{START + timedelta(minutes=30 * number):%Y-%m-%dT%H:%M:%S}.000000Z"
        texts = [" ".join(chance.choices(words, k=22)) + "\nand more" for _ in range(4)]
        turns = tuple(Turn(Speaker.TEAM if at % 2 else Speaker.USER, text) for at, text in enumerate(texts))
        ids = tuple(range(len(turns)))
        yield Pair(qa_ids.qa_id(timestamp), timestamp, timestamp, f"thread_{number}", ids, ids, turns)


def file_one(library: TeamLibrary, topic: str) -> None:
    """What follows a capture, but for the model."""
    pair = library.undecided()
    assert pair is not None
    library.held(topic)
    library.decide(Decision(pair.id, pair.timestamp, Action.ADDED, By.LLM, topic))
    assert library.undecided() is None


def describe_all(library: TeamLibrary) -> None:
    for topic in library.undescribed():
        library.describe(topic, "What people ask about this topic, in a sentence or two.", KEY)


def run(folder: Path, count: int) -> tuple[list[float], list[float], float]:
    """CPU milliseconds of filing and of describing, capture by capture; and of opening what has come together."""
    places = TeamPlaces.below(DataFolder(folder))
    library = open_library(places, describer_key=KEY, time=START.timestamp)
    filing: list[float] = []
    describing: list[float] = []
    for number, pair in enumerate(captures(count)):
        files.append(places.raw / qa_ids.week_file(pair.timestamp), archive.render(pair).encode())
        begun = time.process_time()
        file_one(library, f"topic-about-{number % TOPICS}")
        filed = time.process_time()
        describe_all(library)
        filing.append(1000 * (filed - begun))
        describing.append(1000 * (time.process_time() - filed))
    begun = time.process_time()
    again = open_library(places, describer_key=KEY, time=START.timestamp)
    opening = time.process_time() - begun
    assert dict(again.topics) == dict(library.topics)
    assert not again.undescribed()
    return filing, describing, opening


def main() -> int:
    cli = argparse.ArgumentParser(description=__doc__)
    cli.add_argument("--captures", type=int, default=5_000)
    cli.add_argument("--folder", type=Path, help="where to work, such as /dev/shm, which spares the waiting for a disk")
    options = cli.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        filing, describing, opening = run(Path(folder), options.captures)
    # Once each topic has a full file, the first and the last are alike but for how much lies behind them.
    full = options.captures // 4
    first, last = statistics.median(filing[full : full + SAMPLE]), statistics.median(filing[-SAMPLE:])
    cost = statistics.mean(filing)
    print(f"  describing: {statistics.mean(describing):.2f} ms of CPU each; opening it all: {opening:.2f} s")
    return verdict(
        (cost <= MOST_MS, f"filing {options.captures} captures: {cost:.2f} ms of CPU each, {MOST_MS} at most wanted"),
        (
            last <= MOST_GROWTH * first,
            f"the last {SAMPLE}: {last / first:.2f} x the first {SAMPLE} with full topics, {MOST_GROWTH} at most",
        ),
    )


if __name__ == "__main__":
    sys.exit(main())
