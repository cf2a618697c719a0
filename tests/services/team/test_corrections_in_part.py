"""What a later conversation corrects in a part of an earlier one, which stays."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path

import pytest

from services.knowledge import topic_blocks
from services.team.archive import Pair
from services.team.decisions import REMARK_CHARS, Action, Actor, Decision, DecisionLog, Remark, parse, render
from services.team.filing import allowed_remarks
from services.team.topics import Correction, Placement, fold
from tests.services.team.pairs import (
    added,
    captured,
    corrects,
    decided,
    is_whole,
    opened,
    places_in,
    store,
    topic_files,
)

OLD, NEW, NEWEST, OTHER = PAIRS = [captured(number) for number in range(1, 5)]


def corrections(*steps: Decision, of: Pair = OLD, pairs: list[Pair] = PAIRS) -> list[Correction]:
    """When and what of `of` is superseded after these decisions."""
    topics = fold(pairs, Placement(steps))
    return [each for topic in topics.values() for each in topic.corrections.get(of.key, ())]


CORRECTED = (added(OLD, "gpu"), corrects(NEW, "gpu", OLD))
NOTED = [Correction(NEW.said_at, "Not so.")]
TAKEN_OUT = decided(NEW, Action.REMOVED, by=Actor.OPERATOR)


def test_a_pair_that_is_corrected_in_a_part_stays_and_says_so() -> None:
    assert corrections(*CORRECTED) == NOTED
    text = fold(PAIRS, Placement(CORRECTED))["gpu"].text
    assert f"said_at: {OLD.said_at}\nsuperseded: {NEW.said_at} Not so.\nUser: Question 1?\n" in text
    assert next(topic_blocks(text)).corrections == (Correction(NEW.said_at, "Not so."),)


def test_it_is_undone_with_the_pair_that_corrected_and_comes_back_with_it() -> None:
    assert corrections(*CORRECTED, TAKEN_OUT) == []
    assert corrections(*CORRECTED, TAKEN_OUT, decided(NEW, Action.RESTORED, by=Actor.OPERATOR)) == NOTED
    assert corrections(*CORRECTED, decided(OLD, Action.REMOVED, by=Actor.OPERATOR), of=NEW) == []
    # A new decision about the pair takes the place of the one before.
    assert corrections(*CORRECTED, added(NEW, "gpu")) == []


def test_it_holds_across_topics_and_the_files_of_one() -> None:
    assert corrections(added(OLD, "gpu"), corrects(NEW, "gpu-2", OLD)) == NOTED


def test_a_pair_that_takes_the_place_of_the_one_that_corrected_stands_for_it() -> None:
    newest = [Correction(NEWEST.said_at, "Not so.")]
    obsolete = decided(NEWEST, Action.ADDED, "gpu", remove_ids=(NEW.id,))
    assert corrections(*CORRECTED, obsolete) == newest
    later = decided(NEWEST, Action.ADDED, "gpu", replaces=(NEW.id,))
    assert corrections(*CORRECTED, later) == newest
    assert corrections(*CORRECTED, later, decided(NEWEST, Action.REMOVED, by=Actor.OPERATOR)) == []
    assert corrections(*CORRECTED, later, decided(NEW, Action.RESTORED, by=Actor.OPERATOR)) == NOTED
    assert corrections(*CORRECTED, decided(NEWEST, Action.SKIPPED, remove_ids=(NEW.id,))) == []


def test_a_later_capture_of_the_corrected_conversation_is_corrected_too_unless_it_was_said_later() -> None:
    grown = replace(captured(6), said_at=OLD.said_at)
    steps = (*CORRECTED, decided(grown, Action.ADDED, "gpu", replaces=(OLD.id,)))
    assert corrections(*steps, of=grown, pairs=[*PAIRS, grown]) == NOTED
    went_on = captured(6)
    assert corrections(*steps, of=went_on, pairs=[*PAIRS, went_on]) == []


def test_several_corrections_stand_in_the_order_in_which_they_were_said() -> None:
    early = replace(NEWEST, said_at=captured(0).said_at)
    twice = corrects(NEW, "gpu", OLD, OLD, what="a\n b")
    steps = (added(OLD, "gpu"), corrects(OTHER, "gpu", OLD, what="c"), twice, corrects(early, "gpu", OLD))
    assert corrections(*steps, pairs=[OLD, NEW, OTHER, early]) == [
        Correction(NEW.said_at, "a b; a b"),
        Correction(OTHER.said_at, "c"),
    ]
    assert corrections(corrects(OLD, "gpu", OLD)) == []


def test_old_decisions_are_read_and_written_as_before() -> None:
    line = render(added(OLD, "gpu"))
    assert list(json.loads(line)) == ["qa_id", "at", "action", "topic", "remove_ids", "replaces", "by", "reason"]
    decision = replace(CORRECTED[1], conflicts=(Remark(OLD.id, "100 or 400"),))
    assert json.loads(render(decision))["superseded_parts"] == [{"id": OLD.id, "what": "Not so."}]
    assert parse(render(decision).encode()) == [decision]
    assert parse(render(decision).replace(OLD.id, "qa_1").encode()) == []
    assert len(Remark(OLD.id, "x" * 900).what) == REMARK_CHARS


def test_remarks_are_about_older_pairs_of_the_topic_that_stay(caplog: pytest.LogCaptureFixture) -> None:
    """Pitfall 10."""
    grown = replace(captured(0), conversation_id=NEWEST.conversation_id)
    said = [
        Remark(OLD.id.partition(".")[0], "it is 400"),
        Remark(NEW.id, "gone anyway"),
        Remark(OTHER.id, "later"),
        Remark(grown.id, "not shown"),
        Remark("c9", "unknown"),
        Remark(OLD.id, " "),
    ]
    assert allowed_remarks(NEWEST, [OLD, NEW, OTHER, grown], (NEW.id,), said) == (Remark(OLD.id, "it is 400"),)
    reasons = [message.rpartition(": ")[2] for message in caplog.messages]
    nowhere = "it is not in the topic"
    assert reasons == [nowhere, "it is not older", nowhere, nowhere, "it says nothing"]


def test_a_start_finds_what_a_crash_left_unwritten(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Pitfall 14: between the decision and the topic file, and back."""
    store(tmp_path, *PAIRS)
    library = opened(tmp_path)
    library.decide(added(OLD, "gpu"))
    log = DecisionLog(places_in(tmp_path).decisions)
    for step in (CORRECTED[1], TAKEN_OUT, decided(NEW, Action.RESTORED, by=Actor.OPERATOR)):
        log.append(step)
        assert is_whole(tmp_path, opened(tmp_path))
    # A file of any of these times is ours.
    places_in(tmp_path).state.unlink()
    path = places_in(tmp_path).topics / "gpu.txt"
    path.write_text(fold(PAIRS, Placement(CORRECTED))["gpu"].text)
    assert is_whole(tmp_path, opened(tmp_path))
    assert caplog.messages == []
    caplog.set_level(logging.WARNING)
    for forged in (("Not so.", "All wrong."), (f"superseded: {NEW.said_at} Not so.\n", "")):
        path.write_text(path.read_text().replace(*forged))
        opened(tmp_path)
        assert caplog.text.count("was changed by hand") == 1
        caplog.clear()
        assert "Not so." in topic_files(tmp_path)["gpu.txt"]


def test_what_the_library_knows_of_a_pair(tmp_path: Path) -> None:
    store(tmp_path, *PAIRS)
    library = opened(tmp_path)
    for step in CORRECTED:
        library.decide(step)
    assert library.corrections(OLD) == (Correction(NEW.said_at, "Not so."),)
    assert library.corrections(NEW) == library.corrections(OTHER) == ()


def test_what_is_added_under_a_later_capture_corrects_nothing(tmp_path: Path) -> None:
    first, later = captured(2, conversation=7), captured(3, conversation=7)
    store(tmp_path, OLD, first, later)
    library = opened(tmp_path)
    library.decide(added(OLD, "gpu"))
    library.decide(added(later, "gpu"))
    library.decide(replace(corrects(first, "gpu", OLD), conflicts=(Remark(OLD.id, "x"),)))
    assert library.corrections(OLD) == ()
    [*_, last] = DecisionLog(places_in(tmp_path).decisions).read()
    assert (last.action, last.superseded_parts, last.conflicts) == (Action.SKIPPED, (), ())
