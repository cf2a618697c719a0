from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from clock import now
from model.conversations import Conversation
from operators.prefetching import Prefetcher, PrefetchServices
from services.assistant.curator import ClassificationResult, ImageSummaryResult, IntegrationResult
from services.knowledge.index_file import IndexEntry
from services.llm.endpoint import BadOutput
from services.llm.structured import PrefetchingAsker
from services.llm.usage import Usage
from services.team.archive import Pair
from services.team.decisions import Actor
from services.team.index import DescriptionSchedule
from services.team.library import TeamLibrary
from tests.services.team.pairs import added, opened, store
from tests.team import SKIP, named, pair
from tests.thinking import Thinking


@dataclass
class Guessing:
    """Implements `Curator` and `Describer`. Each call takes a second; what was asked is noted with its second."""

    topic_for: Callable[[int], ClassificationResult | Exception] = lambda _number: named("things")
    asked: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])
    offered: list[str] = field(default_factory=list[str])
    actor: Actor = Actor.LLM
    key: str = "key"

    async def classify(self, pair: Pair, index: Sequence[IndexEntry], usage: Usage) -> ClassificationResult:
        self.offered.append(" ".join(entry.id for entry in index))
        await self._work(f"classify {number_of(pair)}")
        result = self.topic_for(number_of(pair))
        if isinstance(result, Exception):
            raise result
        return result

    async def integrate(self, pair: Pair, topic: str, topic_pairs: Sequence[Pair], usage: Usage) -> IntegrationResult:
        await self._work(f"integrate {number_of(pair)} into {topic}")
        return IntegrationResult(skip=False, remove_ids=[])

    async def summarise_images(
        self, conversation: Conversation, message_ids: Sequence[int], usage: Usage
    ) -> ImageSummaryResult:
        raise NotImplementedError

    async def summarize_for_kb_index(self, source_id: str, text: str, timeout_seconds: float) -> str:
        await self._work(f"describe {source_id}")
        return "Fine."

    async def _work(self, what: str) -> None:
        self.asked.append((now(), what))
        await asyncio.sleep(1)

    def at(self, second: float) -> list[str]:
        return [what for moment, what in self.asked if moment == second]


def number_of(each: Pair) -> int:
    return each.message_ids[0] // 1000


@dataclass
class Scene:
    library: TeamLibrary
    guessing: Guessing
    growth: DescriptionSchedule
    foresight: Prefetcher
    pairs: list[Pair]

    def decide(self, place: int, topic: str) -> None:
        """As if it was the pair's turn, and it was filed there."""
        changed = self.library.decide(added(self.pairs[place], topic), self.pairs[place])
        self.growth.note(self.library.topics, sorted(changed))


