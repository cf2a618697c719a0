"""An hour of a live bot while all around it fails at random: no question is lost, none is answered twice.

    python -m benchmarks.live_hour [--minutes 60] [--seed 1] [--keep FOLDER]

The bot is `app.py` in a process of its own, in real time, over a loopback Discord and a loopback model. Each question
carries a number, and the model answers with every number that it was shown, as in `benchmarks.live_load`.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

from benchmarks.idle import resident_mb
from benchmarks.live_hour_faults import Fault, bring, dice_of, schedule
from benchmarks.live_hour_judge import Judged
from benchmarks.live_hour_world import Hour
from benchmarks.verdicts import verdict
from tests.end_to_end.knowledge import write_knowledge
from tests.end_to_end.scenes import echoing
from tests.loopback.discord_server import DiscordServer
from tests.loopback.llm_scenes import slow
from tests.loopback.llm_server import LLMServer

MODEL_SECONDS = 0.3
SETTLED_SECONDS = 5.0
"""From a start until its first work is over."""
UNHANDLED = "Traceback (most recent call last)", "was never retrieved", "was never awaited", "Unclosed "
"""What stands in a log line where nobody took care of an error, or of what was open."""


def main() -> int:
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("--minutes", type=float, default=60)
    cli.add_argument("--seed", type=int, default=1)
    cli.add_argument("--keep", type=Path, help="an empty folder for the bot's log and data folder, kept afterwards")
    options = cli.parse_args()
    with tempfile.TemporaryDirectory(prefix="millrace-hour-") as temporary:
        folder = (options.keep or Path(temporary)).absolute()
        return asyncio.run(run(folder, options.minutes * 60, options.seed))


async def run(folder: Path, seconds: float, seed: int) -> int:
    """Gives the exit code."""
    faults = schedule(dice_of(f"faults {seed}"), seconds)
    write_knowledge(folder / "data")
    async with LLMServer(otherwise=slow(MODEL_SECONDS, echoing())) as model, DiscordServer() as discord:
        hour = Hour(folder, discord, model, dice_of(f"talk {seed}"))
        try:
            megabytes = await live(hour, faults, seconds, dice_of(f"how {seed}"))
        finally:
            await hour.end()
        kinds = Counter(fault.kind for fault in faults)
        print("faults: " + "; ".join(f"{kind} {count}" for kind, count in sorted(kinds.items())))
        print(f"memory: {megabytes[0]:.0f} MB at the beginning, {megabytes[1]:.0f} MB at the end")
        judged = hour.judged()
        print(f"questions {len(hour.questions)}, answered {len(judged.answered)}, other posts {judged.other_posts}")
        for reason, count in sorted(judged.without.items()):
            print(f"without an answer: {reason} {count}")
        print(f"the team answered {len(hour.taught)}, captures {len(judged.captured)}")
        return verdict(*requirements(judged, hour.log_lines, hour.wrong_ends))


async def live(hour: Hour, faults: Sequence[Fault], seconds: float, dice: Random) -> tuple[float, float]:
    """Let it happen; gives the bot's memory at the beginning and at the end, in MB."""
    await hour.start()
    await asyncio.sleep(SETTLED_SECONDS)
    before, began = resident_mb(hour.pid), time.monotonic()
    talk = asyncio.create_task(hour.talk(seconds))
    for fault in faults:
        await asyncio.sleep(max(0.0, began + fault.at - time.monotonic()))
        minutes, rest = divmod(time.monotonic() - began, 60)
        print(f"{minutes:02.0f}:{rest:02.0f} {fault}", flush=True)
        await bring(hour, fault, dice)
    await talk
    print(f"all has its end {await hour.until_settled():.0f} s after the last question", flush=True)
    after = resident_mb(hour.pid)
    await hour.stop()
    return before, after


def requirements(judged: Judged, log: Sequence[str], wrong_ends: Sequence[str]) -> list[tuple[bool, str]]:
    """`log`: its lines; `wrong_ends`: in words, of processes."""
    unhandled = sum(any(sign in line for sign in UNHANDLED) for line in log)
    wanted = {
        "questions lost": judged.lost,
        "answered twice": judged.twice,
        "crossed": judged.crossed,
        "two ends written down": judged.recorded_twice,
        "captures lost": judged.captures_lost,
        "captures twice": judged.captures_twice,
        "wrong ends of the process": wrong_ends,
    }
    lines = [(not found, f"{what}: {len(found)}{_named(found)}") for what, found in wanted.items()]
    return [*lines, (not unhandled, f"unhandled errors in the log: {unhandled}")]


def _named(found: Sequence[object]) -> str:
    return f" ({', '.join(map(str, found))})" if found else ""


if __name__ == "__main__":
    sys.exit(main())
