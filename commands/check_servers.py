"""The rows of `--check` about what has to be asked over the network, or opened for a moment."""

from __future__ import annotations

import asyncio
import time

from pydantic import BaseModel

from assembly import Unusable
from assembly.llm import endpoint_settings, open_llm
from assembly.running import meters_of, serving
from assembly.sources import web_for
from commands.check_nats import nats
from commands.findings import Finding, Verdict, judged, unwritable_because
from services.documents.store import SUFFIX, chroma_unreachable_because
from services.llm import CallOptions, EndpointSettings, LLMError, Prompt, Usage, unreachable_because
from services.search.embedding import REMEDY, installed
from services.storage import DataFolder
from services.telemetry import number_of
from settings import EMBEDDED, DocumentSettings, KnowledgeSettings, LLMSettings, Settings, SettingsError, usable_token
from sinks.terminal import one_line


class CheckResult(BaseModel):
    """The form of the answer that a model is asked for in the check."""

    ready: bool


QUESTION = Prompt("You check a connection. Reply as you are told to.", "Say that you are ready.")
QUESTION_TOKENS = 512
"""Room for a model that thinks first."""
CALLS_OF_AN_ANSWER = 3


async def servers(settings: Settings) -> list[Finding]:
    """Check everything that has to be asked over the network."""
    rows = await asyncio.gather(
        discord(settings),
        nats(settings),
        metrics(settings),
        renderer(settings.kb),
        documents(settings),
        models(settings),
    )
    return [finding for some in rows for finding in some]


async def discord(settings: Settings) -> list[Finding]:
    """Check the token and that Discord lets the bot read messages."""
    about = "discord.token"
    try:
        token = usable_token(settings)
    except SettingsError:
        return []  # said already
    # Only now: discord.py takes a second to import.
    from services.discord.live import identity  # noqa: PLC0415

    bot = await identity(token)
    if bot.refused is not None:
        return [Finding(about, Verdict.MISSING, bot.refused)]
    if bot.unknown is not None:
        return [Finding(about, Verdict.WARNING, f"{bot.unknown}; a start tries again until it is there")]
    name = one_line(bot.name)
    return [Finding(about, Verdict.OK, f"Discord knows the bot as {name} ({bot.user_id}) and shows it messages")]


async def metrics(settings: Settings) -> list[Finding]:
    """The port, listened on for a moment, as a start does."""
    about, trouble = "metrics.port", None
    if not settings.metrics.port:
        return []
    try:
        async with serving(settings.metrics, meters_of(settings), lambda: None):
            pass
    except Unusable as error:
        trouble = str(error).removeprefix(f"{about}: ")
    return [judged(about, trouble, f"{settings.metrics.host}:{settings.metrics.port} is free")]


async def renderer(kb: KnowledgeSettings) -> list[Finding]:
    """Check that web pages can be rendered, by opening the renderer as a start does."""
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
    rows = [embedder(settings)]
    if settings.local:
        rows.insert(0, store(chosen, DataFolder(settings.app.data_dir)))
    if chosen.synthesis_llm is not None:
        rows.append(model(settings, "documents.synthesis_llm", chosen.synthesis_llm, ""))
    return list(await asyncio.gather(*rows))


async def store(chosen: DocumentSettings, folder: DataFolder) -> Finding:
    """Check that the document store can be reached or written."""
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
    """Check that embeddings can be computed."""
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
        model(settings, "ai_response.llm", answering, "null: answers quote the documents, no model is asked"),
        model(settings, "kb.llm", settings.kb.llm, f"null: {instead}"),
    )


async def model(settings: Settings, about: str, llm: LLMSettings | None, if_none: str) -> Finding:
    """Check that a model is reachable and answers one question in the requested form."""
    if llm is None:
        return Finding(about, Verdict.SKIPPED, if_none)
    if (trouble := await unreachable_because(endpoint_settings(llm))) is not None:
        return Finding(about, Verdict.MISSING, trouble)
    return await asked(settings, about, llm)


async def asked(settings: Settings, about: str, llm: LLMSettings) -> Finding:
    """Ask a model one question and check the form and the speed of its answer."""
    endpoint, begun = endpoint_settings(llm), time.perf_counter()
    try:
        async with open_llm(settings, llm) as asker:
            if asker is not None:
                await asker.ask("check", QUESTION, CheckResult, Usage(), options=CallOptions(0, QUESTION_TOKENS, 0))
    except LLMError as error:
        return Finding(about, Verdict.MISSING, str(error))
    seconds = time.perf_counter() - begun
    says = f"{endpoint.name} answers in the wanted shape ({endpoint.method}) after {seconds:.1f} s"
    limit = settings.ai_response.graph_timeout_seconds
    if seconds * CALLS_OF_AN_ANSWER <= limit:
        return Finding(about, Verdict.OK, says)
    slow = f"{CALLS_OF_AN_ANSWER} such calls take longer than ai_response.graph_timeout_seconds ({limit:g})"
    return Finding(about, Verdict.WARNING, f"{says}: too slow, as {slow}; raise it, or take a faster model")
