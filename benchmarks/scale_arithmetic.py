"""How much there is to do for one server and for ten thousand, from a few assumptions; nothing is measured here.

python -m benchmarks.scale_arithmetic                         prints the table; options put other values in
python -m benchmarks.scale_arithmetic --messages 300 --price 0.6
python -m benchmarks.scale_arithmetic --write                 writes docs/scaling-arithmetic.md
python -m benchmarks.scale_arithmetic --check                 exits 1 when that page says something else
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from math import ceil, floor, log10
from pathlib import Path

from settings import Settings
from transport.locks import IDENTIFY_SECONDS
from transport.streams import QUEUE_BYTES

PAGE = Path(__file__).parents[1] / "docs" / "scaling-arithmetic.md"
GUILDS = (1, 10, 100, 1_000, 2_500, 5_000, 10_000)
DAY = 86_400
MAX_GUILDS_OF_A_SHARD = 2_500
REST_A_SECOND = 50
"""What Discord allows a bot's token in all (API reference, "Rate Limits")."""


def assumed(value: float, what: str, source: str) -> float:
    """A field of `Assumptions`."""
    return field(default=value, metadata={"what": what, "source": source})


_INVENTED = "**an assumption**: put your own in"
_COUNTED = "`in_bytes` of a server on loopback: 400 messages, then 60 questions answered in threads, four processes"
_BENCHMARKS = "[benchmarks/README.md](../benchmarks/README.md#what-was-seen)"


@dataclass(frozen=True, kw_only=True)
class Assumptions:
    """All that the table follows from; each field is an option of the command line."""

    messages: float = assumed(1_000, "messages a day in the channels that the bot reads, a guild", _INVENTED)
    peak: float = assumed(4, "times as many a second in the busiest hour as in the mean", _INVENTED)
    asked: float = assumed(0.05, "of messages are put to the gate of a model", _INVENTED)
    answered: float = assumed(0.5, "of those are answered", _INVENTED)
    calls: float = assumed(3, "calls for an answer, without verification; one where the gate says no", _BENCHMARKS)
    characters: float = assumed(
        15_800, "characters of an answer in all its calls", "[the same, Answers](../benchmarks/README.md#answers)"
    )
    letters: float = assumed(4, "characters a token", "**an assumption**: usual for English")
    seconds: float = assumed(10, "seconds a call of the model", "that of the run with 200 askers, " + _BENCHMARKS)
    price: float = assumed(1.0, "money for a million tokens, asked or answered", "**a variable**: `price_per_million`")
    cpu_message: float = assumed(
        2 / 5_000,
        "seconds of CPU a message, with what the server takes",
        "wanted of `make scale-drill`: 5,000/s, 2 cores",
    )
    cpu_answer: float = assumed(12.8 / 200, "seconds of CPU an answer", "200 askers, " + _BENCHMARKS)
    busy: float = assumed(0.5, "of a core that a worker may be busy at the peak", "**an assumption**")
    rest: float = assumed(3, "requests to Discord an answer", "**an assumption**: a thread, a post, typing")
    shard: float = assumed(1_000, "guilds a shard", "about what Discord recommends; it allows 2,500")
    range_: float = assumed(16, "shards a gateway process", "**an assumption**, as in `--shards 0-15/64`")
    bytes_message: float = assumed(792_146 / 400, "bytes to the server a message that asks nothing", _COUNTED)
    bytes_answer: float = assumed(827_238 / 60 - 792_146 / 400, "bytes more for an answer", _COUNTED)


@dataclass(frozen=True)
class Load:
    """What there is to do for some guilds. `at_peak`: a second, in the busiest hour."""

    guilds: int
    a: Assumptions

    @property
    def messages(self) -> float:
        return self.guilds * self.a.messages

    @property
    def at_peak(self) -> float:
        return self.messages / DAY * self.a.peak

    @property
    def answers(self) -> float:
        return self.messages * self.a.asked * self.a.answered

    @property
    def answers_at_peak(self) -> float:
        return self.answers / DAY * self.a.peak

    @property
    def refused(self) -> float:
        """Questions at which the gate ends it."""
        return self.messages * self.a.asked * (1 - self.a.answered)

    @property
    def calls(self) -> float:
        return self.answers * self.a.calls + self.refused

    @property
    def calls_at_once(self) -> float:
        """In the busiest hour: as many as begin in the time that one takes."""
        return self.calls / DAY * self.a.peak * self.a.seconds

    @property
    def tokens(self) -> float:
        """A call at the gate has its share of those of an answer."""
        return self.calls * self.a.characters / self.a.letters / self.a.calls

    @property
    def money(self) -> float:
        return self.tokens / 1e6 * self.a.price

    @property
    def cores(self) -> float:
        return self.at_peak * self.a.cpu_message + self.answers_at_peak * self.a.cpu_answer

    @property
    def answers_at_once(self) -> float:
        return self.answers_at_peak * self.a.calls * self.a.seconds

    @property
    def shards(self) -> int:
        return ceil(self.guilds / self.a.shard)

    @property
    def one_process(self) -> bool:
        """Whether `transport: local` does: one shard, part of a core, and not more answers at once than it gives."""
        return (
            self.guilds <= MAX_GUILDS_OF_A_SHARD
            and self.cores <= self.a.busy
            and self.answers_at_once <= Settings().ai_response.max_concurrent_answers
        )

    @property
    def gateways(self) -> int:
        return ceil(self.shards / self.a.range_)

    @property
    def workers(self) -> int:
        """At least two, so that one takes over; at most as many as there are partitions."""
        return min(max(2, ceil(self.cores / self.a.busy)), Settings().nats.partitions)

    @property
    def rest_at_peak(self) -> float:
        return self.answers_at_peak * self.a.rest

    @property
    def nats_bytes(self) -> float:
        return self.messages * self.a.bytes_message + self.answers * self.a.bytes_answer


