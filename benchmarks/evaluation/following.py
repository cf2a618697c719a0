"""Followed conversations against annotated ones: the tracker alone, over whole recordings.

    python -m benchmarks.evaluation.following [FILE…]            the figures, beside what is wanted
    python -m benchmarks.evaluation.following --vary [FILE…]     the figures for other rules, and of halves of the logs

FILE is a recording with `<name>.gold.json` beside it. Only its list of the staff is read before the run.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from benchmarks.evaluation import data
from benchmarks.evaluation.conversations import LINE, Captured, Result, Written, line, requirements, result
from benchmarks.evaluation.replaying import staff_of
from benchmarks.evaluation.taught import taught
from benchmarks.verdicts import verdict
from model.events import PlaceSeen, Posted
from model.messages import AuthorType, Message, Place, PlaceKind
from services.conversations.tracking import ConversationTracker, TrackingRules
from services.discord.recordings import read
from services.discord.wire import Decoder

VARIED = (0.7, 1.3)


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


def followed(log: Log, rules: TrackingRules | None = None) -> dict[int, int]:
    """The conversation of each message by id, amendments included."""
    tracker = ConversationTracker(rules)
    names: dict[int, int] = {}
    for message in log.messages:
        place = log.places.get(message.channel_id) or Place(message.channel_id, PlaceKind.CHANNEL)
        found = tracker.follow(message, log.type_of(message), place)
        names |= dict.fromkeys((message.id, *found.moved), found.conversation)
    return names


def result_of(log: Log, rules: TrackingRules | None = None) -> Result:
    kinds = {message.id: log.type_of(message) for message in log.messages}
    written = {
        each.id: Written(each.author.id, None if each.reply_to is None else each.reply_to.message_id)
        for each in log.messages
    }
    captured = [
        Captured(ids, {written[i].author_id for i in ids if kinds[i] is AuthorType.COMMUNITY_USER})
        for ids in taught(followed(log, rules), kinds).values()
    ]
    return result(captured, log.annotated, written, log.staff)


def halves(log: Log) -> dict[str, Log]:
    """The log without its first half, so that the tracker begins cold; and either half of the annotations."""
    middle = len(log.annotated) // 2
    in_order = tuple(sorted(log.annotated, key=min))
    return {
        "second half of the log": replace(log, messages=log.messages[len(log.messages) // 2 :]),
        "first annotations": replace(log, annotated=in_order[:middle]),
        "last annotations": replace(log, annotated=in_order[middle:]),
    }


def vary(logs: Sequence[Log]) -> None:
    """Print a line for each rule, shorter and longer, and for each half."""
    for log in logs:
        print(LINE.format(log.name, "replies", "precision", "recall", "held", "several", "convs"))
        print(line("the defaults", result_of(log)))
        for rule in fields(TrackingRules):
            for factor in VARIED:
                seconds = getattr(TrackingRules(), rule.name) * factor
                print(
                    line(f"{rule.name} {seconds:g}", result_of(log, replace(TrackingRules(), **{rule.name: seconds})))
                )
        for what, half in halves(log).items():
            print(line(what, result_of(half)))


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
    return verdict(*requirements({log.name: result_of(log) for log in logs}))


if __name__ == "__main__":
    sys.exit(main())
