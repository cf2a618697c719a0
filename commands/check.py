"""`--check`: whether everything that the bot needs is in place. Writes nothing."""

from __future__ import annotations

import argparse
import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.text import Text

from assembly.running import run_async
from assembly.sources import documents_in
from assembly.state import read_state
from assembly.team import team_places
from commands.check_links import links
from commands.check_servers import servers
from commands.exit_codes import DONE, UNUSABLE
from commands.findings import STYLES, Finding, Verdict, judged, unwritable_because
from services.knowledge import CannotList, belongs_to
from services.storage import held_by_another, why
from services.team import LibraryUnusable, examine
from services.telemetry import number_of
from settings import KnowledgeSettings, Settings, SettingsError, files_of, usable_token, variables_of
from transport.address import ASK_FOR_CREDENTIALS, Address

TOKEN = re.compile(r"[A-Za-z0-9_-]{18,}\.[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{20,}")
"""The id of the bot, a time and a signature, each in Base64 (Discord's documentation, "Authentication")."""


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Run `--check`. Gives the exit code."""
    return check(settings, options.config)


def check(settings: Settings, config: Path) -> int:
    """Print what was found. `config`: the file that the settings were read from. Gives the exit code: 2 when something
    is missing, else 0.
    """
    found = [
        configuration(config, os.environ),
        token(settings),
        *(on_disk(settings) if settings.local else in_nats(settings)),
        log_file(settings),
        *run_async(servers(settings)),
    ]
    console, width = Console(), max(len(finding.about) for finding in found)
    for finding in found:
        verdict = (f"{finding.verdict:<8}", STYLES[finding.verdict])
        # Not wrapped, so that paths can be copied and lines be searched for.
        console.print(Text.assemble(f"{finding.about:<{width}}  ", verdict, f" {finding.says}"), soft_wrap=True)
    return UNUSABLE if any(finding.verdict is Verdict.MISSING for finding in found) else DONE


def on_disk(settings: Settings) -> Iterator[Finding]:
    """Check the data folder, the knowledge and the team, for `transport: local`."""
    yield from folders(settings)
    yield held(settings)
    yield from state(settings)
    yield from knowledge(settings)
    yield staff(settings)
    yield team(settings)
    yield from internal_topics(settings)
    yield from guilds(settings)


def in_nats(settings: Settings) -> Iterator[Finding]:
    """Check what is on this machine where NATS holds the data: copies, and perhaps the documents."""
    yield next(folders(settings))
    address = Address(tuple(settings.transport.split(",")), settings.nats.credentials_env)
    if (server := address.open_to_others) is not None:
        yield Finding("transport", Verdict.WARNING, f"{server} {ASK_FOR_CREDENTIALS}")
    for about, each in (("", settings), *((f"guilds.{guild_id}.", own) for guild_id, own in settings.servers.items())):
        yield replace(handed_on(each.kb), about=f"{about}kb.sources_dir")
        yield replace(staff(each), about=f"{about}discord.team_member_ids")


def handed_on(kb: KnowledgeSettings) -> Finding:
    """Check the documents, which only the machine with the role `knowledge` needs."""
    sources, about = kb.sources_dir, "kb.sources_dir"
    if not sources.is_dir():
        says = f"{sources} is not a folder; only where the role knowledge runs are documents read"
        return Finding(about, Verdict.SKIPPED, says)
    try:
        _, says = documents_in(kb)
    except CannotList as error:
        return Finding(about, Verdict.WARNING, f"{sources}, {error}")
    return Finding(about, Verdict.OK, f"{sources}, {says}")


def configuration(config: Path, environ: Mapping[str, str]) -> Finding:
    """List the configuration files and environment variables that were read, in their order."""
    read, absent = ([str(each) for each in files_of(config) if each.exists() is there] for there in (True, False))
    says = ", ".join([*read, *variables_of(environ)])
    return Finding("configuration", Verdict.OK, says + (f" (there is no {' and no '.join(absent)})" if absent else ""))


def token(settings: Settings) -> Finding:
    trouble = None
    try:
        if not TOKEN.fullmatch(usable_token(settings)):
            trouble = "is not a bot token, which is three words joined by dots; client secrets and public keys are not"
    except SettingsError as error:
        trouble = str(error).removeprefix("discord.token ")
    return judged("discord.token", trouble, "has the form of a bot token")


def folders(settings: Settings) -> Iterator[Finding]:
    """Check the folders that the bot writes to."""
    for about, folder in (("app.data_dir", settings.app.data_dir), ("kb.team_raw_dir", settings.kb.team_raw_dir)):
        trouble = unwritable_because(folder)
        found = f"{folder}" if folder.is_dir() else f"{folder} will be made"
        yield judged(about, None if trouble is None else f"{folder} {trouble}", found)


def held(settings: Settings) -> Finding:
    """Check that no other process holds the data folder, which would refuse a start."""
    root = settings.app.data_dir
    try:
        trouble = held_by_another(root)
    except OSError as error:
        trouble = why(error)
    return judged("app.data_dir", trouble, "no other process writes there")


def state(settings: Settings) -> Iterator[Finding]:
    """Read the saved state as a start does, and report an error."""
    try:
        run_async(_read(settings))
    except OSError as error:
        yield Finding("app.data_dir", Verdict.MISSING, why(error))


async def _read(settings: Settings) -> None:
    read_state(settings)


def knowledge(settings: Settings) -> Iterator[Finding]:
    """Check documents, index and list of pages."""
    kb, sources = settings.kb, settings.kb.sources_dir
    if not sources.is_dir():
        yield Finding("kb.sources_dir", Verdict.MISSING, f"{sources} is not a folder; put the documents there")
    elif not os.access(sources, os.R_OK | os.X_OK):
        yield Finding("kb.sources_dir", Verdict.MISSING, f"{sources} cannot be read; check its permissions")
    else:
        try:
            count, says = documents_in(kb)
        except CannotList as error:
            count, says = 0, str(error)
        empty = None if count else f"{sources}, {says}; there is nothing to answer from"
        yield judged("kb.sources_dir", empty, f"{sources}, {says}", Verdict.WARNING)
    yield file("kb.index_path", kb.index_path, "there are no answers from documents until it is written")
    if kb.links_file_path.exists():
        yield file("kb.links_file_path", kb.links_file_path, "")
        yield from links(kb)
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
        examine(places, configured_cursor=settings.kb.qa_raw_last_processed_id, now=time.time())
    except LibraryUnusable as error:
        trouble = str(error)
    except OSError as error:
        trouble = why(error)
    found = f"{places.state}" if places.state.exists() else f"{places.state} will be made"
    return judged("kb.team_state_path", trouble, found)


def guilds(settings: Settings) -> Iterator[Finding]:
    """Check what single servers have of their own, with the keys under `guilds`."""
    for guild_id, server in settings.servers.items():
        named = settings.guilds[guild_id].kb.sources_dir is not None
        rows = [*own_documents(server, named=named), staff(server), team(server), *internal_topics(server)]
        yield from (replace(row, about=f"guilds.{guild_id}.{row.about}") for row in rows)


def own_documents(server: Settings, *, named: bool) -> Iterator[Finding]:
    """Check the documents of one server, of which there may be none. `named`: the folder was set by the operator."""
    kb, sources = server.kb, server.kb.sources_dir
    missing = f"{sources} is not a folder; put its documents there" if named and not sources.is_dir() else None
    try:
        _, says = documents_in(kb) if sources.is_dir() else (0, number_of(0, "document"))
    except CannotList as error:
        says = str(error)
    yield judged("kb.sources_dir", missing, f"{sources}, {says}")
    if kb.links_file_path.exists():
        yield file("kb.links_file_path", kb.links_file_path, "")
        yield from links(kb)


def internal_topics(settings: Settings) -> Iterator[Finding]:
    """Check that each internal topic exists; a misspelt name would hide nothing."""
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
