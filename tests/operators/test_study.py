from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from operators.curating import curate
from services.assistant.curator import ClassificationResult, IntegrationResult, TopicPiece
from services.conversations import PersonalWork, Withdrawn
from services.llm.endpoint import BadOutput, LLMError, PromptRefused, Rejected, TimedOut, Unavailable, UnknownRequest
from services.llm.usage import Usage
from services.team.archive import UNKNOWN, Pair, PairTurn, Speaker, remove_texts
from services.team.decisions import Action, Actor, Decision, FiledPiece, Remark
from services.telemetry import current_people
from tests.services.team.pairs import added, opened, store
from tests.team import SKIP, ScriptedCurator, kept, named, pair


async def decided(folder: Path, curator: ScriptedCurator, *pairs: Pair) -> list[Decision]:
    """What becomes of pairs, one after another."""
    store(folder, *pairs)
    library = opened(folder)
    curated = curate(library, curator, Usage())
    made: list[Decision] = []
    for each in pairs:
        made.append(await curated(each))
        await asyncio.to_thread(library.decide, made[-1])
    return made


def held(folder: Path) -> dict[str, list[str]]:
    """The ids that each topic holds."""
    return {name: [each.id for each in topic.pairs] for name, topic in opened(folder).topics.items()}


async def test_a_pair_opens_a_topic_when_there_is_none_of_that_name(tmp_path: Path) -> None:
    curator = ScriptedCurator(topic_for=lambda _: named("GPU drivers"))
    [decision] = await decided(tmp_path, curator, pair(1))
    assert (decision.action, decision.topic, decision.by) == (Action.ADDED, "gpu-drivers", Actor.LLM)
    assert [step for step, _ in curator.asked] == ["classify"]


async def test_a_pair_is_classified_with_the_index_as_the_one_before_has_left_it(tmp_path: Path) -> None:
    curator = ScriptedCurator()
    await decided(tmp_path, curator, pair(1), pair(2))
    assert [[entry.id for entry in index] for index in curator.indices] == [[], ["team:things.txt"]]


async def test_a_skipped_pair_goes_nowhere_and_costs_one_call(tmp_path: Path) -> None:
    curator = ScriptedCurator(topic_for=lambda _: SKIP)
    [decision] = await decided(tmp_path, curator, pair(1))
    assert (decision.action, decision.topic) == (Action.SKIPPED, None)
    assert len(curator.asked) == 1


async def test_a_topic_without_a_name_is_reported_and_the_pair_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    curator = ScriptedCurator(topic_for=lambda _: named("  "))
    [decision] = await decided(tmp_path, curator, pair(1))
    assert (decision.action, decision.reason) == (Action.SKIPPED, "no topic was named")
    assert caplog.messages == [f"{pair(1).id}: neither a topic nor a reason to skip was given; it is left out"]


async def test_a_pair_that_supersedes_others_names_them(tmp_path: Path) -> None:
    first, second, third, last = (pair(n) for n in range(1, 5))
    curator = ScriptedCurator(integrated=lambda new, _: kept(first.id) if new is last else kept())
    decisions = await decided(tmp_path, curator, first, second, third, last)
    assert decisions[-1].remove_ids == (first.id,)
    assert decisions[-1].action is Action.ADDED


async def test_a_pair_that_says_nothing_new_may_still_show_that_another_is_obsolete(tmp_path: Path) -> None:
    first, second, last = (pair(n) for n in range(1, 4))
    curator = ScriptedCurator(integrated=lambda new, _: kept(first.id, skip=True) if new is last else kept())
    decisions = await decided(tmp_path, curator, first, second, last)
    assert (decisions[-1].action, decisions[-1].remove_ids, decisions[-1].replaces) == (
        Action.SKIPPED,
        (first.id,),
        (),
    )
    assert decisions[-1].reason == "the topic says the same"
    assert held(tmp_path) == {"things": [second.id]}


async def test_ids_that_are_not_in_the_topic_remove_nothing(tmp_path: Path) -> None:
    """Pitfall 10."""
    curator = ScriptedCurator(integrated=lambda _new, _held: kept("qa_19990101_000000", "../../x", ""))
    decisions = await decided(tmp_path, curator, pair(1), pair(2))
    assert decisions[-1].remove_ids == ()


