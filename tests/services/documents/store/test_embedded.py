"""What only the embedded store can get wrong: files on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.documents.store.protocol import LineWhere, Origin
from tests.services.documents import cases


@pytest.mark.parametrize("way", ["deleted", "withdrawn", "replaced"])
async def test_nothing_of_a_document_that_is_gone_stays_in_the_files_while_others_are_read(
    tmp_path: Path, way: str
) -> None:
    """Pitfall 49: neither in free pages, nor in the log, nor in the index of words."""
    store, name = cases.new_store(tmp_path), cases.case().name
    other = await cases.post(store, "depot.log", cases.OTHER_LOG)
    secret = await cases.post(store, "zebra.log", cases.LOG.replace("Starting version", "zebras on"))
    assert await store.describe(name) is not None, "it is open for reading"
    assert files_with(tmp_path, b"zebra")
    match way:
        case "deleted":
            await store.delete_document(name, secret.doc_id)
        case "withdrawn":
            await store.withdraw(name, secret.doc_id, lambda _: True)
        case _:
            await store.add(cases.case(), [cases.new("plain.log", cases.LOG)], drop=[secret.doc_id])
    assert not files_with(tmp_path, b"zebra")
    assert (await store.lines(name, LineWhere((other.doc_id,), words=("collision",)))).total == 1
    await store.close()


def files_with(folder: Path, word: bytes) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and word in path.read_bytes()]


async def test_of_what_failed_unread_the_newest_of_each_person_is_kept(tmp_path: Path) -> None:
    """Else whoever posts what is refused by its name would fill the disk, and every answer would read it."""
    store, name = cases.new_store(tmp_path), cases.case().name

    async def refuse(number: int, by: int | None, size: int = 0) -> None:
        origin = Origin(f"{number}.exe", uploader_id=by, message_id=number, attachment_id=number)
        doc = await store.expect(cases.case(), origin)
        await store.fail(name, doc.doc_id, "no", size)

    await refuse(1, 7, size=9)
    await refuse(2, 8)
    for number in range(3, 33):
        await refuse(number, 7)
    kept = [doc.filename for doc in await store.documents(name)]
    assert kept == ["1.exe", "2.exe", *(f"{number}.exe" for number in range(13, 33))]
    for number in range(100, 310):
        await refuse(number, number)
    assert [doc.origin.uploader_id for doc in await store.documents(name)] == [7, *range(110, 310)]
    await store.close()
