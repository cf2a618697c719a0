from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from services.assistant.curator import ClassificationResult
from services.assistant.describing import NotDescribed
from services.llm.endpoint import PromptRefused, Rejected, TimedOut, Unavailable, UnknownRequest
from services.team.archive import Pair
from services.team.decisions import Action, Actor, Decision
from services.team.library import TeamLibrary
from services.team.rebuilding import RebuildTask
from streams.curation import CurationServices, NewDescription
from streams.regeneration import GivenUp, RebuildRules, regeneration
from tests.services.team.pairs import is_whole, noted, opened, store
from tests.team import SKIP, ScriptedCurator, named, pair

PAIRS = [pair(number, f"question {number}?", f"answer {number}.") for number in range(1, 7)]


class Describing:
    """Says what it was asked for; or raises."""

    key = "key"

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.asked: list[str] = []

    async def summarize_for_kb_index(self, source_id: str, text: str, timeout_seconds: float) -> str:
        self.asked.append(source_id)
        if self.error is not None:
            raise self.error
        return f"About {source_id}."


async def rebuilt(
    library: TeamLibrary, curator: ScriptedCurator, tasks: Sequence[RebuildTask], describer: Describing | None = None
) -> list[Decision | NewDescription]:
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    heard: list[Decision | NewDescription] = []
    parts = CurationServices(library, curator, describer or Describing())
    regeneration(tasks, parts, RebuildRules()).subscribe(
        heard.append, done.set_exception, lambda: done.set_result(None)
    )
    await done
    return heard


def library_of(folder: Path, *pairs: Pair) -> TeamLibrary:
    store(folder, *pairs)
    return opened(folder)


async def test_each_pair_is_decided_about_in_the_given_order_and_topics_are_described(tmp_path: Path) -> None:
    library = library_of(tmp_path, *PAIRS)
    curator, describer = ScriptedCurator(), Describing()
    order = [PAIRS[3], PAIRS[0], PAIRS[5]]
    heard = await rebuilt(library, curator, [RebuildTask(each) for each in order], describer)
    assert [each.qa_id if isinstance(each, Decision) else each.topic for each in heard] == [
        PAIRS[3].id,
        "things",
        PAIRS[0].id,
        PAIRS[5].id,
        "things",
    ]
    assert curator.asked == [
        ("classify", PAIRS[3].id),
        ("classify", PAIRS[0].id),
        ("integrate", PAIRS[0].id),
        ("classify", PAIRS[5].id),
        ("integrate", PAIRS[5].id),
    ]
    assert describer.asked == ["team:things.txt"] * 2
    assert is_whole(tmp_path, library)


async def test_the_next_pair_is_classified_with_the_description_of_a_new_topic(tmp_path: Path) -> None:
    """Pitfall 73."""
    curator = ScriptedCurator()
    await rebuilt(library_of(tmp_path, *PAIRS), curator, [RebuildTask(each) for each in PAIRS[:2]])
    assert [[entry.description for entry in index] for index in curator.indices] == [[], ["About team:things.txt."]]


async def test_a_topic_is_described_again_when_its_pairs_have_doubled(tmp_path: Path) -> None:
    many = [pair(number, f"question {number}?", f"answer {number}.") for number in range(1, 70)]
    described: list[int] = []

    class Counting(Describing):
        async def summarize_for_kb_index(self, source_id: str, text: str, timeout_seconds: float) -> str:
            described.append(text.count("--- QA ---"))
            return await super().summarize_for_kb_index(source_id, text, timeout_seconds)

    await rebuilt(library_of(tmp_path, *many), ScriptedCurator(), [RebuildTask(each) for each in many], Counting())
    assert described == [1, 16, 32, 64, 69]


@pytest.mark.parametrize("error", [Unavailable("down"), TimedOut("slow")])
async def test_an_endpoint_that_comes_back_in_a_moment_is_waited_for(tmp_path: Path, error: Exception) -> None:
    outages = [error, error]
    curator = ScriptedCurator(topic_for=lambda _: outages.pop() if outages else named("things"))
    [decision, _] = await rebuilt(library_of(tmp_path, PAIRS[0]), curator, [RebuildTask(PAIRS[0])])
    assert isinstance(decision, Decision)
    assert decision.action is Action.ADDED
    assert [moment - curator.at[0] for moment in curator.at] == [0, 1, 3]


async def test_one_that_does_not_ends_the_work_where_it_is(tmp_path: Path) -> None:
    """Pitfall 6."""
    library = library_of(tmp_path, *PAIRS)

    def topic_for(asked: Pair) -> ClassificationResult | Exception:
        return Unavailable("the endpoint is down") if asked is PAIRS[2] else named("things")

    with pytest.raises(GivenUp, match="the endpoint is down"):
        await rebuilt(library, ScriptedCurator(topic_for=topic_for), [RebuildTask(each) for each in PAIRS])
    assert [each.qa_id for each in noted(tmp_path)] == [PAIRS[0].id, PAIRS[1].id]


