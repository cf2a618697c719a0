"""Team knowledge beside the bot: whom its sorting talks to."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from assembly.team import curator_of, open_team, topic_describer_of
from clock import utc_clock
from operators.step import Gauge
from operators.summarise_images import summarise_images
from services.llm import ImageSource, StructuredLLM, Usage
from services.storage import DataFolder, in_thread
from services.team import Action, By, Decision, PendingFolder
from settings import Settings
from sinks.archive import RawArchive
from streams.captures import Images
from streams.curation import CurationParts, CurationRules, Decided

log = logging.getLogger(__name__)


@dataclass(slots=True)
class CurationCount:
    """What has become of captured pairs in one run."""

    failed: int = 0

    def add(self, each: Decided) -> None:
        self.failed += isinstance(each, Decision) and each.action is Action.FAILED

    async def all_of(self, parts: CurationParts | None) -> bool:
        """Whether every pair of the archive has been decided about, and none in vain; reports those that are left."""
        left = None if parts is None else await in_thread(parts.library.undecided)
        if left is not None:
            log.warning("team knowledge: %s and what was captured after it are not sorted yet", left.id)
        return left is None and not self.failed


def curation_parts(
    settings: Settings, asker: StructuredLLM | None, usage: Usage, gauge: Gauge | None = None
) -> CurationParts:
    """The library, opened, and its curator. Blocking, on the running loop; for the holder of the data folder's lock.

    Raises:
        LibraryUnusable: the library cannot be opened as it lies there.
        OSError: something cannot be read or written.
    """
    describer = topic_describer_of(settings, asker, usage)
    library = open_team(settings, describer, utc_clock(asyncio.get_running_loop()))
    return CurationParts(library, curator_of(settings, asker, library), describer, usage, gauge)


def curation_rules(settings: Settings, *, to_the_end: bool) -> CurationRules:
    return CurationRules(
        tick_seconds=settings.kb.runtime_refresh_tick_seconds,
        # A call with its retries, as an answer has them.
        describe_seconds=settings.ai_response.graph_timeout_seconds,
        to_the_end=to_the_end,
    )


def capture_images(
    settings: Settings,
    parts: CurationParts,
    source: ImageSource | None,
    archive: RawArchive,
    withheld: Callable[[int, str], bool],
    redact: Callable[[str], str],
) -> Images | None:
    """Who puts the images of captures into words; None where nobody can look at them."""
    if source is None or parts.curator.by is By.EXTRACTIVE:
        return None
    pending = PendingFolder(DataFolder(settings.app.data_dir).pending)
    work = summarise_images(parts.curator, source, pending, parts.usage, redact=redact)
    return Images(work, pending, archive.keep_late, withheld, settings.kb.runtime_refresh_tick_seconds)
