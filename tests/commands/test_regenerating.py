"""`--regen`: the old library or the new one, and nothing in between."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import app
from commands import regen
from services.assistant.curator import ClassificationResult, TopicPiece
from services.llm.endpoint import BadOutput, Rejected, Unavailable
from services.storage import files
from services.storage.data_folder import DataFolder, lock
from services.team import archive
from services.team.archive import Pair
from services.team.decisions import Action, Actor, Decision
from services.team.rebuilding import LibraryBuild
from tests.services.storage.test_files import PowerCut, cut_at
from tests.services.team.pairs import added, decided, everything, is_whole, noted, opened, places_in, store, topic_files
from tests.team import SKIP, ScriptedCurator, kept, named, pair

PAIRS = [pair(number, f"question {number}?", f"answer {number}.") for number in range(1, 7)]
KEY = "extractive-topics"
GUILD = 1175948623872000001


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text("{}\n")
    return path


@pytest.fixture
def data(config: Path) -> Path:
    return config.parent / "data"


def run(config: Path, *arguments: str) -> int:
    return app.main(["--config", str(config), "--regen", *arguments])


Thinks = Callable[[ScriptedCurator], ScriptedCurator]


@pytest.fixture
def thinks(monkeypatch: pytest.MonkeyPatch) -> Thinks:
    """Makes a curator the one that `--regen` asks."""

    def use(curator: ScriptedCurator) -> ScriptedCurator:
        def curator_of(*_: object) -> ScriptedCurator:
            return curator

        monkeypatch.setattr(regen, "curator_of", curator_of)
        return curator

    return use


def live(folder: Path) -> dict[str, bytes]:
    """Every file of team knowledge but those of a build, and but the archive."""
    return {
        name: content
        for name, content in everything(folder / "team-knowledge").items()
        if not name.startswith(("regen/", "raw/"))
    }


def contents(folder: Path) -> dict[str, list[str]]:
    return {name: [each.id for each in topic.pairs] for name, topic in opened(folder).topics.items()}


def old_library(data: Path) -> None:
    store(data, *PAIRS[:4])
    library = opened(data)
    for each in PAIRS[:4]:
        library.decide(added(each, "old"))


def test_the_library_is_what_the_curator_says_now(
    config: Path, data: Path, thinks: Thinks, capsys: pytest.CaptureFixture[str]
) -> None:
    old_library(data)
    again = replace(
        PAIRS[5],
        conversation_id=PAIRS[0].conversation_id,
        message_ids=(1, 2, 3),
        author_ids=(1, 50, 1),
        turns=(*PAIRS[0].turns, PAIRS[0].turns[0]),
    )
    store(data, again)
    remove = {PAIRS[3].id: [PAIRS[1].id]}
    curator = thinks(
        ScriptedCurator(
            topic_for=lambda asked: SKIP if asked.id == PAIRS[2].id else named("new"),
            integrated=lambda asked, held: kept(*remove.get(asked.id, [])),
        )
    )
    assert run(config) == 0
    # The newer answer is in force alone, also where the topic had no other (pitfall 52).
    assert contents(data) == {"new": [PAIRS[3].id, again.id]}
    assert [what for what in curator.asked if what[0] == "classify"] == [
        ("classify", each.id) for each in (*PAIRS[1:4], again)
    ]
    assert [line.strip() for line in capsys.readouterr().out.splitlines()] == [
        "5  pairs read",
        "4  kept, one for each conversation",
        "3  added",
        "1  skipped",
        "1  removed, 0 of them by operators or in Discord",
        "0  failed",
        "1  topics",
        "6  LLM calls",
        "66  tokens, 60 of them in prompts",
    ]
    assert not DataFolder(data).regeneration.exists()


def test_a_normal_start_afterwards_changes_nothing(config: Path, data: Path, thinks: Thinks) -> None:
    """Pitfall 14."""
    old_library(data)
    thinks(ScriptedCurator())
    assert run(config) == 0
    before = live(data)
    library = opened(data, key=KEY)
    assert library.oldest_undecided() is None
    assert is_whole(data, library)
    assert live(data) == before


def test_what_is_captured_later_is_new(config: Path, data: Path, thinks: Thinks) -> None:
    old_library(data)
    thinks(ScriptedCurator())
    assert run(config) == 0
    store(data, PAIRS[4])
    assert opened(data).oldest_undecided() == PAIRS[4]


def test_pairs_behind_the_start_cursor_are_rebuilt_as_well_and_it_still_holds(
    config: Path, data: Path, thinks: Thinks
) -> None:
    store(data, *PAIRS[:3])
    files.replace(places_in(data).state, f'{{"last_processed_qa_id": "{PAIRS[1].id}"}}'.encode())
    thinks(ScriptedCurator())
    assert run(config) == 0
    assert contents(data) == {"things": [each.id for each in PAIRS[:3]]}
    assert f'"start_qa_id": "{PAIRS[1].id}"' in places_in(data).state.read_text()
    assert f'"last_processed_qa_id": "{PAIRS[2].id}"' in places_in(data).state.read_text()


def test_a_cursor_from_the_future_is_told_before_anything_is_done(
    config: Path, data: Path, thinks: Thinks, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pitfall 46."""
    old_library(data)
    before = everything(data)
    config.write_text("kb: {qa_raw_last_processed_id: qa_29990101_000000}\n")
    assert run(config) == 2
    assert "more than a day newer" in capsys.readouterr().err
    assert everything(data) == before | {".lock": b""}


