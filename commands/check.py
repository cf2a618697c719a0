"""`--check`: prints a row for each thing that the bot needs, with a verdict. Writes nothing."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import os
import re
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import BaseModel
from rich.console import Console
from rich.text import Text

from assembly import Unusable
from assembly.answering import endpoint_settings, open_llm
from assembly.data_folder import read_state
from assembly.health import disk_condition
from assembly.running import meters_of, run_async, serving
from assembly.sources import documents_in, read_records, source_kinds, web_for
from assembly.team import team_paths
from commands.arguments import DONE, UNUSABLE, requires_nats_extra
from commands.dispatch import transport_problems
from model.permissions import OWNER, Operator
from services.documents.store import SUFFIX, chroma_unreachable_because
from services.knowledge import (
    AnyKind,
    CannotList,
    LineResult,
    Record,
    belongs_to,
    kind_of,
    read_links,
    site_host,
)
from services.llm import CallOptions, EndpointSettings, LLMError, Prompt, Usage, why_unreachable
from services.search.embedding import REMEDY, is_model_installed
from services.storage import DataFolder, describe_error, lock_refusal
from services.team import LibraryUnusable, check_library
from services.telemetry import number_of
from settings import (
    EMBEDDED,
    DocumentSettings,
    KnowledgeSettings,
    LLMSettings,
    NatsSettings,
    SettingMissing,
    Settings,
    SettingsError,
    config_files,
    discord_token,
    names_of_variables,
)
from sinks.terminal import printable_line
from transport.address import NO_CREDENTIALS_WARNING, Address


class Verdict(StrEnum):
    """`WARNING`: the bot runs, but not with everything; `MISSING`, `WRONG`: it cannot do its work, as something is not
    there, or is set and cannot be used.
    """

    OK = "ok"
    SKIPPED = "skipped"
    WARNING = "warning"
    MISSING = "missing"
    WRONG = "wrong"


STYLES = {Verdict.OK: "green", Verdict.SKIPPED: "dim", Verdict.WARNING: "yellow"}
"""The colours of verdicts; others are red."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A row of the check. `about`: a key of the configuration; `says`: the text behind the verdict."""

    about: str
    verdict: Verdict
    says: str


def make_finding(about: str, trouble: str | None, otherwise: str, verdict: Verdict = Verdict.MISSING) -> Finding:
    """Make a finding: `verdict` with the trouble; if that is None, OK with the text of `otherwise`."""
    return Finding(about, Verdict.OK, otherwise) if trouble is None else Finding(about, verdict, trouble)


def why_unwritable(folder: Path) -> str | None:
    """Return why a folder cannot be written or made; None: it can."""
    existing = next((each for each in (folder, *folder.parents) if each.exists()), folder)
    if not existing.is_dir():
        return "is not a folder" if existing == folder else f"cannot be made: {existing} is not a folder"
    if not (os.access(existing, os.W_OK | os.X_OK) and _takes_files(existing)):
        return "cannot be written; check its permissions" if existing == folder else f"cannot be made in {existing}"
    return None


def _takes_files(folder: Path) -> bool:
    """Return False for a folder such as /proc, and on a disk that can only be read, whatever the permissions are."""
    try:
        tempfile.TemporaryFile(dir=folder).close()  # of no name
    except OSError:
        return False
    return True


LINKS_KEY = "kb.links_file_path"
LAST_ATTEMPT_FAILED = "the last attempt failed"
TRY_AGAIN = "app.py --init-kb tries again"
NOT_ASKED_YET = "not asked yet; app.py --init-kb does that, and so does the running bot"
MAX_NAMED = 5
"""The most pages that are named because they could not be fetched."""
LOOKUP_SECONDS = 5.0


