from __future__ import annotations

import logging
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from model.conversations import REPLY, THREAD, ConversationKind
from services.storage import files
from services.team import decisions as grammar
from services.team.archive import REMOVED, Pair, PairTurn
from services.team.decisions import Action, Actor, Decision
from services.team.opening import open_library
from services.team.rebuilding import SUPERSEDED, WORDLESS, LibraryBuild, RebuildPlan, RebuildTask, keep_in_topic, plan
from services.team.topics import Placement
from tests.services.team.pairs import added, captured, decided, opened, places_in, store

NOW = "2026-03-01T00:00:00.000Z"
ONE, TWO, THREE, FOUR = (captured(number) for number in (1, 2, 3, 4))


def fuller(pair: Pair, number: int) -> Pair:
    """A later capture of the same conversation, with as many more messages."""
    later = captured(number, "Question?", "Answer.", *["More."] * (number - 1), conversation=1)
    return replace(later, conversation_id=pair.conversation_id)


def operator(pair: Pair, action: Action, topic: str | None = None) -> Decision:
    return decided(pair, action, topic, Actor.OPERATOR)


def ids(found: RebuildPlan) -> list[str]:
    return [task.pair.id for task in found.tasks]


@pytest.mark.parametrize("kind", [REPLY, THREAD])
def test_of_each_conversation_the_fullest_capture_is_worked_through_and_of_a_thread_the_newest(
    kind: ConversationKind,
) -> None:
    """A thread is read as a whole each time: what the newest lacks has been deleted."""
    early_talk = replace(FOUR, said_at="2020-01-01T00:00:00.000000Z")
    first, long, short = (
        replace(each, conversation_id=kind.make_id(1)) for each in (ONE, fuller(ONE, 5), captured(6, conversation=1))
    )
    found = plan([first, TWO, early_talk, long, short], [])
    chosen, other = (long, short) if kind is REPLY else (short, long)
    assert (found.pair_count, found.conversation_count) == (5, 3)
    assert ids(found) == [early_talk.id, TWO.id, chosen.id]
    assert dict(found.left_out) == {ONE.id: SUPERSEDED, other.id: SUPERSEDED}


def test_of_two_that_hold_as_much_the_newer_counts() -> None:
    """Pitfall 13."""
    again = captured(9, conversation=1001)
    again = replace(again, conversation_id=ONE.conversation_id)
    assert ids(plan([ONE, again], [])) == [again.id]
    assert ids(plan([again, ONE], [])) == [again.id]


def test_what_an_operator_removed_stays_out_and_is_not_replaced_by_a_part_of_it() -> None:
    whole = fuller(ONE, 5)
    found = plan([ONE, TWO, whole], [added(ONE, "a"), added(whole, "a"), operator(whole, Action.REMOVED)])
    assert ids(found) == [TWO.id]
    assert [each.action for each in found.kept_decisions] == [Action.REMOVED]


def test_what_an_operator_restored_is_decided_about_anew_and_upheld_in_its_topic() -> None:
    before = [
        added(ONE, "a"),
        operator(ONE, Action.REMOVED),
        operator(ONE, Action.RESTORED),
        operator(TWO, Action.REMOVED),
        operator(TWO, Action.RESTORED),
    ]
    found = plan([ONE, TWO], before)
    assert found.tasks == (RebuildTask(ONE, "a", "a"), RebuildTask(TWO))
    placement = Placement(found.kept_decisions)
    assert (placement.decided, placement.topic_of, placement.withdrawn) == (set(), {}, set())


def test_a_curator_that_would_leave_out_what_was_restored_is_overruled() -> None:
    task = RebuildTask(ONE, "a")
    assert keep_in_topic(task, added(ONE, "b")) is None
    assert keep_in_topic(RebuildTask(ONE), decided(ONE, Action.SKIPPED)) is None
    overruled = keep_in_topic(task, decided(ONE, Action.SKIPPED))
    assert overruled is not None
    assert (overruled.action, overruled.by, overruled.topic) == (Action.RESTORED, Actor.OPERATOR, "a")


def test_what_nobody_can_tell_anything_of_stays_where_it_was() -> None:
    failed = decided(ONE, Action.FAILED)
    assert keep_in_topic(RebuildTask(ONE), failed) is None
    assert keep_in_topic(RebuildTask(ONE, None, "a"), decided(ONE, Action.SKIPPED)) is None
    kept = keep_in_topic(RebuildTask(ONE, None, "a"), failed)
    assert kept is not None
    assert (kept.action, kept.topic, kept.qa_id) == (Action.ADDED, "a", ONE.id)


