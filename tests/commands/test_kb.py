from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

import app
from services.storage.data_folder import DataFolder, lock
from services.team import read_audit
from services.team.decisions import Action, Actor, Remark
from tests.services.team.pairs import (
    added,
    captured,
    corrects,
    decided,
    everything,
    noted,
    opened,
    places_in,
    store,
    topic_files,
)


@pytest.fixture
def data(tmp_path: Path, config: Path) -> Path:
    """Five captures: two in one topic, one in another, one that failed, one that waits."""
    folder = config.parent / "data"
    pairs = [captured(number) for number in range(5)]
    pairs[1] = captured(1, "What is\x1b[31m red?", "This:\n\n  code\nand more")
    store(folder, *pairs)
    library = opened(folder)
    library.decide(added(pairs[0], "GPU"))
    library.decide(added(pairs[1], "GPU"))
    library.decide(added(pairs[2], "Установка"))
    library.decide(decided(pairs[3], Action.FAILED))
    library.describe(library.topics["gpu"], "About GPUs.", "key")
    return folder


def kb(config: Path, *words: str) -> int:
    return app.main(["--config", str(config), "--kb", *words])


def told(capsys: pytest.CaptureFixture[str]) -> str:
    out, err = capsys.readouterr()
    assert err == ""
    return out


def refused(capsys: pytest.CaptureFixture[str]) -> str:
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("app.py: ")
    return err


