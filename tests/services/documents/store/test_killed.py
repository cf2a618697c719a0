"""Files of threads are taken in by a process that is killed: what it had said to be there is there, whole."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from services.documents.store.document_store import sqlite_store
from services.documents.store.protocol import ChunkSearch, State
from tests.services.documents import cases

pytestmark = pytest.mark.real_time

NAME = cases.case().name
TIMES = 4


async def take_in(folder: Path) -> None:
    """Take in one file after another, and say so, without end."""
    store, number = sqlite_store(cases.folders(folder)), 0
    while True:
        await cases.post(store, f"{number}.log", f"{cases.LOG}\n2031-03-04 11:00:00,000 INFO file number-{number}\n")
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()
        number += 1


@pytest.mark.slow
async def test_killed_at_any_moment_of_taking_in_a_file_the_store_is_whole_and_goes_on(tmp_path: Path) -> None:
    """Pitfall 14: SQLite's transactions, at moments that its writes do not choose."""
    said = 0
    for pause in range(TIMES):
        command = (sys.executable, "-m", __name__, str(tmp_path))
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        assert process.stdout is not None
        lines = [int(await process.stdout.readline()) for _ in range(1 + pause % 3)]
        for _ in range(997 * pause % 4000):  # somewhere in the next file
            await asyncio.sleep(0)
        process.send_signal(signal.SIGKILL)
        lines += [int(line) for line in (await process.stdout.read()).splitlines()]
        await process.wait()
        said = max(said, *lines)
        store = sqlite_store(cases.folders(tmp_path))
        described = await store.describe(NAME)
        assert described is not None
        whole = {doc.filename for doc in described.documents if doc.state is not State.PENDING}
        assert {f"{number}.log" for number in lines} <= whole
        assert len(described.documents) == len({doc.filename for doc in described.documents})
        for number in lines:
            assert await store.search(NAME, ChunkSearch(f"number-{number}"))
        await store.close()
    assert said >= 2


if __name__ == "__main__":
    asyncio.run(take_in(Path(sys.argv[1])))