def figure(value: float) -> str:
    """Two digits that count: more would say more than is known."""
    if not value:
        return "0"
    return f"{value:,.{min(max(1 - floor(log10(abs(value))), 0), 3)}f}"


def processes(load: Load) -> str:
    if load.one_process:
        return "1, local"
    return f"{load.gateways} + {load.workers} + 2 + 2, and 3 servers"


COLUMNS: Sequence[tuple[str, Callable[[Load], str]]] = (
    ("guilds", lambda load: f"{load.guilds:,}"),
    ("shards", lambda load: f"{load.shards:,}"),
    ("messages a day", lambda load: f"{load.messages:,.0f}"),
    ("a second, peak", lambda load: figure(load.at_peak)),
    ("answers a day", lambda load: f"{load.answers:,.0f}"),
    ("model calls a day", lambda load: f"{load.calls:,.0f}"),
    ("at once, peak", lambda load: figure(load.calls_at_once)),
    ("tokens a day, millions", lambda load: figure(load.tokens / 1e6)),
    ("money a day", lambda load: figure(load.money)),
    ("cores, peak", lambda load: figure(load.cores)),
    ("requests to Discord a second, peak", lambda load: figure(load.rest_at_peak)),
    ("to NATS a day, GB", lambda load: figure(load.nats_bytes / 1e9)),
    ("processes", processes),
)


def table(a: Assumptions) -> str:
    loads = [Load(guilds, a) for guilds in GUILDS]
    rows = [[name, *(show(load) for load in loads)] for name, show in COLUMNS]
    head, *rest = rows
    lines = [head, ["---", *("---:" for _ in loads)], *rest]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def assumptions(a: Assumptions) -> str:
    lines = ["| option | value | what | where it is from |", "|---|---:|---|---|"]
    for each in fields(a):
        value = getattr(a, each.name)
        shown = f"{value:,.4g}" if value < 1 else f"{value:,.0f}"
        lines.append(f"| `{option(each.name)}` | {shown} | {each.metadata['what']} | {each.metadata['source']} |")
    return "\n".join(lines)


def option(name: str) -> str:
    return f"--{name.strip('_').replace('_', '-')}"


def page(a: Assumptions) -> str:
    most, one = Load(GUILDS[-1], a), Load(GUILDS[0], a)
    largest = max(guilds for guilds in GUILDS if Load(guilds, a).one_process)
    at_once = Settings().ai_response.max_concurrent_answers
    hours = QUEUE_BYTES / (most.messages / DAY * a.bytes_message) / 3600
    return f"""\
# How much there is to do, up to {most.guilds:,} guilds

Generated by `python -m benchmarks.scale_arithmetic --write` and checked by `make generated`: do not edit. This is
arithmetic and no measurement: no bot of ours has been in {most.guilds:,} guilds. What was run is in
[scaling.md](scaling.md).

## From what

{assumptions(a)}

With values of your own: `python -m benchmarks.scale_arithmetic --messages 300 --price 0.6` prints the table below.

## What follows

{table(a)}

Processes are those of gateway, worker, team and knowledge; of the last three two or more, so that one takes over.

## How to read it

- **One process** does up to {largest:,} of these guilds: until more than {at_once} answers are in progress at once
  (`ai_response.max_concurrent_answers`, which may be raised), {figure(a.busy)} of a core is busy, or there are more
  than {MAX_GUILDS_OF_A_SHARD:,} guilds, the most that Discord allows a shard.
- **The model is what grows.** At {most.guilds:,} guilds the whole program wants {figure(most.cores)} cores in the
  busiest hour, and {most.calls_at_once:,.0f} calls of the model at once. A guild takes {figure(one.tokens / 1e6)}
  million tokens a day; `limits.tokens_per_day` and `limits.answers_per_day` hold that down, for all processes together.
  Over NATS `max_concurrent_answers` is for each partition.
- **Shards.** {most.shards} shards begin their sessions one after another, one in {IDENTIFY_SECONDS} seconds where
  Discord allows one at a time: the last {(most.shards - 1) * IDENTIFY_SECONDS} seconds after the first. Discord lets
  large bots begin several at once, and counts how many sessions a bot begins in a day.
- **Requests to Discord.** It allows {REST_A_SECOND} a second for a token, all processes together. Here they are
  {figure(most.rest_at_peak)} in the busiest hour. Each process counts its own only, and waits when Discord says so.
  Near the limit, a proxy that counts for all is in place.
- **The stream of messages** holds {QUEUE_BYTES / 1024**3:.0f} GiB of what has no outcome yet, and nothing for longer
  than a day. Without any worker it takes {most.guilds:,} guilds at least {hours:,.0f} hours to fill it.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    cli = argparse.ArgumentParser(prog="python -m benchmarks.scale_arithmetic")
    cli.add_argument("--check", action="store_true")
    cli.add_argument("--write", action="store_true")
    for each in fields(Assumptions):
        cli.add_argument(option(each.name), dest=each.name, type=float, default=each.default)
    options = cli.parse_args(arguments)
    if options.check or options.write:
        text = page(Assumptions())
        if options.write:
            PAGE.write_text(text)
        elif not PAGE.is_file() or PAGE.read_text() != text:
            print(
                "docs/scaling-arithmetic.md is stale: run python -m benchmarks.scale_arithmetic --write",
                file=sys.stderr,
            )
            return 1
        return 0
    print(table(Assumptions(**{each.name: getattr(options, each.name) for each in fields(Assumptions)})))
    return 0


if __name__ == "__main__":
    sys.exit(main())