def links_rows(kb: KnowledgeSettings) -> Iterator[Finding]:
    """Check the list of pages: a row for each line that brings several sources or is wrong, one for all pages, and one
    for each page whose last attempt failed. Such pages are not counted.
    """
    try:
        found = read_links(kb.links_file_path)
    except CannotList:
        return  # another row says so
    if found is None:
        return
    kinds = source_kinds(kb)
    records = read_records(kb, kinds)
    asked = ((line, kind.line_result(line)) for kind in reversed(kinds) for line in found.lines)
    results = [(line, result) for line, result in asked if result is not None]
    # What the list does not bring any more still has a record until the next update.
    listed = {*found.pages, *itertools.chain.from_iterable(result.sources for _, result in results)}
    failures = {source_id: why for source_id, why in failed_sources(kinds, records) if source_id in listed}
    if found.pages:
        text = _count_fetched(kinds, found.pages, failures)
        new = sum(url not in records for url in found.pages)
        waiting = f"; {new} of them {NOT_ASKED_YET}" if new else ""
        yield Finding(LINKS_KEY, Verdict.OK, f"named by themselves: {text}{waiting}")
    for line, result in results:
        count = "" if result.count is None else _count_fetched(kinds, result.sources, failures)
        yield _links_row(f"{line.position}: {line.text}", count, result)
    for source_id, failure in itertools.islice(failures.items(), MAX_NAMED):
        yield Finding(LINKS_KEY, Verdict.WARNING, f"{source_id}: {failure}; {TRY_AGAIN}")
    for position, reason in found.left_out.items():
        yield Finding(LINKS_KEY, Verdict.WARNING, f"{position}: {reason}")


def failed_sources(kinds: Sequence[AnyKind], records: Mapping[str, Record]) -> Iterator[tuple[str, str]]:
    """Yield the sources whose last attempt failed, and why."""
    for source_id, record in records.items():
        kind = next(each for each in kinds if isinstance(record, each.record))
        if record.gone_at is None and (trouble := kind.details(record).trouble):
            yield source_id, trouble


def _count_fetched(kinds: Sequence[AnyKind], sources: Collection[str], failures: Mapping[str, str]) -> str:
    failed = sum(source_id in failures for source_id in sources)
    kind = kind_of(kinds, next(iter(sources), ""))
    noun, plural = ("source", "sources") if kind is None else (kind.noun, kind.plural)
    return number_of(len(sources) - failed, noun, plural) + (f", and {failed} not fetched" if failed else "")


def _links_row(line: str, count: str, result: LineResult) -> Finding:
    text = f"{count}; left out: {result.note}" if result.note else count
    if result.failed:
        why = f": {result.failure}" if result.failure else ""
        text = f"{text}; {LAST_ATTEMPT_FAILED}{why}; {TRY_AGAIN}".removeprefix("; ")
    verdict = Verdict.OK if count and not result.failed else Verdict.WARNING
    return Finding(LINKS_KEY, verdict, f"{line}: {text or NOT_ASKED_YET}")


async def address_rows(settings: Settings) -> list[Finding]:
    """Look up the hosts of the lists of pages, and report each that would be refused because its address is private."""
    # Imported late: extraction has many dependencies that no other command needs.
    from services.knowledge.web import why_not_public  # noqa: PLC0415

    async def look_up(about: str, host: str, url: str, kb: KnowledgeSettings) -> Finding | None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOOKUP_SECONDS):
                if trouble := await why_not_public(url, kb.web_fetch_private_hosts):
                    return Finding(about, Verdict.WARNING, f"{host}: {trouble}")
        return None

    hosts: dict[tuple[str, str], tuple[str, KnowledgeSettings]] = {}
    for guild_id, server in settings.servers.items():
        about = LINKS_KEY if guild_id is None else f"guilds.{guild_id}.{LINKS_KEY}"
        with contextlib.suppress(CannotList):
            found = read_links(server.kb.links_file_path)
            for url in () if found is None else (*found.pages, *(line.url for line in found.lines)):
                hosts.setdefault((about, site_host(url)), (url, server.kb))
    rows = await asyncio.gather(*(look_up(*where, *given) for where, given in hosts.items()))
    return [row for row in rows if row is not None]


