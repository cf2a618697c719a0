"""`--import FILE…`: adds the team's answers from recordings, exports or other archives to the raw archive."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from rich.console import Console

from assembly import Unusable
from assembly.answering import assistant_of, library_of
from assembly.data_folder import lock_data_folder, read_state
from assembly.graph_parts import CaptureParts, DiscordAPI, GraphParts, ServerParts, assemble
from assembly.running import collect_garbage_less_often, play, terminated_as_interrupted
from clock import VirtualLoop, with_bounded_shutdown
from commands.arguments import DONE, FAILED
from commands.progress import Count, explain_interruption, show_progress
from model.outcomes import REASONS, OutcomeKind
from model.servers import Servers
from services.discord import DryRunPoster
from services.knowledge import LibrarySearch
from services.search import PassageStore
from services.storage import DataFolder
from services.team import RecentCaptures, archive_files
from services.telemetry import number_of
from settings import Settings
from sinks.results import ResultCounts
from sinks.team import ImportArchive, ImportCounts, RawArchive
from streams.graph import import_graph
from streams.recording import first_time


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Run `--import`: learn from recordings and exports, merged, each message for its server; copy pairs of other
    archives; print the result. Returns the exit code: 1 if something failed. The next run resumes one that was cut off.
    """
    files: Sequence[Path] = getattr(options, "import")
    archives = [path for path in files if path.is_file() and archive_files.is_archive(path)]
    talks = [path for path in files if path not in archives]
    teams = [each.discord for each in settings.servers.values()]
    if talks and not any(team.team_member_ids or team.team_role_ids for team in teams):
        raise Unusable("--import: nobody is of the team; set discord.team_member_ids or discord.team_role_ids")
    start = first_time(*talks) if talks else time.time()
    collect_garbage_less_often()
    tally = ResultCounts()
    with (
        terminated_as_interrupted(),
        lock_data_folder(settings, "app.py --import"),
        explain_interruption(lambda: f"{count_captures(tally)} stored; the same command goes on from there"),
        asyncio.Runner(loop_factory=lambda: with_bounded_shutdown(VirtualLoop(start))) as runner,
    ):
        done = runner.run(_import(settings, tally, archives, talks, options.guild))
    show(Console(), done)
    return DONE if done.finished and not tally.has_failures else FAILED


@dataclass(frozen=True, slots=True)
class ImportRun:
    """The result of an import. `imported`: the archives; `taken`: the counts of other archives; None: without these."""

    tally: ResultCounts
    imported: Sequence[ImportArchive]
    taken: ImportCounts | None
    finished: bool


def count_captures(tally: ResultCounts) -> str:
    return number_of(tally.parts[OutcomeKind.CAPTURED], "capture")


async def _import(
    settings: Settings, tally: ResultCounts, archives: Sequence[Path], talks: Sequence[Path], guild_id: int | None
) -> ImportRun:
    """`guild_id`: the server whose archive gets the pairs of `archives`; None: the shared archive."""
    parts, imported = assemble_import(settings, tally)
    taken = None
    if archives:
        pairs = [pair for path in archives for pair in archive_files.pairs_of(path)]
        taken = imported[guild_id].take_over(sorted(pairs, key=attrgetter("key")))
    finished = True
    if talks:
        with show_progress(lambda: Count(tally.messages, None, "message", count_captures(tally), "import")):
            finished = await play(
                *talks,
                through=lambda events: import_graph(events, parts.services, parts.sinks, parts.rules),
                in_flight=parts.services.in_flight,
                counts=tally,
            )
    return ImportRun(tally, list(imported.values()), taken, finished)


def assemble_import(settings: Settings, tally: ResultCounts) -> tuple[GraphParts, Mapping[int | None, ImportArchive]]:
    """Make the parts of an import: as for a replay, but archives are written. Returns the parts and the archive of each
    server (None: the shared one).
    """
    state, library = read_state(settings, is_durable=False), library_of(settings)
    search = LibrarySearch(library, PassageStore(None), PassageStore(None))  # nothing is answered
    assistant, imported = assistant_of(settings, search, None), dict[int | None, ImportArchive]()

    def server_parts(guild_id: int | None, server: Settings) -> ServerParts:
        raw = server.kb.team_raw_dir
        pairs = archive_files.pairs_in(raw)
        # All pairs are kept: an old conversation may continue in these files.
        captures = RecentCaptures(pairs, state.is_withheld_in_capture, kept=sys.maxsize)
        # The time of capture is that of the clock, as the loop has the time of the messages.
        archive = RawArchive(raw, captures, time.time, places=DataFolder(server.app.data_dir).places)
        imported[guild_id] = ImportArchive(archive, pairs)
        keeping = CaptureParts(keep=imported[guild_id].keep, revise=imported[guild_id].revise, recent_captures=captures)
        return ServerParts(settings=server, assistant=assistant, library=library, search=search, captures=keeping)

    servers = Servers({guild_id: server_parts(guild_id, server) for guild_id, server in settings.servers.items()})
    return assemble(
        settings, state=state, servers=servers, api=DiscordAPI(poster=DryRunPoster()), results=[tally.add]
    ), imported


def show(console: Console, run: ImportRun) -> None:
    tally, taken = run.tally, run.taken
    skipped = tally.reasons.get(OutcomeKind.SKIPPED, Counter[str]())
    stored = tally.parts[OutcomeKind.CAPTURED]
    conversations = sum(len(each.conversations) for each in run.imported)
    left_out = [
        f", {tally.ignored[reason]} of them {traits.import_messages}"
        for reason, traits in REASONS.items()
        if traits.import_messages and tally.ignored[reason]
    ]
    for number, what in (
        (tally.messages, "".join(["messages", *left_out])),
        (stored, f"captures stored, of {number_of(conversations, 'conversation')}"),
        *((skipped[reason], traits.import_captures) for reason, traits in REASONS.items() if traits.import_captures),
        (tally.parts[OutcomeKind.FAILED], "failed"),
    ):
        console.print(f"{number:>7}  {what}", highlight=False, soft_wrap=True)
    if taken is not None:
        known = f", {taken.known} more are in the archive already" if taken.known else ""
        opted_out = f", {taken.opted_out} left out for people who have opted out" if taken.opted_out else ""
        line = f"{taken.stored:>7}  taken over from other archives{known}{opted_out}"
        console.print(line, highlight=False, soft_wrap=True)
    if stored or (taken is not None and taken.stored):
        console.print("They are filed under topics at the next start of the bot, or by --regen.", soft_wrap=True)
