"""Where a bot that has an answer to every question would speak, in chats among people and their staff.

    python -m benchmarks.evaluation.keeping_out [FILE…]

FILE is a recording with `<name>.gold.json` beside it. Only its list of the staff is read before the run.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from assembly.running import play
from benchmarks.evaluation import data
from benchmarks.evaluation.following import Log, log_of
from benchmarks.ours import assembled
from benchmarks.verdicts import verdict
from clock import VirtualLoop
from model.messages import AuthorType, Message
from model.outcomes import Ignored, Outcome, OutcomeKind, Result
from services.search.questions import is_question, may_ask
from settings import DiscordSettings, Settings
from sinks.results import ResultCounts
from streams.graph import graph
from streams.recording import first_time

MAX_CUT_WRONGLY = 0.05
"""Of the parts with annotated messages: those with messages of two conversations."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """What the bot did with the parts of one log that hold annotated messages. Replies to what is no question, which a
    gate would have left out, are not counted.

    Attributes:
        replies: parts that were replied to.
        into_staffed: conversations in which it replied although a staff member had turned to the asker before: with a
            reply or a mention, which can be seen.
        unseen: those in which a staff member had written before, without a sign to whom.
        ahead_of_staff: those in which it replied before any did.
        into_chatter: messages it replied to in conversations without staff, after somebody else had written there.
        parts, mixed: all parts, and those with messages of two conversations.
    """

    replies: int
    into_staffed: int
    unseen: int
    ahead_of_staff: int
    into_chatter: int
    parts: int
    mixed: int


def played(recording: Path, log: Log) -> list[Result]:
    """Every result of a replay in which each question has an answer at once."""
    results: list[Result] = []
    start = first_time(recording)
    with (
        tempfile.TemporaryDirectory(prefix="millrace-eval-") as folder,
        asyncio.Runner(loop_factory=lambda: VirtualLoop(start)) as runner,
    ):
        settings = Settings(discord=DiscordSettings(team_member_ids=log.staff)).resolve_paths(Path(folder))
        runner.run(_played(recording, settings, results.append))
    return results


async def _played(recording: Path, settings: Settings, add: Callable[[Result], object]) -> None:
    tally = ResultCounts()
    parts = assembled(settings, [tally.add, add])
    await play(
        recording,
        through=lambda events: graph(events, parts.services, parts.sinks, parts.rules),
        in_flight=parts.services.in_flight,
        counts=tally,
    )


def spoken(log: Log, results: Iterable[Result]) -> Spoken:
    """Count the results of a run, by the annotated conversations that their messages are of."""
    conversation_of = {i: number for number, ids in enumerate(log.annotated) for i in ids}
    messages = {message.id: message for message in log.messages}
    staffed: set[int] = set()
    unseen: set[int] = set()
    ahead: set[int] = set()
    replies = chatter = parts = mixed = 0
    for result in results:
        ids = ids_of(result)
        names = {conversation_of[i] for i in ids if i in conversation_of}
        parts += bool(names)
        mixed += len(names) > 1
        if not (names and isinstance(result, Outcome) and result.result is OutcomeKind.REPLIED):
            continue
        text = "\n".join(message.text for message in result.part.messages)
        if not (is_question(text) or may_ask(text)):
            continue
        replies += 1
        author_id, closed_at = result.part.author.id, result.part.closed_at
        for name in sorted(names):
            others = [messages[i] for i in log.annotated[name] if messages[i].author.id != author_id]
            before = [each for each in others if each.at < closed_at]
            staff = [each for each in others if log.type_of(each) is AuthorType.TEAM_MEMBER]
            seen = [each for each in staff if each.at < closed_at]
            if any(turns_to(each, author_id, messages) for each in seen):
                staffed.add(name)
            elif seen:
                unseen.add(name)
            elif staff:
                ahead.add(name)
            elif before:
                chatter += sum(1 for i in ids if conversation_of.get(i) == name)
    return Spoken(replies, len(staffed), len(unseen - staffed), len(ahead - staffed), chatter, parts, mixed)


def turns_to(message: Message, author_id: int, messages: Mapping[int, Message]) -> bool:
    """Whether it replies to this person, or mentions them."""
    target = None if message.reply_to is None else messages.get(message.reply_to.message_id)
    mentioned = any(user_id == author_id for user_id, _ in message.mentions)
    return mentioned or (target is not None and target.author.id == author_id)


def ids_of(result: Result) -> Sequence[int]:
    """Of the part that it is the result of; none where there was no part."""
    match result:
        case Outcome(part=part):
            return part.message_ids
        case Ignored(message_ids=ids, part_number=number) if number is not None:
            return ids
        case _:
            return ()


def requirements(found: Mapping[str, Spoken]) -> list[tuple[bool, str]]:
    """Those of the figures that are judged; the others are only printed."""
    judged: list[tuple[bool, str]] = []
    for name, each in found.items():
        print(f"{name}: {each.replies} replies; into {each.ahead_of_staff} conversations ahead of staff")
        print(f"      {name}: into {each.unseen} in which staff had written without a sign to whom")
        judged += [
            (
                not each.into_staffed,
                f"{name}: {each.into_staffed} conversations in which staff had turned to the asker, none wanted",
            ),
            (
                each.mixed <= MAX_CUT_WRONGLY * each.parts,
                f"{name}: {each.mixed} of {each.parts} parts of two conversations, at most 5 % wanted",
            ),
        ]
        print(f"      {name}: {each.into_chatter} messages answered in conversations among users")
    return judged


def main(arguments: Sequence[str] | None = None) -> int:
    cli = argparse.ArgumentParser(prog="benchmarks.evaluation.keeping_out", description="Where the bot speaks.")
    cli.add_argument("files", nargs="*", type=Path, metavar="FILE", help="recordings with a .gold.json beside them")
    files: list[Path] = cli.parse_args(arguments).files or data.recordings()
    if data.unusable(files, "keeping_out"):
        return 2
    if not files:
        print(f"skipped: no annotated recordings; set {data.VARIABLE} to a folder that holds recordings/*.gold.json")
        return 0
    logs = {path: log_of(path) for path in files}
    return verdict(*requirements({log.name: spoken(log, played(path, log)) for path, log in logs.items()}))


if __name__ == "__main__":
    sys.exit(main())
