"""What all partitions of a worker use together: Discord, models, library, search, documents, budgets; and what the
roles team and knowledge provide to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from assembly.bot import DiscordParts
from assembly.distributed.process import homes
from assembly.graph_parts import REMEMBERED_WEEKS, CaptureParts
from assembly.opening import Bot
from assembly.running import Meters
from model.outcomes import Outcome, OutcomeKind
from services.team import Capture, CapturedMessage, Captures, archive_files
from settings import Settings
from sinks.archive import RawArchive
from transport.budgets import SharedBudgets
from transport.captures import CaptureSender
from transport.people import SharedPeople
from transport.streams import KNOWLEDGE, TEAM


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What all graphs of a worker are wired to."""

    bot: Bot
    people: SharedPeople
    discord: DiscordParts
    meters: Meters
    budgets: SharedBudgets


def sending_capture_parts(
    settings: Settings, given: CaptureSender, withheld: Callable[[CapturedMessage], bool]
) -> CaptureParts:
    """As `capture_parts`, where another process keeps the archive: what is stored already is known here as well."""
    raw = settings.kb.team_raw_dir
    captures = Captures(archive_files.pairs_in(raw, REMEMBERED_WEEKS), withheld)
    known = RawArchive(raw, captures, rehearsed=True)

    async def keep(capture: Capture) -> Outcome:
        outcome = await known.keep(capture)
        if outcome.result is OutcomeKind.CAPTURED:
            await given.send(capture)
        # Its id is given where it is kept.
        return replace(outcome, qa_id=None)

    return CaptureParts(keep=keep, captures=captures)


def followed_folders(settings: Settings) -> Mapping[str, Sequence[str]]:
    """The folders that other roles write, by their scope."""
    return {
        TEAM: [f"{home}team-knowledge" for home in homes(settings)],
        KNOWLEDGE: [f"{home}knowledge-base" for home in homes(settings)],
    }
