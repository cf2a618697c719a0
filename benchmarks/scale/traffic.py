"""What is said during a drill, made up from a seed: who, where, when, and what they want.

Everybody of a channel speaks in turn, so that nobody's turns are close enough to run into each other: with the same
times the same batches come about, in one process and in many.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

ASKERS, TEAM_SEATS = 5, 5
"""Members who write in each channel; members of the team, of whom each channel has one."""
QUESTIONS, TAUGHT, IN_THREADS, WITH_FILES = 0.12, 0.25, 0.3, 0.05
"""Shares: of turns, questions (a tenth of all messages); of those, how many a member of the team answers too, how many
of these answers are in the bot's thread, and how many questions come with a file."""
LONGER_RUNS = 0.2
RUN_SECONDS = 0.03
"""Between the messages of one turn."""
PATIENCE_SECONDS = 8.0
"""From a question to what the team says about it: the bot has answered by then."""
CASE = re.compile(r"\bcase-\d+\b")
"""What makes each question and its answer unlike every other."""
POISON = "POISON"
"""Whichever process shows this word to the model is killed."""

TALK = (
    "the new release works for me on three machines so far and the photos of last summer are all there "
    "thanks to everybody who helped me with the disk yesterday it runs without a break since then"
)
ASKED = (
    "how can I restore a backup?",
    "where do I turn off face recognition?",
    "how can I set a new password for a user?",
    "how do I move the library to another disk?",
    "why does the background upload stop on Android?",
)
WORDS = TALK.split()
TAUGHT_TEXTS = (
    "Run `lf check` first and look at the last line that it prints.",
    "That is known, and mended in the next release; until then restart the worker.",
    "Set `LF_MEDIA_ROOT` to the new path, then start it again.",
)


@dataclass(frozen=True, slots=True)
class Saying:
    """One message to come.

    Attributes:
        at: seconds after the beginning.
        kind: `talk`, `question` or `team`.
        about: the question that a member of the team replies to, or in whose thread they write.
        in_thread: whether it is said in that thread, which the bot has to have opened.
        file: the text of an attached log; empty: none.
    """

    number: int
    at: float
    channel: int
    author: str
    kind: str
    text: str
    about: int | None = None
    in_thread: bool = False
    file: str = ""


def plan(
    messages: int,
    channels: int,
    seconds: float,
    seed: int = 7,
    *,
    questions: float = QUESTIONS,
    taught: float = TAUGHT,
) -> list[Saying]:
    """So many sayings, spread over that time, numbered in order. `questions`, `taught`: their shares."""
    dice = random.Random(seed)  # noqa: S311 (not a secret)
    found: list[Saying] = []
    for channel in range(channels):
        share = messages // channels + (channel < messages % channels)
        found += _channel(dice, channel, share, seconds, questions, taught)
    found.sort(key=lambda saying: (saying.at, saying.channel))
    numbers = {saying.number: number for number, saying in enumerate(found)}
    return [
        replace(saying, number=number, about=None if saying.about is None else numbers[saying.about])
        for number, saying in enumerate(found)
    ]


def _channel(
    dice: random.Random, channel: int, messages: int, seconds: float, questions: float, taught: float
) -> list[Saying]:
    step, said = seconds / max(messages, 1), list[Saying]()
    due: list[Saying] = []
    asker = dice.randrange(ASKERS)
    for place in range(messages):
        number, at = channel * 1_000_000 + place, place * step + dice.random() * step / 2
        if due and due[0].at <= at:
            said.append(replace(due.pop(0), number=number, at=at))
            continue
        if said and said[-1].kind == "talk" and dice.random() < LONGER_RUNS:
            said.append(replace(said[-1], number=number, at=said[-1].at + RUN_SECONDS, text=_talk(dice)))
            continue
        asker = (asker + 1) % ASKERS
        author = f"asker-{channel}-{asker}"
        if dice.random() >= questions:
            said.append(Saying(number, at, channel, author, "talk", _talk(dice)))
            continue
        file = _log(number) if dice.random() < WITH_FILES else ""
        said.append(Saying(number, at, channel, author, "question", dice.choice(ASKED), file=file))
        if dice.random() < taught:
            helper, text = f"team-{channel % TEAM_SEATS}", dice.choice(TAUGHT_TEXTS)
            in_thread = dice.random() < IN_THREADS
            due.append(Saying(0, at + PATIENCE_SECONDS, channel, helper, "team", text, number, in_thread))
    return said


def _talk(dice: random.Random) -> str:
    return " ".join(dice.choices(WORDS, k=dice.randint(4, 20)))


def _log(number: int) -> str:
    lines = [f"2026-02-02T00:00:{n % 60:02} INFO import {number}: photo {n} stored" for n in range(200)]
    return "\n".join([*lines, "2026-02-02T00:04:00 ERROR import: database is locked (E-1042)"])


def write_plan(path: Path, sayings: Sequence[Saying]) -> None:
    path.write_text("".join(json.dumps(asdict(saying)) + "\n" for saying in sayings))


def read_plan(path: Path) -> list[Saying]:
    return [Saying(**json.loads(line)) for line in path.read_text().splitlines()]


def case_in(text: str) -> str:
    """The case that a text names first; empty: none."""
    found = CASE.search(text)
    return "" if found is None else found[0]
