"""`--kb add` and `--kb edit`: what the team teaches from the terminal."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

import app
from services.storage import DataFolder, files
from services.team import Action, Actor, Pair, PairTurn, Speaker, read_audit
from tests.commands.test_kb import data, kb, refused, told
from tests.services.team.pairs import captured, noted, opened, store, stored, topic_files

__all__ = ["data"]

ASKED = "How do I make the importer skip the raw files of my camera?"
ANSWERED = "Put skip_raw = true into the importer section."
NEWER = "The importer skips them by itself since version 5: remove skip_raw."


@pytest.fixture
def empty(config: Path) -> Path:
    folder = config.parent / "data"
    folder.mkdir(exist_ok=True)
    return folder


def test_what_is_added_is_filed_by_a_rebuild_edited_and_forgotten_with_its_author(
    config: Path, empty: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kb(config, "add", "--question", ASKED, "--answer", ANSWERED, "--author", "902") == 0
    [first] = stored(empty)
    assert told(capsys) == f"{first.id} is stored, and will be filed at the next start of the bot.\n"
    assert app.main(["--config", str(config), "--regen"]) == 0
    capsys.readouterr()
    assert kb(config, "list") == 0
    assert "importer-skip-raw-files  (1 conversation" in told(capsys)
    assert kb(config, "edit", first.id, "--answer", NEWER) == 0
    said = told(capsys)
    assert f"    Team: {ANSWERED}\n" in said
    assert said.endswith(f"It replaces {first.id} then.\n")
    audited = [(each.by, each.action, each.about) for each in read_audit(DataFolder(empty).audit)]
    assert audited == [("terminal", action, first.conversation_id) for action in ("teach", "edit conversation")]
    assert app.main(["--config", str(config), "--regen"]) == 0
    [topic] = topic_files(empty).values()
    assert NEWER in topic
    assert ANSWERED not in topic
    assert app.main(["--config", str(config), "--forget", "902"]) == 0
    assert topic_files(empty) == {}
    archived = "".join(path.read_text() for path in (empty / "team-knowledge" / "raw").iterdir())
    assert ASKED not in archived
    assert NEWER not in archived


def test_an_edited_conversation_from_discord_is_removed_and_its_question_stays_that_of_the_asker(
    config: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = stored(data)[0]
    assert kb(config, "edit", old.id, "--answer", "Only this is right.", "--author", "77") == 0
    assert f"{old.id} is removed from gpu, which holds 1 more." in told(capsys)
    new = stored(data)[-1]
    assert [turn.text for turn in new.turns] == [old.turns[0].text, "Only this is right."]
    assert new.author_ids == (old.author_ids[0], 77)
    assert (noted(data)[-1].action, noted(data)[-1].by) == (Action.REMOVED, Actor.OPERATOR)
    library = opened(data)
    assert library.oldest_undecided(lambda pair: pair.key == new.key) == new
    assert library.removal_of(new, new.timestamp) is None


def test_a_newer_version_of_what_was_removed_is_filed_all_the_same(
    config: Path, empty: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kb(config, "add", "--question", ASKED, "--answer", ANSWERED) == 0
    [first] = stored(empty)
    assert kb(config, "remove", first.id) == 0
    assert kb(config, "edit", first.id, "--answer", NEWER) == 0
    assert "It replaces" not in told(capsys)
    assert app.main(["--config", str(config), "--regen"]) == 0
    [topic] = topic_files(empty).values()
    assert NEWER in topic
    assert ANSWERED not in topic


@pytest.mark.parametrize("from_input", [True, False])
def test_question_and_answer_come_from_a_file_or_the_input(
    config: Path, empty: Path, monkeypatch: pytest.MonkeyPatch, *, from_input: bool
) -> None:
    text, path = f"{ASKED}\r\n\r\n{ANSWERED}\r\n\r\n--- QA ---\r\n", config.parent / "lesson.txt"
    path.write_bytes(text.encode())
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert kb(config, "add", "-" if from_input else str(path)) == 0
    [pair] = stored(empty)
    assert [turn.text for turn in pair.turns] == [ASKED, f"{ANSWERED}\n\n--- QA ---"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("add",), '--kb add needs --question "…" and --answer "…", or a FILE with both'),
        (("add", "--question", ASKED), '--kb add needs --question "…" and --answer "…"'),
        (("add", "--question", " ", "--answer", ANSWERED), "--kb add: The question is empty: write one."),
        (
            ("add", "--question", ASKED, "--answer", "x" * 4001),
            "The answer has 4,001 characters, and 4,000 is the most",
        ),
        (("add", "nowhere.txt"), "--kb add: nowhere.txt: No such file"),
        (("add", "nowhere.txt", "--answer", "x"), "not both"),
        (("add", "a", "b"), "--kb add: write --kb add [FILE]"),
        (("edit",), "--kb edit: write --kb edit QA_ID [FILE]"),
        (("edit", "qa_1", "--answer", "x"), "--kb edit: 'qa_1'"),
        (("edit", "qa_20250101_000000.000000", "--answer", "x"), "holds no conversation qa_20250101_000000.000000"),
        (("list", "--answer", "x"), "--answer works only with --kb add and --kb edit"),
    ],
)
def test_what_cannot_be_taught_is_one_line_and_stores_nothing(
    config: Path, empty: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], why: str
) -> None:
    assert kb(config, *words) == 2
    assert why in refused(capsys)
    assert not (empty / "team-knowledge" / "raw").exists()


def test_a_full_disk_is_one_line(
    config: Path, empty: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "append", Mock(side_effect=OSError(28, "No space left on device", "raw")))
    assert kb(config, "add", "--question", ASKED, "--answer", ANSWERED) == 1
    assert "No space left on device" in refused(capsys)
    assert stored(empty) == []


EVE, ADA, TEAM = 311, 312, 902
HERS = "Is it okay to leave the backup lamp running overnight?"


@pytest.fixture
def old(empty: Path) -> Pair:
    """The team answers Ada, after Eve has written."""
    asked = captured(1, "Should I send my recovery phrase to the helper on telegram?", "Yes, that is fien.")
    turns = (
        asked.turns[0],
        PairTurn(Speaker.USER, HERS),
        asked.turns[1],
        PairTurn(Speaker.USER, "thanks!"),
    )
    pair = replace(
        asked,
        turns=turns,
        message_ids=(5 << 22, 6 << 22, 90_000 << 22, 91_000 << 22),
        author_ids=(EVE, ADA, TEAM, EVE),
        addressee_ids=(0, 0, ADA, 0),
        conversation_id="reply_7",
    )
    store(empty, pair)
    return pair


def test_an_edited_answer_goes_under_the_words_that_it_was_to(
    config: Path, empty: Path, old: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kb(config, "edit", old.id, "--answer", "Yes, that is fine.", "--author", "77") == 0
    assert f"The new answer is to:\n    {HERS}\n" in told(capsys)
    [*_, new] = stored(empty)
    assert [turn.text for turn in new.turns] == [HERS, "Yes, that is fine."]
    assert new.author_ids == (ADA, 77)


@pytest.mark.parametrize(
    ("question", "asker_id"), [(f"{HERS[:-1]} and at noon?", ADA), ("May the lamp stay on at night?", 77)]
)
def test_a_question_in_an_edit_is_that_of_the_user_in_whose_wording_it_is(
    config: Path, empty: Path, old: Pair, question: str, asker_id: int
) -> None:
    assert kb(config, "edit", old.id, "--question", question, "--answer", "Yes, it may.", "--author", "77") == 0
    [*_, new] = stored(empty)
    assert (new.turns[0].text, new.author_ids) == (question, (asker_id, 77))


@pytest.mark.parametrize(
    "texts",
    [
        ("How do I install the importer?", "Run setup.", "And how do I start the importer then?", "Run start."),
        ("And on Windows?", "Run setup.", "Where is the log of the importer kept?", "Below logs."),
    ],
)
def test_where_the_answer_was_to_several_questions_an_edit_needs_one(
    config: Path, empty: Path, capsys: pytest.CaptureFixture[str], texts: tuple[str, ...]
) -> None:
    pair = captured(1, *texts)
    store(empty, pair)
    assert kb(config, "edit", pair.id, "--answer", "Run it.") == 2
    assert 'write the question with --question "…".' in capsys.readouterr().err
    assert stored(empty) == [pair]
    assert noted(empty) == []


def test_the_question_of_what_was_taught_stays_as_it_was_written_until_it_is_forgotten(
    config: Path, empty: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kb(config, "add", "--question", f"Hello all! {ASKED}", "--answer", ANSWERED, "--author", "77") == 0
    assert kb(config, "edit", stored(empty)[0].id, "--answer", NEWER, "--author", "78") == 0
    [_, new] = stored(empty)
    assert ([turn.text for turn in new.turns], new.author_ids) == ([f"Hello all! {ASKED}", NEWER], (77, 78))
    for author in ("77", "78"):
        assert app.main(["--config", str(config), "--forget", author]) == 0
        assert kb(config, "edit", stored(empty)[-1].id, "--answer", ANSWERED) == 2
        assert "write the question" in capsys.readouterr().err


def test_what_the_team_could_not_say_yet_is_edited_without_the_question(config: Path, empty: Path) -> None:
    pair = captured(1, ASKED, "Let me check.")
    store(empty, pair)
    assert kb(config, "edit", pair.id, "--answer", ANSWERED) == 0
    [*_, new] = stored(empty)
    assert ([turn.text for turn in new.turns], new.author_ids[0]) == ([ASKED, ANSWERED], pair.author_ids[0])


def test_a_secret_is_not_stored_and_that_is_said(config: Path, empty: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert kb(config, "add", "--question", ASKED, "--answer", "Set password=hunter2-hunter2-9 in the section.") == 0
    assert told(capsys).startswith("1 secret in it was made unreadable.\n")
    assert "hunter2" not in stored(empty)[0].turns[1].text


def test_what_is_taught_to_a_server_stays_there(config: Path, empty: Path) -> None:
    with config.open("a") as file:
        file.write('guilds: {"7": {discord: {team_member_ids: ["9"]}}}\n')
    words = ["--question", ASKED, "--answer", ANSWERED, "--guild", "7"]
    assert kb(config, "add", *words) == 0
    assert stored(empty) == []
    [pair] = stored(empty / "guilds" / "7")
    assert pair.turns[0].text == ASKED
