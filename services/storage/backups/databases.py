"""Copies SQLite files that are in use, by means of SQLite itself."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Generator
from pathlib import Path
from urllib.parse import quote

from services.storage import confined

HEADER = b"SQLite format 3\0"
SUFFIX = ".sqlite"
_BESIDE = ("-wal", "-shm", "-journal")
_TRIES = 5
_BUSY_SECONDS = 30.0
_SETTLED_NS = 1_000_000_000
"""How old a file's last change is at least, so that another one cannot have the same time."""


class DamagedDatabase(Exception):
    """An SQLite file cannot be copied whole: the message says what SQLite says."""


def is_one(path: Path, head: bytes) -> bool:
    """True if a file is a database; `head`: its first bytes. A database that was just made may have none."""
    return head.startswith(HEADER) or (path.suffix == SUFFIX and not head)


def is_beside_one(path: Path) -> bool:
    """True if a file is one that SQLite keeps beside a database (`-wal`, `-shm`, `-journal`): a copy of the database
    contains it already.
    """
    base = next((path.name.removesuffix(tail) for tail in _BESIDE if path.name.endswith(tail)), None)
    if not base:
        return False
    try:
        with path.with_name(base).open("rb") as file:
            return is_one(path.with_name(base), file.read(len(HEADER)))
    except OSError:
        return False  # there is none, or it is a folder


def copy(source: Path, target: Path) -> None:
    """Copy the database `source`, as it is at one moment, to `target`, which must not exist; the copy is checked.

    Nothing is written beside `source`, unless a process has it open or was killed with it open.

    Raises:
        FileNotFoundError: it is gone.
        DamagedDatabase: SQLite cannot read it.
        OSError: as the system reports it.
    """
    for _ in range(_TRIES):
        before = source.stat()
        # With nothing in a log, the file is all there is. SQLite then reads it as it stands; else it would make a log
        # of its own, and leave it there.
        alone = not any(_holds_something(source, tail) for tail in _BESIDE if tail != "-shm")
        alone = alone and time.time_ns() - before.st_mtime_ns > _SETTLED_NS
        try:
            _copy(source, target, "immutable=1" if alone else "mode=ro")
        except sqlite3.Error as error:
            problem = error
        else:
            problem = None
        # Deleted and made anew meanwhile; or written, where SQLite was told that nobody would.
        changed = not _same_file(source, before) or (alone and _signature(source) != confined.signature(before))
        if not changed and problem is None:
            return
        target.unlink(missing_ok=True)
        if not changed:
            raise DamagedDatabase(str(problem))
    raise DamagedDatabase("it changes too often to be copied")


def _copy(source: Path, target: Path, how: str) -> None:
    with _opened(source, how) as held, _opened(target, "mode=rwc") as made:
        made.execute("PRAGMA journal_mode = OFF")
        made.execute("PRAGMA synchronous = OFF")  # whoever copies it on does that
        held.backup(made)
    with _opened(target, "immutable=1") as made:
        ((found, *_), *_) = made.execute("PRAGMA quick_check(1)").fetchall()
        if found != "ok":
            raise sqlite3.DatabaseError(str(found))


@contextlib.contextmanager
def _opened(path: Path, how: str) -> Generator[sqlite3.Connection]:
    with contextlib.closing(
        sqlite3.connect(f"file:{quote(str(path))}?{how}", uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
    ) as connection:
        yield connection


def _holds_something(path: Path, tail: str) -> bool:
    try:
        return path.with_name(path.name + tail).stat().st_size > 0
    except FileNotFoundError:
        return False


def _signature(path: Path) -> confined.Signature:
    return confined.signature(path.stat())


def _same_file(path: Path, before: os.stat_result) -> bool:
    """Raises FileNotFoundError: there is none any more."""
    return os.path.samestat(path.stat(), before)