def test_a_build_goes_on_behind_a_pair_that_failed_and_stays_and_tries_the_last_ones_again(tmp_path: Path) -> None:
    before = [added(ONE, "a"), added(TWO, "a"), added(THREE, "a")]
    build = build_in(tmp_path)
    build.begin(plan(THERE, before), "key", NOW)
    stays = [(decided(each, Action.FAILED), added(each, "a")) for each in (ONE, THREE)]
    note(build, *stays[0], added(TWO, "b"), *stays[1])
    assert standing(tmp_path, THERE, "key", *before) == [ONE.id, TWO.id]
    noted = grammar.DecisionLog(build.paths.decisions).read()
    assert [(each.qa_id, each.action) for each in noted] == [
        (ONE.id, Action.FAILED),
        (ONE.id, Action.ADDED),
        (TWO.id, Action.ADDED),
    ]


def test_a_conversation_of_which_nothing_is_left_is_skipped_unseen() -> None:
    """Pitfall 49."""
    turns = tuple(PairTurn(turn.speaker, REMOVED) for turn in ONE.turns)
    found = plan([replace(ONE, turns=turns), TWO], [])
    assert ids(found) == [TWO.id]
    assert (found.left_out, found.wordless_count) == (((ONE.id, WORDLESS),), 1)


def test_a_block_that_stands_there_twice_is_worked_through_once() -> None:
    found = plan([ONE, ONE, replace(ONE, conversation_id="thread_77")], [])
    assert ids(found) == [ONE.id]
    assert found.left_out == ()


# The folder


def build_in(folder: Path) -> LibraryBuild:
    return LibraryBuild(folder / "regen", places_in(folder))


def note(build: LibraryBuild, *made: Decision) -> None:
    files.append(build.paths.decisions, "".join(map(grammar.render, made)).encode())


def standing(folder: Path, pairs: list[Pair], key: str = "key", *before: Decision) -> list[str]:
    """The ids of what a build that begins now need not decide about."""
    begun = build_in(folder).begin(plan(pairs, before), key, NOW)
    return [own[0].qa_id for own in begun.decided]


def begun(folder: Path, *made: Decision, pairs: list[Pair]) -> None:
    build = build_in(folder)
    build.begin(plan(pairs, []), "key", NOW)
    note(build, *made)


THERE = [ONE, TWO, THREE]


def test_a_build_that_was_cut_off_is_gone_on_with(tmp_path: Path) -> None:
    begun(tmp_path, added(ONE, "a"), decided(TWO, Action.SKIPPED), pairs=THERE)
    assert standing(tmp_path, THERE) == [ONE.id, TWO.id]
    assert standing(tmp_path, THERE) == [ONE.id, TWO.id]


def test_what_was_captured_meanwhile_is_decided_about_when_its_turn_comes(tmp_path: Path) -> None:
    begun(tmp_path, added(ONE, "a"), added(TWO, "a"), pairs=THERE)
    assert standing(tmp_path, [*THERE, FOUR]) == [ONE.id, TWO.id]
    assert standing(tmp_path, [ONE, TWO, THREE, replace(FOUR, said_at=ONE.said_at)]) == [ONE.id]


def test_what_comes_behind_a_conversation_that_has_grown_or_changed_is_decided_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    begun(tmp_path, added(ONE, "a"), added(TWO, "a"), added(THREE, "a"), pairs=THERE)
    shutil.copytree(tmp_path / "regen", tmp_path / "again" / "regen")
    grown = fuller(TWO, 5)
    assert standing(tmp_path, [ONE, TWO, THREE, replace(grown, conversation_id=TWO.conversation_id)]) == [ONE.id]
    assert "the archive has changed; from conversation 1 on" in caplog.text
    forgotten = replace(TWO, turns=(PairTurn(TWO.turns[0].speaker, REMOVED), TWO.turns[1]))
    assert standing(tmp_path / "again", [ONE, forgotten, THREE]) == [ONE.id]


def test_other_prompts_or_another_model_begin_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    begun(tmp_path, added(ONE, "a"), pairs=THERE)
    assert standing(tmp_path, THERE, "another key") == []
    assert "prompts, model or limits have changed" in caplog.text


