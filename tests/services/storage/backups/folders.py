"""A data folder to copy, and what there is afterwards."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from services.storage.backups.writing import CopyOrder

MADE_AT = "2026-02-01T03:10:56.000Z"
ANY_ORDER = CopyOrder()
CONTENT = {
    "state/seen.json": b'{"1": {"below": "7", "done": []}}\n',
    "state/posts.jsonl": b'{"message_id": 8}\n',
    "team-knowledge/raw/2026-W05.txt": b"--- QA ---\n" * 1000,
    "knowledge-base/sources/how to/\u3000s\u00e9t up.md": b"# Set up\n",
    "knowledge-base/index.txt": b"",
}


def write(root: Path) -> Path:
    for name, data in CONTENT.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (root / "evidence" / "none").mkdir(parents=True)
    make_database(root / "evidence" / "case_1.sqlite", 3)
    (root / ".lock").write_text("held by the bot")
    (root / "state" / ".unfinished-1-1").write_text("a leftover")
    return root


def make_database(path: Path, rows: int) -> None:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE chunks (text)")
        connection.executemany("INSERT INTO chunks VALUES (?)", [(f"chunk {n}",) for n in range(rows)])


def rows_of(path: Path) -> int:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT count(*) FROM chunks").fetchone()[0]


def files_in(root: Path) -> dict[str, bytes]:
    """All but what SQLite and the lock keep there; databases by their rows."""
    return {
        path.relative_to(root).as_posix(): b"%d" % rows_of(path) if path.suffix == ".sqlite" else path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.name != ".lock" and not path.name.endswith(("-wal", "-shm"))
    }


EXPECTED = CONTENT | {"evidence/case_1.sqlite": b"3"}
