from __future__ import annotations

import asyncio
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

import app
from assembly.answering import library_of, open_search
from commands.forget import show
from services.documents.store.document_store import DocumentStore
from services.documents.store.protocol import StoreUnavailable
from services.privacy import ForgetResult
from services.search import PassageStore
from services.storage import files
from services.team import archive
from settings import load
from tests.hashing import HashingEmbedder
from tests.services.documents import cases
from tests.services.privacy.test_own_words import end
from tests.services.search.test_store import cut
from tests.services.team.pairs import added, captured, everything, opened, store
from tests.services.team.test_archive import a_pair


def test_the_operator_reads_what_was_touched_and_what_is_out_of_reach(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pitfall 49."""
    raw = tmp_path / "data" / "team-knowledge" / "raw" / "2026-W05.txt"
    files.append(raw, archive.render(a_pair("What is it?", "This.")).encode())
    (raw.parent / "2026-W04.txt.torn").write_text("User: half")
    assert app.main(["--config", str(config), "--forget", "1"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "1 text replaced by [removed]" in out
    assert "2026-W04.txt.torn" in out
    assert "backups" in out
    assert [turn.text for turn in archive.parse(raw.read_text())[0].turns] == ["What is it?", "[removed]"]

    assert app.main(["--config", str(config), "--forget", "1"]) == 0
    assert "Nothing of theirs was found." in capsys.readouterr().out


def test_copies_that_a_killed_command_has_left_are_deleted(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pitfall 49."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    files.replace(tmp_path / "millrace-copies-a1b2" / "team-knowledge" / "raw" / "2026-W05.txt", b"User: words")
    (tmp_path / "data").mkdir(exist_ok=True)
    assert app.main(["--config", str(config), "--forget", "1"]) == 0
    assert not (tmp_path / "millrace-copies-a1b2").exists()


ASKED = "Can zebras be printed on a lantern?"


@pytest.fixture
def searched(config: Path) -> Path:
    """A data folder in which person 1 has asked something that the team answered, all of it made searchable."""
    data = config.parent / "data"
    pair = replace(captured(1, ASKED, "No, a lantern has no printer."), author_ids=(1, 902))
    store(data, pair)
    opened(data).decide(added(pair, "printing"))
    settings = load(config)

    async def make_searchable() -> None:
        async with open_search(settings, library_of(settings), HashingEmbedder(), read_only=False) as search:
            await search.refresh()
        for name in ("team_x_0123_kb", "team_9_kb"):
            await cases.keep_as_before(data, name, ASKED)

    asyncio.run(make_searchable())
    return data


DOCUMENTED = "A lantern is lit by turning the wheel below its chimney twice."


@pytest.mark.parametrize("documented", [True, False])
def test_what_others_quote_of_the_documentation_stays_theirs(config: Path, documented: bool) -> None:
    """Pitfall 67: whoever quotes it too and is forgotten takes nothing from them."""
    data = config.parent / "data"
    if documented:
        with closing(PassageStore(data / "knowledge-base" / "search.sqlite")) as kept:
            kept.change([cut("a.md", "An introduction.", f"Read this.\n\n{DOCUMENTED}")])
    day = data / "state" / "outcomes" / "2026-09-21.jsonl"
    others = end(2, f"why is it so?\n{DOCUMENTED}")
    files.append(day, others + end(1, DOCUMENTED))
    assert app.main(["--config", str(config), "--forget", "1"]) == 0
    left = others if documented else others.replace(DOCUMENTED.encode(), b"[removed]")
    assert day.read_bytes() == left


def holding(data: Path, word: bytes) -> set[str]:
    return {path.name for path in data.rglob("*") if path.is_file() and word in path.read_bytes()}


def test_no_byte_of_their_words_is_left_in_what_is_made_for_searching(
    config: Path, searched: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pitfalls 49 and 67."""
    assert {"search-team.sqlite", "team_9_kb.sqlite"} < holding(searched, b"zebra")
    kept = (searched / "knowledge-base" / "search.sqlite").read_bytes()
    assert app.main(["--config", str(config), "--forget", "1"]) == 0
    assert "3 deleted; made again when the bot runs" in capsys.readouterr().out
    for word in (b"zebra", b"Zebra", ASKED.encode()):
        assert not holding(searched, word)
    assert not list(searched.rglob("search-team.sqlite*"))
    assert (searched / "knowledge-base" / "search.sqlite").read_bytes() == kept


def test_of_who_has_written_nothing_what_is_made_for_searching_stays(config: Path, searched: Path) -> None:
    before = everything(searched)
    assert app.main(["--config", str(config), "--forget", "999"]) == 0
    assert everything(searched) == before | {".lock": b""}


def test_what_cannot_be_deleted_ends_it_before_the_archive_forgets_who_wrote_what(
    config: Path, searched: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    remove = files.remove

    def refuse(path: Path) -> None:
        if path.name == "search-team.sqlite":
            raise PermissionError(13, "Permission denied", str(path))
        remove(path)

    with monkeypatch.context() as patch:
        patch.setattr(files, "remove", refuse)
        assert app.main(["--config", str(config), "--forget", "1"]) != 0
    assert "search-team.sqlite" in capsys.readouterr().err
    assert app.main(["--config", str(config), "--forget", "1"]) == 0
    assert not holding(searched, b"zebra")


def test_a_store_of_documents_that_is_down_is_named(
    config: Path, searched: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pitfall 67."""

    async def down(_: DocumentStore, _prefix: str = "") -> list[str]:
        raise StoreUnavailable("the store of documents cannot be used")

    monkeypatch.setattr(DocumentStore, "list_collections", down)
    assert app.main(["--config", str(config), "--forget", "1"]) == 0
    out = capsys.readouterr().out
    assert f"{searched / 'documents'}: the store of documents cannot be used; topics of an earlier release" in out
    assert "1 deleted" in out


def test_a_folder_that_does_not_exist_is_a_mistake_and_not_made(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text("app: {data_dir: nowhere}\n")
    assert app.main(["--config", str(config), "--forget", "1"]) == 2
    assert "is this the right --config?" in capsys.readouterr().err
    assert not (tmp_path / "nowhere").exists()


def test_without_a_server_of_nats_nobody_is_told(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("APP__TRANSPORT", "nats://127.0.0.1:9")
    assert app.main(["--config", str(config), "--forget", "1"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("app.py: transport: nats://127.0.0.1:9 cannot be reached: ")
    assert line.endswith("check the port, and that the server runs")


def test_what_is_still_to_come_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    show(Console(), 1, ForgetResult(), ["archive and topics: as soon as a process with the role team runs"])
    out = capsys.readouterr().out
    assert "Nothing of theirs was found so far.\n\nStill to come, by itself:\n  archive and topics: as soon as" in out
