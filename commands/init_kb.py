"""`--init-kb`: one update of the knowledge base, with its progress and its counts."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from assembly.errors import Unusable
from assembly.knowledge import knowledge_parts, knowledge_rules
from assembly.llm import open_llm
from assembly.running import collect_rarely, terminated_as_interrupted
from commands.progress import Progress, shown
from operators.discover import links_of
from services.knowledge import Ledger, UpdateEvent, UpdateReport
from services.llm import Usage
from services.storage import lock
from settings import KnowledgeSettings, Settings
from sinks.knowledge_log import KnowledgeLog
from streams.knowledge import KnowledgeParts, KnowledgeRules, update

DONE, FAILED = 0, 1
NAMED = 20
"""Troubles of one phase that are told by name: somebody sits there and wants to mend them."""


def init_kb(settings: Settings, *, record: Path | None, replay: Path | None) -> int:
    """Bring cache and index up to date; print what was done. Gives the exit code: 1 when something failed, or when
    the index is empty afterwards.

    Raises:
        Unusable: the folder of documents, the list of links or the cache cannot be read, or nothing could be kept.
        FolderBusy: another process writes the data folder.
    """
    check_folder(settings.kb.sources_dir)
    check_writable(settings.kb)
    collect_rarely()
    with terminated_as_interrupted(), lock(settings.app.data_dir, "app.py --init-kb"):
        report = asyncio.run(_init_kb(settings, record, replay))
    out = Console(soft_wrap=True, highlight=False, markup=False)
    out.print(report.text)
    if not report.descriptions:
        out.print(f"Nothing to answer from: put documents into {settings.kb.sources_dir}, or see what failed above.")
    return FAILED if report.troubles or not report.descriptions else DONE


def check_folder(folder: Path) -> None:
    """Whether there is a folder of documents.

    Raises:
        Unusable: there is none.
    """
    try:
        os.scandir(folder).close()
    except OSError as error:
        mend = "let this program read it" if isinstance(error, PermissionError) else "make this folder"
        raise Unusable(f"kb.sources_dir: {folder}: {error.strerror}; {mend} and put documents into it") from None


def check_writable(kb: KnowledgeSettings) -> None:
    """Whether what descriptions cost could be kept.

    Raises:
        Unusable: it could not.
    """
    for key, folder in (
        ("index_cache_path", kb.index_cache_path.parent),
        ("index_path", kb.index_path.parent),
        ("web_fetch_cache_dir", kb.web_fetch_cache_dir),
    ):
        there = next(each for each in (folder, *folder.parents) if each.exists())
        if not os.access(there, os.W_OK | os.X_OK):
            raise Unusable(f"kb.{key}: {there}: nothing can be written there; let this program do so")


async def _init_kb(settings: Settings, record: Path | None, replay: Path | None) -> UpdateReport:
    llm = settings.kb.llm or settings.ai_response.llm
    async with (
        open_llm(settings, llm, record=record, replay=replay) as asker,
        knowledge_parts(settings, asker, Usage()) as parts,
    ):
        try:
            await parts.ledger.load()
        except OSError as error:
            mend = "let this program read it; without it, everything would be described anew"
            raise Unusable(f"kb.index_cache_path: {parts.ledger.path}: {error.strerror}; {mend}") from None
        rules = knowledge_rules(settings)
        check_links(parts.ledger, rules)
        told = KnowledgeLog(NAMED)
        with shown(Console(stderr=True)) as progress:
            return await run(parts, rules, told, progress)


def check_links(ledger: Ledger, rules: KnowledgeRules) -> None:
    """Whether the list of web pages can be read, as far as there has to be one.

    Raises:
        Unusable: it cannot.
    """
    _, trouble = links_of(ledger, rules.places)
    if trouble is not None:
        raise Unusable(f"kb.links_file_path: {trouble.about}: {trouble.message}")


async def run(parts: KnowledgeParts, rules: KnowledgeRules, told: KnowledgeLog, progress: Progress) -> UpdateReport:
    """One update, to its end; when it is cut off, what it has done is written first."""
    finished: asyncio.Future[UpdateReport] = asyncio.get_running_loop().create_future()

    def on_next(event: UpdateEvent | UpdateReport) -> None:
        told.tell(event)
        if isinstance(event, UpdateReport):
            finished.set_result(event)
        else:
            progress.see(event)

    subscription = update(parts, rules).subscribe(on_next, failing(finished))
    try:
        return await finished
    finally:
        subscription.dispose()
        for trouble in await parts.files.save():
            told.tell(trouble)


def failing(finished: asyncio.Future[UpdateReport]) -> Callable[[Exception], None]:
    def fail(error: Exception) -> None:
        if not finished.done():
            finished.set_exception(error)

    return fail