async def nats_rows(settings: Settings) -> list[Finding]:
    """Check each NATS server and compare its streams with the settings; nothing for `transport: local`."""
    if settings.local:
        return []
    try:
        with requires_nats_extra():
            from assembly.distributed.server_commands import check_servers  # noqa: PLC0415 (nothing of it is imported for one process)
        found = await check_servers(settings)
    except Unusable as error:
        return [nats_row(str(error))]
    usable = any(each.trouble is None for each in found.servers)
    refused = any(each.trouble is not None and not each.silent for each in found.servers)
    rows = [] if refused else [_credentials(settings.nats)]
    for each in found.servers:
        if each.trouble is None:
            says = f"{each.server} is version {each.version}, and keeps streams (JetStream)"
            rows.append(Finding("transport", Verdict.OK, says))
        elif each.silent and usable:
            rows.append(nats_row(f"{each.trouble}; the others are used", Verdict.WARNING))
        else:
            rows.append(nats_row(each.trouble))
    rows += map(nats_row, [*found.wrong, *transport_problems(settings, rehearsal=settings.app.dry_run)])
    if found.streams is not None and not found.wrong:
        chosen = settings.nats
        says = f"{number_of(len(found.streams), 'stream')}, made as nats.partitions and nats.replicas say"
        if not found.streams:
            says = "nothing is kept there yet: the first start, or --adopt, makes the streams"
        rows.append(Finding("nats.partitions", Verdict.OK, f"{chosen.partitions}: {says}"))
    return rows


def _credentials(chosen: NatsSettings) -> Finding:
    about, variable = "nats.credentials_env", chosen.credentials_env
    path = os.environ.get(variable)
    if not path:
        return Finding(about, Verdict.SKIPPED, f"{variable} is not set: no credentials are shown")
    return Finding(about, Verdict.OK, f"{variable} is {path}")


def nats_row(line: str, verdict: Verdict = Verdict.MISSING) -> Finding:
    """Make a finding. `line`: begins with the key."""
    about, _, says = line.partition(": ")
    return Finding(about, verdict, says)


class CheckResult(BaseModel):
    """The form of the answer that a model is asked for in the check."""

    ready: bool


MODEL_CHECK_PROMPT = Prompt("You check a connection. Reply as you are told to.", "Say that you are ready.")
MODEL_CHECK_TOKENS = 512
"""Room for a model that thinks first."""
CALLS_OF_AN_ANSWER = 3


async def network_rows(settings: Settings) -> list[Finding]:
    """Make all checks that use the network."""
    rows = await asyncio.gather(
        discord_rows(settings),
        nats_rows(settings),
        metrics_rows(settings),
        renderer_rows(settings.kb),
        address_rows(settings),
        document_rows(settings),
        model_rows(settings),
    )
    return [finding for some in rows for finding in some]


async def discord_rows(settings: Settings) -> list[Finding]:
    """Check the token and that Discord lets the bot read messages."""
    about = "discord.token"
    try:
        token = discord_token(settings)
    except SettingsError:
        return []  # another row says so
    if not TOKEN.fullmatch(token):
        return []  # as above; Discord could only refuse it
    # Imported here, as discord.py takes a second to import.
    from services.discord.live import identity  # noqa: PLC0415

    bot = await identity(token)
    if bot.refused is not None:
        return [Finding(about, Verdict.MISSING, bot.refused)]
    if bot.unknown is not None:
        return [Finding(about, Verdict.WARNING, f"{bot.unknown}; a start tries again until it is there")]
    name = printable_line(bot.name)
    known = Finding(about, Verdict.OK, f"Discord knows the bot as {name} ({bot.user_id}) and shows it messages")
    return [known, *[await channel_row(token, *each, bot.user_id) for each in settings.team_channels]]


WITHOUT_CHANNEL = {
    "alerts.channel_id": ("nobody is told there", Verdict.WARNING),
    "discord.review_channel_id": ("the team is not shown what waits for approval", Verdict.MISSING),
    "report.channel_id": ("no report is posted", Verdict.WARNING),
}
"""For each key of `Settings.team_channels`: what follows if the bot may not post there, and how grave that is."""


async def channel_row(token: str, about: str, channel_id: int, bot_id: int) -> Finding:
    """Check that the bot may post in a channel of the team, and that not everybody can view it. Posts nothing."""
    from services.discord.live import Identity, access_to  # noqa: PLC0415 (as above)

    access = await access_to(token, channel_id, bot_id)
    if isinstance(access, Identity):
        return Finding(about, Verdict.WARNING, f"{channel_id}: {access.refused or access.unknown}")
    if access.trouble is None and access.is_viewable:
        says = f"{channel_id}: everybody can view it and reads what is posted there; choose one that only the team sees"
        return Finding(about, Verdict.WARNING, says)
    without, verdict = WITHOUT_CHANNEL[about]
    says = None if access.trouble is None else f"{channel_id}: {access.trouble}; until then {without}"
    return make_finding(about, says, f"{channel_id}: the bot may post there; nothing was posted", verdict)


