"""Who may read what the bot keeps."""

from __future__ import annotations

import sqlite3
import stat
from pathlib import Path

import pytest

from assembly.data_folder import lock_data_folder
from services.storage import DataFolder
from settings import Settings
from tests.end_to_end.conftest import Launch
from tests.end_to_end.processes import STARTING, write_config
from tests.end_to_end.test_files import LOG
from tests.loopback.discord_server import DiscordServer
from tests.loopback.posts import Post

pytestmark = pytest.mark.real_time


def unprotected_server(data: Path) -> dict[str, str]:
    """What group or others may do anything with, but for documents and the folders that lead to them."""
    sources = DataFolder(data).sources
    found = {
        path.relative_to(data.parent).as_posix(): stat.filemode(path.lstat().st_mode)
        for path in [data, *data.rglob("*")]
        if path.lstat().st_mode & 0o077 and sources not in [path, *path.parents] and path not in sources.parents
    }
    return dict(sorted(found.items()))


def made_in(data: Path) -> set[str]:
    return {path.name for path in data.iterdir()}


def of_an_earlier_version(data: Path) -> None:
    """State, a log and a database with its write-ahead log, readable by everybody."""
    for name in ("state/posts.jsonl", "team-knowledge/raw/2020-W01.txt", "logs/bot.log.2020-01-01", "backups/old.tar"):
        path = data / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (data / "documents").mkdir()
    with sqlite3.connect(data / "documents" / "odd.sqlite") as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    for path in [data, *data.rglob("*")]:
        path.chmod(0o777 if path.is_dir() else 0o666)


async def test_nobody_else_may_read_anything_whatever_the_umask_is_and_was(
    launch: Launch, discord_server: DiscordServer, data: Path
) -> None:
    """Pitfall 68: also what libraries make, and what an earlier version has left."""
    of_an_earlier_version(data)
    before = {path: path.stat().st_mode for path in [data, *DataFolder(data).sources.rglob("*")]}
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    tess = discord_server.add_member("tess")
    config = write_config(
        data,
        discord={"message_batch_wait_seconds": 0.15, "team_member_ids": [str(tess.id)], "feedback": True},
        logging={"file": {"path": str(data / "logs" / "bot.log")}},
    )
    recordings = data / "recordings"
    recordings.mkdir(mode=0o777)
    bot = await launch(config, "--record", str(recordings / "day.jsonl"), umask=0)
    await discord_server.until(lambda: discord_server.gateway.sessions, STARTING)
    upload = ("app.log", LOG.encode(), "text/plain")
    question = await discord_server.say(help_, ada, "what is the first ERROR in app.log?", attachments=[upload])
    (answer,) = await until_posted(discord_server)
    await discord_server.react(answer.message, ada, "👍")
    await discord_server.say(help_, tess, "The database refuses the connection, restart it.", reply_to=question)
    await discord_server.until(lambda: list((data / "team-knowledge" / "raw").glob("2*-W*.txt"))[1:], STARTING)
    await discord_server.until(lambda: list(data.rglob("*.sqlite-wal")) and list(data.rglob("*.sqlite-shm")), STARTING)
    assert unprotected_server(data) == {}
    bot.terminate()
    code, said = await bot.end(STARTING)
    assert code == 0, said
    assert "could be read by other users, and cannot any more" in said
    assert unprotected_server(data) == {}
    assert made_in(data) >= {
        ".lock",
        "state",
        "evidence",
        "team-knowledge",
        "recordings",
        "logs",
        "documents",
        "backups",
    }
    assert {path: path.stat().st_mode for path in before} == before, "documents are the operator's"


async def until_posted(server: DiscordServer) -> list[Post]:
    await server.until(lambda: server.posts, STARTING)
    return server.posts


def test_what_else_is_in_the_folder_keeps_its_permissions(tmp_path: Path) -> None:
    """Whoever names a folder with a web site in it must not lose the web site."""
    shared, alone = tmp_path / "srv", tmp_path / "data"
    for folder in (shared, alone):
        of_an_earlier_version(folder)
        (folder / "state.old").mkdir(mode=0o777)
        (folder / "state.old").chmod(0o777)
    page = shared / "www" / "index.html"
    page.parent.mkdir()
    page.touch()
    for path in (page.parent, page):
        path.chmod(0o755)
    for folder in (shared, alone):
        with lock_data_folder(Settings.model_validate({"app": {"data_dir": str(folder)}}).resolve_paths(tmp_path), "x"):
            pass
    left = {path.relative_to(shared).parts[0] for path in shared.rglob("*") if path.stat().st_mode & 0o077}
    assert left == {"www", "logs", "backups"}
    assert shared.stat().st_mode & 0o777 == 0o777
    left = {path.relative_to(alone).parts[0] for path in alone.rglob("*") if path.stat().st_mode & 0o077}
    assert left <= {"knowledge-base"}
