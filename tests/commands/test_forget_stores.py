"""Every place that the data folder's layout names, with somebody's words in it: gone, or named with the reason."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import app
from assembly.documents import store_of
from services.discord import Dispatch, parse_line, render_line
from services.documents.store import DocumentStore, Folders, Origin, sqlite_store
from services.storage import DataFolder, files
from services.team import archive
from tests.services.documents import cases
from tests.services.documents.store.imitated_chroma import Chroma, new_store
from tests.services.team.pairs import captured, store

ADA, GUILD = 1, 1175948623872000001
SAID = "Why does my blorptang never glow after a second winding of it?"
ESCAPED = '{"q": "Why does my\\nblorptang never glow\\u0020after a second winding of it?"}'
OPERATORS = {"knowledge_base", "sources", "links", "index", "index_cache", "web_cache"}
"""Documentation: nobody's words are looked for in it."""
LAYOUT = DataFolder(Path("data"))
STORES = [name for name in dir(LAYOUT) if isinstance(getattr(LAYOUT, name), Path) and name not in {"root", "guilds"}]


def planted(folder: DataFolder, name: str, text: str) -> Path:
    place: Path = getattr(folder, name)
    path = place if place.suffix or place.name == ".lock" else place / "traces.bin"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize("text", [SAID, ESCAPED], ids=["plain", "escaped"])
