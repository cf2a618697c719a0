from __future__ import annotations

import logging
import os
import threading
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.knowledge import index_file, topic_blocks
from services.knowledge.index_file import IndexEntry
from services.storage import files
from services.team import library as library_module
from services.team import overview
from services.team.archive import REMOVED, Pair, render, week_file
from services.team.archive_files import StoredBlock
from services.team.decisions import Action, Actor, Decision, DecisionLog, Remark
from services.team.library import TeamLibrary, UnknownPair
from services.team.opening import open_library
from services.team.rebuilding import LibraryBuild
from services.team.state import LibraryUnusable, read_state
from services.team.topics import Topic
from tests.services.quickly import QUICKLY
from tests.services.team.pairs import (
    NOW,
    added,
    captured,
    corrects,
    decided,
    everything,
    in_pieces,
    is_whole,
    noted,
    opened,
    places_in,
    store,
    topic_files,
)

ONE, TWO, THREE = (captured(number) for number in (1, 2, 3))


def test_pairs_are_decided_about_one_after_another_oldest_first(tmp_path: Path) -> None:
    store(tmp_path, ONE, TWO, THREE)
    library = opened(tmp_path)
    seen: list[Pair] = []
    while (pair := library.oldest_undecided()) is not None:
        assert library.oldest_undecided() == pair
        seen.append(pair)
        assert library.decide(added(pair, "gpu")) == {"gpu"}
    assert seen == [ONE, TWO, THREE]
    assert is_whole(tmp_path, library)
    # What is captured meanwhile comes next, and so does a pair of a new week.
    later = captured(24 * 8)
    store(tmp_path, captured(4), later)
    for pair in (captured(4), later):
        assert library.oldest_undecided() == pair
        library.decide(decided(pair, Action.SKIPPED))
    assert library.oldest_undecided() is None
    assert opened(tmp_path).oldest_undecided() is None


def test_a_decision_is_written_with_topic_index_and_state(tmp_path: Path) -> None:
    store(tmp_path, ONE, TWO)
    library = opened(tmp_path)
    library.decide(added(ONE, "gpu"))
    library.decide(decided(TWO, Action.FAILED))
    places = places_in(tmp_path)
    assert [each.action for each in noted(tmp_path)] == [Action.ADDED, Action.FAILED]
    assert topic_files(tmp_path) == {"gpu.txt": library.topics["gpu"].text}
    assert places.index.read_text() == "team:gpu.txt\ngpu: Question 1?\n"
    assert read_state(places.state).last_processed_qa_id == TWO.id


def test_what_is_put_off_is_written_with_the_next_decision_or_when_no_pair_is_left(tmp_path: Path) -> None:
    pairs = [captured(number) for number in range(1, 6)]
    store(tmp_path, *pairs)
    library = opened(tmp_path)
    before = everything(tmp_path)
    for pair in pairs[:2]:
        assert library.oldest_undecided() == pair
        library.decide(added(pair, "gpu"), put_off=True)
        assert library.is_behind
        assert everything(tmp_path) == before
        assert at_hand(library) == pairs[pairs.index(pair) + 1]
    library.decide(added(pairs[2], "gpu"))
    assert noted(tmp_path) == [added(pair, "gpu") for pair in pairs[:3]]
    assert is_whole(tmp_path, library)
    for pair in pairs[3:]:
        library.decide(added(pair, "net"), put_off=True)
    assert library.oldest_undecided() is None
    assert not library.is_behind
    assert is_whole(tmp_path, library)
    assert noted(tmp_path)[3:] == [added(pair, "net") for pair in pairs[3:]]


def test_no_more_is_put_off_than_is_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library_module, "MAX_PUT_OFF", 3)
    pairs = [captured(number) for number in range(1, 5)]
    store(tmp_path, *pairs)
    library = opened(tmp_path)
    written: list[int] = []
    for pair in pairs:
        library.decide(added(pair, "gpu"), put_off=True)
        written.append(len(noted(tmp_path)))
    assert written == [0, 0, 3, 3]


def test_a_person_is_forgotten_in_what_was_put_off_as_well(tmp_path: Path) -> None:
    """Pitfall 49."""
    pair = captured(1)
    store(tmp_path, pair)
    library = opened(tmp_path)
    library.decide(replace(added(pair, "gpu"), conflicts=(Remark(pair.id, "is in Ghent"),)), put_off=True)
    library.forget(pair.author_ids[0])
    assert [each.conflicts for each in noted(tmp_path)] == [(Remark(pair.id, REMOVED),)]


