"""What is answered from what a team has taught: entries of an FAQ are answered by a team member, then people ask.

    python -m benchmarks.evaluation.faq FOLDER [COURSE…]

FOLDER holds `documents-with-ids.json` and `ground-truth-data.csv` of DataTalksClub/llm-zoomcamp (`06-best-practices`).
Of each course 60 entries are taught, each by a question and a team member's reply. An hour later people ask: one
question about each of these, in other words, and one about each of 60 entries that nobody has answered.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.evaluation.asking import prepared, replayed
from benchmarks.evaluation.judging import Line
from benchmarks.evaluation.questions import BOT, CHANNEL, GUILD, line, message_of
from benchmarks.verdicts import verdict

COURSES = ("data-engineering-zoomcamp", "machine-learning-zoomcamp")
TEAM = "777"
TAUGHT = 60
"""Entries of a course that are taught, and as many that are not."""
SEED = 1
_RIGHT, _WRONG, _FALSE, _RIGHT_ADDRESSED = 47, 2, 4, 54
"""What is wanted of each course."""
_BEGIN = datetime(2026, 1, 5, 9, tzinfo=UTC)
_BETWEEN = timedelta(minutes=3)
_UNTIL_ANSWERED = timedelta(seconds=40)
_PAUSE = timedelta(hours=1)
_FEWEST_WORDS = 3
_LONGEST = 4_000
"""Characters of a message, for those who pay."""


@dataclass(frozen=True, slots=True)
class Entry:
    id: str
    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A question about the entry with this id, and whether that was taught."""

    entry_id: str
    text: str
    was_taught: bool


@dataclass(frozen=True, slots=True)
class Counts:
    """How many questions came to what: `right` and `wrong` of those about what was taught, `false` of the others."""

    right: int = 0
    wrong: int = 0
    false: int = 0