@pytest.mark.parametrize("below", [(), ("guilds", str(GUILD))], ids=["shared", "a server whose entry has gone"])
@pytest.mark.parametrize("name", STORES)
def test_what_is_left_of_their_words_is_named(
    name: str, below: tuple[str, ...], text: str, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pitfall 49; of a store that comes later, too, as the layout tells of it."""
    data = config.parent / "data"
    pair = replace(captured(1, SAID, "It does so by day."), author_ids=(ADA, 902))
    store(data, pair)
    path = planted(DataFolder(data.joinpath(*below)), name, text)
    code = app.main(["--config", str(config), "--forget", str(ADA)])
    out, err = capsys.readouterr()
    held = {each for each in data.rglob("*") if each.is_file() and "blorptang" in each.read_text()}
    assert held or name not in OPERATORS
    # A file that decides what is known cannot be read: the line says what to do about it first. That of a server which
    # has gone keeps nobody from being forgotten.
    refused = err.startswith(f"app.py: {path}: ")
    assert not (refused and below)
    assert code == (2 if refused else 0)
    assert refused or {each for each in held if f"{each}: " not in out} <= ({path} if name in OPERATORS else set())


def test_of_a_server_whose_entry_has_gone_nothing_is_left(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """H1: folders decide, not the configuration."""
    data = config.parent / "data"
    server = data / "guilds" / str(GUILD)
    pair = replace(captured(1, SAID, "It does so by day."), author_ids=(ADA, 902))
    files.append(server / "team-knowledge" / "raw" / "2026-W05.txt", archive.render(pair).encode())
    assert app.main(["--config", str(config), "--forget", str(ADA)]) == 0
    assert "1 text replaced by [removed]" in capsys.readouterr().out
    assert not [path for path in data.rglob("*") if path.is_file() and b"blorptang" in path.read_bytes()]
    shutil.rmtree(server)
    assert app.main(["--config", str(config), "--forget", str(ADA)]) == 0


@pytest.mark.parametrize("name", [f"{GUILD}.old", f"0{GUILD}", "7" * 21, "elsewhere"])
def test_what_is_no_servers_folder_below_guilds_is_named(
    name: str, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = config.parent / "data"
    store(data, replace(captured(1, SAID, "It does so by day."), author_ids=(ADA, 902)))
    path = data / "guilds" / name / "team-knowledge" / "raw" / "2026-W05.txt"
    path.parent.mkdir(parents=True)
    path.write_text("nothing of theirs")
    assert app.main(["--config", str(config), "--forget", str(ADA)]) == 0
    assert f"{path}: none of this program's, not looked into" in capsys.readouterr().out


def test_an_archive_that_the_configuration_no_longer_names_is_named(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data, elsewhere = config.parent / "data", config.parent / "elsewhere"
    store(data, replace(captured(1, SAID, "It does so by day."), author_ids=(ADA, 902)))
    topic = data / "team-knowledge" / "topics" / "light.txt"
    topic.parent.mkdir(exist_ok=True)
    topic.write_text(SAID)
    for name in ("raw", "topics"):
        (elsewhere / name).mkdir(parents=True)
        monkeypatch.setenv(f"APP__KB__TEAM_{name.upper()}_DIR", str(elsewhere / name))
    assert app.main(["--config", str(config), "--forget", str(ADA)]) == 0
    out = capsys.readouterr().out
    for path in (topic, *(data / "team-knowledge" / "raw").glob("*.txt")):
        assert f"{path}: none of this program's, not looked into" in out


@pytest.mark.parametrize(
    "place", ["team-knowledge/raw/2026-W05.txt.gz", "team-knowledge/raw/2025/old.zip", "state/outbox/old.gz"]
)
def test_packed_copies_beside_what_is_dealt_with_are_named(
    place: str, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = config.parent / "data"
    store(data, replace(captured(1, SAID, "It does so by day."), author_ids=(ADA, 902)))
    files.replace(data / place, b"\x1f\x8b packed")
    assert app.main(["--config", str(config), "--forget", str(ADA)]) == 0
    assert f"{data / place}: none of this program's, not looked into" in capsys.readouterr().out


def test_a_file_that_cannot_be_read_is_named_and_the_rest_is_forgotten(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = config.parent / "data"
    store(data, replace(captured(1, SAID, "It does so by day."), author_ids=(ADA, 902)))
    files.replace(data / "note.bin", b"of somebody else")

    def refuses(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("services.privacy.forgetting.kind_of", refuses)
    assert app.main(["--config", str(config), "--forget", str(ADA)]) == 0
    out = capsys.readouterr().out
    assert "1 text replaced by [removed]" in out
    assert f"{data / 'note.bin'}: cannot be read (Permission denied)" in out


def test_what_they_called_their_threads_is_taken_out_of_recordings(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = {"id": "40", "type": 12, "parent_id": "2", "owner_id": str(ADA), "name": "the blorptang of my lamp"}
    others = {**theirs, "id": "41", "owner_id": "7", "name": "whose lamp is it"}
    server = {"id": "1", "owner_id": str(ADA), "name": "Lamps", "channels": [], "threads": [theirs, others]}
    renamed = {**theirs, "name": "blorptang, again"}
    lines = [("GUILD_CREATE", server), ("THREAD_UPDATE", renamed), ("THREAD_CREATE", others)]
    recording = config.parent / "data" / "recordings" / "day.jsonl"
    files.replace(recording, "".join(render_line(Dispatch(5.0, t, d)) for t, d in lines).encode())
    assert app.main(["--config", str(config), "--forget", str(ADA)]) == 0
    nameless = {key: value for key, value in theirs.items() if key != "name"}
    left = [parse_line(line).d for line in recording.read_text().splitlines()]
    assert left == [{**server, "threads": [nameless, others]}, nameless, others]
    assert "2 events dropped or without their words" in capsys.readouterr().out


def test_links_are_named_and_not_followed(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, outside = config.parent / "data", config.parent / "outside"
    store(data, replace(captured(1, SAID, "It does so by day."), author_ids=(ADA, 902)))
    (outside / "team-knowledge" / "raw").mkdir(parents=True)
    (outside / "x.jsonl").write_text(ESCAPED)
    (data / "guilds").mkdir()
    links = [data / "a", data / "b.jsonl", data / "guilds" / str(GUILD), data / "llm-recordings" / "c.jsonl"]
    links[3].parent.mkdir()
    for link, target in zip(links, (outside, outside / "nothing", outside, outside / "x.jsonl"), strict=True):
        link.symlink_to(target)
    assert app.main(["--config", str(config), "--forget", str(ADA)]) == 0
    out = capsys.readouterr().out
    assert "1 text replaced by [removed]" in out
    assert [link for link in links if f"{link}: a link; what it leads to is not looked into" not in out] == []
    assert (outside / "x.jsonl").read_text() == ESCAPED


def test_a_damaged_file_of_a_server_that_has_gone_is_named_and_the_rest_is_forgotten(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = config.parent / "data"
    server = data / "guilds" / str(GUILD)
    pair = replace(captured(1, SAID, "It does so by day."), author_ids=(ADA, 902))
    for folder in (data, server):
        files.append(folder / "team-knowledge" / "raw" / "2026-W05.txt", archive.render(pair).encode())
    damaged = DataFolder(server).team_state
    damaged.write_text("{")
    assert app.main(["--config", str(config), "--forget", str(ADA)]) == 0
    out = capsys.readouterr().out
    assert "2 texts replaced by [removed]" in out
    assert f"{damaged}: " in out
    assert "the topics of this server, which is not in guilds, were left as they are" in out


async def keep(store: DocumentStore) -> None:
    """Keep a file of theirs in a thread, and a runbook."""
    posted = replace(cases.new("a.log", SAID), origin=Origin("a.log", uploader_id=ADA))
    await store.add(cases.case(), [posted])
    await cases.write_runbook(store, SAID, ADA)
    await store.close()


def holding(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and b"blorptang" in path.read_bytes()]


def over(server: Chroma) -> Callable[[str, Path], DocumentStore]:
    return lambda _address, folder: new_store(folder, server)


def counted(out: str, *rows: str) -> set[str]:
    return {line.removeprefix(row).strip() for line in out.splitlines() for row in rows if line.startswith(f"{row}  ")}


COPIES = Path("documents", "copies")


@pytest.mark.parametrize(
    ("configured", "places"),
    [
        ("http://127.0.0.1:9", (Path("evidence"), Path("runbooks"))),
        ("embedded", (COPIES, COPIES)),
    ],
)
def test_a_store_of_files_that_is_configured_no_longer_is_forgotten_in_as_well(
    configured: str,
    places: Sequence[Path],
    config: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = config.parent / "data"
    monkeypatch.setattr("assembly.documents.chroma_store", over(Chroma()))
    monkeypatch.setenv("APP__DOCUMENTS__STORE", configured)
    asyncio.run(keep(sqlite_store(Folders(*(data / place for place in places)))))
    assert holding(data)
    assert app.main(["--config", str(config), "--forget", str(ADA)]) == 0
    out = capsys.readouterr().out
    assert counted(out, "files in threads", "runbooks") == {"1 deleted"}
    assert not holding(data)
    assert ".sqlite: " not in out


def test_a_store_that_cannot_be_used_keeps_nobody_from_being_forgotten_in_another(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = config.parent / "data"
    monkeypatch.setattr("assembly.documents.chroma_store", over(Chroma(down=True)))
    monkeypatch.setenv("APP__DOCUMENTS__STORE", "http://127.0.0.1:9")
    asyncio.run(keep(store_of(DataFolder(data))))
    assert app.main(["--config", str(config), "--forget", str(ADA)]) == 0
    out = capsys.readouterr().out
    assert counted(out, "files in threads") == {"1 deleted"}
    assert "files in threads and runbooks: Chroma at http://chroma.example cannot be used" in out
    assert not holding(data)


@pytest.mark.parametrize(
    "place",
    [
        "evidence/case_1 copy.sqlite",
        "evidence/2025/case_1.sqlite",
        "runbooks/user_1_kb-old.sqlite",
        "runbooks/user_01_kb.sqlite",
        "runbooks/case_1.sqlite",
        "evidence/user_1_kb.sqlite",
        "evidence/case_1.sqlite-wal",
        "documents/copies/other.sqlite-wal",
        "team-knowledge/search-team (1).sqlite",
        "knowledge-base/old/search.sqlite",
        f"guilds/{GUILD}/evidence/case_1.sqlite",
    ],
)
def test_databases_that_nobody_opens_are_named(place: str, config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = config.parent / "data"
    files.replace(data / place, b"of an operator")
    assert app.main(["--config", str(config), "--forget", str(ADA)]) == 0
    assert f"{data / place}: a database that this configuration does not use, not looked into; delete it" in (
        capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("variable", "name"),
    [("TEAM_INDEX_PATH", "team-knowledge/search-team.sqlite"), ("INDEX_PATH", "knowledge-base/search.sqlite")],
)
def test_what_search_has_kept_where_an_index_was_before_is_named(
    variable: str,
    name: str,
    config: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = config.parent / "data"
    databases = [data / f"{name}{tail}" for tail in ("", "-wal", "-shm")]
    for path in databases:
        files.replace(path, b"yomf, too short to be looked for")
    assert app.main(["--config", str(config), "--forget", str(ADA)]) == 0
    assert ".sqlite" not in capsys.readouterr().out
    monkeypatch.setenv(f"APP__KB__{variable}", str(data / "elsewhere" / "index.txt"))
    assert app.main(["--config", str(config), "--forget", str(ADA)]) == 0
    out = capsys.readouterr().out
    assert [path for path in databases if f"{path}: a database that this configuration does not use" not in out] == []