def test_operators_corrections_stay_in_force(
    config: Path, data: Path, thinks: Thinks, capsys: pytest.CaptureFixture[str]
) -> None:
    old_library(data)
    library = opened(data)
    corrections = [
        decided(PAIRS[0], Action.REMOVED, by=Actor.OPERATOR),
        decided(PAIRS[1], Action.REMOVED, by=Actor.OPERATOR),
        decided(PAIRS[1], Action.RESTORED, by=Actor.OPERATOR),
    ]
    for each in corrections:
        library.decide(each)
    curator = thinks(
        ScriptedCurator(
            topic_for=lambda asked: SKIP if asked.id == PAIRS[1].id else named("new"),
            integrated=lambda _, held: kept(*[each.id for each in held]),
        )
    )
    for _ in range(2):
        assert run(config) == 0
        assert contents(data) == {"new": [PAIRS[3].id], "old": [PAIRS[1].id]}
        assert PAIRS[0].id not in {asked for _, asked in curator.asked}
    assert "2  removed, 1 of them by operators or in Discord" in capsys.readouterr().out
    opened(data).decide(decided(PAIRS[0], Action.RESTORED, by=Actor.OPERATOR))
    assert opened(data).oldest_undecided() == PAIRS[0]


def test_a_model_that_is_down_leaves_the_library_as_it_was_and_the_next_run_goes_on(
    config: Path, data: Path, thinks: Thinks, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pitfall 6."""
    monkeypatch.setattr("streams.regeneration.ATTEMPTS", 1)
    old_library(data)
    opened(data, key=KEY)
    before = live(data)
    down = [True]
    curator = thinks(
        ScriptedCurator(
            topic_for=lambda asked: Unavailable("the endpoint is down") if down and asked == PAIRS[2] else named("new")
        )
    )
    assert run(config) == 1
    assert live(data) == before
    assert (
        "The library is unchanged: Unavailable: the endpoint is down. 2 of 4 conversations done; --regen continues"
        in (capsys.readouterr().out)
    )
    down.clear()
    curator.asked.clear()
    assert run(config) == 0
    assert [asked for step, asked in curator.asked if step == "classify"] == [PAIRS[2].id, PAIRS[3].id]
    assert contents(data) == {"new": [each.id for each in PAIRS[:4]]}
    assert "2 conversations had been decided about by an earlier run." in capsys.readouterr().out


def test_restart_begins_anew(config: Path, data: Path, thinks: Thinks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.regeneration.ATTEMPTS", 1)
    old_library(data)
    thinks(ScriptedCurator(topic_for=lambda asked: Unavailable("down") if asked == PAIRS[2] else named("new")))
    assert run(config) == 1
    curator = thinks(ScriptedCurator(topic_for=lambda _: named("newer")))
    assert run(config, "--restart") == 0
    assert [asked for step, asked in curator.asked if step == "classify"] == [each.id for each in PAIRS[:4]]
    assert list(contents(data)) == ["newer"]


def test_an_interrupted_run_leaves_the_library_as_it_was_and_the_next_one_goes_on(
    config: Path, data: Path, thinks: Thinks, capsys: pytest.CaptureFixture[str]
) -> None:
    old_library(data)
    before = live(data)

    def interrupted(asked: Pair) -> ClassificationResult:
        if asked == PAIRS[2]:
            raise KeyboardInterrupt
        return named("new")

    thinks(ScriptedCurator(topic_for=interrupted))
    assert run(config) == 1
    assert capsys.readouterr().err == (
        "app.py: interrupted: the library that was being rebuilt is unchanged; 2 of 4 conversations done; "
        "--regen continues from there, --regen --restart starts again\n"
    )
    assert {**live(data), "state.json": b""} == {**before, "state.json": b""}
    curator = thinks(ScriptedCurator(topic_for=lambda _: named("new")))
    assert run(config) == 0
    assert [asked for step, asked in curator.asked if step == "classify"] == [PAIRS[2].id, PAIRS[3].id]


def test_an_interrupted_run_says_only_of_the_library_in_work_that_it_is_unchanged(
    config: Path, data: Path, thinks: Thinks, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(f"guilds: {{'{GUILD}': {{}}}}\n")
    own = data / "guilds" / str(GUILD)
    for folder, pairs in {data: PAIRS[:2], own: PAIRS[2:4]}.items():
        store(folder, *pairs)
        library = opened(folder)
        for each in pairs:
            library.decide(added(each, "old"))

    def interrupted(asked: Pair) -> ClassificationResult:
        if asked == PAIRS[3]:
            raise KeyboardInterrupt
        return named("new")

    thinks(ScriptedCurator(topic_for=interrupted))
    assert run(config) == 1
    assert capsys.readouterr().err == (
        "app.py: interrupted: the library that was being rebuilt is unchanged; 1 of 2 conversations done; "
        "--regen continues from there, --regen --restart starts again\n"
    )
    assert list(contents(data)) == ["new"]
    assert list(contents(own)) == ["old"]


def test_a_pair_that_fails_is_told_and_the_others_are_swapped_in(
    config: Path, data: Path, thinks: Thinks, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pitfalls 6 and 9: it stays where it was."""
    old_library(data)
    thinks(ScriptedCurator(topic_for=lambda asked: BadOutput("no JSON") if asked == PAIRS[1] else named("new")))
    assert run(config) == 1
    assert "1  failed" in capsys.readouterr().out
    assert contents(data) == {"new": [PAIRS[0].id, PAIRS[2].id, PAIRS[3].id], "old": [PAIRS[1].id]}


@pytest.mark.parametrize("error", [BadOutput("no JSON"), Rejected("no credit")])
def test_a_model_that_can_do_nothing_right_does_not_empty_the_library(
    config: Path, data: Path, thinks: Thinks, error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pitfall 6."""
    store(data, *PAIRS[:2])
    opened(data).decide(added(PAIRS[0], "old"))
    opened(data, key=KEY)
    thinks(ScriptedCurator(topic_for=lambda _: error))
    before = live(data)
    assert run(config) == 1
    assert live(data) == before
    assert "not one conversation could be decided about. 0 of 2 conversations done" in capsys.readouterr().out


def test_an_archive_that_is_not_there_empties_nothing(
    config: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pitfall 46."""
    old_library(data)
    topics = topic_files(data)
    shutil.move(places_in(data).raw, data.parent / "elsewhere")
    assert run(config) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert topic_files(data) == topics


def test_nor_does_it_where_operators_have_taken_everything_out(
    config: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pitfall 46."""
    store(data, PAIRS[0])
    library = opened(data)
    library.decide(added(PAIRS[0], "old"))
    library.decide(decided(PAIRS[0], Action.REMOVED, by=Actor.OPERATOR))
    decisions = noted(data)
    shutil.move(places_in(data).raw, data.parent / "elsewhere")
    assert run(config) == 2
    assert "is the folder mounted" in capsys.readouterr().err
    assert noted(data) == decisions


def test_an_empty_data_folder_has_nothing_to_rebuild(
    config: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(config) == 0
    assert "0  pairs read" in capsys.readouterr().out
    assert contents(data) == {}


def test_without_a_model_the_extractive_curator_does_it(config: Path, data: Path) -> None:
    asked, answered = (
        "Why does the agent refuse the snapshot key of my vault?",
        "Rotate the vault key with vault rekey.",
    )
    store(data, *[pair(number, f"{asked} {number}", f"{answered} Then restart agent {number}.") for number in (1, 2)])
    assert run(config) == 0
    assert {each.by for each in noted(data)} == {Actor.EXTRACTIVE}


def test_whoever_comes_while_the_folder_is_in_use_is_told_by_whom(
    config: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pitfall 42."""
    with lock(data, "app.py"):
        assert run(config) == 2
    assert "in use by app.py" in capsys.readouterr().err


def test_restart_means_something_to_regen_only(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["--config", str(config), "--check", "--restart"]) == 2
    assert "--restart works only with --regen" in capsys.readouterr().err


def test_the_events_are_told(config: Path, data: Path, thinks: Thinks, capsys: pytest.CaptureFixture[str]) -> None:
    config.write_text("logging: {level: DEBUG}\n")
    old_library(data)
    thinks(ScriptedCurator())
    assert run(config) == 0
    told = capsys.readouterr().err
    assert 0 < told.index("regeneration_started: 4 pairs") < told.index("regeneration_completed: 1 topic")


def test_500_pairs_make_500_classifications_and_an_integration_for_each_that_meets_a_topic(
    config: Path, data: Path, thinks: Thinks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", int)  # this is not about the disk
    pairs = [pair(number, f"question {number}?", f"answer {number}.") for number in range(1, 501)]
    path = places_in(data).raw / "2026-W08.txt"
    files.append(path, "".join(map(archive.render, pairs)).encode())
    curator = thinks(ScriptedCurator(topic_for=lambda asked: named(f"topic {asked.message_ids[0] // 1000 % 20}")))
    assert run(config) == 0
    steps = [step for step, _ in curator.asked]
    assert (steps.count("classify"), steps.count("integrate")) == (500, 480)
    assert len(set(curator.asked)) == len(curator.asked)
    assert [len(ids) for ids in contents(data).values()] == [25] * 20


# The swap

CALLS = ("open", "write", "fsync", "close", "rename", "unlink")


def built(data: Path) -> LibraryBuild:
    """An old library, and a build that is ready to be swapped in."""
    old_library(data)
    opened(data, key=KEY)
    build = LibraryBuild(DataFolder(data).regeneration, places_in(data))
    lines: list[Decision] = [added(PAIRS[1], "new"), added(PAIRS[2], "old"), decided(PAIRS[3], Action.SKIPPED)]
    store(data, PAIRS[4])
    found = regen.plan_rebuild(build)
    build.begin(found, "key", lines[0].at)
    library = regen.open_library(build.paths, describer_key=KEY, time=lambda: 0.0)
    for each in lines:
        library.decide(each)
    build.finish(replace(found, left_out=((PAIRS[0].id, "…"), (PAIRS[4].id, "…"))), Actor.LLM, lines[0].at)
    return build


OLD = {"old": [each.id for each in PAIRS[:4]]}
NEW = {"new": [PAIRS[1].id], "old": [PAIRS[2].id]}


@pytest.mark.parametrize("call", CALLS)
def test_a_crash_at_any_system_call_of_the_swap_leaves_the_old_library_or_the_new_one(
    call: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Pitfalls 6 and 14."""
    first = tmp_path / "first" / "data"
    built(first)
    seen: list[dict[str, list[str]]] = []
    for number in range(1, 200):
        data = tmp_path / str(number) / "data"
        shutil.copytree(first, data)
        build = LibraryBuild(DataFolder(data).regeneration, places_in(data))
        with pytest.MonkeyPatch.context() as monkeypatch:
            was_cut = cut_at(monkeypatch, call, number)
            with contextlib.suppress(PowerCut):
                build.adopt()
                opened(data, key=KEY)
                build.clear()
        library = opened(data, key=KEY)
        assert is_whole(data, library)
        seen.append(contents(data))
        assert library.oldest_undecided() == (PAIRS[4] if seen[-1] == OLD else None)
        if not was_cut():
            break
    assert len(seen) > 1
    assert seen[-1] == NEW
    # First the old one, and from one point on the new one.
    turn = seen.index(NEW)
    assert seen == [OLD] * turn + [NEW] * (len(seen) - turn)
    assert "was changed by hand" not in caplog.text


def test_a_run_after_a_crash_in_the_swap_comes_to_the_same(
    config: Path, data: Path, thinks: Thinks, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(data, *PAIRS)
    thinks(ScriptedCurator())

    def crash(*_: object) -> None:
        raise PowerCut

    with monkeypatch.context() as patch:
        patch.setattr(LibraryBuild, "clear", crash)
        with pytest.raises(PowerCut):
            run(config)
    again = thinks(ScriptedCurator())
    assert run(config) == 0
    assert again.asked == []
    assert contents(data) == {"things": [each.id for each in PAIRS]}
    assert not DataFolder(data).regeneration.exists()


def test_what_was_taken_out_by_hand_can_be_put_back_after_a_rebuild(
    config: Path, data: Path, thinks: Thinks, capsys: pytest.CaptureFixture[str]
) -> None:
    old_library(data)

    def kb(action: str) -> str:
        assert app.main(["--config", str(config), "--kb", action, PAIRS[0].id]) == 0
        return capsys.readouterr().out

    kb("remove")
    thinks(ScriptedCurator(topic_for=lambda _: named("new")))
    assert run(config) == 0
    others = [each.id for each in PAIRS[1:4]]
    assert contents(data) == {"new": others}
    capsys.readouterr()
    assert kb("restore") == f"{PAIRS[0].id} is in old again.\n"
    assert contents(data) == {"new": others, "old": [PAIRS[0].id]}
    thinks(ScriptedCurator(topic_for=lambda _: SKIP))
    assert run(config) == 0
    assert contents(data) == {"old": [PAIRS[0].id]}


def test_a_disk_that_is_full_at_the_swap_changes_nothing_and_is_told_with_what_was_done(
    config: Path,
    data: Path,
    thinks: Thinks,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old_library(data)
    before = topic_files(data), noted(data)
    thinks(ScriptedCurator(topic_for=lambda _: named("new")))
    replace_file = files.replace

    def full(path: Path, content: bytes) -> None:
        if path == places_in(data).decisions:
            raise OSError(28, "No space left on device", str(path))
        replace_file(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(files, "replace", full)
        assert run(config) == 1
    out = capsys.readouterr().out
    assert "4  pairs read" in out
    assert f"The library is unchanged: {places_in(data).decisions}: No space left on device; make room. 4 of 4" in out
    assert (topic_files(data), noted(data)) == before
    topic = places_in(data).topics / "old.txt"
    topic.write_text(topic.read_text().replace("answer", "reply"))
    opened(data)
    assert "reply" in topic.with_name("old.txt.rejected").read_text()
    assert topic.read_text() == before[0]["old.txt"]
    again = thinks(ScriptedCurator(topic_for=lambda _: named("new")))
    assert run(config) == 0
    assert again.asked == []
    assert list(contents(data)) == ["new"]


def test_a_conversation_about_two_matters_is_rebuilt_in_pieces(config: Path, data: Path, thinks: Thinks) -> None:
    old_library(data)
    mixed = replace(
        PAIRS[4],
        message_ids=(51, 52, 53, 54),
        author_ids=(1, 2, 50, 50),
        turns=(PAIRS[4].turns[0], PAIRS[5].turns[0], PAIRS[4].turns[1], PAIRS[5].turns[1]),
    )
    store(data, mixed)
    pieces = [
        TopicPiece(message_ids=["51", "53"], topic_name="five"),
        TopicPiece(message_ids=["52", "54"], topic_name="six"),
    ]
    apart = named("five").model_copy(update={"pieces": pieces})
    thinks(ScriptedCurator(topic_for=lambda asked: apart if asked.id == mixed.id else named("new")))
    assert run(config) == 0
    assert contents(data) == {"five": [mixed.id], "new": [each.id for each in PAIRS[:4]], "six": [mixed.id]}
    assert "question 5?" not in topic_files(data)["six.txt"]
    before = live(data)
    assert is_whole(data, opened(data, key=KEY))
    assert live(data) == before
