"""A day on a busy server, made up from a seed: one recording, the same bytes each time."""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clock import from_rfc3339, rfc3339
from model.messages import DISCORD_EPOCH_MS
from services.discord.dispatches import Dispatch, render_line

MESSAGES = 100_000
CHANNELS = 300
START = from_rfc3339("2026-02-02T00:00:00Z")
DAY_SECONDS = 86_400.0
BY_HOUR = (2, 1, 1, 1, 1, 1, 2, 3, 4, 5, 6, 6, 7, 7, 7, 8, 8, 8, 9, 9, 8, 7, 5, 3)
"""How much is said, by hour of the day."""

LONGER_RUNS = 0.34
"""Share of an author's runs that have two or more messages (measured on real support chats)."""
YET_ANOTHER = 0.35
MEAN_RUN = 1 + LONGER_RUNS / (1 - YET_ANOTHER)
TYPING_SECONDS = 15.0
"""Between two messages of a run, on average."""
PAUSE_SECONDS = DAY_SECONDS / (MESSAGES / CHANNELS / MEAN_RUN) - MEAN_RUN * TYPING_SECONDS
"""Between two runs in a channel, on average over the day."""
REPLIES = 0.2
TEAM_REPLIES = 0.7

TEAM_SHARE = 0.08
BOT_SHARE = 0.03
GUILD_ID = 1_100_000_000_000_000_001
FIRST_CHANNEL_ID = 1_100_000_000_000_001_000
BOT_ID = 1_050_000_000_000_000_001
FIRST_PERSON_ID = 500_000_000_000_000_000

TALK = (
    "how do I set the token for my worker after an update it says permission denied when starting on linux while the "
    "logs show nothing useful and restarting does not help at all could somebody tell me whether the config file has "
    "moved since version two because yesterday it was fine thanks in advance for any hint about this"
)
WORDS = TALK.split()


@dataclass(frozen=True, slots=True)
class Person:
    id: int
    name: str
    is_bot: bool
    is_team: bool


@dataclass(frozen=True, slots=True)
class Said:
    at: float
    channel_id: int
    person: Person
    text: str
    number: int
    """Of the message in its channel: the reply target of others."""
    reply_to: int | None


def team_ids() -> frozenset[int]:
    """Who is of the team, for the settings of the replay."""
    return frozenset(person.id for channel in range(CHANNELS) for person in people(channel) if person.is_team)


def write_day(path: Path, messages: int = MESSAGES) -> None:
    """Write the recording: the first so many messages of the day."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(render_line(dispatch) for dispatch in dispatches(messages))


def dispatches(messages: int) -> Iterator[Dispatch]:
    yield Dispatch(START, "READY", {"v": 10, "user": {"id": str(BOT_ID), "username": "Millrace", "bot": True}})
    channels = [{"id": str(FIRST_CHANNEL_ID + n), "type": 0, "name": f"help-{n}"} for n in range(CHANNELS)]
    guild = {"id": str(GUILD_ID), "name": "A busy server", "channels": channels, "threads": []}
    yield Dispatch(START, "GUILD_CREATE", guild)
    # Streamed, channel by channel merged: a process that measures others has to stay small.
    spoken = heapq.merge(*(talk(channel) for channel in range(CHANNELS)), key=lambda said: said.at)
    recent: dict[tuple[int, int], dict[str, Any]] = {}
    for number, said in enumerate(itertools.islice(spoken, messages)):
        payload = message(said, snowflake(said.at, number))
        if said.reply_to is not None:
            refer(payload, recent[said.channel_id, said.reply_to])
        recent[said.channel_id, said.number] = payload
        recent.pop((said.channel_id, said.number - 10), None)
        yield Dispatch(said.at, "MESSAGE_CREATE", payload)


def people(channel: int) -> list[Person]:
    """The three to five who write in a channel."""
    dice = random.Random(f"people {channel}")  # noqa: S311 (not a secret)
    found: list[Person] = []
    for seat in range(dice.choice((3, 4, 4, 5))):
        draw = dice.random()
        is_bot, is_team = draw < BOT_SHARE, BOT_SHARE <= draw < BOT_SHARE + TEAM_SHARE
        found.append(Person(FIRST_PERSON_ID + channel * 10 + seat, f"person-{channel}-{seat}", is_bot, is_team))
    return found


def talk(channel: int) -> Iterator[Said]:
    """What is said in a channel, in order, for as long as somebody listens."""
    dice = random.Random(f"talk {channel}")  # noqa: S311 (as above)
    everybody = people(channel)
    number, last, at, latest = itertools.count(), everybody[0], START, dict[int, int]()
    while True:
        at += 2 + dice.expovariate(1 / PAUSE_SECONDS) / pace(at)
        last = dice.choice([person for person in everybody if person is not last])
        # To somebody else's last message, if it is not too far back.
        others = [n for person_id, n in latest.items() if person_id != last.id and n > max(latest.values()) - 5]
        replies = others and dice.random() < (TEAM_REPLIES if last.is_team else REPLIES)
        target = dice.choice(others) if replies else None
        for _ in range(run_length(dice)):
            latest[last.id] = next(number)
            at = round(at, 3)
            yield Said(at, FIRST_CHANNEL_ID + channel, last, sentence(dice), latest[last.id], target)
            target = None
            at += 1 + dice.expovariate(1 / TYPING_SECONDS)


def pace(at: float) -> float:
    return BY_HOUR[int((at - START) // 3600) % 24] * 24 / sum(BY_HOUR)


def run_length(dice: random.Random) -> int:
    length = 1 if dice.random() >= LONGER_RUNS else 2
    while length > 1 and dice.random() < YET_ANOTHER:
        length += 1
    return length


def sentence(dice: random.Random) -> str:
    words = dice.choices(WORDS, k=dice.randint(3, 25))
    return " ".join(words) + dice.choice("?.?!")


def snowflake(at: float, number: int) -> int:
    return (round(at * 1000) - DISCORD_EPOCH_MS) << 22 | number & 0xFFF


def message(said: Said, message_id: int) -> dict[str, Any]:
    stamp = rfc3339(said.at, digits=6).replace("Z", "+00:00")
    return {
        "id": str(message_id),
        "type": 0,
        "channel_id": str(said.channel_id),
        "author": user(said.person),
        "content": said.text,
        "timestamp": stamp,
        "edited_timestamp": None,
        "attachments": [],
        "embeds": [],
        "mentions": [],
        "mention_roles": [],
        "mention_everyone": False,
        "pinned": False,
        "tts": False,
        "guild_id": str(GUILD_ID),
        "member": {"roles": [], "joined_at": "2023-11-20T00:00:00+00:00", "nick": None, "deaf": False, "mute": False},
    }


def user(person: Person) -> dict[str, Any]:
    shown = {"id": str(person.id), "username": person.name, "discriminator": "0", "global_name": None, "avatar": None}
    return {**shown, "bot": True} if person.is_bot else shown


def refer(payload: dict[str, Any], target: dict[str, Any]) -> None:
    """Make a reply of it, with the message it replies to sent along as Discord does."""
    payload["type"] = 19
    payload["message_reference"] = {key: target[key] for key in ("channel_id", "guild_id")} | {
        "type": 0,
        "message_id": target["id"],
    }
    left_out = {"guild_id", "member", "referenced_message", "message_reference"}
    payload["referenced_message"] = {key: value for key, value in target.items() if key not in left_out}
    payload["mentions"] = [target["author"]]