def test_list_tells_what_the_library_holds(config: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert kb(config, "list") == 0
    assert told(capsys) == (
        "2 topics with 3 conversations; 5 captured in all.\n"
        "1 conversation to be filed when the bot runs.\n"
        "1 conversation could not be filed; --regen tries again.\n"
        "\n"
        "gpu  (2 conversations, 2026-02-01)\n"
        "    About GPUs.\n"
        "\n"
        "установка  (1 conversation, 2026-02-01)\n"
        "    установка: Question 2?\n"
    )


def test_list_counts_only_what_is_behind_the_cursor(
    config: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with config.open("a") as file:
        file.write("kb: {qa_raw_last_processed_id: qa_20260201_040000}\n")
    assert kb(config, "list") == 0
    assert "to be filed" not in told(capsys)


@pytest.mark.parametrize("name", ["gpu", "GPU", "team:gpu.txt"])
def test_show_prints_a_topic_with_ids_and_nothing_that_moves_the_terminal(
    name: str, config: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kb(config, "show", name) == 0
    assert told(capsys) == (
        "gpu  (2 conversations)\n"
        "    About GPUs.\n"
        "\n"
        "qa_20260201_000000.000000  (said 2026-02-01 00:00 UTC, thread_1000)\n"
        "    User: Question 0?\n"
        "    Team: Answer 0.\n"
        "\n"
        "qa_20260201_010000.000000  (said 2026-02-01 01:00 UTC, thread_1001)\n"
        "    User: What is[31m red?\n"
        "    Team: This:\n"
        "\n"
        "        code\n"
        "      and more\n"
    )


def test_show_tells_several_users_apart(config: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mixed = captured(7, "Why?", "So.", "And mine?")
    store(data, mixed)
    opened(data).decide(added(mixed, "ports"))
    assert kb(config, "show", "ports") == 0
    assert told(capsys).endswith("    User A: Why?\n    Team (to User A): So.\n    User B: And mine?\n")


def test_show_tells_what_replaced_what_and_what_is_superseded_in_part(
    config: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    newer = captured(6)
    store(data, newer)
    decision = corrects(newer, "gpu", captured(1), what="Green\x1b[31m now.")
    opened(data).decide(replace(decision, remove_ids=(captured(0).id,)))
    assert kb(config, "show", "gpu") == 0
    shown = told(capsys)
    assert (
        f"{captured(1).id}  (said 2026-02-01 01:00 UTC, thread_1001)\n"
        f"    [superseded in part by {newer.id}, said 2026-02-01 06:00 UTC: Green[31m now.]\n"
        "    User: "
    ) in shown
    assert f"\n{newer.id}  (said 2026-02-01 06:00 UTC, thread_1006)\n    [replaces {captured(0).id}]\n" in shown
    assert kb(config, "restore", captured(0).id) == 0
    assert kb(config, "show", "gpu") == 0
    assert "[replaces" not in told(capsys)


def test_conflicts_are_listed_until_one_of_the_two_is_out(
    config: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kb(config, "list", "--conflicts") == 0
    assert told(capsys) == "0 open conflicts.\n"
    newer = captured(6)
    store(data, newer)
    open_ones = (Remark(captured(0).id, "100 or 400?"), Remark(captured(4).id, "not in a topic"))
    opened(data).decide(replace(added(newer, "limits"), conflicts=open_ones))
    assert kb(config, "list") == 0
    assert "\n1 open conflict; --kb list --conflicts shows what contradicts what.\n" in told(capsys)
    assert kb(config, "list", "--conflicts") == 0
    assert told(capsys) == (
        "1 open conflict; --kb remove QA_ID settles one.\n"
        "\n"
        f"limits: {newer.id}  (said 2026-02-01 06:00 UTC)\n"
        f"gpu: {captured(0).id}  (said 2026-02-01 00:00 UTC)\n"
        "    100 or 400?\n"
    )
    assert kb(config, "remove", captured(0).id) == 0
    assert kb(config, "list", "--conflicts") == 0
    assert told(capsys).endswith("0 open conflicts.\n")


def test_looking_needs_no_lock_and_writes_nothing(config: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with places_in(data).decisions.open("ab") as file:
        file.write(b'{"qa_id": "qa_2026')  # the bot is writing just now
    with lock(data, "app.py"):
        before = everything(data)
        assert kb(config, "list") == 0
        assert kb(config, "show", "gpu") == 0
        assert everything(data) == before
        capsys.readouterr()
        for words in (("remove", captured(0).id), ("restore", captured(0).id)):
            assert kb(config, *words) == 2
            assert "in use by app.py" in refused(capsys)
        assert everything(data) == before


def test_what_is_removed_stays_out_until_it_is_restored(
    config: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, last = captured(0).id, captured(2).id
    assert kb(config, "remove", first.partition(".")[0]) == 0
    assert told(capsys) == f"{first} is removed from gpu, which holds 1 more.\n"
    assert kb(config, "remove", last) == 0
    assert told(capsys) == f"{last} is removed from установка, which held nothing else and is gone.\n"
    assert list(topic_files(data)) == ["gpu.txt"]
    assert [(each.action, each.by) for each in noted(data)[-2:]] == [(Action.REMOVED, Actor.OPERATOR)] * 2
    assert kb(config, "list") == 0
    assert told(capsys).endswith(
        f"\nRemoved by hand; --kb restore QA_ID takes it back:\n    {first}  from gpu\n    {last}  from установка\n"
    )
    for pair_id, topic in ((first, "gpu"), (last, "установка")):
        assert kb(config, "restore", pair_id) == 0
        assert told(capsys) == f"{pair_id} is in {topic} again.\n"
    assert list(topic_files(data)) == ["gpu.txt", "установка.txt"]
    assert [(each.by, each.action, each.about) for each in read_audit(DataFolder(data).audit)] == [
        ("terminal", f"{action} conversation", pair_id) for action in ("remove", "restore") for pair_id in (first, last)
    ]


def test_what_was_filed_nowhere_can_be_kept_out_as_well(
    config: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    waiting = captured(4)
    assert kb(config, "remove", waiting.id) == 0
    assert told(capsys) == f"{waiting.id} was in no topic, and stays out of all.\n"
    assert opened(data).oldest_undecided() is None
    assert kb(config, "restore", waiting.id) == 0
    assert told(capsys) == f"{waiting.id} will be filed at the next start.\n"
    assert opened(data).oldest_undecided() == waiting


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["show", "net"], "there is no topic 'net'; --kb list shows all"),
        (["show", "../../etc/passwd"], "there is no topic"),
        (["remove", "qa_1"], "not of the form"),
        (["remove", "qa_20260301_000000"], "holds no conversation qa_20260301_000000"),
        (["restore", "qa_20260301_000000"], "holds no conversation"),
        (["restore", captured(0).id], "is in gpu already"),
        (["restore", captured(3).id], "is in no topic to go back to"),
        (["list", "gpu"], "--kb list takes nothing more"),
        (["show", "gpu", "--conflicts"], "--conflicts works only with --kb list"),
        (["show"], "--kb show needs one TOPIC"),
        (["remove", "a", "b"], "--kb remove needs one QA_ID"),
        ([], "--kb: write --kb list | show TOPIC | remove QA_ID | restore QA_ID"),
        (["purge"], "--kb purge: write --kb list | show TOPIC | remove QA_ID | restore QA_ID"),
    ],
)
def test_what_cannot_be_done_is_one_readable_line(
    words: list[str], why: str, config: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = everything(data)
    assert kb(config, *words) == 2
    assert why in refused(capsys)
    assert everything(data) | {".lock": b""} == before | {".lock": b""}


def test_nothing_is_removed_twice_or_restored_over_a_later_capture(
    config: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pitfall 15."""
    later = captured(9, conversation=1000)
    store(data, later)
    opened(data).decide(added(later, "gpu"))
    assert kb(config, "restore", captured(0).id) == 2
    assert f"{later.id}, a later capture of the same conversation, replaces {captured(0).id}" in refused(capsys)
    assert kb(config, "remove", later.id) == 0
    told(capsys)
    assert kb(config, "remove", later.id) == 2
    assert "was removed already" in refused(capsys)
    assert kb(config, "restore", captured(0).id) == 0
    assert told(capsys) == f"{captured(0).id} is in gpu again.\n"


def test_a_library_without_anything_and_a_folder_that_is_not_there(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kb(config, "list") == 0
    assert told(capsys) == "0 topics with 0 conversations; 0 captured in all.\n"
    config.write_text("app: {data_dir: nowhere}\n")
    assert kb(config, "list") == 2
    assert "is this the right --config?" in refused(capsys)
    assert not (tmp_path / "nowhere").exists()


def test_a_cursor_from_the_future_and_a_damaged_state_are_told_in_one_line(
    config: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pitfall 46."""
    text = config.read_text()
    config.write_text(text + "kb: {qa_raw_last_processed_id: qa_99991231_235959}\n")
    for words in (("list",), ("show", "gpu"), ("remove", captured(0).id)):
        assert kb(config, *words) == 2
        assert "kb.qa_raw_last_processed_id: qa_99991231_235959 is more than a day newer" in refused(capsys)
    config.write_text(text)
    places_in(data).state.write_text("{")
    for words in (("list",), ("remove", captured(0).id)):
        assert kb(config, *words) == 2
        assert "state.json" in refused(capsys)


def test_an_archive_or_decisions_that_went_away_do_not_pass_for_an_empty_library(
    config: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pitfall 46."""
    places = places_in(data)
    places.raw.rename(data / "elsewhere")
    for words in (("list",), ("remove", captured(0).id)):
        assert kb(config, *words) == 2
        assert "raw holds none of the 3 captured conversations" in refused(capsys)
    (data / "elsewhere").rename(places.raw)
    for lose in (lambda: places.decisions.write_bytes(b""), places.decisions.unlink):
        lose()
        for words in (("list",), ("remove", captured(0).id)):
            assert kb(config, *words) == 2
            assert "decisions.jsonl is missing or empty" in refused(capsys)


def test_something_else_in_the_place_of_a_file_is_told_with_what_to_do(
    config: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    index = places_in(data).index
    index.unlink()
    index.mkdir()
    assert kb(config, "remove", captured(0).id) == 1
    assert "index-team.txt: Is a directory; something else has its name: move that away" in refused(capsys)


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("audit.jsonl", "audit.jsonl: No space left on device; make room\n"),
        ("decisions.jsonl", "decisions.jsonl: No space left on device; make room. The decision about"),
    ],
)
def test_a_folder_that_cannot_be_written_is_told(
    file: str,
    says: str,
    config: Path,
    data: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = os.write

    def write(descriptor: int, data: memoryview) -> int:
        if Path(f"/proc/self/fd/{descriptor}").readlink().name == file:
            raise OSError(28, "No space left on device")
        return real(descriptor, data)

    monkeypatch.setattr("os.write", write)
    assert kb(config, "remove", captured(0).id) == 1
    assert says in refused(capsys)
    monkeypatch.undo()
    assert len(noted(data)) == 4
    assert DataFolder(data).decisions.exists()