def scene(folder: Path, guessing: Guessing, *there: str, count: int = 12, every: int = 100, asked: int = 1000) -> Scene:
    """Topics of four pairs each are `there`. So many calls have been `asked` in earnest."""
    old = [pair(100 + number) for number in range(4 * len(there))]
    pairs = [pair(number) for number in range(1, count + 1)]
    store(folder, *old, *pairs)
    library = opened(folder)
    for number, each in enumerate(old):
        library.decide(added(each, there[number // 4]))
    growth = DescriptionSchedule(every, library.topics)
    asker = PrefetchingAsker(Thinking(), 8)
    asker.asked = asked
    guesses = PrefetchServices(asker, guessing, guessing, Usage())
    return Scene(library, guessing, growth, Prefetcher(pairs, library, guesses, growth, every, 60), pairs)


async def test_the_next_pairs_are_classified_side_by_side_then_integrated_each_into_a_topic_of_its_own(
    tmp_path: Path,
) -> None:
    guessing = Guessing(lambda number: named(["a", "b", "a", "c"][number - 1]))
    began = now()
    a = scene(tmp_path, guessing, "a", "b", "c", count=4)
    await a.foresight.turn(0)
    assert now() - began == 2
    assert guessing.at(began) == [f"classify {number}" for number in (1, 2, 3, 4)]
    assert guessing.at(began + 1) == ["integrate 1 into a", "integrate 2 into b", "integrate 4 into c"]
    a.foresight.stop()


async def test_one_that_goes_into_the_same_topic_is_integrated_after_the_one_before(tmp_path: Path) -> None:
    guessing = Guessing(lambda _number: named("a"))
    a = scene(tmp_path, guessing, "a", count=2)
    await a.foresight.turn(0)
    a.decide(0, "a")
    began = now()
    await a.foresight.turn(1)
    assert guessing.at(began) == ["integrate 2 into a"]
    a.foresight.stop()


async def test_a_new_topic_is_described_and_what_follows_waits_for_it(tmp_path: Path) -> None:
    guessing = Guessing(lambda number: named("new" if number == 2 else "a"))
    began = now()
    a = scene(tmp_path, guessing, "a", count=5)
    await a.foresight.turn(0)
    assert guessing.at(began + 1) == ["integrate 1 into a", "describe team:new.txt"]
    a.decide(0, "a")
    await a.foresight.turn(1)
    assert not any("classify" in what for moment, what in guessing.asked if moment > began)
    a.decide(1, "new")
    began = now()
    await a.foresight.turn(2)
    assert guessing.at(began) == ["classify 3", "classify 4", "classify 5"]
    assert guessing.offered[-4:] == ["team:a.txt", *["team:a.txt team:new.txt"] * 3]
    a.foresight.stop()


async def test_what_was_asked_about_pairs_behind_a_new_topic_is_called_off_and_that_about_the_pair_is_not(
    tmp_path: Path,
) -> None:
    guessing = Guessing(lambda number: named("new" if number == 1 else "a"))
    a = scene(tmp_path, guessing, "a", count=3)
    turn = asyncio.create_task(a.foresight.turn(0))
    await asyncio.sleep(1.5)
    assert [place for place, guess in a.foresight._guesses.items() if guess.tasks] == [0]  # pyright: ignore[reportPrivateUsage] (what was dropped shows nowhere else)
    await turn
    began = now()
    a.decide(0, "new")
    await a.foresight.turn(1)
    assert guessing.at(began) == ["classify 2", "classify 3"]
    a.foresight.stop()


async def test_an_answer_from_another_index_is_asked_for_again(tmp_path: Path) -> None:
    a = scene(tmp_path, Guessing(lambda _number: SKIP), "a", count=3)
    await a.foresight.turn(0)
    a.decide(0, "elsewhere")
    began = now()
    await a.foresight.turn(1)
    assert a.guessing.at(began) == ["classify 2", "classify 3"]
    a.foresight.stop()


async def test_a_pair_that_is_left_out_holds_up_nothing(tmp_path: Path) -> None:
    guessing = Guessing(lambda number: SKIP if number == 1 else named("a"))
    began = now()
    a = scene(tmp_path, guessing, "a", count=2)
    await a.foresight.turn(0)
    assert guessing.at(began + 1) == ["integrate 2 into a"]
    a.foresight.stop()


async def test_nothing_is_guessed_beyond_a_pair_of_which_nothing_can_be_told(tmp_path: Path) -> None:
    guessing = Guessing(lambda number: BadOutput("prose") if number == 1 else named("a"))
    a = scene(tmp_path, guessing, "a", count=3)
    await a.foresight.turn(0)
    assert not any("integrate" in what for _, what in guessing.asked)
    a.foresight.stop()


async def test_no_more_is_risked_than_a_share_of_what_was_needed(tmp_path: Path) -> None:
    began = now()
    a = scene(tmp_path, Guessing(lambda _number: SKIP), asked=22)
    await a.foresight.turn(0)
    assert a.guessing.at(began) == ["classify 1", "classify 2", "classify 3", "classify 4"]
    assert a.guessing.at(began + 1) == [f"classify {number}" for number in (5, 6, 7, 8)]  # the others are certain now
    a.foresight.stop()


async def test_what_was_wasted_counts_as_well(tmp_path: Path) -> None:
    a = scene(tmp_path, Guessing(lambda _number: SKIP), asked=22)
    await a.foresight.turn(0)
    a.decide(0, "new")
    before = len(a.guessing.asked)
    await a.foresight.turn(1)
    assert [what for _, what in a.guessing.asked[before:]] == ["classify 2", "classify 3"]  # as far as 2 is certain
    a.foresight.stop()


async def test_nothing_is_asked_beyond_a_point_at_which_a_topic_may_be_described_again(tmp_path: Path) -> None:
    began = now()
    a = scene(tmp_path, Guessing(lambda _number: named("a")), "a", count=12, every=4)
    await a.foresight.turn(0)
    assert [what for _, what in a.guessing.asked if "classify" in what] == [f"classify {n}" for n in (1, 2, 3, 4)]
    assert now() - began == 2
    a.foresight.stop()


async def test_nor_before_it_is_known_that_none_will_be(tmp_path: Path) -> None:
    began = now()
    a = scene(tmp_path, Guessing(lambda number: SKIP if number % 2 else named("a")), "a", count=8, every=4)
    await a.foresight.turn(0)
    assert a.guessing.at(began) == [f"classify {number}" for number in (1, 2, 3, 4)]
    assert a.guessing.at(began + 1) == ["integrate 2 into a", *(f"classify {number}" for number in (5, 6, 7, 8))]
    a.foresight.stop()


async def test_a_conversation_that_is_alone_in_its_topic_meets_nobody(tmp_path: Path) -> None:
    guessing = Guessing(lambda _number: named("a"))
    a = scene(tmp_path, guessing, count=2)
    a.pairs[1] = pair(2, conversation=1)
    store(tmp_path, a.pairs[1])
    a.decide(0, "a")
    await a.foresight.turn(1)
    assert [what for _, what in guessing.asked] == ["classify 1"]
    a.foresight.stop()


async def test_once_stopped_it_asks_nothing_more(tmp_path: Path) -> None:
    a = scene(tmp_path, Guessing(), "things", count=3)
    turn = asyncio.create_task(a.foresight.turn(0))
    await asyncio.sleep(0.5)
    a.foresight.stop()
    await turn
    await asyncio.sleep(5)
    assert len(a.guessing.asked) == 3
