"""`--check`: whether everything that the bot needs is in place. Writes nothing."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from rich.console import Console
from rich.text import Text

from assembly import Unusable
from assembly.documents import EMBEDDED
from assembly.llm import endpoint_settings
from assembly.sources import web_for
from assembly.team import team_places
from services.documents.store import SUFFIX, chroma_unreachable_because
from services.knowledge import belongs_to
from services.llm import EndpointSettings, unreachable_because
from services.search.embedding import REMEDY, installed
from services.storage import DataFolder, why
from services.team import LibraryUnusable, begins_after, state
from services.telemetry import number_of
from settings import DocumentSettings, KnowledgeSettings, LLMSettings, Settings, SettingsError, usable_token

TOKEN = re.compile(r"[A-Za-z0-9_-]{18,}\.[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{20,}")
"""The id of the bot, a time and a signature, each in Base64 (Discord's documentation, "Authentication")."""


class Verdict(StrEnum):
    """`WARNING`: the bot runs, with something missing; `MISSING`: it cannot do its work."""

    OK = "ok"
    SKIPPED = "skipped"
    WARNING = "warning"
    MISSING = "missing"


STYLES = {Verdict.OK: "green", Verdict.SKIPPED: "dim", Verdict.WARNING: "yellow", Verdict.MISSING: "bold red"}


@dataclass(frozen=True, slots=True)
class Finding:
    """`about`: a key of the configuration."""

    about: str
    verdict: Verdict
    says: str


def judged(about: str, trouble: str | None, otherwise: str, verdict: Verdict = Verdict.MISSING) -> Finding:
    """`verdict` with the `trouble`, or OK where there is none."""
    return Finding(about, Verdict.OK, otherwise) if trouble is None else Finding(about, verdict, trouble)


def check(settings: Settings) -> int:
    """Print what was found. Gives the exit code: 2 when something is missing, else 0."""
    found = [
        token(settings),
        *folders(settings),
        *knowledge(settings),
        staff(settings),
        team(settings),
        *internal_topics(settings),
        log_file(settings),
        *asyncio.run(servers(settings)),
    ]
    console, width = Console(), max(len(finding.about) for finding in found)
    for finding in found:
        verdict = (f"{finding.verdict:<8}", STYLES[finding.verdict])
        # Not wrapped, so that paths can be copied and lines be searched for.
        console.print(Text.assemble(f"{finding.about:<{width}}  ", verdict, f" {finding.says}"), soft_wrap=True)
    return 2 if any(finding.verdict is Verdict.MISSING for finding in found) else 0


def token(settings: Settings) -> Finding:
    trouble = None
    try:
        if not TOKEN.fullmatch(usable_token(settings)):
            trouble = "is not a bot token, which is three words joined by dots; client secrets and public keys are not"
    except SettingsError as error:
        trouble = str(error).removeprefix("discord.token ")
    return judged("discord.token", trouble, "has the form of a bot token")


def folders(settings: Settings) -> Iterator[Finding]:
    """Where the bot writes."""
    for about, folder in (("app.data_dir", settings.app.data_dir), ("kb.team_raw_dir", settings.kb.team_raw_dir)):
        trouble = unwritable_because(folder)
        found = f"{folder}" if folder.is_dir() else f"{folder} will be made"
        yield judged(about, None if trouble is None else f"{folder} {trouble}", found)


def knowledge(settings: Settings) -> Iterator[Finding]:
    """What the bot answers from."""
    kb, sources = settings.kb, settings.kb.sources_dir
    if not sources.is_dir():
        yield Finding("kb.sources_dir", Verdict.MISSING, f"{sources} is not a folder; put the documents there")
    elif not os.access(sources, os.R_OK | os.X_OK):
        yield Finding("kb.sources_dir", Verdict.MISSING, f"{sources} cannot be read; check its permissions")
    else:
        count = sum(1 for path in sources.rglob("*") if path.is_file())
        empty = None if count else f"{sources}, 0 files; there is nothing to answer from"
        yield judged("kb.sources_dir", empty, f"{sources}, {number_of(count, 'file')}", Verdict.WARNING)
    yield file("kb.index_path", kb.index_path, "there are no answers from documents until it is written")
    if kb.links_file_path.exists():
        yield file("kb.links_file_path", kb.links_file_path, "")
    else:
        yield Finding("kb.links_file_path", Verdict.SKIPPED, f"{kb.links_file_path} does not exist: no web pages")


def file(about: str, path: Path, if_missing: str) -> Finding:
    """A file to be read, which may still come."""
    if not path.exists():
        return Finding(about, Verdict.WARNING, f"{path} does not exist; {if_missing}")
    readable = path.is_file() and os.access(path, os.R_OK)
    trouble = None if readable else f"{path} cannot be read; check that it is a file, and its permissions"
    return judged(about, trouble, str(path))


def staff(settings: Settings) -> Finding:
    people, roles = len(settings.discord.team_member_ids), len(settings.discord.team_role_ids)
    nobody = None if people or roles else "nobody is in the team, so nothing is learned"
    configured = f"{number_of(people, 'person', 'people')} and {number_of(roles, 'role')}"
    return judged("discord.team_member_ids", nobody, configured, Verdict.WARNING)


def team(settings: Settings) -> Finding:
    """Team knowledge, as far as the bot would refuse to start with it."""
    places, trouble = team_places(settings), None
    try:
        begins_after(places, state.read(places.state), settings.kb.qa_raw_last_processed_id, time.time())
    except LibraryUnusable as error:
        trouble = str(error)
    except OSError as error:
        trouble = why(error)
    found = f"{places.state}" if places.state.exists() else f"{places.state} will be made"
    return judged("kb.team_state_path", trouble, found)


def internal_topics(settings: Settings) -> Iterator[Finding]:
    """What is for the team only. A name that is spelt differently from the topic's would hide nothing."""
    kb = settings.kb
    if not kb.internal_topics:
        return
    known = {path.stem for path in kb.team_topics_dir.glob("*.txt")}
    hidden = sum(1 for name in known if belongs_to(name, kb.internal_topics))
    missing = ", ".join(sorted(kb.internal_topics - known))
    trouble = f"there is no topic {missing} yet; --kb list shows the topics" if missing else None
    found = f"for the team only: {number_of(hidden, 'topic file')}"
    yield judged("kb.internal_topics", trouble, found, Verdict.WARNING)


def log_file(settings: Settings) -> Finding:
    path = settings.logging.file.path
    if path is None:
        return Finding("logging.file.path", Verdict.SKIPPED, "the log goes to the console only")
    trouble = unwritable_because(path.parent)
    if path.exists():
        trouble = None if path.is_file() and os.access(path, os.W_OK) else "cannot be written"
    says = None if trouble is None else f"{path} {trouble}; the log goes to the console only"
    return judged("logging.file.path", says, str(path), Verdict.WARNING)


async def servers(settings: Settings) -> list[Finding]:
    """What has to be asked over the network, where servers are configured."""
    about_pages, about_documents, about_models = await asyncio.gather(
        renderer(settings.kb), documents(settings), models(settings)
    )
    return [*about_pages, *about_documents, *about_models]


async def renderer(kb: KnowledgeSettings) -> list[Finding]:
    """What fetches web pages, opened as a start opens it, where that can fail."""
    about = "kb.web_fetch_renderer"
    if kb.web_fetch_renderer == "http":
        return []
    trouble = None
    try:
        async with web_for(kb):
            pass
    except Unusable as error:
        trouble = str(error).removeprefix(f"{about} is ")
    return [judged(about, trouble, kb.web_fetch_renderer)]


async def documents(settings: Settings) -> list[Finding]:
    """Files of threads and runbooks."""
    chosen = settings.documents
    if not chosen.enabled:
        return [Finding("documents.enabled", Verdict.SKIPPED, "false: files and runbooks are ignored")]
    return list(await asyncio.gather(store(chosen, DataFolder(settings.app.data_dir)), embedder(settings)))


async def store(chosen: DocumentSettings, folder: DataFolder) -> Finding:
    """Where documents are kept."""
    about = "documents.store"
    if chosen.store != EMBEDDED:
        trouble = await chroma_unreachable_because(chosen.store)
        says = None if trouble is None else f"Chroma at {chosen.store} {trouble}; until then files are ignored"
        return judged(about, says, f"Chroma at {chosen.store} is there", Verdict.WARNING)
    for place in (folder.evidence, folder.runbooks):
        trouble = unwritable_because(place)
        if trouble is not None:
            return Finding(about, Verdict.WARNING, f"{place} {trouble}; files are ignored")
    threads, people = (sum(1 for _ in place.glob(f"*{SUFFIX}")) for place in (folder.evidence, folder.runbooks))
    whose = number_of(people, "person", "people")
    return Finding(about, Verdict.OK, f"embedded: files of {number_of(threads, 'thread')}, runbooks of {whose}")


async def embedder(settings: Settings) -> Finding:
    """What computes embeddings."""
    about = "search.embeddings" if settings.documents.embeddings is None else "documents.embeddings"
    at = settings.document_embeddings
    if at == "none":
        return Finding(about, Verdict.SKIPPED, "none: keyword search only")
    if isinstance(at, str):
        return judged(about, None if installed() else REMEDY, "the packaged model", Verdict.WARNING)
    endpoint = EndpointSettings(at.base_url, at.model, at.api_key.get_secret_value())
    trouble = await unreachable_because(endpoint)
    says = None if trouble is None else f"{trouble}; until then documents have keyword search only"
    return judged(about, says, f"{endpoint.name} is there", Verdict.WARNING)


async def models(settings: Settings) -> tuple[Finding, Finding]:
    answering = settings.ai_response.llm
    instead = (
        "topics and descriptions go by words, no model is asked" if answering is None else "ai_response.llm is asked"
    )
    return await asyncio.gather(
        model("ai_response.llm", answering, "null: answers quote the documents, no model is asked"),
        model("kb.llm", settings.kb.llm, f"null: {instead}"),
    )


async def model(about: str, llm: LLMSettings | None, if_none: str) -> Finding:
    if llm is None:
        return Finding(about, Verdict.SKIPPED, if_none)
    endpoint = endpoint_settings(llm)
    return judged(about, await unreachable_because(endpoint), f"{endpoint.name} is there")


def unwritable_because(folder: Path) -> str | None:
    """What keeps a folder from being used or made; None: nothing."""
    existing = next((each for each in (folder, *folder.parents) if each.exists()), folder)
    if not existing.is_dir():
        return "is not a folder" if existing == folder else f"cannot be made: {existing} is not a folder"
    if not os.access(existing, os.W_OK | os.X_OK):
        return "cannot be written; check its permissions" if existing == folder else f"cannot be made in {existing}"
    return None
