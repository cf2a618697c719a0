"""A small Discord server in virtual time, with the real graph listening: for tests that read like a screenplay.

    world = await World.begin(tmp_path)
    question = world.says(ANNA, "How do I install it?")
    await world.wait(61)
    assert world.story == ["replied"]

Nothing leaves the process. The settings are the ones of the configuration file, so that a test names the keys that
an operator would set.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from pydantic import BaseModel
from reactivex.subject import Subject

from assembly.data_folder import read_state
from assembly.documents import Documents, documents_for
from assembly.graph_parts import DiscordAPI, GraphParts, ServerParts, assemble, capture_parts
from assembly.running import GraphRun
from assembly.team import curation_parts
from clock import VirtualLoop, now
from model.conversations import Conversation
from model.events import Deleted, Edited, Event, PlaceGone, PlaceSeen, Posted, Reaction, Ready, Typing
from model.messages import DISCORD_EPOCH_MS, Attachment, Author, Message, Place, PlaceKind, Reference
from model.outcomes import Ignored, Outcome, OutcomeKind, Removed, Result
from model.servers import Servers
from services.assistant.answering import AnswerResult, Assistant, GatingResult, SelectionResult
from services.assistant.prompts import Choice, ConfiguredTasks
from services.discord.attachments import AttachmentFailed, Attachments
from services.discord.protocols import DryRunPoster, Fetcher, PostFailed
from services.discord.review_cards import Reviews
from services.documents.thread_files import Candidate
from services.documents.tools.toolset import Toolset
from services.knowledge import LibrarySearch
from services.knowledge.index_file import IndexEntry
from services.knowledge.library import Library, Source, SourceUnavailable
from services.knowledge.library_search import Search
from services.llm.endpoint import Unavailable
from services.llm.images import ImageSource
from services.llm.prompting import Prompt
from services.llm.usage import Usage
from services.team.captures import Capture
from settings import Settings
from sinks.results import OrderedOutcomes, ResultCounts, render
from streams.graph import graph
from tests.prompt_sections import parse
from tests.searching import ScriptedSearch

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

START = 1_771_200_000.0
"""2026-02-16, the first second of a UTC day."""
GUILD = 9
HELP, OTHER, FORUM = 11, 12, 13
BOT = Author(1, "Millrace", is_bot=True)
ANNA, BEN, CARA = Author(101, "anna", role_ids=()), Author(102, "ben", role_ids=()), Author(103, "cara", role_ids=())
TESS = Author(201, "tess", role_ids=())
"""Of the team."""
ROBOT = Author(301, "another bot", is_bot=True)

GUIDE, PAGE = "kb:guide.md", "kb:https://docs.example/page"
BOOKS = {GUIDE: "The guide.", PAGE: "The page. See https://docs.example/more too."}


def run(play: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """The result of `play` on a virtual loop of its own, for tests that are not async themselves."""
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(START)) as runner:
        return runner.run(play())


def snowflake(at: float, number: int = 0) -> int:
    return (round(at * 1000) - DISCORD_EPOCH_MS) << 22 | number


def thread(thread_id: int, *, owner: Author = BOT, parent: int = HELP, kind: PlaceKind = PlaceKind.THREAD) -> Place:
    return Place(thread_id, kind, f"thread {thread_id}", GUILD, parent, owner.id)


def forum_post(post_id: int, owner: Author) -> Place:
    return thread(post_id, owner=owner, parent=FORUM, kind=PlaceKind.FORUM_POST)


class Asked(NamedTuple):
    """One call to the assistant."""

    step: str
    at: float
    text: str
    """The conversation as the model would see it, or the query; at a later step than `generate`, the draft."""
    was_too_long: bool = False
    sources: tuple[str, ...] = ()


@dataclass
class Script(Assistant):
    """An assistant that says what a test wants; an exception instead of a result is raised."""

    verdict: GatingResult | Exception = field(
        default_factory=lambda: GatingResult(is_question=True, is_answerable=True, rewrite_query=None, reason="fine")
    )
    picks: Sequence[str] | Exception = (GUIDE,)
    answers: list[AnswerResult | Exception] = field(default_factory=list[AnswerResult | Exception])
    """One after the other; afterwards the question comes back as its own answer."""
    later: Mapping[str, BaseModel | Exception] = field(default_factory=dict[str, BaseModel | Exception])
    """Of the steps after `generate`, by their names; of one that is missing, what there is without a model."""
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    """How long a step takes, by its name; or the whole of a chain, by a word of the question."""
    fails_at: str = ""
    """A word of the question at which the gate fails."""
    tokens: int = 10
    """Of each call."""
    asked: list[Asked] = field(default_factory=list[Asked])
    told_files: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    """The files that each gate was told of."""
    addressed: list[bool] = field(default_factory=list[bool])
    """Whether each gate was told that the bot is asked."""
    requests: list[str] = field(default_factory=list[str])
    """What each selection was told that the person wrote."""
    entries: list[Sequence[Choice]] = field(default_factory=list[Sequence[Choice]])
    """What each selection was offered."""
    offered: list[list[str]] = field(default_factory=list[list[str]])
    """The tools that each answer could call; it calls the first, with the query."""
    found: list[str] = field(default_factory=list[str])
    """What those calls gave."""
    images: list[list[str]] = field(default_factory=list[list[str]])
    """The names of those that each gate was shown."""
    busy: int = 0
    busiest: int = 0

    async def gate(
        self, conversation: Conversation, usage: Usage, *, files: Sequence[str] = (), addressed: bool = False
    ) -> GatingResult:
        self.told_files.append(tuple(files))
        self.addressed.append(addressed)
        slow = max((s for word, s in self.seconds.items() if word in conversation.asked_text), default=0.0)
        self.images.append([image.name for image in conversation.images])
        self.busy += 1
        self.busiest = max(self.busiest, self.busy)
        try:
            fails = self.fails_at and self.fails_at in conversation.asked_text
            said = Unavailable("down") if fails else self.verdict
            return await self._say(Asked("gate", now(), transcript(conversation)), said, usage, slow)
        finally:
            self.busy -= 1

    async def select(
        self,
        query: str,
        request: str,
        choices: Sequence[Choice],
        max_sources: int,
        usage: Usage,
        *,
        files: Sequence[str] = (),
    ) -> SelectionResult:
        self.requests.append(request)
        self.entries.append(choices)
        said = self.picks
        picked = said if isinstance(said, Exception) else SelectionResult(selected_source_ids=list(said))
        return await self._say(Asked("select", now(), query), picked, usage)

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
        if toolset is not None:
            self.offered.append([tool.name for tool in toolset.tools])
            for tool in toolset.tools[:1]:
                given = await tool.run({"question": query})
                self.found.append(given if isinstance(given, str) else given.text)
        ids = tuple(source.id for source in sources)
        plain = AnswerResult(answer=f"About: {conversation.asked_text}", citations=list(ids[:1]))
        said = self.answers.pop(0) if self.answers else plain
        return await self._say(Asked("generate", now(), transcript(conversation), was_too_long, ids), said, usage)

    async def ask(
        self, step: str, prompt: Callable[[ConfiguredTasks], Prompt], result: type[M], usage: Usage
    ) -> M | None:
        said = cast("M | Exception | None", self.later.get(step))
        return await self._say(Asked(step, now(), last_field(prompt(ConfiguredTasks()))), said, usage)

    async def _say(self, asked: Asked, said: T | Exception, usage: Usage, slow: float = 0.0) -> T:
        self.asked.append(asked)
        usage.add(asked.step, prompt_tokens=self.tokens, completion_tokens=0)
        await asyncio.sleep(self.seconds.get(asked.step, 0.0) + slow)
        if isinstance(said, Exception):
            raise said
        return said

    @property
    def steps(self) -> list[str]:
        return [each.step for each in self.asked]


def last_field(prompt: Prompt) -> str:
    """The draft, where the prompt ends with it."""
    shown = [part for part in prompt.user.split("\n\n") if part.startswith("<<<")]
    return parse(shown[-1])[1][-1].text


def transcript(conversation: Conversation) -> str:
    return "\n".join(f"{turn.role}: {turn.text}" for turn in conversation.turns)


@dataclass
class Shelf(Library):
    """Sources in memory."""

    texts: dict[str, str] = field(default_factory=lambda: dict(BOOKS))
    missing: frozenset[str] = frozenset()
    """Indexed, but not to be had."""
    loaded: list[str] = field(default_factory=list[str])

    async def index(self) -> Sequence[IndexEntry]:
        return [IndexEntry(source_id, f"About {source_id}.") for source_id in self.texts]

    async def load(self, source_id: str) -> Source:
        self.loaded.append(source_id)
        if source_id in self.missing or source_id not in self.texts:
            raise SourceUnavailable(f"{source_id}: gone")
        return Source(source_id, self.texts[source_id])


class Sent(NamedTuple):
    at: float
    place_id: int
    text: str
    nonce: str
    reply_to: int | None


@dataclass
class Noticeboard(DryRunPoster):
    """A rehearsal that remembers; `seconds` is how long each call takes."""

    seconds: float = 0.0
    refusal: PostFailed | None = None
    threads: list[tuple[int, int, str]] = field(default_factory=list[tuple[int, int, str]])
    """Channel, message, name."""
    sent: list[Sent] = field(default_factory=list[Sent])
    reactions: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        super().__init__()

    async def open_thread(self, channel_id: int, message_id: int, name: str) -> int:
        await self._answer()
        self.threads.append((channel_id, message_id, name))
        return await super().open_thread(channel_id, message_id, name)

    async def send(self, place_id: int, text: str, *, nonce: str, reply_to: int | None = None) -> int:
        await self._answer()
        self.sent.append(Sent(now(), place_id, text, nonce, reply_to))
        return await super().send(place_id, text, nonce=nonce, reply_to=reply_to)

    async def delete(self, place_id: int, message_id: int) -> None:
        await self._answer()
        await super().delete(place_id, message_id)

    async def delete_thread(self, thread_id: int) -> None:
        await self._answer()
        await super().delete_thread(thread_id)

    async def react(self, place_id: int, message_id: int, emoji: str) -> None:
        await self._answer()
        self.reactions.append(emoji)

    async def unreact(self, place_id: int, message_id: int, emoji: str) -> None:
        await self._answer()
        if emoji in self.reactions:
            self.reactions.remove(emoji)

    async def _answer(self) -> None:
        await asyncio.sleep(self.seconds)
        if self.refusal is not None:
            raise self.refusal


@dataclass
class Uploads(Attachments):
    """What lies on Discord's CDN, by the id of the attachment."""

    contents: dict[int, bytes] = field(default_factory=dict[int, bytes])
    seconds: float = 0.0
    downloaded: list[int] = field(default_factory=list[int])

    async def content(self, attachment: Attachment, max_bytes: int) -> bytes:
        self.downloaded.append(attachment.id)
        await asyncio.sleep(self.seconds)
        if attachment.id not in self.contents:
            raise AttachmentFailed(f"attachment {attachment.id} is gone")
        return self.contents[attachment.id]

    def file(self, name: str, content: bytes | str, size: int | None = None) -> Attachment:
        """A file to be posted."""
        data = content if isinstance(content, bytes) else content.encode()
        number = 1000 + len(self.contents)
        self.contents[number] = data
        return Attachment(number, name, len(data) if size is None else size, f"https://cdn.discordapp.com/{number}")


