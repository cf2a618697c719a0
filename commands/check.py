"""`--check`: whether everything is in place that the bot needs. Writes nothing."""

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

from assembly.documents import EMBEDDED
from assembly.llm import endpoint_settings
from assembly.team import team_places
from services.documents.store import SUFFIX, chroma_unreachable_because
from services.knowledge import belongs_to
from services.llm import EndpointSettings, unreachable_because
from services.search.embedding import REMEDY, installed
from services.storage import DataFolder, why
from services.team import LibraryUnusable, begins_after, state
from services.telemetry import number_of
from settings import DocumentSettings, LLMSettings, Settings, SettingsError, usable_token

TOKEN = re.compile(r"[A-Za-z0-9_-]{18,}\.[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{20,}")
"""The id of the bot, a time and a signature, each in Base64 (as Discord's documentation shows it)."""


class Verdict(StrEnum):
    OK = "ok"
    SKIPPED = "skipped"
    WARNING = "warning"
    """The bot runs, and somebody may miss something."""
    MISSING = "missing"
    """The bot cannot do its work."""


STYLES = {Verdict.OK: "green", Verdict.SKIPPED: "dim", Verdict.WARNING: "yellow", Verdict.MISSING: "bold red"}


@dataclass(frozen=True, slots=True)
class Finding:
    about: str
    """The key, where there is one."""
    verdict: Verdict
    says: str


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
        *asyncio.run(asked(settings)),
    ]
    show(Console(), found)
    return 2 if any(finding.verdict is Verdict.MISSING for finding in found) else 0


def show(console: Console, found: list[Finding]) -> None:
    width = max(len(finding.about) for finding in found)
    for finding in found:
        verdict = (f"{finding.verdict:<8}", STYLES[finding.verdict])
        # Not wrapped, so that paths can be copied and lines be searched for.
        console.print(Text.assemble(f"{finding.about:<{width}}  ", verdict, f" {finding.says}"), soft_wrap=True)


def token(settings: Settings) -> Finding:
    try:
        value = usable_token(settings)
    except SettingsError as error:
        return Finding("discord.token", Verdict.MISSING, str(error).removeprefix("discord.token "))
    if not TOKEN.fullmatch(value):
        says = "is no bot's token, which is three words joined by dots; a client secret or public key is something else"
        return Finding("discord.token", Verdict.MISSING, says)
    return Finding("discord.token", Verdict.OK, "has the form of a bot's token")


def folders(settings: Settings) -> Iterator[Finding]:
    """Where the bot writes."""
    for about, folder in (("app.data_dir", settings.app.data_dir), ("kb.team_raw_dir", settings.kb.team_raw_dir)):
        trouble = unwritable_because(folder)
        if trouble is not None:
            yield Finding(about, Verdict.MISSING, f"{folder} {trouble}")
        else:
            yield Finding(about, Verdict.OK, f"{folder}" if folder.is_dir() else f"{folder} will be made")


def knowledge(settings: Settings) -> Iterator[Finding]:
    """What the bot answers from."""
    kb = settings.kb
    sources = kb.sources_dir
    if not sources.is_dir():
        yield Finding("kb.sources_dir", Verdict.MISSING, f"{sources} is no folder; put the documents there")
    elif not os.access(sources, os.R_OK | os.X_OK):
        yield Finding("kb.sources_dir", Verdict.MISSING, f"{sources} cannot be read; check its permissions")
    else:
        count = sum(1 for path in sources.rglob("*") if path.is_file())
        empty = "; there is nothing to answer from" if count == 0 else ""
        yield Finding(
            "kb.sources_dir", Verdict.WARNING if empty else Verdict.OK, f"{sources}, {number_of(count, 'file')}{empty}"
        )
    yield file("kb.index_path", kb.index_path, "there are no answers from documents until it is written")
    if kb.links_file_path.exists():
        yield file("kb.links_file_path", kb.links_file_path, "")
    else:
        yield Finding("kb.links_file_path", Verdict.SKIPPED, f"{kb.links_file_path} does not exist: no web pages")


def file(about: str, path: Path, if_missing: str) -> Finding:
    """A file to be read, which may still come."""
    if not path.exists():
        return Finding(about, Verdict.WARNING, f"{path} does not exist; {if_missing}")
    if not path.is_file() or not os.access(path, os.R_OK):
        return Finding(about, Verdict.MISSING, f"{path} cannot be read; check that it is a file, and its permissions")
    return Finding(about, Verdict.OK, str(path))


def staff(settings: Settings) -> Finding:
    discord = settings.discord
    people, roles = len(discord.team_member_ids), len(discord.team_role_ids)
    if not people and not roles:
        return Finding("discord.team_member_ids", Verdict.WARNING, "nobody is in the team, so nothing is learned")
    return Finding(
        "discord.team_member_ids", Verdict.OK, f"{number_of(people, 'person', 'people')} and {number_of(roles, 'role')}"
    )