def alert_rows(settings: Settings) -> Iterator[Finding]:
    """Check where alerts go, as far as that can be told without Discord, and the room on the disk."""
    chosen = settings.alerts
    if not chosen.enabled:
        says = "neither it nor alerts.webhook_url is set: nobody is told when something is wrong"
        yield Finding("alerts.channel_id", Verdict.SKIPPED, says)
    if address := chosen.webhook_url.get_secret_value():
        parts = urlsplit(address)
        local = parts.hostname in {"localhost", "127.0.0.1", "::1"}
        open_ = None if parts.scheme == "https" or local else "http:// shows it to whoever listens; write https://"
        found = f"alerts are posted at {parts.hostname}; nothing was posted"
        yield make_finding("alerts.webhook_url", open_, found, Verdict.WARNING)
    disk = disk_condition(settings.app.data_dir, chosen.disk_free_mb, time.time())
    full = None if disk.is_well else f"{disk.detail}: {disk.words.remedy}"
    yield make_finding("alerts.disk_free_mb", full, disk.detail, Verdict.WARNING)


def operator_rows(settings: Settings) -> Iterator[Finding]:
    """Tell who has a token of the dashboard, and what they may do."""
    chosen = settings.dashboard
    if chosen.enabled and chosen.has_login:
        owners = [OWNER] if chosen.token.get_secret_value() else []
        named = [Operator(name, each.role) for name, each in chosen.operators.items()]
        yield make_finding("dashboard.operators", None, ", ".join(map(str, [*owners, *named])))


async def metrics_rows(settings: Settings) -> list[Finding]:
    """Check that the port is free."""
    about, host, port = "metrics.port", settings.metrics.host, settings.metrics.port
    if not port:
        return []
    trouble = await why_unusable(serving(settings.metrics, meters_of(settings), lambda: None), f"{about}: ")
    return [make_finding(about, trouble, f"{host}:{port} is free")]


async def renderer_rows(kb: KnowledgeSettings) -> list[Finding]:
    """Check that web pages can be rendered."""
    about = "kb.web_fetch_renderer"
    if kb.web_fetch_renderer == "http":
        return []
    return [make_finding(about, await why_unusable(web_for(kb), f"{about} is "), kb.web_fetch_renderer)]


async def why_unusable(opening: contextlib.AbstractAsyncContextManager[object], prefix: str) -> str | None:
    """Open something for a moment, as a start does. Returns the error without its prefix; None: there is none."""
    try:
        async with opening:
            return None
    except Unusable as error:
        return str(error).removeprefix(prefix)


async def document_rows(settings: Settings) -> list[Finding]:
    """Check the store, the embeddings and the model for files of threads and runbooks."""
    chosen = settings.documents
    if not chosen.enabled:
        return [Finding("documents.enabled", Verdict.SKIPPED, "false: files and runbooks are ignored")]
    rows = [embedder_row(settings)]
    if settings.local:
        rows.insert(0, store_row(chosen, DataFolder(settings.app.data_dir)))
    if chosen.synthesis_llm is not None:
        rows.append(model_row(settings, "documents.synthesis_llm", chosen.synthesis_llm, ""))
    return list(await asyncio.gather(*rows))


async def store_row(chosen: DocumentSettings, folder: DataFolder) -> Finding:
    """Check that the document store can be reached or written."""
    about = "documents.store"
    if chosen.store != EMBEDDED:
        trouble = await chroma_unreachable_because(chosen.store)
        says = None if trouble is None else f"Chroma at {chosen.store} {trouble}; until then files are ignored"
        return make_finding(about, says, f"Chroma at {chosen.store} is there", Verdict.WARNING)
    for path in (folder.evidence, folder.runbooks):
        trouble = why_unwritable(path)
        if trouble is not None:
            return Finding(about, Verdict.WARNING, f"{path} {trouble}; files are ignored")
    threads, people = (sum(1 for _ in path.glob(f"*{SUFFIX}")) for path in (folder.evidence, folder.runbooks))
    whose = number_of(people, "person", "people")
    return Finding(about, Verdict.OK, f"embedded: files of {number_of(threads, 'thread')}, runbooks of {whose}")


