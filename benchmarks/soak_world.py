"""A server for weeks: what is said, files in threads, votes, and a web and a model that fail now and then."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from benchmarks.day import (
    BOT_ID,
    DAY_SECONDS,
    FIRST_CHANNEL_ID,
    GUILD_ID,
    MESSAGES,
    START,
    Person,
    Said,
    message,
    people,
    refer,
    snowflake,
    talk,
)
from benchmarks.ours import YesAssistant
from clock import now, rfc3339
from model.conversations import Conversation
from model.messages import Attachment, Message, Place
from services.assistant.answering import AnswerResult, GatingResult
from services.discord.attachments import AttachmentFailed
from services.discord.dispatches import Dispatch
from services.discord.protocols import DryRunPoster
from services.documents.tools.toolset import Toolset
from services.knowledge.library import Source
from services.knowledge.web_interface import FetchFailed, FetchResult, Page
from services.llm.endpoint import Unavailable
from services.llm.usage import Usage

CHANNELS = 15
HELPED = tuple(itertools.islice((n for n in range(300) if any(person.is_team for person in people(n))), CHANNELS))
"""Those of the day's channels in which somebody of the team writes."""
OF_THE_REST = 300
"""`benchmarks.day` spreads its messages over so many channels."""
PER_CHANNEL = MESSAGES / OF_THE_REST
"""Messages of one channel in a day."""
FILES = 20
"""Questions with a file, each day."""
FIRST_STRANGER_ID = 700_000_000_000_000_000
FIRST_FILE_ID = 1_200_000_000_000_000_000
BY_THE_TEAM = 0.1
"""Of what the day's team members say; others say the rest. So the team answers some sixty conversations a day."""
DELETED = 0.01
VOTES = 0.3
CLOSED_AFTER_SECONDS = 20 * 3600.0
PAGES = 20

EVERY_CALL = 97
"""One call to the model in so many fails."""


def dispatches(days: int, per_day: int) -> Iterator[Dispatch]:
    """What Discord sends by itself, in order of time."""
    channels = [{"id": str(FIRST_CHANNEL_ID + n), "type": 0, "name": f"help-{n}"} for n in HELPED]
    yield Dispatch(START, "READY", {"v": 10, "user": {"id": str(BOT_ID), "username": "Millrace", "bot": True}})
    yield Dispatch(
        START, "GUILD_CREATE", {"id": str(GUILD_ID), "name": "A busy server", "channels": channels, "threads": []}
    )
    yield from heapq.merge(chatter(days, per_day), questions_with_files(days), key=lambda dispatch: dispatch.at)


def chatter(days: int, per_day: int) -> Iterator[Dispatch]:
    dice, recent = random.Random("chatter"), dict[tuple[int, int], dict[str, Any]]()  # noqa: S311 (not a secret)
    share = per_day / (PER_CHANNEL * CHANNELS)
    spoken = heapq.merge(*(talk(channel) for channel in HELPED), key=lambda said: said.at)
    for number, said in enumerate(spoken):
        if said.at >= START + days * DAY_SECONDS:
            return
        if dice.random() >= share:
            continue
        here = said if said.person.is_team and dice.random() < BY_THE_TEAM else stranger(said)
        payload = message(here, snowflake(here.at, number))
        target = None if here.reply_to is None else recent.get((here.channel_id, here.reply_to))
        if target is not None:
            refer(payload, target)
        recent[here.channel_id, here.number] = payload
        recent.pop((here.channel_id, here.number - 10), None)
        yield Dispatch(here.at, "MESSAGE_CREATE", payload)
        if dice.random() < DELETED:
            gone = {"id": payload["id"], "channel_id": payload["channel_id"], "guild_id": str(GUILD_ID)}
            yield Dispatch(here.at, "MESSAGE_DELETE", gone)


