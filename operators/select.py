"""Which sources to read."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any

from model.outcomes import Outcome, Reason
from services.assistant import Assistant, Inquiry, skipped
from services.knowledge import Library, narrowed
from services.telemetry import number_of

log = logging.getLogger(__name__)


def select(
    assistant: Assistant, library: Library, max_sources: int, max_index_chars: int
) -> Callable[[Inquiry], Coroutine[Any, Any, Inquiry | Outcome]]:
    """Choose at most `max_sources` sources from the index, which is first narrowed to `max_index_chars`.

    Ids that are not in the index are logged and dropped: only what is indexed can ever be loaded.
    """

    async def selected(inquiry: Inquiry) -> Inquiry | Outcome:
        index = await library.index()
        offered = await narrowed(index, inquiry.query, max_index_chars)
        ids: list[str] = []
        if offered:
            result = await assistant.select(inquiry.query, offered, max_sources, inquiry.usage, files=inquiry.files)
            ids = list(dict.fromkeys(result.selected_source_ids))
        named = frozenset(ids)
        known = {entry.id for entry in index if entry.id in named}
        invented = [source_id for source_id in ids if source_id not in known]
        if invented:
            dropped = number_of(len(invented), "id that is in no index was", "ids that are in no index were")
            log.warning("select: %s dropped: %.200r", dropped, invented)
        chosen = tuple(source_id for source_id in ids if source_id in known)[:max_sources]
        inquiry.decisions["select"] = {"offered": len(offered), "selected": list(chosen)}
        log.info("select: %d of %d entries", len(chosen), len(offered))
        if not chosen and not inquiry.conversation.images and inquiry.toolset is None:
            return skipped(inquiry, Reason.NO_SOURCES)
        return inquiry._replace(selected=chosen)

    return selected