def course(folder: Path, name: str, seed: int = SEED) -> tuple[list[Entry], list[Asked]]:
    """The entries that are taught, and what is asked afterwards, in order."""
    documents = json.loads((folder / "documents-with-ids.json").read_text(encoding="utf-8"))
    entries = {
        each["id"]: Entry(each["id"], each["question"], each["text"][:_LONGEST])
        for each in documents
        if each["course"] == name
    }
    asked: dict[str, list[str]] = {}
    with (folder / "ground-truth-data.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if len(row["question"].split()) >= _FEWEST_WORDS:  # some rows hold a heading
                asked.setdefault(row["document"], []).append(row["question"])
    ids = [entry_id for entry_id in entries if entry_id in asked]
    dice = random.Random(seed)  # noqa: S311 (a sample, no secret)
    dice.shuffle(ids)
    taught, others = ids[:TAUGHT], ids[TAUGHT : 2 * TAUGHT]
    questions = [Asked(each, dice.choice(asked[each]), was_taught=True) for each in taught]
    questions += [Asked(each, dice.choice(asked[each]), was_taught=False) for each in others]
    dice.shuffle(questions)
    return [entries[each] for each in taught], questions


def record(entries: Sequence[Entry], asked: Sequence[Asked], path: Path, *, addressed: bool) -> dict[str, Asked]:
    """Write the recording; gives what each message asks, by its id. `addressed`: each question mentions the bot."""
    bot = {"id": BOT, "username": "helper", "bot": True}
    channel = {"id": CHANNEL, "type": 0, "name": "help", "guild_id": GUILD}
    lines = [line(_BEGIN, "READY", {"user": bot})]
    lines.append(line(_BEGIN, "GUILD_CREATE", {"id": GUILD, "name": "Course", "channels": [channel]}))
    at = _BEGIN
    for number, entry in enumerate(entries):
        at += _BETWEEN
        question = message_of(at, {"id": str(10_000 + number), "username": f"student{number}"}, entry.question)
        answer = message_of(at + _UNTIL_ANSWERED, {"id": TEAM, "username": "teacher"}, entry.answer)
        answer |= {
            "type": 19,
            "message_reference": {"message_id": question["id"], "channel_id": CHANNEL, "guild_id": GUILD},
            "referenced_message": question,
        }
        lines.append(line(at, "MESSAGE_CREATE", question))
        lines.append(line(at + _UNTIL_ANSWERED, "MESSAGE_CREATE", answer))
    at += _PAUSE
    by_message: dict[str, Asked] = {}
    for number, each in enumerate(asked):
        at += _BETWEEN
        message = message_of(at, {"id": str(20_000 + number), "username": f"asker{number}"}, each.text)
        if addressed:
            message |= {"content": f"<@{BOT}> {each.text}", "mentions": [bot]}
        by_message[message["id"]] = each
        lines.append(line(at, "MESSAGE_CREATE", message))
    path.write_text("".join(lines), encoding="utf-8")
    return by_message


def counted(entries: Sequence[Entry], by_message: Mapping[str, Asked], lines: Sequence[Line]) -> Counts:
    """What a replay came to. A reply is right that shows the entry's own words, and before them none of another one."""
    replies: dict[str, str] = {}
    for each in lines:
        if each["outcome"] == "replied":
            for message_id in each["message_ids"]:
                replies[message_id] = each["reply_text"] or ""
    right = wrong = false = 0
    for message_id, asked in by_message.items():
        if message_id not in replies:
            continue
        if not asked.was_taught:
            false += 1
        elif shown_entry(replies[message_id], entries) == asked.entry_id:
            right += 1
        else:
            wrong += 1
    return Counts(right, wrong, false)


def shown_entry(reply: str, entries: Sequence[Entry]) -> str | None:
    """The entry whose words a reply shows first."""
    text = _squeezed(reply)
    lines = {entry.id: {_squeezed(line)[:_COMPARED] for line in _lines(entry)} for entry in entries}
    often = Counter(line for own in lines.values() for line in own)
    places = {
        entry_id: min(text.find(line) for line in own if often[line] == 1 and line in text)
        for entry_id, own in lines.items()
        if any(often[line] == 1 and line in text for line in own)
    }
    return min(places, key=lambda each: places[each], default=None)


def _lines(entry: Entry) -> list[str]:
    """Of the question, and of the answer those that can be told from others'; a line may be cut off in a reply."""
    lines = [line for line in entry.answer.splitlines() if len(_squeezed(line)) >= _TELLING]
    return [entry.question, *(lines or [entry.answer])]


_TELLING, _COMPARED = 12, 40
"""Letters of a line that tell whose it is."""


def _squeezed(text: str) -> str:
    return "".join(filter(str.isalnum, text.lower()))


def evaluated(
    folder: Path, name: str, documents: Path | None = None, seed: int = SEED, shown: Path | None = None
) -> dict[bool, Counts]:
    """The counts of one course, by whether the bot is addressed. `shown`: where each question goes with its reply."""
    entries, asked = course(folder, name, seed)
    found: dict[bool, Counts] = {}
    with tempfile.TemporaryDirectory(prefix="millrace-eval-") as made:
        place = Path(made)
        if documents is None:
            documents = place / "documents"
            documents.mkdir()
            (documents / "readme.md").write_text("# Course\n\nA course. People ask in the channel.\n", encoding="utf-8")
        config = prepared(documents, place, {"discord": {"team_member_ids": [int(TEAM)]}})
        for addressed in (False, True):
            recording = place / f"faq-{addressed}.jsonl"
            by_message = record(entries, asked, recording, addressed=addressed)
            lines, _ = replayed(recording, config)
            found[addressed] = counted(entries, by_message, lines)
            if shown is not None:
                how = "addressed" if addressed else "plain"
                shown.mkdir(parents=True, exist_ok=True)
                _show(shown / f"{name}-{how}.jsonl", entries, by_message, lines)
    return found


def _show(path: Path, entries: Sequence[Entry], by_message: Mapping[str, Asked], lines: Sequence[Line]) -> None:
    by_id = {entry.id: entry for entry in entries}
    with path.open("w", encoding="utf-8") as file:
        for each in lines:
            for message_id in each["message_ids"]:
                if message_id in by_message:
                    asked = by_message[message_id]
                    entry = by_id.get(asked.entry_id)
                    row = {
                        "taught": asked.was_taught,
                        "asked": asked.text,
                        "entry": entry and [entry.question, entry.answer],
                        "outcome": each["outcome"],
                        "reason": each["reason"],
                        "level": each.get("level"),
                        "reply": each["reply_text"],
                    }
                    file.write(json.dumps(row) + "\n")


def main(arguments: Sequence[str] | None = None) -> int:
    cli = argparse.ArgumentParser(prog="benchmarks.evaluation.faq", description="Answers from what a team has taught.")
    cli.add_argument("folder", type=Path)
    cli.add_argument("--show", type=Path, metavar="FOLDER", help="write each question with its reply there")
    cli.add_argument("--documents", type=Path, help="the documentation beside it; without: a page of one line")
    cli.add_argument("--seed", type=int, default=SEED)
    cli.add_argument("courses", nargs="*", default=COURSES)
    options = cli.parse_args(arguments)
    verdicts: list[tuple[bool, str]] = []
    for name in options.courses:
        counts = evaluated(options.folder, name, options.documents, options.seed, options.show)
        plain, addressed = counts[False], counts[True]
        for count, least, most, what in (
            (plain.right, _RIGHT, TAUGHT, "right"),
            (plain.wrong, 0, _WRONG, "wrong"),
            (plain.false, 0, _FALSE, "never taught and answered"),
            (addressed.right, _RIGHT_ADDRESSED, TAUGHT, "right where the bot is addressed"),
        ):
            wanted = f"at least {least}" if least else f"at most {most}"
            verdicts.append((least <= count <= most, f"{name}: {count} of {TAUGHT} {what}, {wanted} wanted"))
    return verdict(*verdicts)


if __name__ == "__main__":
    sys.exit(main())