def stranger(said: Said) -> Said:
    """The same, by a user who comes for one day; the team stays."""
    if said.person.is_bot:
        return said
    day = 1 + int((said.at - START) // DAY_SECONDS)
    name = f"{said.person.name}-{day}"
    person = replace(said.person, id=said.person.id + day * 100_000, name=name, is_team=False)
    return replace(said, person=person)


def questions_with_files(days: int) -> Iterator[Dispatch]:
    """Each by a person of its own, in one of the channels."""
    for number in range(days * FILES):
        at = round(START + (number + 0.5) * DAY_SECONDS / FILES, 3)
        asker = Person(FIRST_STRANGER_ID + number, f"stranger-{number}", is_bot=False, is_team=False)
        channel_id = FIRST_CHANNEL_ID + HELPED[number % CHANNELS]
        text = f"how do I set the token for worker {number}? the file is attached"
        payload = message(Said(at, channel_id, asker, text, number, None), snowflake(at, 0xFFF))
        name, content = file_of(number)
        address = f"https://cdn.discordapp.com/attachments/{channel_id}/{FIRST_FILE_ID + number}/{name}"
        file = {"id": str(FIRST_FILE_ID + number), "filename": name, "size": len(content), "url": address}
        payload["attachments"] = [{**file, "proxy_url": address}]
        yield Dispatch(at, "MESSAGE_CREATE", payload)


def file_of(number: int) -> tuple[str, bytes]:
    """A file's name and content. One in ten is refused, one is damaged; another one's download fails (`Files`)."""
    lines = [f"2026-02-02T00:{n // 60:02}:{n % 60:02} INFO worker {number}: request {n} served" for n in range(300)]
    kinds: Sequence[tuple[str, str]] = (
        ("app.log", "\n".join([*lines, "2026-02-02T00:06:00 ERROR worker: permission denied (E-1042)"])),
        ("settings.yaml", f"worker:\n  token: none\n  number: {number}\n  hosts: [a, b]\n"),
        ("settings.json", f'{{"worker": {{"number": {number}, "retries": 3}}}}'),
        ("notes.md", f"# Worker {number}\n\nIt says permission denied.\n\n## Tried\n\n- a restart\n"),
        ("table.csv", "name,value\n" + "\n".join(f"row-{n},{number + n}" for n in range(100))),
        ("worker.ini", f"[worker]\nnumber = {number}\nretries = 3\n"),
        ("pom.xml", f"<project><worker number='{number}'>permission denied</worker></project>"),
        ("dump.zip", "PK\x03\x04"),
        ("manual.pdf", "%PDF-1.7\nand no more"),
        ("lost.log", "\n".join(lines)),
    )
    name, text = kinds[number % len(kinds)]
    return name, text.encode()


class Files:
    """Discord's CDN. What is named `lost` is not there."""

    async def content(self, attachment: Attachment, max_bytes: int) -> bytes:
        if attachment.filename.startswith("lost"):
            raise AttachmentFailed(f"attachment {attachment.id} could not be downloaded (HTTP 404)")
        return file_of(attachment.id - FIRST_FILE_ID)[1]


class Forgetful:
    """Discord's history: whatever the stream has not brought is gone."""

    async def message(self, channel_id: int, message_id: int) -> Message | None:
        return None

    async def messages(
        self, channel_id: int, *, before: int | None = None, after: int | None = None, around: int | None = None
    ) -> Sequence[Message]:
        return []

    async def role_ids(self, guild_id: int, user_id: int) -> tuple[int, ...]:
        return ()

    async def is_thread_member(self, thread_id: int, user_id: int) -> bool:
        return False

    async def place(self, place_id: int) -> Place | None:
        return None


class Server(DryRunPoster):
    """Takes what the bot posts and, as Discord, tells of the threads and of votes. Threads are archived and locked the
    next day.
    """

    def __init__(self, tell: Callable[[Dispatch], object]) -> None:
        super().__init__()
        self._tell = tell
        self._dice = random.Random("server")  # noqa: S311 (not a secret)
        self._timers = set[asyncio.TimerHandle]()

    async def open_thread(self, channel_id: int, message_id: int, name: str) -> int:
        thread = {
            "id": str(message_id),
            "type": 11,
            "name": name,
            "guild_id": str(GUILD_ID),
            "parent_id": str(channel_id),
            "owner_id": str(BOT_ID),
        }
        self._later(0.0, "THREAD_CREATE", {**thread, "thread_metadata": metadata(closed=False)})
        self._later(CLOSED_AFTER_SECONDS, "THREAD_UPDATE", {**thread, "thread_metadata": metadata(closed=True)})
        return message_id

    async def send(self, place_id: int, text: str, *, nonce: str, reply_to: int | None = None) -> int:
        message_id = await super().send(place_id, text, nonce=nonce, reply_to=reply_to)
        if self._dice.random() < VOTES:
            emoji = self._dice.choice("👍👎")
            vote = {"user_id": str(FIRST_STRANGER_ID), "message_id": str(message_id), "channel_id": str(place_id)}
            self._later(30.0, "MESSAGE_REACTION_ADD", {**vote, "guild_id": str(GUILD_ID), "emoji": {"name": emoji}})
        return message_id

    def _later(self, seconds: float, kind: str, payload: dict[str, object]) -> None:
        def tell() -> None:
            self._timers.discard(timer)
            self._tell(Dispatch(now(), kind, payload))

        timer = asyncio.get_running_loop().call_later(seconds, tell)
        self._timers.add(timer)

    def close(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()


def metadata(*, closed: bool) -> dict[str, object]:
    return {
        "archived": closed,
        "locked": closed,
        "archive_timestamp": rfc3339(now(), digits=6).replace("Z", "+00:00"),
        "auto_archive_duration": 1440,
    }


class MoodyAssistant(YesAssistant):
    """Answers questions with files, and one in ten of the others. One call in `EVERY_CALL` fails."""

    def __init__(self) -> None:
        self._calls = self._asked = 0

    async def gate(
        self, conversation: Conversation, usage: Usage, *, files: Sequence[str] = (), addressed: bool = False
    ) -> GatingResult:
        self._fail_at_times()
        result = await super().gate(conversation, usage, files=files, addressed=addressed)
        self._asked += not files
        return result.model_copy(update={"is_answerable": bool(files) or self._asked % 10 == 0})

    async def generate(
        self,
        conversation: Conversation,
        query: str,
        sources: Sequence[Source],
        usage: Usage,
        *,
        max_chars: int,
        was_too_long: bool = False,
        toolset: Toolset | None = None,
    ) -> AnswerResult:
        self._fail_at_times()
        return await super().generate(
            conversation, query, sources, usage, max_chars=max_chars, was_too_long=was_too_long, toolset=toolset
        )

    def _fail_at_times(self) -> None:
        self._calls += 1
        if self._calls % EVERY_CALL == 0:
            raise Unavailable("the model is not reachable")


class SmallWeb:
    """Pages that are other ones each day; one in seven fetches fails."""

    def __init__(self) -> None:
        self._asked = 0

    async def fetch(self, url: str, *, etag: str | None, last_modified: str | None) -> FetchResult:
        await asyncio.sleep(1)
        self._asked += 1
        if self._asked % 7 == 0:
            raise FetchFailed("HTTP 503")
        day = int((now() - START) // DAY_SECONDS)
        return Page(f"# {url}\n\nThe token is set in config.yaml, as of day {day}. " * 20, f"Page {url}", None, None)

    async def aclose(self) -> None:
        """There is nothing to close."""
