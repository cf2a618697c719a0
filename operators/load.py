"""The texts of the selected sources."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any

from model.outcomes import Outcome, Reason
from services.assistant import Inquiry, skipped
from services.knowledge import Library, Source, SourceUnavailable

log = logging.getLogger(__name__)


def load(library: Library) -> Callable[[Inquiry], Coroutine[Any, Any, Inquiry | Outcome]]:
    """Read what was selected. A source that cannot be read is left out; when none can be, the inquiry ends."""

    async def loaded(inquiry: Inquiry) -> Inquiry | Outcome:
        sources: list[Source] = []
        for source_id in inquiry.selected:
            try:
                sources.append(await library.load(source_id))
            except SourceUnavailable as error:
                log.warning("load: left out: %s", error)
        inquiry.decisions["load"] = {"loaded": [source.id for source in sources]}
        log.info("load: %d of %d sources", len(sources), len(inquiry.selected))
        if inquiry.selected and not sources:
            return skipped(inquiry, Reason.SOURCES_UNAVAILABLE)
        return inquiry._replace(sources=tuple(sources))

    return loaded
