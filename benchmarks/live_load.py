"""Many askers at once and a slow model, through the real gateway, REST and LLM clients.

    python -m benchmarks.live_load [--askers 200] [--latency 10] [--at-once 32]

The bot runs in a process of its own, so that its event loop, CPU and memory are its own; both servers are loopback ones
in the other. Each question carries a number, and the model answers with every number that it was shown: an answer that
is lost, doubled or crossed shows.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import statistics
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process, create_subprocess_exec
from collections import Counter
from pathlib import Path

import discord.http
import yarl
from discord.gateway import DiscordWebSocket

from assembly.running import collect_garbage_less_often, shorten_thread_switches
from benchmarks.heartbeat import Heartbeat, Longest, longest_callback, short_enough
from benchmarks.verdicts import verdict
from commands.live import LiveOptions, run_bot
from settings import Settings
from tests.end_to_end.knowledge import write_knowledge
from tests.end_to_end.scenes import echoing
from tests.loopback.discord_server import TOKEN, DiscordServer
from tests.loopback.listener import API
from tests.loopback.llm_scenes import slow
from tests.loopback.llm_server import LLMServer
from tests.loopback.model import Message

CHANNELS = 8
SETTLED_SECONDS = 3.0
"""From the start of the session until the bot has nothing left to do."""
LINE_BYTES = 64
CALLS = 3
"""Of the model, per answer: gate, select, generate."""


def main() -> int:
    if sys.argv[1:2] == ["bot"]:
        return only_the_bot(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--askers", type=int, default=200)
    parser.add_argument("--latency", type=float, default=10.0, help="seconds that each call of the model takes")
    parser.add_argument("--at-once", type=int, default=32, help="ai_response.max_concurrent_answers")
    options = parser.parse_args()
    logging.basicConfig(level="WARNING")
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(measure(Path(folder), options.askers, options.latency, options.at_once))


async def measure(folder: Path, askers: int, latency: float, at_once: int) -> int:
    write_knowledge(folder / "data")
    async with LLMServer(otherwise=slow(latency, echoing())) as model, DiscordServer() as server:
        channels = [server.add_channel(f"help-{n}") for n in range(CHANNELS)]
        members = [server.add_member(f"asker-{n}") for n in range(askers)]
        command = (sys.executable, "-m", "benchmarks.live_load", "bot", server.origin, server.gateway.url)
        given = (str(folder), model.base_url, str(latency), str(at_once))
        bot = await create_subprocess_exec(*command, *given, stdin=PIPE, stdout=PIPE)
        try:
            await server.until(lambda: server.gateway.sessions, 60)
            await asyncio.sleep(SETTLED_SECONDS)
            began = time.monotonic()
            await begin(bot)
            questions = await asyncio.gather(
                *(
                    server.say(channels[n % CHANNELS], member, f"case-{n}: how can I restore a backup?")
                    for n, member in enumerate(members)
                )
            )
            seconds = await last_post(server, askers, began)
            said, _ = await bot.communicate(b"end\n")
            failed = report(server, questions, latency, at_once, seconds)
        finally:
            if bot.returncode is None:
                bot.kill()
    seen = json.loads(said.splitlines()[-1])
    print(f"the bot: processor {seen['cpu']:.1f} s, memory at most {seen['megabytes']:.0f} MB")
    late = f"its heartbeat came late by at most {seen['late'] * 1000:.0f} ms"
    print(f"{late}, and its loop worked for at most {seen['own'] * 1000:.0f} ms of CPU between two beats")
    print(f"the longest callback: {seen['what']}")
    return max(failed, verdict(short_enough("the bot", seen["callback"])))


async def begin(bot: Process) -> None:
    """Have it measured from here on."""
    assert bot.stdin is not None
    bot.stdin.write(b"begin\n")
    await bot.stdin.drain()


def only_the_bot(origin: str, gateway: str, folder: str, model: str, latency: str, at_once: str) -> int:
    """Run the bot against these servers. The first line on stdin begins what is measured, the second ends it."""
    discord.http.Route.BASE = origin + API
    DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(gateway)
    logging.basicConfig(level="WARNING")
    collect_garbage_less_often()  # as the bot does
    shorten_thread_switches()
    chosen = settings(Path(folder), model, float(latency), int(at_once))
    with longest_callback() as longest:
        asyncio.run(watched(chosen, longest))
    return 0


async def watched(chosen: Settings, longest: Longest) -> None:
    """Print what was seen as one line of JSON."""
    lines = asyncio.Queue[bytes]()
    loop, stdin = asyncio.get_running_loop(), sys.stdin.fileno()
    loop.add_reader(stdin, lambda: lines.put_nowait(os.read(stdin, LINE_BYTES)))
    bot = asyncio.create_task(run_bot(chosen, LiveOptions(), TOKEN))
    await lines.get()
    longest.forget()
    heart, before = Heartbeat(), time.process_time()
    beat = asyncio.create_task(heart.beat())
    await lines.get()
    seen = {"callback": longest.seconds, "what": longest.what, "late": heart.worst, "own": heart.own}
    used = {"cpu": time.process_time() - before, "megabytes": most_megabytes()}
    loop.remove_reader(stdin)
    beat.cancel()
    bot.cancel()
    await asyncio.wait({bot})
    print(json.dumps(seen | used), flush=True)


def most_megabytes() -> float:
    """The most memory that this process has held; what `getrusage` tells may be its parent's."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) / 1024


def settings(folder: Path, model: str, latency: float, at_once: int) -> Settings:
    llm = {"base_url": model, "api_key": "none", "model": "m", "timeout_seconds": 60 + latency}
    return Settings.model_validate(
        {
            "app": {"data_dir": "data"},
            "discord": {"message_batch_wait_seconds": 1},
            "ai_response": {"llm": llm, "max_concurrent_answers": at_once},
        }
    ).resolve_paths(folder)


async def last_post(server: DiscordServer, askers: int, began: float) -> float:
    """Seconds until every asker has a post, or until none has come for a while."""
    seen, since = 0, time.monotonic()
    while seen < askers and time.monotonic() - since < 120:  # noqa: PLR2004 (longer than any answer takes)
        await asyncio.sleep(0.1)
        if len(server.posts) > seen:
            seen, since = len(server.posts), time.monotonic()
    return since - began


def report(server: DiscordServer, questions: list[Message], latency: float, at_once: int, seconds: float) -> int:
    posted = Counter(post.place.id for post in server.posts)
    lost = [question for question in questions if not posted[question.id]]
    doubled = sum(count - 1 for count in posted.values())
    expected = {question.id: f"About case-{n}." for n, question in enumerate(questions)}
    crossed = [post for post in server.posts if post.content != expected.get(post.place.id)]
    waits = sorted(
        post.at - question.at for question in questions for post in server.posts if post.place.id == question.id
    )
    least = CALLS * latency * -(-len(questions) // at_once)
    print(f"{len(questions)} askers, {latency:g} s for each of {CALLS} calls, {at_once} answers at once")
    print(f"all answered after {seconds:.1f} s; with no work but the model's it would be {least:g} s")
    if len(waits) > 1:
        p95 = statistics.quantiles(waits, n=20)[-1]
        print(
            f"from question to post: median {statistics.median(waits):.1f} s, p95 {p95:.1f} s, last {waits[-1]:.1f} s"
        )
    print(f"replies lost {len(lost)}, doubled {doubled}, crossed {len(crossed)}")
    print(f"REST requests {len(server.requests)}, of them unknown {len(server.unknown)}")
    return 1 if lost or doubled or crossed else 0


if __name__ == "__main__":
    sys.exit(main())