def test_what_a_model_says_of_a_person_who_was_forgotten_meanwhile_is_not_noted(tmp_path: Path) -> None:
    """Pitfall 67."""
    theirs, others = captured(1), captured(2)
    others = replace(others, author_ids=tuple(each + 1_000 for each in others.author_ids))
    store(tmp_path, theirs, others)
    library = opened(tmp_path)
    library.decide(added(theirs, "gpu"))
    library.forget(theirs.author_ids[0])
    remark = Remark(theirs.id, "that she lives in Ghent")
    library.decide(replace(added(others, "gpu"), superseded_parts=(remark,), conflicts=(remark,)), others)
    last = noted(tmp_path)[-1]
    assert {each.what for each in (*last.superseded_parts, *last.conflicts)} == {REMOVED}
    assert "Ghent" not in "".join(topic.text for topic in library.topics.values())


def test_a_second_start_changes_nothing(tmp_path: Path) -> None:
    store(tmp_path, ONE, TWO)
    library = opened(tmp_path)
    library.decide(added(ONE, "gpu"))
    library.describe(library.topics["gpu"], "About GPUs.", "key")
    before = everything(tmp_path)
    assert opened(tmp_path).oldest_undecided() == TWO
    assert everything(tmp_path) == before


def test_opening_an_empty_folder_writes_nothing(tmp_path: Path) -> None:
    library = opened(tmp_path)
    assert library.oldest_undecided() is None
    assert (library.index(), library.undescribed_topics(), library.pairs_of_topic("gpu")) == ((), [], [])
    assert everything(tmp_path) == {}


def test_a_pair_captured_late_reaches_the_topics(tmp_path: Path) -> None:
    """Pitfall 4: there is no mark that moves past it."""
    store(tmp_path, THREE)
    library = opened(tmp_path)
    library.decide(added(THREE, "gpu"))
    store(tmp_path, ONE)
    assert library.oldest_undecided() == ONE
    library.decide(added(ONE, "gpu"))
    assert library.topics["gpu"].pairs == (ONE, THREE)
    store(tmp_path, captured(-24 * 30))  # a file of an older week
    assert library.oldest_undecided() == captured(-24 * 30)


def test_a_pair_that_failed_does_not_block_the_others(tmp_path: Path) -> None:
    """Pitfall 9."""
    store(tmp_path, ONE, TWO)
    library = opened(tmp_path)
    library.decide(decided(ONE, Action.FAILED))
    assert library.oldest_undecided() == TWO
    assert opened(tmp_path).oldest_undecided() == TWO


def test_looking_again_at_an_archive_without_news_opens_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(tmp_path, captured(-24 * 30), ONE)
    library = opened(tmp_path)
    for pair in (captured(-24 * 30), ONE):
        library.decide(decided(pair, Action.SKIPPED))
    assert library.oldest_undecided() is None
    raw, aged = places_in(tmp_path).raw, time.time() - 60
    os.utime(raw, (aged, aged))  # the folder has been quiet for longer than its newest file
    assert library.oldest_undecided() is None

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError

    looked: list[str] = []
    real = os.stat

    def stat(path: str) -> os.stat_result:
        looked.append(Path(path).name)
        return real(path)

    monkeypatch.setattr("builtins.open", refuse)
    monkeypatch.setattr(Path, "iterdir", refuse)
    monkeypatch.setattr(os, "stat", stat)
    assert library.oldest_undecided() is None
    assert looked == ["raw", "2026-W05.txt"]


def test_a_growing_conversation_is_in_force_once(tmp_path: Path) -> None:
    """Pitfalls 13 and 15: also when its captures were filed under different topics."""
    grown = [captured(number, *(["Q?", "A."] * (number + 1)), conversation=7) for number in range(3)]
    store(tmp_path, *grown)
    library = opened(tmp_path)
    library.decide(added(grown[0], "gpu"))
    assert library.decide(added(grown[1], "net")) == {"gpu", "net"}
    library.decide(decided(grown[2], Action.SKIPPED))
    assert dict(library.topics) == {"net": replace(library.topics["net"], pairs=(grown[1],))}
    assert noted(tmp_path)[1].replaces == (grown[0].id,)
    # An earlier capture that comes late adds nothing.
    assert library.decide(added(grown[0], "gpu")) == frozenset()
    last = noted(tmp_path)[-1]
    assert (last.action, last.topic) == (Action.SKIPPED, None)
    assert last.reason == f"{grown[1].id} is a later capture of the same conversation"
    assert is_whole(tmp_path, library)


