"""`--backup` and `--restore` as their user types them."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import zipfile
from pathlib import Path

import pytest

import app
from services.storage import files
from services.storage.data_folder import DataFolder, lock
from tests.services.storage.backups.folders import make_database

QUESTION = "How do I install Lanternfish?"


@pytest.fixture
def config(config: Path) -> Path:
    config.write_text(config.read_text() + "search: {embeddings: none}\n")
    assert app.main(["--config", str(config), "--init-kb"]) == 0
    return config


def run(config: Path, *arguments: object) -> int:
    return app.main(["--config", str(config), *map(str, arguments)])


def elsewhere(config: Path) -> Path:
    """The same configuration, over a data folder that does not exist yet."""
    other = config.with_name("other.yaml")
    other.write_text(f"app: {{data_dir: other}}\n{config.read_text()}")
    return other


def answer(config: Path, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert run(config, "--ask", QUESTION) == 0
    return capsys.readouterr().out


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("app.py: ")
    assert err.count("\n") == 1
    return err.strip()


def test_a_restored_folder_answers_the_same_at_once(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = answer(config, capsys)
    file, other = config.with_name("backup.zip"), elsewhere(config)
    with lock(config.with_name("data"), "app.py"):  # the bot runs
        assert run(config, "--backup", file) == 0
    out, err = capsys.readouterr()
    size = re.fullmatch(r"(\d+ files, [\d.]+ kB)", out.partition("data: ")[2].partition(" copied to ")[0])
    assert size is not None
    assert f"{file} (" in out
    assert "What --forget or /privacy forget removes stays in the backups" in out
    assert err == ""
    assert run(other, "--restore", file) == 0
    out, err = capsys.readouterr()
    assert f"{size[1]} restored, as of 20" in out
    assert "forget them again" in out
    assert err == ""
    data, restored = config.with_name("data"), config.with_name("other")
    assert files_in_text(restored) == files_in_text(data)
    assert answer(other, capsys) == before


def files_in_text(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and path.suffix != ".sqlite" and path.name != ".lock"
    }


def test_what_is_not_in_it_is_named(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = config.with_name("data")
    (root / "bot.log").write_text("a line")
    (root / "bot.log.2026-01-01").write_text("a line")
    (root / "out\033[2Jside").symlink_to("/etc")
    docs = config.with_name("docs")
    docs.mkdir()
    changes = (
        "logging: {file: {path: data/bot.log}}\nkb: {sources_dir: docs}\ndocuments: {store: 'http://127.0.0.1:9'}\n"
    )
    config.write_text(config.read_text() + changes)
    assert run(config, "--backup", config.with_name("backup.zip")) == 0
    out = capsys.readouterr().out
    assert f"  kb.sources_dir ({docs} lies outside of app.data_dir)" in out
    assert "  documents.store (what the server at http://127.0.0.1:9 keeps)" in out
    assert "  out\ufffd[2Jside (a name that not every system takes)" in out
    assert "bot.log" not in out
    other = elsewhere(config)
    assert run(other, "--restore", config.with_name("backup.zip")) == 0
    assert f"kb.sources_dir ({docs} lies" in capsys.readouterr().out
    assert not list(config.with_name("other").glob("*log*"))


def test_a_damaged_database_is_named_and_the_exit_code_tells(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = config.with_name("data") / "evidence" / "case_1.sqlite"
    path.parent.mkdir()
    make_database(path, 3)
    path.write_bytes(path.read_bytes()[:4096])
    assert run(config, "--backup", config.with_name("backup.zip")) == 1
    out = capsys.readouterr().out
    assert "Damaged, and not in it:\n  evidence/case_1.sqlite (" in out
    assert config.with_name("backup.zip").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--backup", "data/backup.zip"], "--backup: data/backup.zip lies in the data folder"),
        (["--backup", "nowhere/backup.zip"], "there is no folder"),
        (["--backup", "config.yaml"], "is there already, and is no backup"),
        (["--backup", ""], "--backup needs the name of a file"),
        (["--restore", ""], "--restore needs the name of a file"),
        (["--backup", f"{'x' * 236}.zip"], "has too long a name; choose a shorter one"),
        (["--restore", "nowhere.zip"], "--restore: nowhere.zip is no file"),
        (["--restore", "config.yaml"], "data is not empty (it holds knowledge-base); move what is there away"),
        (["--backup", "b.zip", "--json"], "--json works only with --replay"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_nothing_is_done(
    config: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(config.parent)
    capsys.readouterr()
    before = files_in_text(config.parent)
    assert run(config, *arguments) == 2
    assert words in one_line(capsys)
    assert files_in_text(config.parent) == before


def test_a_folder_of_which_there_is_none_is_a_mistake(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run(elsewhere(config), "--backup", config.with_name("backup.zip")) == 2
    assert "is this the right --config?" in one_line(capsys)
    assert not config.with_name("other").exists()


def test_what_is_no_backup_is_refused_and_so_is_a_folder_in_use(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pitfall 42."""
    capsys.readouterr()
    other = elsewhere(config)
    assert run(other, "--restore", config) == 2
    assert f"--restore: {config} is damaged, or no backup" in one_line(capsys)
    with lock(config.with_name("other"), "app.py"):
        assert run(other, "--restore", config) == 2
    assert "in use by app.py " in one_line(capsys)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_leaves_nothing_and_says_so(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    file, other = config.with_name("backup.zip"), elsewhere(config)
    real = files.write_all
    calls = 0

    def interrupted(descriptor: int, data: bytes) -> None:
        nonlocal calls
        calls += 1
        if calls == 4:
            os.kill(os.getpid(), number)
        real(descriptor, data)

    monkeypatch.setattr(files, "write_all", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        capsys.readouterr()
        assert run(config, "--backup", file) == 1
        assert one_line(capsys) == f"app.py: interrupted; nothing was written to {file}"
        assert sorted(path.name for path in config.parent.iterdir()) == ["config.yaml", "data", "other.yaml"]
        assert run(config, "--backup", file) == 0
        capsys.readouterr()
        calls = 1
        assert run(other, "--restore", file) == 1
        restored = config.with_name("other")
        assert one_line(capsys) == f"app.py: interrupted; nothing was restored to {restored}"
        assert [path.name for path in restored.iterdir()] == [".lock"]
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_full_disk_is_one_line_that_names_the_file(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int, _data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    file, other = config.with_name("backup.zip"), elsewhere(config)
    capsys.readouterr()
    with monkeypatch.context() as patch:
        patch.setattr(files, "write_all", full)
        assert run(config, "--backup", file) == 1
        assert one_line(capsys) == f"app.py: {file}: No space left on device; make room"
        assert not file.exists()
    assert run(config, "--backup", file) == 0
    capsys.readouterr()
    monkeypatch.setattr(files, "write_all", full)
    assert run(other, "--restore", file) == 1
    assert "No space left on device; make room" in one_line(capsys)
    assert [path.name for path in config.with_name("other").iterdir()] == [".lock"]


def test_the_order_of_the_copies_is_the_reverse_of_the_order_of_the_writes(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file is copied before those that it relies on; `assembly.backup_order.copy_order` says why."""
    folder = DataFolder(config.with_name("data"))
    written = [
        (folder.team_raw / "2026-W05.txt", folder.decisions),
        (folder.places, folder.team_raw / "2026-W05.txt"),  # noted after it, and only about what is there
        (folder.team_raw / "2026-W05.txt", folder.pending / "1.json"),
        (folder.decisions, folder.team_topics / "gpu.txt"),
        (folder.team_topics / "gpu.txt", folder.team_index_cache),
        (folder.team_index_cache, folder.team_index),
        (folder.team_index, folder.team_state),
        (folder.posts, folder.outbox / "1.json"),
        (folder.posts, folder.drafts / "1.json"),
        (folder.feedback_key, folder.feedback),
        (folder.sources / "install.md", folder.index_cache),
        (folder.web_cache / "0f", folder.index_cache),
        (folder.index_cache, folder.index),
        (folder.tombstones, folder.evidence / "1"),
        (folder.shown_runbooks, folder.runbooks / "1"),
        (folder.opt_outs, folder.team_raw / "2026-W05.txt"),
    ]
    everything = {path for pair in written for path in pair} | {folder.outcomes / "2026-02-01.jsonl", folder.usage}
    for path in everything:
        if not path.exists():
            files.replace(path, b"{}")
    files.replace(folder.watermarks, b"{}")
    file = config.with_name("backup.zip")
    assert run(config, "--backup", file) == 0
    names = [each["path"] for each in manifest_of(file)["files"]]
    at = {path: names.index(path.relative_to(folder.root).as_posix()) for path in everything | {folder.watermarks}}
    assert at[folder.watermarks] == 0
    assert [pair for pair in written if at[pair[1]] > at[pair[0]]] == []


def test_the_order_holds_for_each_server_and_what_lies_elsewhere_is_named(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    docs = config.with_name("docs")
    docs.mkdir()
    config.write_text(f"{config.read_text()}guilds: {{'1175948623872000001': {{kb: {{sources_dir: docs}}}}}}\n")
    own = DataFolder(config.with_name("data") / "guilds" / "1175948623872000001")
    written = [own.places, own.team_raw / "2026-W05.txt", own.decisions, own.team_topics / "gpu.txt", own.team_state]
    for path in written:
        files.replace(path, b"{}")
    file = config.with_name("backup.zip")
    capsys.readouterr()
    assert run(config, "--backup", file) == 0
    named = f"  guilds.1175948623872000001.kb.sources_dir ({docs} lies outside of app.data_dir)"
    assert named in capsys.readouterr().out
    names = [each["path"] for each in manifest_of(file)["files"]]
    at = [names.index(path.relative_to(config.with_name("data")).as_posix()) for path in written]
    assert at[1:] == sorted(at[1:], reverse=True)
    assert at[0] > at[1]  # noted after it, and only about what is there


def test_no_file_is_taken_for_one_of_sqlite_or_of_the_log_by_its_name_alone(config: Path) -> None:
    root = config.with_name("data")
    (root / "team").mkdir()
    for name in ("team-journal", "notes", "notes-journal", "bot.log.old", "bot.log.2026-01-01"):
        (root / name).write_text("kept")
    config.write_text(f"{config.read_text()}logging: {{file: {{path: data/bot.log}}}}\n")
    assert run(config, "--backup", config.with_name("backup.zip")) == 0
    names = {each["path"] for each in manifest_of(config.with_name("backup.zip"))["files"]}
    assert {"team-journal", "notes", "notes-journal", "bot.log.old"} <= names
    assert "bot.log.2026-01-01" not in names


def test_what_a_killed_backup_of_another_day_left_goes_with_the_next(config: Path) -> None:
    """And nothing that is anybody else's."""
    folder = config.with_name("backups")
    folder.mkdir()
    assert run(config, "--backup", folder / "monday.zip") == 0
    for name in (".unfinished-sunday.zip", ".database-for-sunday.zip", ".database-for-sunday.zip-journal"):
        (folder / name).write_bytes((folder / "monday.zip").read_bytes()[:999])
    (folder / ".unfinished-1-2").write_bytes(b"of another program")
    assert run(config, "--backup", folder / "tuesday.zip") == 0
    assert sorted(path.name for path in folder.iterdir()) == [".unfinished-1-2", "monday.zip", "tuesday.zip"]


def test_a_data_folder_behind_a_link_is_the_same_folder(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sources = config.with_name("data") / "knowledge-base" / "sources"
    config.with_name("link").symlink_to("data")
    config.write_text(f"app: {{data_dir: link}}\nkb: {{sources_dir: '{sources}'}}\n{config.read_text()}")
    assert run(config, "--backup", config.with_name("backup.zip")) == 0
    assert "lies outside" not in capsys.readouterr().out


def manifest_of(file: Path) -> dict[str, list[dict[str, str]]]:
    with zipfile.ZipFile(file) as archive:
        return json.loads(archive.read("millrace-backup.json"))


def test_secrets_are_left_out_wherever_they_are_and_named(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = config.parent / "data"
    secrets = [".env", ".env.local", ".envrc", "state/.ENV", "guilds/1/prod.env", ".env~", "notes.txt"]
    for name in secrets[:-1]:
        files.replace(data / name, b"APP__DISCORD__TOKEN=secret")
    (data / secrets[-1]).symlink_to(".env")
    (data / "loop").symlink_to("loop")
    files.replace(data / "guilds" / "1" / "environment.txt", b"none")
    assert run(config, "--backup", config.with_name("b.zip")) == 0
    with zipfile.ZipFile(config.with_name("b.zip")) as backup:
        names = [name for name in backup.namelist() if "env" in name.lower() or "notes" in name]
    assert [name.rpartition("/")[2] for name in names] == ["environment.txt"]
    said = "".join(capsys.readouterr())
    assert [name for name in secrets if f"{name} (it holds secrets; keep it apart)" not in said] == []


def test_keep_deletes_the_oldest_of_the_same_series_and_nothing_else(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = config.with_name("backups")
    folder.mkdir()
    days = [f"bot-2026-02-0{day}.zip" for day in range(1, 6)]
    for seconds, name in enumerate([*days[1:4], days[0]]):  # the first of them by name is the newest by time
        monkeypatch.setattr("commands.backup.time.time", lambda at=seconds: 1_770_000_000.0 + at)
        assert run(config, "--backup", folder / name) == 0
    whole = (folder / days[0]).read_bytes()
    others = {
        "before-upgrade.zip": whole,
        "other-2026-02-01.zip": whole,
        "bot2-2026-02-01.zip": whole,
        "bot-2-2026-02-01.zip": whole,
        "bot-2026-01-01.zip": b"no backup",
        "bot-2026-01-02.zip": whole[:-99],
    }
    for name, content in others.items():
        (folder / name).write_bytes(content)
    (folder / "bot-2026-01-03.zip").symlink_to(days[0])
    (folder / "bot-2026-01-04.zip").mkdir()
    capsys.readouterr()
    monkeypatch.setattr("commands.backup.time.time", lambda: 1.0)  # a clock that is wrong: what is new stays
    assert run(config, "--backup", folder / days[4], "--keep", 2) == 0
    out = capsys.readouterr().out
    assert f"\nOlder backups deleted (--keep 2): {days[1]}, {days[2]}, {days[3]}.\n" in out
    assert "left there:\n  bot-2026-01-01.zip (is damaged, or no backup" in out
    stay = {*others, "bot-2026-01-03.zip", "bot-2026-01-04.zip", days[0], days[4]}
    assert {path.name for path in folder.iterdir()} == stay
    assert all((folder / name).read_bytes() == content for name, content in others.items())
    assert run(config, "--backup", folder / days[4], "--keep", 9) == 0
    assert "Older backups deleted (--keep 9): none." in capsys.readouterr().out
    assert {path.name for path in folder.iterdir()} == stay


def test_keep_deletes_nothing_where_the_new_backup_lacks_a_database(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(config, "--backup", config.with_name("b-1.zip")) == 0
    path = config.with_name("data") / "evidence" / "case_1.sqlite"
    path.parent.mkdir()
    make_database(path, 3)
    path.write_bytes(path.read_bytes()[:4096])
    assert run(config, "--backup", config.with_name("b-2.zip"), "--keep", 1) == 1
    assert "No older backup was deleted" in capsys.readouterr().out
    assert config.with_name("b-1.zip").exists()


def test_keep_needs_names_that_a_number_tells_apart(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run(config, "--backup", config.with_name("backup.zip"), "--keep", 3) == 2
    assert "--keep: the name of" in one_line(capsys)
    assert not config.with_name("backup.zip").exists()
    with pytest.raises(SystemExit):
        run(config, "--backup", config.with_name("backup-1.zip"), "--keep", 0)