def posted_file(case_id: int, message_id: int, number: int, *, place_id: int | None = None) -> Candidate:
    """The file of a message, `number` within it, posted in the thread or in another place."""
    return Candidate(
        case_id=case_id,
        guild_id=None,
        place_id=case_id if place_id is None else place_id,
        message_id=message_id,
        uploader_id=101,
        attachment=Attachment(message_id * 10 + number, f"{number}.exe", 3, "https://cdn/x"),
        at=0.0,
    )


class World:
    """One server: what happens in it goes through the graph; what becomes of it can be read off."""

    def __init__(self, parts: GraphParts, script: Script, shelf: Shelf, board: Noticeboard) -> None:
        self.parts, self.script, self.shelf, self.board = parts, script, shelf, board
        self.documents: Documents | None = None
        self._stack = AsyncExitStack()
        self.ends: list[Result] = []
        self.captures: list[Capture] = []
        self.curation = parts.servers[None].captures.curation
        self.delivered: Counter[int] = Counter()
        """How often each message was."""
        self.tally = ResultCounts()
        self.lines: list[str] = []
        self._in_order = OrderedOutcomes(lambda outcome: self.lines.append(render(outcome)))
        self._events: Subject[Event] = Subject()
        self._said = 0
        sinks = replace(parts.sinks, archive=self._archive, results=[self._end, parts.state.record.add])
        self.running = GraphRun(graph(self._events, parts.services, sinks, parts.rules), parts.services.in_flight)

    @classmethod
    async def begin(
        cls,
        folder: Path,
        *,
        script: Script | None = None,
        shelf: Shelf | None = None,
        library: Library | None = None,
        search: Search | None = None,
        assistant: Assistant | None = None,
        board: Noticeboard | None = None,
        fetcher: Fetcher | None = None,
        reviews: Reviews | None = None,
        images: ImageSource | None = None,
        uploads: Uploads | None = None,
        durable: bool = False,
        team: bool = False,
        **settings: Mapping[str, Any],
    ) -> World:
        """A server on the running virtual loop, with three channels, from `START` on. With `uploads`, files that are
        posted are read. `durable`: as if people saw the answers. `team`: captures are archived and filed, without a
        model; else they are only remembered.
        """
        if now() < START:
            await asyncio.sleep(START - now())
        configured = {**settings, "discord": {"team_member_ids": [TESS.id], **settings.get("discord", {})}}
        script, shelf, board = script or Script(), shelf or Shelf(), board or Noticeboard()
        placed, stack = Settings.model_validate(configured).resolve_paths(folder), AsyncExitStack()
        documents = None
        if uploads is not None:
            documents = await stack.enter_async_context(documents_for(placed, None, uploads, None))
        state = read_state(placed, is_durable=durable)
        curation = curation_parts(placed, None, state.usages.default) if team else None
        parts = assemble(
            placed,
            state=state,
            servers=Servers(
                {
                    None: ServerParts(
                        settings=placed,
                        assistant=assistant or script,
                        library=library or shelf,
                        search=cast("LibrarySearch", search or ScriptedSearch()),
                        captures=capture_parts(placed, state, curation=curation),
                    )
                }
            ),
            api=DiscordAPI(poster=board, fetcher=fetcher, reviews=reviews),
            images=images,
            documents=documents,
        )
        world = cls(parts, script, shelf, board)
        world.documents, world._stack = documents, stack
        world.happens(Ready(now(), BOT.id, BOT.name))
        for channel_id, name in ((HELP, "help"), (OTHER, "other")):
            world.happens(PlaceSeen(now(), Place(channel_id, PlaceKind.CHANNEL, name, GUILD)))
        return world

    # What happens.

    def happens(self, event: Event) -> None:
        self.tally.observe(event)
        self._events.on_next(event)

    def writes(self, author: Author, text: str, *, where: int = HELP, **fields: Any) -> Message:
        """A message as it comes into being, before anybody is told of it."""
        self._said += 1
        message_id = snowflake(now(), self._said % 4096)
        return Message(message_id, where, author, text, now(), GUILD, **fields)

    def says(
        self, author: Author, text: str, *, where: int = HELP, to: Message | None = None, **fields: Any
    ) -> Message:
        """A message, delivered at once; `to`: as a reply."""
        reference = None if to is None else Reference(to.id, to.channel_id)
        return self.delivers(self.writes(author, text, where=where, reply_to=reference, **fields))

    def delivers(self, message: Message) -> Message:
        """A message that Discord sends: for the first time, or once more."""
        self.delivered[message.id] += 1
        self.happens(Posted(now(), message))
        return message

    def types(self, author: Author, *, where: int = HELP) -> None:
        """As Discord says it: once as somebody begins, and every ten seconds while they go on."""
        self.happens(Typing(now(), where, replace(author, name="")))

    def edits(self, message: Message, text: str) -> None:
        self.happens(Edited(now(), message.channel_id, message.id, text))

    def deletes(self, *messages: Message) -> None:
        self.happens(Deleted(now(), messages[0].channel_id, tuple(message.id for message in messages)))

    def opens(self, place: Place) -> Place:
        self.happens(PlaceSeen(now(), place))
        return place

    def closes(self, place_id: int) -> None:
        self.happens(PlaceGone(now(), place_id))

    def reacts(self, author: Author, message_id: int, emoji: str, *, added: bool = True) -> None:
        self.happens(Reaction(now(), HELP, message_id, author.id, emoji, added, author.is_bot, author.role_ids))

    async def wait(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def close(self, grace_seconds: float = 86_400.0) -> bool:
        """The stream ends, as at a shutdown. True when everything was finished in time."""
        self._events.on_completed()
        drained = await self.running.drain(grace_seconds)
        if self.parts.state.is_durable:  # as `autosave` does at its end
            await self.parts.state.save()
        self._in_order.flush()
        await self._stack.aclose()
        return drained

    # What became of it.

    @property
    def outcomes(self) -> list[Outcome]:
        return [end for end in self.ends if isinstance(end, Outcome)]

    @property
    def story(self) -> list[str]:
        """Every end in a few words, in the order in which they came."""
        return [told(end) for end in self.ends]

    @property
    def topics(self) -> dict[str, str]:
        """The topic files, by name; of a world with a `team`."""
        assert self.curation is not None
        return {name: topic.text for name, topic in self.curation.library.topics.items()}

    @property
    def replies(self) -> list[str]:
        return [sent.text for sent in self.board.sent]

    @property
    def last_reply_id(self) -> int:
        """The id of the bot's newest message."""
        ids = (message.id for place in self._places() for message in place if message.author.id == BOT.id)
        return max(ids, default=0)

    def _places(self) -> list[Sequence[Message]]:
        return [
            self.parts.services.history.recent(place_id) for place_id in {sent.place_id for sent in self.board.sent}
        ]

    def _end(self, end: Result) -> None:
        self.ends.append(end)
        self.tally.add(end)
        self._in_order.add(end)

    async def _archive(self, capture: Capture) -> Outcome:
        self.captures.append(capture)
        assert capture.part is not None
        if self.curation is not None:
            return await self.parts.sinks.archive(capture)
        return Outcome(capture.part, now(), OutcomeKind.CAPTURED, qa_id=f"qa_{len(self.captures)}")


def told(end: Result) -> str:
    match end:
        case Outcome(result=result, reason=reason):
            return str(result) if reason is None else f"{result}: {reason}"
        case Ignored(reason=reason, message_ids=ids):
            return f"ignored: {reason}" + ("" if len(ids) == 1 else f" ×{len(ids)}")
        case Removed():
            return "removed"


def picture(number: int = 1, name: str = "screen.png", size: int = 12_345) -> Attachment:
    return Attachment(number, name, size, f"https://cdn.discordapp.com/{number}/{name}", "image/png")


def answer(text: str | None, *citations: str) -> AnswerResult:
    return AnswerResult(answer=text, citations=list(citations))
