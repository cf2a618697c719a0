"""Measures the answers from what a team has taught, on made-up chats.

    python -m benchmarks.evaluation.chats [NAME…] [--show FOLDER]

`chats/*.json` are four chats about products that do not exist, three in English and one in German. Whoever wrote them
had not seen the program. In each the team answers 40 people; later 80 others write: 40 need what was answered, and say
it in other words; 30 ask about what nobody has answered; 10 say something that asks nothing.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.evaluation.asking import prepared, replayed
from benchmarks.evaluation.judging import Line
from benchmarks.evaluation.questions import BOT, CHANNEL, GUILD, line, message_of
from benchmarks.verdicts import verdict

FOLDER = Path(__file__).with_name("chats")
TEAM = "777"
MAX_WRONG = 1
"""The most wrong replies to what people say to each other in one chat, of 80."""
_BEGIN = datetime(2026, 1, 5, 9, tzinfo=UTC)
_BETWEEN_CONVERSATIONS, _BETWEEN_QUESTIONS = timedelta(minutes=30), timedelta(minutes=3)
_TYPING, _UNTIL_ANSWERED, _UNTIL_THANKED = timedelta(seconds=15), timedelta(seconds=40), timedelta(minutes=2)
_COMPARED_CHARS, _TELLING_CHARS = 30, 15
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|\n")

Taught = Mapping[str, Any]
"""`id`, the messages of the `asker`, those of the `team`, and the thanks, `helped`, or null."""
Asked = Mapping[str, Any]
"""`id`, `messages`, the ids of what answers it (`right`), and its `kind`: same, untaught or remark."""


class Chat(NamedTuple):
    name: str
    about: str
    taught: Sequence[Taught]
    asked: Sequence[Asked]


def read(path: Path) -> Chat:
    found = json.loads(path.read_text(encoding="utf-8"))
    return Chat(found["name"], found["about"], found["taught"], found["asked"])


def record(chat: Chat, path: Path, *, addressed: bool) -> dict[str, Asked]:
    """Write the recording; gives what each later message belongs to. `addressed`: the first one of each mentions the
    bot.
    """
    bot = {"id": BOT, "username": "helper", "bot": True}
    channel = {"id": CHANNEL, "type": 0, "name": "help", "guild_id": GUILD}
    lines = [line(_BEGIN, "READY", {"user": bot})]
    lines.append(line(_BEGIN, "GUILD_CREATE", {"id": GUILD, "name": chat.name, "channels": [channel]}))

    def say(at: datetime, author: Mapping[str, str], text: str, **more: object) -> dict[str, Any]:
        message = message_of(at, author, text) | more
        lines.append(line(at, "MESSAGE_CREATE", message))
        return message

    for number, each in enumerate(chat.taught, start=1):
        at = _BEGIN + number * _BETWEEN_CONVERSATIONS
        asker, team = _person(10_000 + number), {"id": TEAM, "username": "teacher"}
        *_, question = (say(at + place * _TYPING, asker, text) for place, text in enumerate(each["asker"]))
        at += len(each["asker"]) * _TYPING + _UNTIL_ANSWERED
        reference = {"message_id": question["id"], "channel_id": CHANNEL, "guild_id": GUILD}
        reply = {"type": 19, "message_reference": reference, "referenced_message": question}
        for place, text in enumerate(each["team"]):
            say(at + place * _TYPING, team, text, **({} if place else reply))
        if each["helped"]:
            say(at + len(each["team"]) * _TYPING + _UNTIL_THANKED, asker, each["helped"])
    begin = _BEGIN + (len(chat.taught) + 2) * _BETWEEN_CONVERSATIONS
    found: dict[str, Asked] = {}
    for number, each in enumerate(chat.asked):
        for place, text in enumerate(each["messages"]):
            at = begin + number * _BETWEEN_QUESTIONS + place * _TYPING / 2
            if addressed and not place:
                said = say(at, _person(20_000 + number), f"<@{BOT}> {text}", mentions=[bot])
            else:
                said = say(at, _person(20_000 + number), text)
            found[said["id"]] = each
    path.write_text("".join(lines), encoding="utf-8")
    return found


def _person(number: int) -> dict[str, str]:
    return {"id": str(number), "username": f"user{number}"}


def shown(reply: str, taught: Sequence[Taught]) -> str | None:
    """Return the id of the conversation whose words a reply shows first; None: of none."""
    text = _letters(reply)
    places: dict[str, int] = {}
    for each in taught:
        said = [*each["asker"], *(part for message in each["team"] for part in _SENTENCE_END.split(message))]
        own = (_letters(part)[:_COMPARED_CHARS] for part in said)
        found = [text.find(part) for part in own if len(part) >= _TELLING_CHARS and part in text]
        if found:
            places[each["id"]] = min(found)
    return min(places, key=lambda each: places[each], default=None)


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.lower()))


def judged(chat: Chat, by_message: Mapping[str, Asked], lines: Sequence[Line]) -> list[tuple[Asked, str, str]]:
    """Return what was asked with the verdict and the reply: `right`, `wrong` (another conversation is shown), `nothing
    found` (the reply says so) or `silent`.
    """
    replies = {
        by_message[message_id]["id"]: each["reply_text"] or ""
        for each in lines
        for message_id in each["message_ids"]
        if message_id in by_message and each["outcome"] == "replied"
    }
    found: list[tuple[Asked, str, str]] = []
    for asked in chat.asked:
        reply = replies.get(asked["id"])
        first = shown(reply or "", chat.taught)
        verdict = "silent" if reply is None else "nothing found"
        if first is not None:
            verdict = "right" if first in asked["right"] else "wrong"
        found.append((asked, verdict, reply or ""))
    return found


def evaluated(chat: Chat, *, addressed: bool, show: Path | None = None) -> Counter[tuple[str, str]]:
    """Return how often each kind of message came to each verdict. `show`: where each goes with its reply."""
    with tempfile.TemporaryDirectory(prefix="millrace-eval-") as made:
        place = Path(made)
        documents = place / "documents"
        documents.mkdir()
        (documents / "readme.md").write_text(f"# {chat.name}\n\n{chat.about}\n", encoding="utf-8")
        config = prepared(documents, place, {"discord": {"team_member_ids": [int(TEAM)]}})
        recording = place / "chat.jsonl"
        by_message = record(chat, recording, addressed=addressed)
        lines, _ = replayed(recording, config)
    found = judged(chat, by_message, lines)
    if show is not None:
        show.mkdir(parents=True, exist_ok=True)
        rows = (json.dumps({**asked, "verdict": verdict, "reply": reply}) + "\n" for asked, verdict, reply in found)
        path = show / f"{chat.name}-{'addressed' if addressed else 'plain'}.jsonl"
        path.write_text("".join(rows), encoding="utf-8")
    return Counter((asked["kind"], verdict) for asked, verdict, _ in found)


def main(arguments: Sequence[str] | None = None) -> int:
    cli = argparse.ArgumentParser(prog="benchmarks.evaluation.chats", description="Answers on made-up chats.")
    cli.add_argument("names", nargs="*", default=sorted(path.stem for path in FOLDER.glob("*.json")))
    cli.add_argument("--show", type=Path, metavar="FOLDER", help="write each message with its reply there")
    options = cli.parse_args(arguments)
    verdicts: list[tuple[bool, str]] = []
    for name in options.names:
        chat = read(FOLDER / f"{name}.json")
        for addressed in (False, True):
            counts = evaluated(chat, addressed=addressed, show=options.show)
            wrong = sum(count for (_, verdict), count in counts.items() if verdict == "wrong")
            told = ", ".join(f"{kind} {verdict} {count}" for (kind, verdict), count in sorted(counts.items()))
            verdicts.append((addressed or wrong <= MAX_WRONG, f"{name}{', addressed' * addressed}: {told}"))
    return verdict(*verdicts)


if __name__ == "__main__":
    sys.exit(main())