async def test_earlier_captures_of_the_conversation_are_hidden_and_replaced(tmp_path: Path) -> None:
    """Pitfalls 13 and 15."""
    short, other, long = pair(1, conversation=7), pair(2), pair(3, conversation=7)
    curator = ScriptedCurator()
    decisions = await decided(tmp_path, curator, short, other, long)
    assert curator.shown == [[short.id], [other.id]]
    assert decisions[-1].replaces == (short.id,)
    assert held(tmp_path) == {"things": [other.id, long.id]}


async def test_an_earlier_capture_is_replaced_in_whatever_topic_it_was(tmp_path: Path) -> None:
    short, long = pair(1, conversation=7), pair(2, conversation=7)
    curator = ScriptedCurator(topic_for=lambda each: named("first" if each is short else "second"))
    await decided(tmp_path, curator, short, long)
    assert held(tmp_path) == {"second": [long.id]}


async def test_an_earlier_capture_stays_when_the_new_one_is_not_added(tmp_path: Path) -> None:
    short, other, long = pair(1, conversation=7), pair(2), pair(3, conversation=7)
    curator = ScriptedCurator(integrated=lambda new, _: kept(skip=new is long))
    await decided(tmp_path, curator, short, other, long)
    assert held(tmp_path) == {"things": [short.id, other.id]}


async def test_a_conversation_that_only_grew_is_compared_with_nothing(tmp_path: Path) -> None:
    curator = ScriptedCurator()
    await decided(tmp_path, curator, pair(1, conversation=7), pair(2, conversation=7))
    assert [step for step, _ in curator.asked] == ["classify", "classify"]


@pytest.mark.parametrize("error", [BadOutput("prose"), Rejected("400")])
async def test_a_pair_on_which_the_model_always_fails_is_given_up_after_three_tries(
    tmp_path: Path, error: LLMError, caplog: pytest.LogCaptureFixture
) -> None:
    """Pitfall 9."""
    bad, good = pair(1), pair(2)
    curator = ScriptedCurator(topic_for=lambda each: error if each is bad else named("things"))
    failed, added = await decided(tmp_path, curator, bad, good)
    assert [what for _, what in curator.asked] == [bad.id] * 3 + [good.id]
    assert (failed.action, failed.reason) == (Action.FAILED, f"{type(error).__name__}: {error}")
    assert added.action is Action.ADDED
    assert caplog.text.count(f"llm_classification_failed {bad.id}: {type(error).__name__}: {error}") == 3
    assert "left for --regen" in caplog.text
    assert "Traceback" not in caplog.text


def with_stranger(each: Pair, words: str, *, is_to_both: bool = False) -> Pair:
    """The pair with what somebody else, of number 2, has said before the team's answer."""
    (asked, answer), (first, last) = each.turns, each.message_ids
    return replace(
        each,
        message_ids=(first, first + 500, last + 500),
        author_ids=(1, 2, 50),
        turns=(asked, PairTurn(Speaker.USER, words), answer),
        addressee_ids=(0, 0, 50 if is_to_both else 1),
    )


async def test_what_a_stranger_says_keeps_no_conversation_from_being_filed(tmp_path: Path) -> None:
    shown: list[list[str]] = []

    def topic_for(each: Pair) -> ClassificationResult | Exception:
        shown.append([turn.text for turn in each.turns])
        return PromptRefused("400") if "slur" in shown[-1] else named("things")

    mixed = with_stranger(pair(1), "slur")
    [decision] = await decided(tmp_path, ScriptedCurator(topic_for=topic_for), mixed)
    assert shown == [["why?", "slur", "so."], ["why?", "so."]]
    assert decision.action is Action.ADDED
    assert decision.pieces == (FiledPiece((str(mixed.message_ids[0]), str(mixed.message_ids[2])), "things"),)
    [filed] = opened(tmp_path).topics["things"].pairs
    assert [turn.text for turn in filed.turns] == ["why?", "so."]


async def test_a_refused_pair_in_which_nothing_is_certainly_to_the_first_user_is_skipped(tmp_path: Path) -> None:
    curator = ScriptedCurator(topic_for=lambda _: PromptRefused("400"))
    [decision] = await decided(tmp_path, curator, with_stranger(pair(1), "slur", is_to_both=True))
    assert (decision.action, decision.pieces) == (Action.SKIPPED, ())
    assert [step for step, _ in curator.asked] == ["classify"]