async def embedder_row(settings: Settings) -> Finding:
    """Check that embeddings can be computed."""
    about = "search.embeddings" if settings.documents.embeddings is None else "documents.embeddings"
    chosen = settings.document_embeddings
    if chosen == "none":
        return Finding(about, Verdict.SKIPPED, "none: keyword search only")
    if isinstance(chosen, str):
        return make_finding(about, None if is_model_installed() else REMEDY, "the packaged model", Verdict.WARNING)
    endpoint = EndpointSettings(chosen.base_url, chosen.model, chosen.api_key.get_secret_value())
    trouble = await why_unreachable(endpoint)
    says = None if trouble is None else f"{trouble}; until then documents have keyword search only"
    return make_finding(about, says, f"{endpoint.name} is there", Verdict.WARNING)


async def model_rows(settings: Settings) -> tuple[Finding, Finding]:
    answering = settings.ai_response.llm
    instead = (
        "topics and descriptions go by words, no model is asked" if answering is None else "ai_response.llm is asked"
    )
    return await asyncio.gather(
        model_row(settings, "ai_response.llm", answering, "null: answers quote the documents, no model is asked"),
        model_row(settings, "kb.llm", settings.kb.llm, f"null: {instead}"),
    )


async def model_row(settings: Settings, about: str, llm: LLMSettings | None, if_none: str) -> Finding:
    """Check that a model is reachable and answers one question in the requested form."""
    if llm is None:
        return Finding(about, Verdict.SKIPPED, if_none)
    if (trouble := await why_unreachable(endpoint_settings(llm))) is not None:
        return Finding(about, Verdict.MISSING, trouble)
    return await try_model(settings, about, llm)


async def try_model(settings: Settings, about: str, llm: LLMSettings) -> Finding:
    """Ask a model one question and check the form and the speed of its answer."""
    endpoint, begun = endpoint_settings(llm), time.perf_counter()
    try:
        async with open_llm(settings, llm) as asker:
            if asker is not None:
                await asker.ask(
                    "check", MODEL_CHECK_PROMPT, CheckResult, Usage(), options=CallOptions(0, MODEL_CHECK_TOKENS, 0)
                )
    except LLMError as error:
        return Finding(about, Verdict.MISSING, str(error))
    seconds = time.perf_counter() - begun
    says = f"{endpoint.name} answers in the wanted shape ({endpoint.method}) after {seconds:.1f} s"
    limit = settings.ai_response.graph_timeout_seconds
    if seconds * CALLS_OF_AN_ANSWER <= limit:
        return Finding(about, Verdict.OK, says)
    slow = f"{CALLS_OF_AN_ANSWER} such calls take longer than ai_response.graph_timeout_seconds ({limit:g})"
    return Finding(about, Verdict.WARNING, f"{says}: too slow, as {slow}; raise it, or take a faster model")


