"""One bot's team knowledge, and captures for it: what `benchmarks.captures` runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from reactivex.subject import Subject

from model.conversations import Conversation
from model.messages import DISCORD_EPOCH_MS, Author, AuthorType, Message, Part, Place, PlaceKind
from model.outcomes import OutcomeKind
from services.assistant.curator import ClassificationResult, ImageSummaryResult, IntegrationResult
from services.knowledge.index_file import IndexEntry
from services.llm.usage import Usage
from services.team.archive import Pair, PairTurn, Speaker
from services.team.captures import Capture, CapturedMessage, RecentCaptures
from services.team.decisions import Actor
from services.team.library import TeamLibrary
from services.team.opening import open_library
from sinks.team import RawArchive
from streams.curation import CurationResult, CurationRules, CurationServices, NewDescription, curation
from tests.services.team.pairs import places_in

TOPICS = 20
DAY = 1_767_225_600
"""2026-01-01, in seconds since 1970."""

PLACE = Place(1, PlaceKind.CHANNEL)
ANSWER = (
    "That is option {0} of the agent. Set it in agent.toml, below [vault], and restart the agent afterwards:\n\n"
    "    marlstow-agent restart --vault {0}\n\nIf the vault is still locked then, look for E{0} in its log. "
)


def capture(number: int) -> Capture:
    """A question and its answer, about 500 characters."""
    first = (DAY * 1000 + number * 60_000 - DISCORD_EPOCH_MS) << 22
    asked = CapturedMessage(
        first, 10 + number, PairTurn(Speaker.USER, f"How do I tell the agent about vault {number}? {'Hm. ' * 20}")
    )
    answered = CapturedMessage(first + 1, 5, PairTurn(Speaker.TEAM, ANSWER.format(number)))
    message = Message(first + 1, 1, Author(5, "sue"), answered.turn.text, DAY + number * 60)
    part = Part(number, (message,), AuthorType.TEAM_MEMBER, PLACE, message.at)
    return Capture(part, f"reply_{first}", (asked, answered))


@dataclass
class AtOnce:
    """Thinks for `seconds`, and files one after another under each of the topics."""

    seconds: float = 0.0
    actor: Actor = Actor.LLM

    async def classify(self, pair: Pair, index: Sequence[IndexEntry], usage: Usage) -> ClassificationResult:
        await asyncio.sleep(self.seconds)
        usage.add("classify", prompt_tokens=900, completion_tokens=10)
        return ClassificationResult(skip=False, topic_name=f"topic {(pair.author_ids[0] - 10) % TOPICS}")

    async def integrate(self, pair: Pair, topic: str, topic_pairs: Sequence[Pair], usage: Usage) -> IntegrationResult:
        await asyncio.sleep(self.seconds)
        usage.add("integrate", prompt_tokens=9000, completion_tokens=10)
        return IntegrationResult(skip=False, remove_ids=[])

    async def summarise_images(
        self, conversation: Conversation, message_ids: Sequence[int], usage: Usage
    ) -> ImageSummaryResult:
        return ImageSummaryResult(summaries=[])


class Describing:
    key = "benchmark"

    async def summarize_for_kb_index(self, source_id: str, text: str, timeout_seconds: float) -> str:
        return f"How the agent is told about vaults, and what to do when one stays locked: {len(text)}."


@dataclass
class Run:
    """One bot's team knowledge, in a folder."""

    folder: Path
    curator: AtOnce = field(default_factory=AtOnce)
    captures: Subject[object] = field(default_factory=Subject[object])
    described: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.places = places_in(self.folder)
        self.library: TeamLibrary = open_library(self.places, describer_key=Describing.key, time=time.time)
        self.raw = RawArchive(self.places.raw, RecentCaptures(), on_stored=self.library.add_block)
        self.parts = CurationServices(self.library, self.curator, Describing())

    def begin(self) -> None:
        curation(self.captures, self.parts, CurationRules(), self._see).subscribe()

    async def take_in(self, number: int) -> None:
        """Store a capture, and see it through."""
        self.described.clear()
        outcome = await self.raw.keep(capture(number))
        assert outcome.result is OutcomeKind.CAPTURED
        self.captures.on_next(outcome)
        await self.described.wait()

    def _see(self, each: CurationResult) -> None:
        if isinstance(each, NewDescription):
            self.described.set()

    @property
    def full(self) -> bool:
        """Whether each topic has gone on in a second file."""
        return len(self.library.topics) >= 2 * TOPICS
