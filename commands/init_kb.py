"""`--init-kb`: updates the knowledge base once, and shows progress and counts."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace

from reactivex import operators as ops
from rich.console import Console

from assembly import Unusable
from assembly.answering import (
    AS_CONFIGURED,
    ModelOptions,
    open_embedder,
    open_llm,
    open_search,
    server_libraries,
)
from assembly.data_folder import count_tokens, lock_data_folder
from assembly.knowledge import knowledge_parts
from assembly.reports import prices_of
from assembly.running import collect_garbage_less_often, run_async, terminated_as_interrupted
from assembly.sources import most_frequent
from clock import now
from commands.arguments import DONE, FAILED
from commands.progress import Count, Spending, explain_interruption, show_progress
from dataflow import of_type
from reporting.cost import Prices
from services.knowledge import (
    CannotList,
    Due,
    LeftOut,
    Pending,
    Record,
    SourceRecords,
    Trouble,
    UpdateEvent,
    UpdateReport,
    UpToDate,
)
from services.llm import StructuredLLM, Usage
from services.storage import in_thread
from settings import KnowledgeSettings, Settings
from sinks.knowledge import KnowledgeLog
from streams.knowledge import KnowledgeParts, update

MAX_NAMED = 20
"""The most troubles of one step that are named: more than the bot logs, since somebody is there to mend them."""


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Run `--init-kb`. Returns the exit code."""
    return init_kb(settings, ModelOptions(options.llm_record, options.llm_replay))


def init_kb(settings: Settings, models: ModelOptions = AS_CONFIGURED) -> int:
    """Update cache and index, and print what was done. Returns the exit code: 1 on a failure or for an empty index."""
    for server in settings.servers.values():
        check_writable(server.kb)
    collect_garbage_less_often()
    work = KnowledgeWork(prices_of(settings))
    with (
        terminated_as_interrupted(),
        lock_data_folder(settings, "app.py --init-kb"),
        explain_interruption(lambda: work.progress),
    ):
        reports = run_async(_init_kb(settings, work, models))
    out = Console(soft_wrap=True, highlight=False, markup=False)
    for guild_id, report in reports.items():
        out.print(report.text if guild_id is None else f"server {guild_id}: {report.text}")
        if report.reasons:
            out.print(f"Left out: {most_frequent(report.reasons)}.")
    if spent := str(work.spent):
        out.print(spent)
    empty = not any(report.descriptions for report in reports.values())
    if empty:
        out.print(f"Nothing to answer from: put documents into {settings.kb.sources_dir}, or see what failed above.")
    return FAILED if empty or any(report.troubles for report in reports.values()) else DONE


def check_writable(kb: KnowledgeSettings) -> None:
    """Refuse folders in which descriptions, which may cost money, could not be saved. Raises Unusable."""
    for key, folder in (
        ("index_cache_path", kb.index_cache_path.parent),
        ("index_path", kb.index_path.parent),
        ("web_fetch_cache_dir", kb.web_fetch_cache_dir),
    ):
        existing = next(each for each in (folder, *folder.parents) if each.exists())
        if not os.access(existing, os.W_OK | os.X_OK):
            raise Unusable(f"kb.{key}: {existing}: nothing can be written there; let this program do so")


def check_sources(source_records: SourceRecords, at: float, above: str = "") -> None:
    """Check that every kind of source can be listed. Blocks. Raises Unusable. `above`: the prefix of keys in errors."""
    for kind in source_records.kinds:
        try:
            kind.list_sources(source_records.records_of(kind), at)
        except CannotList as error:
            raise Unusable(f"{above}{error.setting}: {error.about}: {error}") from None


class KnowledgeWork:
    """The progress and the cost of an update."""

    def __init__(self, prices: Prices) -> None:
        self.spent = Spending(Usage(), prices)
        self.sources = SourceCount()
        self.passages = Count(0, 0, "passage")

    def add_passages(self, done: int = 0, *, waiting: int = 0) -> None:
        total = (self.passages.total or 0) + waiting
        self.passages = replace(self.passages, done=self.passages.done + done, total=total)

    @property
    def count(self) -> Count:
        return replace(self.sources.count, more=str(self.spent), label="knowledge base")

    @property
    def progress(self) -> str:
        """Describe what is kept if the update is cut off, and how to go on."""
        done = [str(self.sources.count)]
        if self.passages.total:
            done.append(str(self.passages))
        cost = f" ({self.spent})" if str(self.spent) else ""
        return f"done and kept are {' and '.join(done)}{cost}; the same command goes on from there"


async def _init_kb(settings: Settings, work: KnowledgeWork, models: ModelOptions) -> dict[int | None, UpdateReport]:
    """Update the shared knowledge base (None), and those of servers. Returns the reports."""
    llm = settings.kb.llm or settings.ai_response.llm
    reports: dict[int | None, UpdateReport] = {}
    async with (
        count_tokens(settings) as usage,
        open_llm(settings, llm, models) as asker,
    ):
        work.spent = replace(work.spent, usage=usage)
        for guild_id, server in settings.servers.items():
            above = "" if guild_id is None else f"guilds.{guild_id}."
            reports[guild_id] = await _update_server(server, work, asker, usage, above)
    await make_searchable(settings, work)
    return reports


async def _update_server(
    settings: Settings, work: KnowledgeWork, asker: StructuredLLM | None, usage: Usage, above: str
) -> UpdateReport:
    """Update the knowledge base of `settings`, and return the report. `above`: as for `check_sources`."""
    async with knowledge_parts(settings, asker, usage, by_hand=True) as parts:
        try:
            await parts.source_records.load()
        except OSError as error:
            mend = "let this program read it; without it, everything would be described anew"
            raise Unusable(f"kb.index_cache_path: {parts.source_records.path}: {error.strerror}; {mend}") from None
        await in_thread(check_sources, parts.source_records, now(), above)
        with show_progress(lambda: work.count):
            return await run_update(parts, KnowledgeLog(MAX_NAMED), work.sources)


async def make_searchable(settings: Settings, work: KnowledgeWork) -> None:
    """Update the search after an update of the sources, and compute missing vectors."""
    async with open_embedder(settings.search.embeddings, leave_cores=0) as embedder:
        for guild_id, library in server_libraries(settings).items():
            server = settings.servers[guild_id]
            async with open_search(server, library.own, embedder, read_only=False, embeds_on_refresh=False) as search:
                await search.refresh()
                work.add_passages(waiting=await search.unembedded())
                with show_progress(lambda: replace(work.passages, label="vectors for the search")):
                    await search.embed(on_done=work.add_passages)


class SourceCount:
    """Counts the sources that an update works on, and those that are done."""

    def __init__(self) -> None:
        self._all: set[str] = set()
        self._open: set[str] = set()

    @property
    def count(self) -> Count:
        return Count(len(self._all) - len(self._open), len(self._all), "source")

    def see(self, event: UpdateEvent | UpdateReport) -> None:
        match event:
            case Due(source_id=name) | Pending(record=Record(source_id=name)):
                self._all.add(name)
                self._open.add(name)
            case UpToDate(record=Record(source_id=name)) | LeftOut(name=name) | Trouble(about=name):
                self._open.discard(name)
            case _:
                pass


async def run_update(parts: KnowledgeParts, reporting: KnowledgeLog, sources: SourceCount) -> UpdateReport:
    """Run one update to its end. If it is cut off, finished work is written first."""
    noted = update(parts).pipe(ops.do_action(reporting.report), ops.do_action(sources.see), of_type(UpdateReport))
    try:
        return await noted
    finally:
        for trouble in await parts.files.save():
            reporting.report(trouble)
