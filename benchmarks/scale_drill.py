"""Everything at once on NATS: processes killed, frozen and joining, the server restarted, and not one message lost.

    python -m benchmarks.scale_drill [--messages 20000] [--channels 300] [--rate 150] [--frozen 60]
                                     [--parts faults,same,throughput,answers,cluster] [--keep FOLDER]

It starts the real server of NATS and real processes of the program, with a scripted Discord and model on loopback.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import tempfile
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.scale import findings, same, throughput
from benchmarks.scale.cluster import CLUSTER_STEPS, ClusterFaults, of_disturbances
from benchmarks.scale.faults import STEPS, Faults
from benchmarks.scale.findings import Requirement
from benchmarks.scale.scene import scene
from benchmarks.scale.traffic import plan
from benchmarks.verdicts import verdict
from tests.loopback.nats_server import binary

PARTS = ("faults", "same", "throughput", "answers", "cluster")
LATENCY_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Size:
    """How large a drill is.

    Attributes:
        rate: messages a second while things go wrong, which are those of `steps`.
        same_rate: of the part that compares with one process: slow enough for the bot to answer before the team does.
        questions: of the part about answers.
        cluster_rate: of the part with three servers; it says so many messages a second until its last step is over.
        cluster_steps: what goes wrong there.
    """

    messages: int = 20_000
    channels: int = 300
    rate: float = 150.0
    frozen_seconds: float = 60.0
    same_messages: int = 5_000
    same_rate: float = 50.0
    questions: int = 1_200
    cluster_messages: int = 4_000
    cluster_rate: float = 25.0
    cluster_steps: Sequence[str] = CLUSTER_STEPS
    steps: Sequence[str] = STEPS
    workers: int = 2


FULL = Size()


def main() -> int:
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("--messages", type=int, default=FULL.messages)
    cli.add_argument("--channels", type=int, default=FULL.channels)
    cli.add_argument("--rate", type=float, default=FULL.rate, help="messages a second while things go wrong")
    cli.add_argument("--frozen", type=float, default=FULL.frozen_seconds, help="seconds that processes are frozen")
    cli.add_argument("--parts", default=",".join(PARTS), help="which parts, with commas")
    cli.add_argument("--keep", type=Path, help="an empty folder for everything that is written, kept afterwards")
    options = cli.parse_args()
    parts = options.parts.split(",")
    if unknown := set(parts) - set(PARTS):
        cli.error(f"--parts: {', '.join(sorted(unknown))}: there are {', '.join(PARTS)}")
    if binary() is None:
        cli.error("nats-server is not here: install the development tools (make check)")
    size = Size(options.messages, options.channels, options.rate, options.frozen)
    with kept(options.keep) as folder:
        return verdict(*asyncio.run(drill(folder, size, parts)))


@contextlib.contextmanager
def kept(folder: Path | None) -> Generator[Path]:
    if folder is not None:
        yield folder.absolute()
        return
    with tempfile.TemporaryDirectory(prefix="millrace-drill-") as temporary:
        yield Path(temporary)


async def drill(folder: Path, size: Size, parts: Sequence[str] = PARTS) -> list[Requirement]:
    """Run the parts, one after another, each with servers of its own."""
    found: list[Requirement] = []
    for part in parts:
        print(f"== {part}", flush=True)
        (folder / part).mkdir(parents=True)
        found += await globals()[f"{part}_part"](folder / part, size)
    return found + findings.of_logs(folder / part for part in parts)


async def faults_part(folder: Path, size: Size) -> list[Requirement]:
    sayings = plan(size.messages, size.channels, size.messages / size.rate)
    # The last channel is the poison's: whoever reads on there would be shown the word, too.
    async with scene(folder, sayings, size.channels + 1, LATENCY_SECONDS) as here:
        story = await Faults(here, size.frozen_seconds, size.channels).run(size.steps)
        sent, posts = await here.discord.report()
        log = here.watch.log
        return findings.of_messages(sent, posts, log) + findings.of_story(story, sent, log)


async def cluster_part(folder: Path, size: Size) -> list[Requirement]:
    sayings = plan(size.cluster_messages, size.channels, size.cluster_messages / size.cluster_rate, seed=11)
    async with scene(folder, sayings, size.channels, LATENCY_SECONDS, three_servers=True) as here:
        faults = ClusterFaults(here, size.channels)
        story = await faults.run(size.cluster_steps)
        sent, posts = await here.discord.report()
        log = here.watch.log
        return [
            *findings.of_messages(sent, posts, log),
            *findings.of_story(story, sent, log),
            *of_disturbances(faults.disturbances, story, sent, log),
        ]


async def same_part(folder: Path, size: Size) -> list[Requirement]:
    sayings = plan(size.same_messages, size.channels, size.same_messages / size.same_rate, seed=8)
    async with scene(folder, sayings, size.channels) as here:
        return await same.outcomes(here)


async def throughput_part(folder: Path, size: Size) -> list[Requirement]:
    sayings = plan(size.messages, size.channels, 1.0, seed=9, questions=0.0)
    async with scene(folder, sayings, size.channels) as here:
        return await throughput.messages(here, size.workers)


async def answers_part(folder: Path, size: Size) -> list[Requirement]:
    sayings = plan(size.questions, size.channels, size.questions, seed=10, questions=1.0, taught=0.0)
    async with scene(folder, sayings, size.channels) as here:
        return await throughput.answers(here)


if __name__ == "__main__":
    sys.exit(main())