async def test_a_pair_of_which_it_is_not_certain_whom_the_team_answers_replaces_nothing(tmp_path: Path) -> None:
    first, mixed = pair(1), with_stranger(pair(2), "me too", is_to_both=True)
    curator = ScriptedCurator(integrated=lambda _new, _held: kept(first.id))
    decisions = await decided(tmp_path, curator, first, mixed)
    assert (decisions[-1].action, decisions[-1].remove_ids) == (Action.ADDED, ())


async def test_what_a_stranger_said_in_a_topic_keeps_no_other_from_joining_it(tmp_path: Path) -> None:
    def integrated(new: Pair, others: Sequence[Pair]) -> IntegrationResult | Exception:
        words = {turn.text for each in (new, *others) for turn in each.turns}
        return PromptRefused("400") if "slur" in words else kept()

    curator = ScriptedCurator(integrated=integrated)
    decisions = await decided(tmp_path, curator, with_stranger(pair(1), "slur"), pair(2))
    assert [each.action for each in decisions] == [Action.ADDED, Action.ADDED]
    assert [step for step, _ in curator.asked] == ["classify", "classify", "integrate", "integrate"]


async def test_what_the_asker_said_and_is_refused_fails_the_pair(tmp_path: Path) -> None:
    curator = ScriptedCurator(topic_for=lambda _: PromptRefused("400"))
    [decision] = await decided(tmp_path, curator, pair(1))
    assert (decision.action, decision.reason) == (Action.FAILED, "PromptRefused: 400")