def test_a_topic_that_is_full_goes_on_in_another_file(tmp_path: Path) -> None:
    pairs = [captured(number, "Q?", "x" * 300) for number in range(7)]
    store(tmp_path, *pairs)
    library = opened(tmp_path, chars=1000)
    for pair in pairs:
        library.decide(added(pair, "gpu" if pair != pairs[5] else "gpu-2"))
    assert {name: len(topic.pairs) for name, topic in library.topics.items()} == {
        "gpu": 2,
        "gpu-2": 2,
        "gpu-3": 2,
        "gpu-4": 1,
    }
    assert all(len(topic.text) <= 1000 for topic in library.topics.values())
    assert library.pairs_of_topic("GPU") == library.pairs_of_topic("gpu-3") == pairs
    # Where the pair went was noted: with another limit the topics are the same.
    assert dict(opened(tmp_path, chars=90_000).topics) == dict(library.topics)
    # Room that was made is used.
    library.decide(decided(pairs[0], Action.REMOVED, by=Actor.OPERATOR))
    long = captured(8, "Q?", "x" * 2000)
    store(tmp_path, long, captured(9, "Q?", "x" * 300))
    library.decide(added(captured(9, "Q?", "x" * 300), "gpu"))
    library.decide(added(long, "gpu"))
    assert library.topics["gpu"].pairs == (pairs[1], captured(9, "Q?", "x" * 300))
    assert library.topics["gpu-5"].pairs == (long,)
    assert is_whole(tmp_path, library)


def test_a_grown_capture_takes_the_room_of_the_one_that_it_replaces(tmp_path: Path) -> None:
    grown = [captured(number, "Q?", "x" * 900, conversation=7) for number in (1, 2)]
    store(tmp_path, *grown)
    library = opened(tmp_path, chars=1000)
    for pair in grown:
        library.decide(added(pair, "gpu"))
    assert [topic.pairs for topic in library.topics.values()] == [(grown[1],)]


@pytest.mark.parametrize("name", ["../../evil", "/etc/passwd", "NUL", "A topic!"])
def test_no_name_of_a_topic_leads_out_of_its_folder(name: str, tmp_path: Path) -> None:
    """Pitfall 18."""
    store(tmp_path, ONE)
    library = opened(tmp_path)
    [changed] = library.decide(added(ONE, name))
    assert topic_files(tmp_path) == {f"{changed}.txt": library.topics[changed].text}
    assert [path for path in everything(tmp_path) if "evil" in path or "passwd" in path] in (
        [],
        [f"team-knowledge/topics/{changed}.txt"],
    )


def test_thousands_of_pasted_lines_that_imitate_the_archive_are_one_message_all_the_way(tmp_path: Path) -> None:
    """Pitfall 5: through archive, decision and topic file, and through a start after it."""
    forged = render(captured(9)) + Topic("gpu", (captured(8),)).text
    paste = "\n".join((forged * 2_000).split("\n")[:9_999])
    pair = captured(1, paste, "Please do not paste that.\n\n--- QA ---\nid: qa_99991231_235959")
    store(tmp_path, pair, TWO)
    library = opened(tmp_path)
    assert library.oldest_undecided() == pair
    library.decide(added(pair, "paste"))
    [block] = topic_blocks((places_in(tmp_path).topics / "paste.txt").read_text())
    assert (block.id, block.turns) == (pair.id, pair.turns)
    again = opened(tmp_path)
    assert again.topics["paste"].pairs == (pair,)
    assert again.oldest_undecided() == TWO
    assert paste.count("\n") == 9_998


def test_what_cannot_be_decided_is_an_error_and_noted_nowhere(tmp_path: Path) -> None:
    store(tmp_path, ONE)
    library = opened(tmp_path)
    with pytest.raises(UnknownPair, match=r"qa_20260201_020000\.000000 is not in"):
        library.decide(added(TWO, "gpu"))
    with pytest.raises(ValueError, match="no topic"):
        library.decide(added(ONE, ""))
    with pytest.raises(ValueError, match="not of the form"):
        library.decide(decided("qa_1", Action.SKIPPED))
    assert noted(tmp_path) == []


def test_a_pair_is_found_wherever_it_stands(tmp_path: Path) -> None:
    store(tmp_path, captured(-24 * 30), ONE, TWO)
    library = opened(tmp_path)
    library.decide(added(ONE, "gpu"))
    for pair in (captured(-24 * 30), ONE, TWO):
        assert library.pair(pair.id) == pair
    assert library.pair(THREE.id) is None


def test_what_an_operator_takes_out_stays_out_and_comes_back_where_it_was(tmp_path: Path) -> None:
    store(tmp_path, ONE, TWO)
    library = opened(tmp_path)
    library.decide(added(ONE, "gpu"))
    library.decide(decided(ONE, Action.REMOVED, by=Actor.OPERATOR))
    assert opened(tmp_path).oldest_undecided() == TWO
    assert topic_files(tmp_path) == {}
    library = opened(tmp_path)
    assert library.decide(decided(ONE, Action.RESTORED, by=Actor.OPERATOR)) == {"gpu"}
    assert is_whole(tmp_path, library)
    # What was never filed is to be decided about again.
    library.decide(decided(TWO, Action.REMOVED, by=Actor.OPERATOR))
    assert library.oldest_undecided() is None
    library.decide(decided(TWO, Action.RESTORED, by=Actor.OPERATOR))
    assert library.oldest_undecided() == TWO


