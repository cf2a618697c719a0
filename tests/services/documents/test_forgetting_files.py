"""What is left of a person's files in threads once they are forgotten."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from services.documents import forget_evidence
from services.documents.store.protocol import Origin
from services.documents.thread_files import Tombstones, remove_file
from tests.services.documents import cases


async def test_the_name_of_a_file_that_was_removed_is_forgotten_with_whoever_posted_it(tmp_path: Path) -> None:
    store, gone = cases.new_store(tmp_path), Tombstones(tmp_path / "gone.json")
    files = [("letter-to-lawyer.log", cases.FRAN, cases.LOG), ("depot.log", cases.MARA, cases.OTHER_LOG)]
    posted = [
        replace(cases.new(name, text), origin=Origin(name, user, message_id=n, attachment_id=10 + n))
        for n, (name, user, text) in enumerate(files, 1)
    ]
    letter, _ = await store.add(cases.case(), posted)
    await remove_file(store, gone, cases.case().name, letter)
    assert b"letter-to-lawyer" in _bytes(tmp_path), "it stays listed"
    assert await forget_evidence(store, cases.FRAN, gone) == 1
    await store.close()
    assert b"letter-to-lawyer" not in _bytes(tmp_path)
    assert b"depot.log" in _bytes(tmp_path)


def _bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*.sqlite*")))
