"""The files of collections, only read: beside the bot that writes them, and leaving no trace. Blocking; safe for
threads.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from services.documents.store import line_search
from services.documents.store.collection_files import BUSY_SECONDS, CollectionFiles, OpenFile
from services.storage import confined

T = TypeVar("T")

TRIES = 5
"""For a file that is written while it is read."""


class ReadOnlyFiles(CollectionFiles):
    """For a process that must change nothing. What is deleted is gone at once here as well: no file stays open between
    two reads.
    """

    def look(self, name: str, work: Callable[[OpenFile], T], nothing: T) -> T:
        path = self._path(name)
        for left in range(TRIES, 0, -1):
            before = confined.look(path)
            if before is None:
                return nothing
            alone = not path.with_name(f"{path.name}-wal").exists()
            try:
                with contextlib.closing(_opened(path, alone=alone)) as connection:
                    made = connection.execute("PRAGMA user_version").fetchone()[0] != 0
                    result = work(OpenFile(path, connection)) if made else nothing
            except sqlite3.Error:
                if left == 1 or (alone and confined.look(path) == before):
                    raise
                continue
            if not alone or confined.look(path) == before:
                return result
        raise sqlite3.OperationalError("the file changes all the time")

    def _writer_of(self, name: str) -> threading.Lock:
        raise sqlite3.OperationalError(f"{name} is only read here")


def _opened(path: Path, *, alone: bool) -> sqlite3.Connection:
    """`alone`: nobody has the file open. SQLite would make the files of a write-ahead log beside it, if it were not
    told that it does not change; who reads has to see for itself whether that was true.
    """
    how = "immutable=1" if alone else "mode=ro"
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?{how}", uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    line_search.prepare(connection)
    return connection