# The start cursor


@pytest.mark.parametrize("by", Actor)
def test_only_what_an_operator_took_out_is_listed_as_removed_by_hand(by: Actor, tmp_path: Path) -> None:
    store(tmp_path, ONE, TWO)
    library = opened(tmp_path)
    for pair in (ONE, TWO):
        library.decide(added(pair, "gpu"))
    library.decide(decided(ONE, Action.REMOVED, by=by))
    listed = overview(places_in(tmp_path), "", NOW).removed
    assert listed == (((ONE.id, "gpu"),) if by is Actor.OPERATOR else ())


def test_filing_begins_behind_the_newer_cursor(tmp_path: Path) -> None:
    store(tmp_path, ONE, TWO, THREE)
    places = places_in(tmp_path)
    places.state.write_text(f'{{"last_processed_qa_id": "{ONE.id}"}}')
    assert opened(tmp_path).oldest_undecided() == TWO
    assert opened(tmp_path, cursor=TWO.id).oldest_undecided() == THREE
    assert opened(tmp_path, cursor="qa_20260101_000000").oldest_undecided() == TWO


def test_the_state_file_counts_as_it_was_before_there_were_decisions(tmp_path: Path) -> None:
    """Pitfall 4: later it tells the newest decided id, and nothing is behind that."""
    store(tmp_path, ONE, TWO, THREE)
    places_in(tmp_path).state.write_text(f'{{"last_processed_qa_id": "{ONE.id}"}}')
    library = opened(tmp_path)
    library.decide(added(THREE, "gpu"))
    assert read_state(places_in(tmp_path).state).last_processed_qa_id == THREE.id
    assert opened(tmp_path).oldest_undecided() == TWO


@pytest.mark.parametrize("where", ["configured", "state"])
@pytest.mark.parametrize("cursor", ["qa_20260203_030000.000001", "qa_99991231_235959", "qa_1", "yesterday"])
def test_a_cursor_that_would_stop_all_learning_is_an_error_in_one_line(where: str, cursor: str, tmp_path: Path) -> None:
    """Pitfall 46."""
    store(tmp_path, ONE, captured(26))
    if where == "state":
        places_in(tmp_path).state.write_text(f'{{"last_processed_qa_id": "{cursor}"}}')
    before = everything(tmp_path)
    with pytest.raises(LibraryUnusable, match=r"kb\.qa_raw_last_processed_id|state\.json") as caught:
        opened(tmp_path, cursor=cursor if where == "configured" else "")
    assert cursor in str(caught.value)
    assert "\n" not in str(caught.value)
    assert everything(tmp_path) == before


def test_a_topic_whose_name_cannot_grow_any_more_goes_on_in_its_last_file(tmp_path: Path) -> None:
    pairs = [captured(number) for number in range(1, 5)]
    store(tmp_path, *pairs)
    library = opened(tmp_path, chars=1)
    # As it comes about when the files before it have gone.
    name = "x" * 60 + "-3"
    for pair in pairs:
        library.decide(added(pair, name))
    assert sorted(library.topics) == [name, f"{name}-2", f"{name}-3", f"{name}-4"]
    long = "y" * 60 + "-3-2"
    library.decide(decided(pairs[2], Action.ADDED, long))
    library.decide(decided(pairs[3], Action.ADDED, long))
    assert [pair.id for pair in library.topics[long].pairs] == [pairs[2].id, pairs[3].id]
    assert is_whole(tmp_path, library)
    assert dict(opened(tmp_path, chars=1).topics) == dict(library.topics)


def test_a_cursor_a_day_ahead_is_allowed_and_so_is_one_of_an_archive_yet_to_come(tmp_path: Path) -> None:
    """Pitfall 46."""
    assert opened(tmp_path, cursor=THREE.id).oldest_undecided() is None
    with pytest.raises(LibraryUnusable):
        opened(tmp_path, cursor="qa_20260305_000000")
    store(tmp_path, ONE)
    assert opened(tmp_path, cursor="qa_20260202_010000").oldest_undecided() is None


def test_an_archive_that_is_not_there_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    """Pitfall 46: the topics stay as they are."""
    store(tmp_path, ONE)
    opened(tmp_path).decide(added(ONE, "gpu"))
    places_in(tmp_path).raw.rename(tmp_path / "elsewhere")
    before = everything(tmp_path)
    with pytest.raises(LibraryUnusable, match="is the folder mounted"):
        opened(tmp_path)
    assert everything(tmp_path) == before