async def test_a_recording_that_holds_no_answer_ends_the_work_at_once(tmp_path: Path) -> None:
    library = library_of(tmp_path, *PAIRS)
    curator = ScriptedCurator(topic_for=lambda _: UnknownRequest("no answer to this request"))
    with pytest.raises(GivenUp, match="no answer to this request"):
        await rebuilt(library, curator, [RebuildTask(PAIRS[0])])
    assert len(curator.asked) == 1
    assert noted(tmp_path) == []


async def test_pairs_that_are_refused_one_after_another_are_not_the_pairs_fault(tmp_path: Path) -> None:
    library = library_of(tmp_path, *PAIRS)
    curator = ScriptedCurator(topic_for=lambda asked: named("a") if asked is PAIRS[0] else Rejected("no credit"))
    with pytest.raises(GivenUp, match="3 conversations in a row were refused; Rejected: no credit"):
        await rebuilt(library, curator, [RebuildTask(each) for each in PAIRS])
    assert [each.action for each in noted(tmp_path)] == [Action.ADDED, *[Action.FAILED] * 3]


async def test_prompts_that_are_refused_one_after_another_end_nothing_once_the_model_has_answered(
    tmp_path: Path,
) -> None:
    library = library_of(tmp_path, *PAIRS)
    refused = PromptRefused("content_filter")
    curator = ScriptedCurator(topic_for=lambda asked: named("a") if asked is PAIRS[0] else refused)
    await rebuilt(library, curator, [RebuildTask(each) for each in PAIRS])
    assert [each.action for each in noted(tmp_path)] == [Action.ADDED, *[Action.FAILED] * (len(PAIRS) - 1)]


async def test_a_model_that_refuses_the_first_prompts_is_set_up_wrongly(tmp_path: Path) -> None:
    library = library_of(tmp_path, *PAIRS)
    curator = ScriptedCurator(topic_for=lambda _: PromptRefused("no such parameter"))
    with pytest.raises(GivenUp, match="3 conversations in a row were refused; PromptRefused: no such parameter"):
        await rebuilt(library, curator, [RebuildTask(each) for each in PAIRS])


async def test_a_pair_that_fails_now_and_then_holds_up_no_other(tmp_path: Path) -> None:
    """Pitfall 9."""
    library = library_of(tmp_path, *PAIRS)
    bad = {PAIRS[1].id, PAIRS[2].id, PAIRS[4].id}
    curator = ScriptedCurator(topic_for=lambda asked: Rejected("too long") if asked.id in bad else named("a"))
    heard = await rebuilt(library, curator, [RebuildTask(each) for each in PAIRS])
    failed = [each.qa_id for each in heard if isinstance(each, Decision) and each.action is Action.FAILED]
    assert set(failed) == bad


async def test_a_disk_that_is_full_ends_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = library_of(tmp_path, *PAIRS)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "decisions.jsonl")

    monkeypatch.setattr("services.storage.files.append", full)
    with pytest.raises(GivenUp, match="No space left on device"):
        await rebuilt(library, ScriptedCurator(), [RebuildTask(PAIRS[0])])


async def test_what_an_operator_has_restored_stays_whatever_the_curator_says(tmp_path: Path) -> None:
    library = library_of(tmp_path, *PAIRS)
    curator = ScriptedCurator(topic_for=lambda _: SKIP)
    await rebuilt(library, curator, [RebuildTask(PAIRS[0], "kept"), RebuildTask(PAIRS[1])])
    assert [(each.action, each.by) for each in noted(tmp_path)] == [
        (Action.SKIPPED, Actor.LLM),
        (Action.RESTORED, Actor.OPERATOR),
        (Action.SKIPPED, Actor.LLM),
    ]
    assert {name: list(topic.pairs) for name, topic in library.topics.items()} == {"kept": [PAIRS[0]]}
    assert is_whole(tmp_path, library)


@pytest.mark.parametrize("error", [NotDescribed("empty"), Unavailable("down")])
async def test_a_topic_that_cannot_be_described_is_left_to_the_bot(tmp_path: Path, error: Exception) -> None:
    library = library_of(tmp_path, *PAIRS)
    heard = await rebuilt(library, ScriptedCurator(), [RebuildTask(PAIRS[0])], Describing(error))
    assert len(heard) == 1
    assert [topic.name for topic in library.undescribed_topics()] == ["things"]


async def test_the_newest_of_a_conversation_may_come_first(tmp_path: Path) -> None:
    """Order is by what was said: an older id may follow a newer one."""
    late = replace(PAIRS[5], said_at="2020-01-01T00:00:00.000000Z")
    library = library_of(tmp_path, *PAIRS[:5], late)
    await rebuilt(library, ScriptedCurator(), [RebuildTask(late), *map(RebuildTask, PAIRS[:5])])
    assert [each.id for each in library.topics["things"].pairs] == [late.id, *(each.id for each in PAIRS[:5])]
    assert is_whole(tmp_path, library)
