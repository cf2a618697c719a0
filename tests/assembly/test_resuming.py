"""Files whose reading was cut off."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import cast

from assembly.bot import resume_reading
from assembly.documents import documents_for
from clock import now, rfc3339
from model.messages import Message
from services.discord.live import RestFetcher
from services.documents.store import Origin
from settings import Settings
from tests.services.documents.cases import case
from tests.world import Uploads


class Deleted:
    """A Discord in which no message is left."""

    async def message(self, channel_id: int, message_id: int) -> Message | None:
        _ = channel_id, message_id
        return None


async def test_what_another_process_may_be_reading_is_left_to_it(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        documents = await stack.enter_async_context(
            documents_for(Settings().resolve_paths(tmp_path), None, Uploads(), None)
        )
        assert documents is not None
        for number, age in enumerate((7200.0, 1800.0)):
            at = rfc3339(now() - age)
            origin = Origin(f"{number}.log", message_id=number + 1, attachment_id=number, uploaded_at=at)
            await documents.store.expect(case(), origin)
        fetcher = cast("RestFetcher", Deleted())
        left: list[list[str]] = []
        for idle_seconds in (3600.0, 0.0):
            await resume_reading(documents, fetcher, lambda _: False, idle_seconds)
            described = await documents.store.describe(case().name)
            left.append([] if described is None else [doc.filename for doc in described.documents])
    assert left == [["1.log"], []]