def test_decisions_that_are_not_there_are_not_taken_for_none(tmp_path: Path) -> None:
    """Pitfall 46."""
    store(tmp_path, ONE)
    opened(tmp_path).decide(added(ONE, "gpu"))
    places_in(tmp_path).decisions.unlink()
    with pytest.raises(LibraryUnusable, match=r"decisions\.jsonl is missing"):
        opened(tmp_path)
    places_in(tmp_path).state.unlink()
    assert opened(tmp_path).oldest_undecided() == ONE


def test_a_state_file_that_is_damaged_is_an_error_that_names_it(tmp_path: Path) -> None:
    places_in(tmp_path).state.parent.mkdir(parents=True)
    places_in(tmp_path).state.write_text("[")
    with pytest.raises(LibraryUnusable, match=r"state\.json"):
        opened(tmp_path)


# Topic files and the start


def test_a_topic_file_changed_by_hand_is_kept_beside_and_written_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store(tmp_path, ONE, TWO, THREE)
    library = opened(tmp_path)
    for pair in (ONE, TWO, THREE):
        library.decide(added(pair, "gpu"))
    before = topic_files(tmp_path)
    path = places_in(tmp_path).topics / "gpu.txt"
    shortened = before["gpu.txt"].rpartition("--- QA")[0]  # as it was before the last decision
    for at, text in enumerate(("mine", shortened, before["gpu.txt"].replace("Answer", "Wrong"), "\udcff")):
        path.write_bytes(text.encode(errors="surrogateescape"))
        caplog.clear()
        opened(tmp_path)
        aside = f"gpu.txt.rejected{'' if not at else f'-{at + 1}'}"
        assert (path.parent / aside).read_bytes() == text.encode(errors="surrogateescape")
        assert path.read_text() == before["gpu.txt"]
        assert [message for message in caplog.messages if aside in message]
    caplog.clear()
    opened(tmp_path)
    assert caplog.messages == []


def test_topic_files_of_the_earlier_form_are_written_anew_and_not_taken_for_changed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store(tmp_path, ONE, TWO)
    library = opened(tmp_path)
    for pair in (ONE, TWO):
        library.decide(added(pair, "gpu"))
    path = places_in(tmp_path).topics / "gpu.txt"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if not line.startswith("said_at: ")))
    assert is_whole(tmp_path, opened(tmp_path))
    assert caplog.messages == []


def test_a_topic_file_that_a_crash_kept_old_is_not_taken_for_changed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Pitfall 14."""
    store(tmp_path, ONE, TWO, THREE)
    opened(tmp_path).decide(added(ONE, "gpu"))
    log = DecisionLog(places_in(tmp_path).decisions)
    log.append(added(TWO, "gpu"))
    log.append(added(THREE, "net", remove_ids=(ONE.id, TWO.id)))
    library = opened(tmp_path)
    assert is_whole(tmp_path, library)
    assert list(library.topics) == ["net"]
    assert caplog.messages == []
    # Neither is one from before the state file was lost.
    places_in(tmp_path).state.unlink()
    (places_in(tmp_path).topics / "gpu.txt").write_text(Topic("gpu", (ONE, TWO)).text)
    assert is_whole(tmp_path, opened(tmp_path))
    assert caplog.messages == []


def test_files_that_are_no_topics_in_force_go_or_are_kept_beside(tmp_path: Path) -> None:
    store(tmp_path, ONE)
    opened(tmp_path).decide(added(ONE, "gpu"))
    topics = places_in(tmp_path).topics
    (topics / "net.txt").write_text("made by hand")
    (topics / "README.txt").write_text("not ours")
    (topics / ".unfinished-1-1").write_text("half")
    (tmp_path / "outside").write_text("secret")
    (topics / "link.txt").symlink_to(tmp_path / "outside")
    opened(tmp_path)
    assert sorted(path.name for path in topics.iterdir()) == [
        "README.txt",
        "gpu.txt",
        "link.txt.rejected",
        "net.txt.rejected",
    ]
    assert (tmp_path / "outside").read_text() == "secret"


def test_a_topic_file_that_is_missing_is_written_again(tmp_path: Path) -> None:
    store(tmp_path, ONE)
    library = opened(tmp_path)
    library.decide(added(ONE, "gpu"))
    places_in(tmp_path).topics.joinpath("gpu.txt").unlink()
    places_in(tmp_path).index.unlink()
    assert is_whole(tmp_path, opened(tmp_path))
    assert places_in(tmp_path).index.exists()


def test_blocks_that_the_archive_has_lost_are_reported_and_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Pitfall 46."""
    far = captured(24 * 8)
    store(tmp_path, ONE, far)
    library = opened(tmp_path)
    library.decide(added(ONE, "gpu"))
    library.decide(added(far, "gpu"))
    [old, _] = sorted(places_in(tmp_path).raw.iterdir())
    old.rename(tmp_path / "away.txt")
    assert opened(tmp_path).topics["gpu"].pairs == (far,)
    assert "1 filed conversations are not there" in caplog.text
    (tmp_path / "away.txt").rename(old)
    assert opened(tmp_path).topics["gpu"].pairs == (ONE, far)