async def test_integration_that_fails_costs_the_whole_pair_a_try(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    answers: list[Exception] = [BadOutput("prose"), BadOutput("prose")]
    curator = ScriptedCurator(integrated=lambda _new, _held: answers.pop() if answers else kept())
    decisions = await decided(tmp_path, curator, pair(1), pair(2))
    assert decisions[-1].action is Action.ADDED
    assert caplog.text.count(f"llm_integration_failed {pair(2).id}: BadOutput: prose") == 2


@pytest.mark.parametrize(
    "error", [Unavailable("503"), TimedOut("slow"), UnknownRequest("other prompt"), OSError(28, "No space left")]
)
async def test_what_is_not_the_pairs_fault_stops_the_work_and_costs_no_try(tmp_path: Path, error: Exception) -> None:
    one = pair(1)
    answers: list[Exception] = [BadOutput("prose"), error, BadOutput("prose"), error]
    curator = ScriptedCurator(topic_for=lambda _: answers.pop(0) if answers else named("things"))
    curated = curate(opened(tmp_path), curator, Usage())
    for _ in range(2):
        with pytest.raises(type(error)):
            await curated(one)
    assert (await curated(one)).action is Action.ADDED


async def test_tries_add_up_over_interruptions(tmp_path: Path) -> None:
    answers: list[Exception] = [BadOutput("a"), Unavailable("b"), BadOutput("c"), Unavailable("d"), BadOutput("e")]
    curated = curate(opened(tmp_path), ScriptedCurator(topic_for=lambda _: answers.pop(0)), Usage())
    one = pair(1)
    for _ in range(2):
        with pytest.raises(Unavailable):
            await curated(one)
    assert (await curated(one)).action is Action.FAILED


async def test_a_bug_is_told_with_its_traceback_and_does_not_block_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Decisions outlive `--forget`: what an error quotes is not kept in them (Pitfall 49)."""
    curator = ScriptedCurator(topic_for=lambda _: ValueError("'my secret' is no topic"))
    [decision] = await decided(tmp_path, curator, pair(1))
    assert (decision.action, decision.reason) == (Action.FAILED, "ValueError")
    assert "Traceback" in caplog.text
    assert caplog.messages == [
        *[f"{pair(1).id} could not be curated"] * 3,
        f"{pair(1).id} failed 3 times and is left for --regen: ValueError",
    ]


async def test_each_call_is_counted_by_its_step_and_shown_while_it_lasts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    store(tmp_path, pair(1), pair(2))
    library, curator, usage = opened(tmp_path), ScriptedCurator(), Usage()
    seen: list[tuple[str, int]] = []
    curated = curate(library, curator, usage, lambda name, count: seen.append((name, count)))
    library.decide(added(pair(1), "things"))
    await curated(pair(2))
    assert usage.calls == {"classify": 1, "integrate": 1}
    assert seen == [("classify", 1), ("classify", 0), ("integrate", 1), ("integrate", 0)]
    assert f"topic_classified {pair(2).id}: things" in caplog.text


def test_a_pair_is_in_order_of_its_second() -> None:
    pairs: Sequence[Pair] = [pair(1), pair(2)]
    assert sorted(each.id for each in pairs) == [each.id for each in pairs]


async def test_what_a_pair_corrects_and_what_it_leaves_open_is_noted_with_it(tmp_path: Path) -> None:
    first, second, last = (pair(n) for n in range(1, 4))

    def integrated(new: Pair, _held: Sequence[Pair]) -> IntegrationResult:
        parts = [Remark(first.id, "the limit is 400"), Remark("qa_1", "made up")]
        return IntegrationResult(
            skip=new is second, remove_ids=[], superseded_parts=parts, conflicts=[Remark(first.id, "cats or dogs")]
        )

    decisions = await decided(tmp_path, ScriptedCurator(integrated=integrated), first, second, last)
    # What is not added corrects nothing.
    assert [each.superseded_parts for each in decisions] == [(), (), (Remark(first.id, "the limit is 400"),)]
    assert [each.conflicts for each in decisions] == [(), (), (Remark(first.id, "cats or dogs"),)]
    assert [each.text for each in opened(tmp_path).corrections(first)] == ["the limit is 400"]


async def test_a_pair_about_two_matters_is_filed_in_pieces_each_compared_with_its_topic(tmp_path: Path) -> None:
    one, two = pair(1, "cats?", "meow"), pair(2, "dogs?", "woof")
    both = replace(
        pair(3),
        message_ids=(31, 32, 33, 34),
        author_ids=(1, 2, 50, 50),
        turns=(one.turns[0], two.turns[0], one.turns[1], two.turns[1]),
        addressee_ids=(0, 0, 1, 2),
    )
    pieces = [
        TopicPiece(message_ids=["31", "33"], topic_name="Cats"),
        TopicPiece(message_ids=["32", "34"], topic_name="Dogs"),
    ]
    filed = {one.id: named("cats"), two.id: named("dogs")}
    curator = ScriptedCurator(
        topic_for=lambda each: filed.get(each.id, named("cats").model_copy(update={"pieces": pieces})),
        integrated=lambda new, held: kept(*[each.id for each in held], skip=len(new.turns) > 2),
    )
    decisions = await decided(tmp_path, curator, one, two, both)
    assert curator.shown == [[one.id], [two.id]]
    assert decisions[-1].pieces == (FiledPiece(("31", "33"), "cats"), FiledPiece(("32", "34"), "dogs"))
    assert decisions[-1].remove_ids == (one.id, two.id)
    assert held(tmp_path) == {"cats": [both.id], "dogs": [both.id]}


async def test_a_skipped_pair_has_no_pieces(tmp_path: Path) -> None:
    pieces = [TopicPiece(message_ids=["1000"], topic_name="cats")]
    curator = ScriptedCurator(topic_for=lambda _: SKIP.model_copy(update={"pieces": pieces}))
    [decision] = await decided(tmp_path, curator, pair(1))
    assert (decision.action, decision.pieces) == (Action.SKIPPED, ())


async def test_a_pair_of_somebody_who_is_being_forgotten_is_left_and_costs_no_try(tmp_path: Path) -> None:
    one, personal_work = pair(1), PersonalWork()
    user_id, *others = one.author_ids
    curator = ScriptedCurator(seconds=60)
    curated = curate(opened(tmp_path), curator, Usage(), personal_work=personal_work)
    asking = asyncio.create_task(curated(one))
    await asyncio.sleep(1)
    personal_work.withdraw(user_id)
    with pytest.raises(Withdrawn):
        await asking
    with personal_work.forgetting(user_id):
        with pytest.raises(Withdrawn):
            await curated(one)
        forgotten = remove_texts(one, user_id)
        assert forgotten.writer_ids == {*others} - {user_id}
        assert (await curated(forgotten)).action is Action.ADDED
    assert [step for step, _ in curator.asked] == ["classify"] * 2


async def test_a_call_notes_whose_words_the_model_is_shown(tmp_path: Path) -> None:
    one, two = pair(1), replace(pair(2), author_ids=(7, UNKNOWN))
    seen: list[set[int]] = []

    def noted(*_: object) -> IntegrationResult:
        seen.append({*(current_people.get() or ())})
        return kept()

    store(tmp_path, one, two)
    library, curator = opened(tmp_path), ScriptedCurator(integrated=noted)
    library.decide(added(one, "things"))
    await curate(library, curator, Usage())(two)
    assert seen == [{7, *one.author_ids}]
    assert current_people.get() is None
