"""Followed conversations against annotated ones: the follower alone, over whole recordings.

    python -m benchmarks.evaluation.following [FILE…]            the figures, beside what is wanted
    python -m benchmarks.evaluation.following --vary [FILE…]     the figures for other rules, and of halves of the logs

FILE is a recording with `<name>.gold.json` beside it. Only its list of the staff is read before the run.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from pathlib import Path

from benchmarks.evaluation import data
from benchmarks.evaluation.conversations import Figures, Written, figures, mean
from benchmarks.evaluation.replaying import staff_of
from benchmarks.verdicts import verdict
from model.events import PlaceSeen, Posted
from model.messages import AuthorType, Message, Place, PlaceKind
from services.conversations.following import Follower, FollowRules
from services.conversations.teaching import taught
from services.discord.recordings import read
from services.discord.wire import Decoder

REPLIES, PRECISION, RECALL, HELD = Fraction(1), 0.88, 0.62, 0.90
"""The least: of the replies in each recording, of the others in the mean of all recordings."""
SEVERAL_ASKERS = {"stripe-0": Fraction(1, 15)}
"""The most captured conversations with two askers or more, where a channel has one asker in each."""
VARIED = (0.7, 1.3)
LINE = "{:<28} {:>8} {:>10} {:>7} {:>6} {:>7} {:>7}"


@dataclass(frozen=True, slots=True)
class Log:
    """A recording: what was said, by whom, and what people say belongs together."""

    name: str
    messages: tuple[Message, ...]
    places: Mapping[int, Place]
    staff: frozenset[int]
    annotated: tuple[tuple[int, ...], ...]

    def type_of(self, message: Message) -> AuthorType:
        if message.author.is_bot:
            return AuthorType.BOT
        return AuthorType.TEAM_MEMBER if message.author.id in self.staff else AuthorType.COMMUNITY_USER


@dataclass(frozen=True, slots=True)
class Result:
    """The figures of `make eval`, and of the whole log how many captured conversations, with how many askers.

    Attributes:
        doubled: messages that stand in two captured conversations.
    """

    figures: Figures
    captured: int
    several_askers: int
    doubled: int

    @property
    def several(self) -> Fraction:
        return Fraction(self.several_askers, max(self.captured, 1))


def log_of(recording: Path) -> Log:
    decoder = Decoder()
    events = [event for dispatch in read(recording) for event in decoder.decode(dispatch)]
    gold = json.loads(data.gold_of(recording).read_text(encoding="utf-8"))
    return Log(
        recording.stem,
        tuple(event.message for event in events if isinstance(event, Posted) and not event.message.is_system),
        {event.place.id: event.place for event in events if isinstance(event, PlaceSeen)},
        frozenset(int(i) for i in staff_of(recording)),
        tuple(tuple(int(i) for i in conversation) for conversation in gold["conversations"]),
    )


def followed(log: Log, rules: FollowRules | None = None) -> dict[int, int]:
    """The conversation of each message by id, amendments included."""
    follower = Follower(rules)
    names: dict[int, int] = {}
    for message in log.messages:
        place = log.places.get(message.channel_id) or Place(message.channel_id, PlaceKind.CHANNEL)
        found = follower.follow(message, log.type_of(message), place)
        names |= dict.fromkeys((message.id, *found.moved), found.conversation)
    return names


def result(log: Log, rules: FollowRules | None = None) -> Result:
    kinds = {message.id: log.type_of(message) for message in log.messages}
    captured = list(taught(followed(log, rules), kinds).values())
    written = {
        each.id: Written(each.author.id, None if each.reply_to is None else each.reply_to.message_id)
        for each in log.messages
    }
    everything = [message_id for ids in captured for message_id in ids]
    return Result(
        figures(captured, log.annotated, written, log.staff),
        len(captured),
        sum(len(askers(ids, written, kinds)) > 1 for ids in captured),
        len(everything) - len(set(everything)),
    )


def askers(ids: Iterable[int], written: Mapping[int, Written], kinds: Mapping[int, AuthorType]) -> Collection[int]:
    return {written[i].author_id for i in ids if kinds[i] is AuthorType.COMMUNITY_USER}


def halves(log: Log) -> dict[str, Log]:
    """The log without its first half, so that the follower begins cold; and either half of the annotations."""
    middle = len(log.annotated) // 2
    in_order = tuple(sorted(log.annotated, key=min))
    return {
        "second half of the log": replace(log, messages=log.messages[len(log.messages) // 2 :]),
        "first annotations": replace(log, annotated=in_order[:middle]),
        "last annotations": replace(log, annotated=in_order[middle:]),
    }


def line(what: str, found: Result) -> str:
    shares = (found.figures.replies, found.figures.precision, found.figures.recall, found.figures.held, found.several)
    return LINE.format(what, *(f"{float(each):.3f}" for each in shares), found.captured)


def vary(logs: Sequence[Log]) -> None:
    """Print a line for each rule, shorter and longer, and for each half."""
    for log in logs:
        print(LINE.format(log.name, "replies", "precision", "recall", "held", "several", "convs"))
        print(line("the defaults", result(log)))
        for rule in fields(FollowRules):
            for factor in VARIED:
                seconds = getattr(FollowRules(), rule.name) * factor
                print(line(f"{rule.name} {seconds:g}", result(log, replace(FollowRules(), **{rule.name: seconds}))))
        for what, half in halves(log).items():
            print(line(what, result(half)))


def main(arguments: Sequence[str] | None = None) -> int:
    cli = argparse.ArgumentParser(prog="benchmarks.evaluation.following", description="Figures of followed chats.")
    cli.add_argument("--vary", action="store_true", help="the figures for other rules, and of halves")
    cli.add_argument("files", nargs="*", type=Path, metavar="FILE", help="recordings with a .gold.json beside them")
    options = cli.parse_args(arguments)
    files: list[Path] = options.files or data.recordings()
    if data.unusable(files, "following"):
        return 2
    if not files:
        print(f"skipped: no annotated recordings; set {data.VARIABLE} to a folder that holds recordings/*.gold.json")
        return 0
    logs = [log_of(path) for path in files]
    if options.vary:
        vary(logs)
        return 0
    return verdict(*requirements({log.name: result(log) for log in logs}))


def requirements(found: Mapping[str, Result]) -> list[tuple[bool, str]]:
    """Those of the figures that are judged; the others are only printed."""
    judged: list[tuple[bool, str]] = []
    print(LINE.format("", "replies", "precision", "recall", "held", "several", "convs"))
    for name, each in found.items():
        print(line(name, each))
        most = SEVERAL_ASKERS.get(name)
        judged.append((each.figures.replies >= REPLIES, f"{name}: all of staff's replies are with what they answer"))
        judged.append((not each.doubled, f"{name}: {each.doubled} messages in two conversations, none wanted"))
        if most is not None:
            text = f"{name}: {each.several_askers} of {each.captured} conversations with several askers"
            judged.append((each.several <= most, f"{text}, at most {most} of them wanted"))
    for what, shares, least in (
        ("precision", [each.figures.precision for each in found.values()], PRECISION),
        ("recall", [each.figures.recall for each in found.values()], RECALL),
        ("held", [each.figures.held for each in found.values()], HELD),
    ):
        judged.append((mean(shares) >= least, f"{what} in the mean: {float(mean(shares)):.3f}, at least {least:.2f}"))
    return judged


if __name__ == "__main__":
    sys.exit(main())