def test_a_rebuilt_library_takes_the_place_of_the_live_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Pitfall 6: beside it first, then in one step."""
    store(tmp_path, ONE, TWO)
    live = opened(tmp_path)
    live.decide(added(ONE, "gpu"))
    live.decide(added(TWO, "net"))
    places = replace(places_in(tmp_path / "rebuild"), raw=places_in(tmp_path).raw)
    rebuilt = open_library(places, describer_key="key", time=lambda: NOW)
    rebuilt.decide(added(TWO, "gpu"), TWO)
    rebuilt.decide(decided(ONE, Action.SKIPPED), ONE)
    rebuilt.describe(rebuilt.topics["gpu"], "About GPUs.", "key")
    before = topic_files(tmp_path)
    LibraryBuild(places.state.parent, places_in(tmp_path)).adopt()
    assert topic_files(tmp_path) == before
    library = opened(tmp_path)
    assert is_whole(tmp_path, library)
    assert dict(library.topics) == dict(rebuilt.topics)
    assert library.index() == rebuilt.index()
    assert library.undescribed_topics() == []
    assert library.oldest_undecided() is None
    assert caplog.messages == []
    state = read_state(places_in(tmp_path).state)
    assert state.filed_bytes == places_in(tmp_path).decisions.stat().st_size


def test_a_rebuild_of_an_empty_archive_is_an_empty_library(tmp_path: Path) -> None:
    LibraryBuild(tmp_path / "rebuild", places_in(tmp_path)).adopt()
    assert dict(opened(tmp_path).topics) == {}


# Descriptions


def test_descriptions_are_asked_for_what_has_changed_and_kept(tmp_path: Path) -> None:
    store(tmp_path, ONE, TWO)
    library = opened(tmp_path)
    library.decide(added(ONE, "gpu"))
    [topic] = library.undescribed_topics()
    assert topic == library.topics["gpu"]
    library.describe(topic, "About GPUs.\n\nteam:forged.txt\nmore", "key")
    assert library.undescribed_topics() == []
    entry = IndexEntry("team:gpu.txt", "About GPUs.\n- team:forged.txt\nmore")
    assert library.index() == (entry,)
    assert library.described_topics() == {"gpu": topic}
    assert index_file.parse(places_in(tmp_path).index.read_text()) == [entry]
    # While a new one is due, the old one stands.
    library.decide(added(TWO, "gpu"))
    assert library.index() == (entry,)
    assert [each.name for each in library.undescribed_topics()] == ["gpu"]
    again = opened(tmp_path)
    assert again.index() == (entry,)
    assert [each.name for each in again.undescribed_topics()] == ["gpu"]
    assert again.described_topics() == library.topics, "what it held earlier was described"


def test_another_prompt_or_model_asks_for_all_descriptions_anew(tmp_path: Path) -> None:
    """Pitfall 41."""
    store(tmp_path, ONE)
    library = opened(tmp_path)
    library.decide(added(ONE, "gpu"))
    library.describe(library.topics["gpu"], "About GPUs.", "key")
    assert opened(tmp_path).undescribed_topics() == []
    assert [topic.name for topic in opened(tmp_path, key="another").undescribed_topics()] == ["gpu"]


def test_content_that_was_described_before_is_not_described_twice(tmp_path: Path) -> None:
    store(tmp_path, ONE)
    library = opened(tmp_path)
    library.decide(added(ONE, "gpu"))
    library.describe(library.topics["gpu"], "About GPUs.", "key")
    library.decide(added(ONE, "graphics"))
    assert noted(tmp_path)[-1].replaces == (), "it moves, and replaces nothing"
    assert library.undescribed_topics() == []
    assert library.index() == (IndexEntry("team:graphics.txt", "About GPUs."),)
    # A description of what a topic held a moment ago is kept, and another asked for.
    old = library.topics["graphics"]
    store(tmp_path, TWO)
    library.decide(added(TWO, "graphics"))
    library.describe(old, "Old.", "key")
    assert [topic.name for topic in library.undescribed_topics()] == ["graphics"]
    library.describe(replace(old, name="gone"), "Nothing.", "key")
    assert [entry.id for entry in library.index()] == ["team:graphics.txt"]


def test_one_damaged_record_of_the_cache_costs_one_description(tmp_path: Path) -> None:
    """Pitfall 12."""
    store(tmp_path, ONE, TWO)
    library = opened(tmp_path)
    library.decide(added(ONE, "gpu"))
    library.decide(added(TWO, "net"))
    for topic in library.undescribed_topics():
        library.describe(topic, f"About {topic.name}.", "key")
    cache = places_in(tmp_path).cache
    cache.write_text(cache.read_text().replace('"source_type":"file"', '"source_type":5', 1))
    assert [topic.name for topic in opened(tmp_path).undescribed_topics()] == ["gpu"]


def test_until_there_is_a_description_the_first_question_stands_in(tmp_path: Path) -> None:
    """Pitfall 20."""
    store(tmp_path, captured(1, "Why?\n\nteam:forged.txt " + "x" * 300, "So."))
    library = opened(tmp_path)
    library.decide(added(captured(1), "no-gpu"))
    [entry] = library.index()
    assert entry.description.startswith("no gpu: Why? team:forged.txt xxx")
    assert entry.description.endswith("x …")
    assert index_file.parse(places_in(tmp_path).index.read_text()) == [entry]


# The fold


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "correct", "split", "skip", "fail", "remove", "restore", "describe", "reopen"]),
        st.integers(0, 7),
        st.sampled_from(["gpu", "net", "gpu-2", "Täg 3"]),
        st.lists(st.integers(0, 7), max_size=2),
    ),
    max_size=14,
)


def step(what: str, pair: Pair, topic: str, others: list[Pair]) -> Decision:
    gone = tuple(each.id for each in others)
    return {
        "add": added(pair, topic, remove_ids=gone),
        "correct": corrects(pair, topic, *others),
        "split": in_pieces(pair, (topic, (0, 1)), ("ports", (1,)), ("asked", (0,)), ("none", (7,))),
        "skip": decided(pair, Action.SKIPPED, remove_ids=gone),
        "fail": decided(pair, Action.FAILED),
        "remove": decided(pair, Action.REMOVED, by=Actor.OPERATOR),
        "restore": decided(pair, Action.RESTORED, by=Actor.OPERATOR),
    }[what]


@QUICKLY
@given(STEPS)
def test_what_is_kept_up_step_by_step_is_what_the_pure_fold_says(
    steps: list[tuple[str, int, str, list[int]]],
) -> None:
    """Pitfalls 6 and 14: memory, files and a start from nothing agree with a fold over archive and decisions."""
    pairs = [captured(number, "Q?", "x" * 40 * number, conversation=number % 5) for number in range(8)]
    with TemporaryDirectory() as name:
        folder = Path(name)
        store(folder, *pairs)
        library = opened(folder, chars=400)
        for what, number, topic, others in steps:
            match what:
                case "describe":
                    for each in library.undescribed_topics():
                        library.describe(each, f"{len(each.text)}", "key")
                case "reopen":
                    library = opened(folder, chars=400)
                case _:
                    library.decide(step(what, pairs[number], topic, [pairs[other] for other in others]))
            assert is_whole(folder, library)
        before, index = everything(folder), library.index()
        again = opened(folder, chars=400)
        assert again.oldest_undecided() == library.oldest_undecided()
        assert again.index() == index
        assert everything(folder) == before


def at_hand(library: TeamLibrary) -> Pair | None:
    """What the library would give next without a look at the disk."""
    return library.reader.peek(library.fold.placement.is_undecided)


def block_of(folder: Path, pair: Pair) -> StoredBlock:
    path = places_in(folder).raw / week_file(pair.key)
    return StoredBlock(path.name, files.append(path, render(pair).encode()), render(pair), pair)


def test_a_pair_that_has_just_been_stored_is_at_hand_until_it_is_decided_about(tmp_path: Path) -> None:
    store(tmp_path, captured(1))
    library = opened(tmp_path)
    assert at_hand(library) is None  # nobody has looked yet
    assert library.oldest_undecided() == captured(1)
    assert at_hand(library) == captured(1)
    library.decide(added(captured(1), "things"), captured(1))
    assert library.oldest_undecided() is None
    assert at_hand(library) is None
    library.add_block(block_of(tmp_path, captured(2)))
    assert at_hand(library) == captured(2)
    library.decide(added(captured(2), "things"), captured(2))
    assert at_hand(library) is None
    assert library.oldest_undecided() is None


def test_a_pair_behind_the_start_cursor_is_not_at_hand(tmp_path: Path) -> None:
    store(tmp_path, captured(1))
    library = opened(tmp_path, cursor=captured(3).id)
    assert library.oldest_undecided() is None
    library.add_block(block_of(tmp_path, captured(2)))
    assert at_hand(library) is None
    library.add_block(block_of(tmp_path, captured(4)))
    assert at_hand(library) == library.oldest_undecided() == captured(4)


def test_who_tells_a_library_at_work_of_a_pair_does_not_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store(tmp_path, captured(1))
    library = opened(tmp_path)
    assert library.oldest_undecided() == captured(1)
    begun, go_on = threading.Event(), threading.Event()

    def slow(_path: Path, _data: bytes) -> None:
        begun.set()
        assert go_on.wait(30)

    monkeypatch.setattr(files, "replace_derived", slow)
    worker = threading.Thread(target=library.decide, args=(added(captured(1), "things"), captured(1)))
    worker.start()
    assert begun.wait(30)
    second = block_of(tmp_path, captured(2))
    library.add_block(second)
    go_on.set()
    worker.join(30)
    monkeypatch.undo()
    assert at_hand(library) is None
    assert library.oldest_undecided() == captured(2)


def test_what_a_removed_pair_had_replaced_is_back_and_goes_again_when_that_is_restored(tmp_path: Path) -> None:
    store(tmp_path, ONE, TWO, THREE)
    library = opened(tmp_path)
    library.decide(added(ONE, "gpu"))
    library.decide(added(TWO, "gpu", remove_ids=(ONE.id,)))
    library.decide(added(THREE, "gpu", remove_ids=(TWO.id,)))
    library.decide(decided(THREE, Action.REMOVED, by=Actor.OPERATOR))
    assert library.pairs_of_topic("gpu") == [TWO]
    assert (noted(tmp_path)[-1].qa_id, noted(tmp_path)[-1].remove_ids) == (TWO.id, ()), "what is back removes nothing"
    library.decide(decided(THREE, Action.RESTORED, by=Actor.OPERATOR))
    library.decide(decided(TWO, Action.REMOVED, by=Actor.OPERATOR))
    assert library.pairs_of_topic("gpu") == [THREE]  # which replaced it: nothing was gained by its removal
    library.decide(decided(TWO, Action.RESTORED, by=Actor.DISCORD, topic="gpu"))
    library.decide(decided(TWO, Action.REMOVED, by=Actor.DISCORD))
    assert library.pairs_of_topic("gpu") == [ONE, THREE]
    for reopened in (library, opened(tmp_path)):
        assert [pair.id for pair in reopened.pairs_of_topic("gpu")] == [ONE.id, THREE.id]
        assert is_whole(tmp_path, reopened)
    library = opened(tmp_path)
    library.decide(decided(TWO, Action.RESTORED, by=Actor.OPERATOR))
    assert library.pairs_of_topic("gpu") == [TWO, THREE]
    assert is_whole(tmp_path, library)


def test_that_a_later_capture_of_what_was_removed_stays_out_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "services.team.library")
    earlier, later = captured(5, conversation=7), captured(6, conversation=7)
    store(tmp_path, earlier, later)
    library = opened(tmp_path)
    library.decide(added(earlier, "gpu"))
    library.decide(decided(earlier, Action.REMOVED, by=Actor.OPERATOR))
    library.decide(added(later, "gpu"))
    last, why = noted(tmp_path)[-1], f"{earlier.id} of the same conversation was removed"
    assert (last.action, last.topic, last.replaces, last.reason) == (Action.REMOVED, "gpu", (earlier.id,), why)
    assert caplog.messages == [f"{later.id} stays out of all topics: {why}"]


def test_what_was_removed_or_replaced_otherwise_stays_away(tmp_path: Path) -> None:
    earlier, later = captured(5, conversation=7), captured(6, conversation=7)
    store(tmp_path, ONE, TWO, THREE, earlier, later)
    library = opened(tmp_path)
    for pair in (ONE, TWO, earlier):
        library.decide(added(pair, "gpu"))
    library.decide(decided(ONE, Action.REMOVED, by=Actor.OPERATOR))
    library.decide(added(THREE, "gpu", remove_ids=(ONE.id, TWO.id)))
    library.decide(added(later, "gpu", remove_ids=(TWO.id,)))
    library.decide(decided(THREE, Action.REMOVED, by=Actor.OPERATOR))
    assert library.pairs_of_topic("gpu") == [later]
    # What it had replaced is back, but not the earlier capture of the same conversation.
    library.decide(decided(later, Action.REMOVED, by=Actor.DISCORD))
    assert library.pairs_of_topic("gpu") == [TWO]
    assert is_whole(tmp_path, library)