TOKEN = re.compile(r"[A-Za-z0-9_-]{18,}\.[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{20,}")
"""The id of the bot, a time and a signature, each in Base64 (Discord's documentation, "Authentication")."""


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Run `--check`: print all findings. Returns the exit code: 2 if something is missing or wrong, else 0."""
    found = [
        configuration_row(options.config, os.environ),
        token_row(settings),
        *(local_rows(settings) if settings.local else rows_with_nats(settings)),
        log_file_row(settings),
        *alert_rows(settings),
        *operator_rows(settings),
        *run_async(network_rows(settings)),
    ]
    console, width = Console(), max(len(finding.about) for finding in found)
    for finding in found:
        verdict = (f"{finding.verdict:<8}", STYLES.get(finding.verdict, "bold red"))
        # Not wrapped, so that paths can be copied and lines can be searched.
        console.print(Text.assemble(f"{finding.about:<{width}}  ", verdict, f" {finding.says}"), soft_wrap=True)
    return UNUSABLE if any(finding.verdict in {Verdict.MISSING, Verdict.WRONG} for finding in found) else DONE


def local_rows(settings: Settings) -> Iterator[Finding]:
    """Check the data folder, the knowledge and the team, for `transport: local`."""
    yield from folder_rows(settings)
    yield lock_row(settings)
    yield from state_rows(settings)
    yield from knowledge_rows(settings)
    yield members_row(settings)
    yield team_row(settings)
    yield from internal_topic_rows(settings)
    yield from server_rows(settings)


def rows_with_nats(settings: Settings) -> Iterator[Finding]:
    """Check this machine if NATS has the data: the folder of copies, the address, documents and team."""
    yield folder_row("app.data_dir", settings.app.data_dir)
    address = Address(tuple(settings.transport.split(",")), settings.nats.credentials_env)
    if (server := address.unprotected_server) is not None:
        yield Finding("transport", Verdict.WARNING, f"{server} {NO_CREDENTIALS_WARNING}")
    for guild_id, each in settings.servers.items():
        about = "" if guild_id is None else f"guilds.{guild_id}."
        yield replace(documents_row_with_nats(each.kb), about=f"{about}kb.sources_dir")
        yield replace(members_row(each), about=f"{about}discord.team_member_ids")


def documents_row_with_nats(kb: KnowledgeSettings) -> Finding:
    """Check the documents, which only machines with the role `knowledge` need."""
    sources, about = kb.sources_dir, "kb.sources_dir"
    if not sources.is_dir():
        says = f"{sources} is not a folder; only where the role knowledge runs are documents read"
        return Finding(about, Verdict.SKIPPED, says)
    count, says = count_documents(kb)
    return Finding(about, Verdict.WARNING if count is None else Verdict.OK, f"{sources}, {says}")


def count_documents(kb: KnowledgeSettings) -> tuple[int | None, str]:
    """Return the number of documents and describe them; None: they cannot be listed, with the reason."""
    try:
        return documents_in(kb)
    except CannotList as error:
        return None, str(error)


def configuration_row(config: Path, environ: Mapping[str, str]) -> Finding:
    """List the configuration files and environment variables that were read, in order."""
    read, absent = ([str(each) for each in config_files(config) if each.exists() is there] for there in (True, False))
    says = ", ".join([*read, *names_of_variables(environ)])
    return Finding("configuration", Verdict.OK, says + (f" (there is no {' and no '.join(absent)})" if absent else ""))


def token_row(settings: Settings) -> Finding:
    about, verdict = "discord.token", Verdict.WRONG
    says = "is not a bot token, which is three words joined by dots; client secrets and public keys are not"
    try:
        if TOKEN.fullmatch(discord_token(settings)):
            verdict, says = Verdict.OK, "has the form of a bot token"
    except SettingsError as error:
        verdict = Verdict.MISSING if isinstance(error, SettingMissing) else verdict
        says = str(error).removeprefix(f"{about} ")
    return Finding(about, verdict, says)


def folder_rows(settings: Settings) -> Iterator[Finding]:
    """Check the folders that the bot writes to."""
    yield folder_row("app.data_dir", settings.app.data_dir)
    yield folder_row("kb.team_raw_dir", settings.kb.team_raw_dir)


def folder_row(about: str, folder: Path) -> Finding:
    trouble = why_unwritable(folder)
    found = f"{folder}" if folder.is_dir() else f"{folder} will be made"
    return make_finding(about, None if trouble is None else f"{folder} {trouble}", found)


def lock_row(settings: Settings) -> Finding:
    """Check that no other process holds the lock of the data folder, which would prevent a start."""
    root = settings.app.data_dir
    try:
        trouble = lock_refusal(root)
    except OSError as error:
        trouble = describe_error(error)
    return make_finding("app.data_dir", trouble, "no other process writes there")


def state_rows(settings: Settings) -> Iterator[Finding]:
    """Read the saved state as a start does, and report an error."""
    try:
        run_async(_read(settings))
    except OSError as error:
        yield Finding("app.data_dir", Verdict.MISSING, describe_error(error))


async def _read(settings: Settings) -> None:
    read_state(settings)


def knowledge_rows(settings: Settings) -> Iterator[Finding]:
    """Check documents, index and list of pages."""
    kb, about, sources = settings.kb, "kb.sources_dir", settings.kb.sources_dir
    if not sources.is_dir():
        yield Finding(about, Verdict.MISSING, f"{sources} is not a folder; put the documents there")
    elif not os.access(sources, os.R_OK | os.X_OK):
        yield Finding(about, Verdict.MISSING, f"{sources} cannot be read; check its permissions")
    else:
        count, says = count_documents(kb)
        empty = None if count else f"{sources}, {says}; there is nothing to answer from"
        yield make_finding(about, empty, f"{sources}, {says}", Verdict.WARNING)
    yield file_row("kb.index_path", kb.index_path, "there are no answers from documents until it is written")
    if kb.links_file_path.exists():
        yield file_row(LINKS_KEY, kb.links_file_path, "")
        yield from links_rows(kb)
    else:
        yield Finding(LINKS_KEY, Verdict.SKIPPED, f"{kb.links_file_path} does not exist: no web pages")


def file_row(about: str, path: Path, if_missing: str) -> Finding:
    """Check that a file can be read; it may be missing yet."""
    if not path.exists():
        return Finding(about, Verdict.WARNING, f"{path} does not exist; {if_missing}")
    readable = path.is_file() and os.access(path, os.R_OK)
    trouble = None if readable else f"{path} cannot be read; check that it is a file, and its permissions"
    return make_finding(about, trouble, str(path))


def members_row(settings: Settings) -> Finding:
    people, roles = len(settings.discord.team_member_ids), len(settings.discord.team_role_ids)
    nobody = None if people or roles else "nobody is in the team, so nothing is learned"
    configured = f"{number_of(people, 'person', 'people')} and {number_of(roles, 'role')}"
    return make_finding("discord.team_member_ids", nobody, configured, Verdict.WARNING)


def team_row(settings: Settings) -> Finding:
    """Check the team knowledge for problems that would prevent a start."""
    places, trouble = team_paths(settings), None
    try:
        check_library(places, configured_cursor=settings.kb.qa_raw_last_processed_id, now=time.time())
    except LibraryUnusable as error:
        trouble = str(error)
    except OSError as error:
        trouble = describe_error(error)
    found = f"{places.state}" if places.state.exists() else f"{places.state} will be made"
    return make_finding("kb.team_state_path", trouble, found)


def server_rows(settings: Settings) -> Iterator[Finding]:
    """Check the knowledge and the team of each server in `guilds`, with its keys."""
    for guild_id, server in settings.servers.own.items():
        named = settings.guilds[guild_id].kb.sources_dir is not None
        rows = [
            *server_document_rows(server, named=named),
            members_row(server),
            team_row(server),
            *internal_topic_rows(server),
        ]
        yield from (replace(row, about=f"guilds.{guild_id}.{row.about}") for row in rows)


def server_document_rows(server: Settings, *, named: bool) -> Iterator[Finding]:
    """Check the documents of one server, of which there may be none. `named`: the folder was set by the operator."""
    kb, sources = server.kb, server.kb.sources_dir
    missing = f"{sources} is not a folder; put its documents there" if named and not sources.is_dir() else None
    _, says = count_documents(kb) if sources.is_dir() else (0, number_of(0, "document"))
    yield make_finding("kb.sources_dir", missing, f"{sources}, {says}")
    if kb.links_file_path.exists():
        yield file_row(LINKS_KEY, kb.links_file_path, "")
        yield from links_rows(kb)


def internal_topic_rows(settings: Settings) -> Iterator[Finding]:
    """Check that each internal topic exists; a misspelt name would hide nothing."""
    kb = settings.kb
    if not kb.internal_topics:
        return
    known = {path.stem for path in kb.team_topics_dir.glob("*.txt")}
    hidden = sum(1 for name in known if belongs_to(name, kb.internal_topics))
    missing = ", ".join(sorted(kb.internal_topics - known))
    trouble = f"there is no topic {missing} yet; --kb list shows the topics" if missing else None
    found = f"for the team only: {number_of(hidden, 'topic file')}"
    yield make_finding("kb.internal_topics", trouble, found, Verdict.WARNING)


def log_file_row(settings: Settings) -> Finding:
    path = settings.logging.file.path
    if path is None:
        return Finding("logging.file.path", Verdict.SKIPPED, "the log goes to the console only")
    trouble = why_unwritable(path.parent)
    if path.exists():
        trouble = None if path.is_file() and os.access(path, os.W_OK) else "cannot be written"
    says = None if trouble is None else f"{path} {trouble}; the log goes to the console only"
    return make_finding("logging.file.path", says, str(path), Verdict.WARNING)
