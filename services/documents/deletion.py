"""Deletes what people have posted in threads (SPEC 5, "Privacy"; DOCUMENT_QA 8.1)."""

from __future__ import annotations

from collections.abc import Callable

from services.documents.store import naming
from services.documents.store.protocol import Document, DocumentStore, Origin, State
from services.documents.tombstones import Tombstones

REMOVED = "was removed by whoever posted it, or by a moderator."


async def forget_evidence(
    store: DocumentStore,
    user_id: int,
    gone: Tombstones | None,
    forget_answers: Callable[[str], object] | None = None,
    *,
    only_unread: bool = False,
) -> int:
    """Delete every file that a person has posted in a thread, unless others have posted it there as well.

    `gone`: remembers that they must not be read again; None: they may be. `forget_answers`: called with the name of
    each collection that files were taken from. `only_unread`: only files that are being read. Gives how many of the
    person's files there were. Raises StoreUnavailable, OSError.
    """

    def posted(origin: Origin) -> bool:
        return origin.uploader_id == user_id

    count = 0
    for name in await store.list_collections(naming.CASE_PREFIX):
        described = await store.describe(name)
        theirs = [
            doc
            for doc in (() if described is None else described.documents)
            if any(map(posted, doc.origins)) and (doc.state is State.PENDING or not only_unread)
        ]
        if gone is not None and theirs:
            await gone.add(origin for doc in theirs for origin in doc.origins if posted(origin))
        for doc in theirs:
            count += await store.withdraw(name, doc.doc_id, posted)
        if theirs and forget_answers is not None:
            forget_answers(name)
        left = await store.describe(name)
        if left is not None and not left.documents:
            await store.delete_collection(name)
    return count


async def remove_file(store: DocumentStore, gone: Tombstones, name: str, doc: Document) -> None:
    """Delete one file of a thread, for all who posted it. Its name stays as long as the thread's other files do, and
    it is not read again as long as its messages are there. Raises StoreUnavailable, OSError.
    """
    await gone.add(doc.origins)
    described = await store.describe(name)
    if described is None or not await store.delete_document(name, doc.doc_id):
        return
    origin = doc.origin
    kept = Origin(origin.filename, message_id=origin.message_id, attachment_id=origin.attachment_id)
    marker = await store.expect(described.collection, kept)
    await store.fail(name, marker.doc_id, f"{origin.filename} {REMOVED}")