@pytest.mark.parametrize("damaged", [b"", b"[]", b'{"key": "key"}', b"\xff"])
def test_a_plan_that_cannot_be_read_begins_anew(tmp_path: Path, damaged: bytes) -> None:
    begun(tmp_path, added(ONE, "a"), pairs=THERE)
    (tmp_path / "regen" / "plan.json").write_bytes(damaged)
    assert standing(tmp_path, THERE) == []


def test_failures_at_the_end_are_tried_again(tmp_path: Path) -> None:
    failed = [decided(pair, Action.FAILED) for pair in (TWO, THREE)]
    begun(tmp_path, added(ONE, "a"), *failed, pairs=THERE)
    assert standing(tmp_path, THERE) == [ONE.id]


def test_corrections_made_meanwhile_count(tmp_path: Path) -> None:
    begun(tmp_path, added(ONE, "a"), added(TWO, "a"), pairs=THERE)
    assert standing(tmp_path, THERE, "key", operator(TWO, Action.REMOVED)) == [ONE.id]
    first, *_ = grammar.DecisionLog(build_in(tmp_path).paths.decisions).read()
    assert (first.action, first.qa_id) == (Action.REMOVED, TWO.id)


def test_a_crash_between_a_decision_and_what_upholds_it_is_healed(tmp_path: Path) -> None:
    before = [added(ONE, "a"), operator(ONE, Action.REMOVED), operator(ONE, Action.RESTORED)]
    build = build_in(tmp_path)
    found = plan(THERE, before)
    build.begin(found, "key", NOW)
    skipped = decided(ONE, Action.SKIPPED)
    note(build, skipped)
    assert standing(tmp_path, THERE, "key", *before) == []
    upheld = keep_in_topic(found.tasks[0], skipped)
    assert upheld is not None
    note(build, skipped, upheld, added(TWO, "b"))
    assert standing(tmp_path, THERE, "key", *before) == [ONE.id, TWO.id]


def test_a_finished_build_knows_every_pair_and_can_be_begun_again(tmp_path: Path) -> None:
    again = replace(captured(9), conversation_id=ONE.conversation_id)
    pairs = [ONE, TWO, again]
    store(tmp_path, *pairs)
    build = build_in(tmp_path)
    found = plan(pairs, [])
    build.begin(found, "key", NOW)
    note(build, added(TWO, "a"), added(again, "a"))
    build.finish(found, Actor.LLM, "2026-03-01T00:00:00.000Z")
    last = grammar.DecisionLog(build.paths.decisions).read()[-1]
    assert (last.qa_id, last.action, last.reason) == (ONE.id, Action.SKIPPED, SUPERSEDED)
    assert standing(tmp_path, pairs) == [TWO.id, again.id]


def test_descriptions_of_the_live_library_are_at_hand(tmp_path: Path) -> None:
    store(tmp_path, ONE)
    library = opened(tmp_path)
    library.decide(added(ONE, "a"))
    library.describe(library.topics["a"], "About a.", "key")
    build = build_in(tmp_path)
    build.begin(plan([ONE], []), "key", NOW)
    built = open_library(build.paths, describer_key="key", described_in=build.live.cache, time=lambda: 0.0)
    built.decide(added(ONE, "b"))
    assert built.undescribed_topics() == []
    assert [(entry.id, entry.description) for entry in built.index()] == [("team:b.txt", "About a.")]


def test_a_build_bears_the_time_at_which_it_was_first_begun(tmp_path: Path) -> None:
    build, later = build_in(tmp_path), "2026-03-02T00:00:00.000Z"
    assert build.begin(plan(THERE, []), "key", NOW).at == NOW
    assert build.begin(plan(THERE, []), "key", later).at == NOW
    assert build.begin(plan(THERE, []), "another key", later).at == later


def test_how_far_topics_have_grown_follows_from_the_decisions(tmp_path: Path) -> None:
    store(tmp_path, *THERE)
    build, found = build_in(tmp_path), plan(THERE, [])
    build.begin(found, "key", NOW)
    note(build, added(ONE, "a"), added(TWO, "b"), decided(THREE, Action.SKIPPED, remove_ids=(TWO.id,)))
    growth = build.begin(found, "key", NOW).growth(found)
    assert {name: [pair.id for pair in topic.pairs] for name, topic in growth.described.items()} == {"a": [ONE.id]}


def test_a_folder_that_was_cleared_is_gone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    build = build_in(tmp_path)
    build.clear()
    begun(tmp_path, added(ONE, "a"), pairs=THERE)
    build.clear()
    assert not build.folder.exists()
    assert standing(tmp_path, THERE) == []
    assert caplog.messages == []