def team(settings: Settings) -> Finding:
    """What the team has taught, as far as the bot would refuse to go on from there."""
    about = "kb.team_state_path"
    places = team_places(settings)
    try:
        begins_after(places, state.read(places.state), settings.kb.qa_raw_last_processed_id, time.time())
    except LibraryUnusable as error:
        return Finding(about, Verdict.MISSING, str(error))
    except OSError as error:
        return Finding(about, Verdict.MISSING, why(error))
    return Finding(about, Verdict.OK, f"{places.state}" if places.state.exists() else f"{places.state} will be made")


def internal_topics(settings: Settings) -> Iterator[Finding]:
    """What is for the team only. A name that is spelt otherwise than the topic's would hide nothing."""
    kb = settings.kb
    if not kb.internal_topics:
        return
    about = "kb.internal_topics"
    there = {path.stem for path in kb.team_topics_dir.glob("*.txt")}
    hidden = sum(1 for name in there if belongs_to(name, kb.internal_topics))
    missing = sorted(kb.internal_topics - there)
    if missing:
        says = f"there is no topic {', '.join(missing)} yet; --kb list tells which there are"
        yield Finding(about, Verdict.WARNING, says)
    else:
        yield Finding(about, Verdict.OK, f"{hidden} files of topics are for the team only")


def log_file(settings: Settings) -> Finding:
    path = settings.logging.file.path
    if path is None:
        return Finding("logging.file.path", Verdict.SKIPPED, "the log goes to the console only")
    trouble = unwritable_because(path.parent)
    if path.exists():
        trouble = None if path.is_file() and os.access(path, os.W_OK) else "cannot be written"
    if trouble is not None:
        return Finding("logging.file.path", Verdict.WARNING, f"{path} {trouble}; the log goes to the console only")
    return Finding("logging.file.path", Verdict.OK, str(path))


async def asked(settings: Settings) -> list[Finding]:
    """What is known only from servers, where any are named."""
    about_files, about_models = await asyncio.gather(documents(settings), models(settings))
    return [*about_files, *about_models]


async def documents(settings: Settings) -> list[Finding]:
    """Files of threads and runbooks."""
    chosen = settings.documents
    if not chosen.enabled:
        return [Finding("documents.enabled", Verdict.SKIPPED, "false: files and runbooks are left alone")]
    return list(await asyncio.gather(store(chosen, DataFolder(settings.app.data_dir)), embedder(chosen)))


async def store(chosen: DocumentSettings, folder: DataFolder) -> Finding:
    """Where documents are kept."""
    if chosen.store != EMBEDDED:
        trouble = await chroma_unreachable_because(chosen.store)
        if trouble is not None:
            says = f"Chroma at {chosen.store} {trouble}; until then files are left alone"
            return Finding("documents.store", Verdict.WARNING, says)
        return Finding("documents.store", Verdict.OK, f"Chroma at {chosen.store} is there")
    for place in (folder.evidence, folder.runbooks):
        trouble = unwritable_because(place)
        if trouble is not None:
            return Finding("documents.store", Verdict.WARNING, f"{place} {trouble}; files are left alone")
    threads, people = (sum(1 for _ in place.glob(f"*{SUFFIX}")) for place in (folder.evidence, folder.runbooks))
    whose = number_of(people, "person", "people")
    says = f"embedded: files of {number_of(threads, 'thread')}, runbooks of {whose}"
    return Finding("documents.store", Verdict.OK, says)


async def embedder(chosen: DocumentSettings) -> Finding:
    """Who makes vectors of texts."""
    about, at = "documents.embeddings", chosen.embeddings
    if at is None:
        if installed():
            return Finding(about, Verdict.OK, "the packaged model")
        return Finding(about, Verdict.WARNING, REMEDY)
    endpoint = EndpointSettings(at.base_url, at.model, at.api_key.get_secret_value())
    trouble = await unreachable_because(endpoint)
    if trouble is not None:
        return Finding(about, Verdict.WARNING, f"{trouble}; until then documents are searched by words only")
    return Finding(about, Verdict.OK, f"{endpoint.name} is there")


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
    trouble = await unreachable_because(endpoint)
    if trouble is not None:
        return Finding(about, Verdict.MISSING, trouble)
    return Finding(about, Verdict.OK, f"{endpoint.name} is there")


def unwritable_because(folder: Path) -> str | None:
    """What keeps a folder from being used or made; None: nothing."""
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        return "is no folder" if there == folder else f"cannot be made: {there} is no folder"
    if not os.access(there, os.W_OK | os.X_OK):
        return "cannot be written; check its permissions" if there == folder else f"cannot be made in {there}"
    return None
