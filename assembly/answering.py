"""Opens the parts of answering: library, search, embedder, language model and assistant; and an answerer for single
questions outside of the bot.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import (
    AsyncExitStack,
    aclosing,
    asynccontextmanager,
    closing,
    contextmanager,
)
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from assembly.sources import source_kinds
from model.conversations import Conversation, Role, Turn
from model.servers import Servers
from operators.answering import AnswerRules
from operators.approving import ApprovalRules
from operators.pointing import PointRules
from services.assistant import Addresses, ConfiguredTasks
from services.assistant.extractive import ExtractiveAssistant
from services.knowledge import DiskLibrary, JoinedLibrary, LibrarySearch, OwnLibrary, site_generator_of
from services.llm import Usage
from services.redaction import Redactor
from services.search import PassageStore, delete_passages
from services.search.embedding import (
    MAX_WORKERS,
    EmbeddingEndpoint,
    EndpointEmbedder,
    PackagedEmbedder,
    count_cores,
    is_model_installed,
)
from services.search.text import SiteGenerator
from services.storage import DataFolder
from services.telemetry import number_of
from streams.answerer import Answerer
from streams.chain import ServerContext, unlimited_budget

if TYPE_CHECKING:
    from services.assistant import Assistant
    from services.knowledge import Library, Search
    from services.llm import Endpoint, EndpointSettings, Limiter, ObserveCalls, StructuredLLM
    from services.search.embedding import Embedder
    from settings import AnswerSettings, EmbeddingSettings, LLMSettings, Settings

KB_FILE, TEAM_FILE = "search.sqlite", "search-team.sqlite"
"""The files of passages, each beside its index. They can be deleted, and are made again."""


def embedder_of(setting: EmbeddingSettings | str, *, leave_cores: int = 1) -> Embedder | None:
    """Return the configured endpoint, or the packaged model if it is installed; None: search by words only.

    Args:
        setting: the value of `search.embeddings`.
        leave_cores: the number of cores that the packaged model leaves to others. A bot that serves needs one.
    """
    if not isinstance(setting, str):
        from services.llm import vectors_client  # noqa: PLC0415 (as in `open_llm`)

        endpoint = EmbeddingEndpoint(setting.base_url, setting.model, setting.api_key.get_secret_value())
        return EndpointEmbedder(endpoint, vectors_client)
    if setting != "packaged" or not is_model_installed():
        return None
    return PackagedEmbedder(workers=min(max(count_cores() - leave_cores, 1), MAX_WORKERS))


@asynccontextmanager
async def open_embedder(setting: EmbeddingSettings | str, *, leave_cores: int = 1) -> AsyncGenerator[Embedder | None]:
    """Open the configured embedder until the end of the block; None: search by words only. `leave_cores`: as above."""
    embedder = embedder_of(setting, leave_cores=leave_cores)
    try:
        yield embedder
    finally:
        if embedder is not None:
            await embedder.close()


@asynccontextmanager
async def open_search(
    settings: Settings,
    library: Library,
    embedder: Embedder | None,
    *,
    read_only: bool = True,
    embeds_on_refresh: bool = True,
    shared_search: LibrarySearch | None = None,
) -> AsyncGenerator[LibrarySearch]:
    """Open a search over `library` until the end of the block.

    `read_only`: changes of the files of passages stay in memory, for replays, which must leave the same bytes each
    time: these files hold paths and times. `embeds_on_refresh`: a refresh also makes the vectors; else another task
    has to. `shared_search`: searched as well.
    """
    kb = settings.kb
    search = LibrarySearch(
        library,
        PassageStore(kb.team_index_path.with_name(TEAM_FILE), read_only=read_only),
        PassageStore(kb.index_path.with_name(KB_FILE), read_only=read_only),
        embedder,
        embeds_on_refresh,
        shared_search,
    )
    with closing(search):
        yield search


def drop_team_passages(settings: Settings) -> bool:
    """Delete the passages of the team's topics, while no search is open. Returns True if there were any. Blocking."""
    return delete_passages(settings.kb.team_index_path.with_name(TEAM_FILE))


@contextmanager
def team_search(
    search: LibrarySearch, library: Library, shared: LibrarySearch | None = None
) -> Generator[LibrarySearch]:
    """Open a search that also covers the team's internal topics, in memory, until the end of the block. `shared`: the
    search that the server's team may use over the shared library, internal topics included.
    """
    with closing(PassageStore(None)) as topics:
        yield LibrarySearch(library, topics, search.kb, search.embedder, embeds_on_refresh=True, shared_search=shared)


def point_rules(settings: Settings, guild_id: int | None = None) -> PointRules:
    """Make the rules of pointing to pages in a server if there is no sure answer."""
    server = settings.servers[guild_id]
    answering = server.ai_response
    return PointRules(
        when_unsure=answering.when_unsure == "point",
        by_channel={channel: server.when_unsure_in(channel) == "point" for channel in server.discord.channels},
        reply_language=answering.reply_language,
        out_of_scope_hint=answering.out_of_scope_hint,
    )


def approval_rules(settings: Settings, guild_id: int | None = None) -> ApprovalRules:
    """Make the rules that say which answers in a server wait for a person."""
    server = settings.servers[guild_id]
    answering = server.ai_response
    return ApprovalRules(
        approval=answering.approval,
        by_channel={channel: server.approval_in(channel) for channel in server.discord.channels},
        min_confidence=answering.approval_below,
        seconds=answering.approval_minutes * 60,
        review_channel_id=server.discord.review_channel_id or 0,
    )


def addresses_of(settings: Settings, guild_id: int | None = None) -> Addresses:
    """Make the web addresses of sources in a server."""
    if guild_id in settings.servers.own:
        return replace(addresses_of(settings), server_addresses=addresses_of(settings.servers[guild_id]))
    base = settings.kb.source_base_url
    bases = ({"": base} if base else {}) if isinstance(base, str) else dict(base)
    configured = settings.kb.site_generator
    made = {
        folder: SiteGenerator(configured)
        if configured != "auto"
        else site_generator_of(settings.kb.sources_dir / folder)
        for folder in bases
    }
    generators = {folder: generator for folder, generator in made.items() if generator is not None}
    places = DataFolder(settings.app.data_dir).places

    def pair_address(qa_id: str) -> str | None:
        from services.team import PairLinks  # noqa: PLC0415 (some 50 ms that answers from documents do without)

        return PairLinks(places).address(qa_id)

    return Addresses(bases, generators, pair_address)


def library_of(settings: Settings, *, for_team: bool = False, expects_documents: bool = True) -> DiskLibrary:
    """Return the sources of answers for everybody; `for_team`: internal topics as well. `expects_documents`: a missing
    index is logged.

    This is the only place that hides internal topics from public answers.
    """
    kb = settings.kb
    return DiskLibrary(
        index_path=kb.index_path,
        kinds=source_kinds(kb),
        team_index_path=kb.team_index_path,
        team_topics_dir=kb.team_topics_dir,
        max_source_bytes=kb.max_source_bytes,
        hidden_topics=() if for_team else kb.internal_topics,
        redact=Redactor(settings.secrets).documentation_text,
        expects_documents=expects_documents,
    )


class ServerLibrary(NamedTuple):
    """The sources of one server. `own`: its own; `all`: those that its answers may be made of. A server without own
    sources has the shared library as both.
    """

    own: Library
    all: Library


def server_libraries(settings: Settings, *, for_team: bool = False) -> Servers[ServerLibrary]:
    """Return the libraries of each server. `for_team`: include the server's internal topics, and the shared ones too,
    unless the server has a team of its own.
    """
    shared = library_of(settings, for_team=for_team)
    shared_public = library_of(settings) if for_team else shared
    found: dict[int | None, ServerLibrary] = {None: ServerLibrary(shared, shared)}
    for guild_id, server in settings.servers.own.items():
        own = OwnLibrary(library_of(server, for_team=for_team, expects_documents=False), guild_id)
        visible = shared_public if settings.has_own_team(guild_id) else shared
        found[guild_id] = ServerLibrary(own, JoinedLibrary(own, visible))
    return Servers(found)


def answer_rules(settings: Settings) -> AnswerRules:
    """Return the limits of answering, each read from the key of `ai_response` with its name."""
    thread_reuse_seconds = settings.discord.thread_reuse_minutes * 60
    limit_names = {each.name for each in fields(AnswerRules)} - {"thread_reuse_seconds"}
    limits = {name: getattr(settings.ai_response, name) for name in limit_names}
    return AnswerRules(**limits, thread_reuse_seconds=thread_reuse_seconds)


ObserveDuration = Callable[[str, float], None]
"""Called with the step and the real seconds of each LLM call."""


def endpoint_settings(llm: LLMSettings) -> EndpointSettings:
    from services.llm import EndpointSettings  # noqa: PLC0415 (as in `open_llm`)

    return EndpointSettings(
        base_url=llm.base_url,
        api_key=llm.api_key.get_secret_value(),
        model=llm.model,
        vram_limit=llm.vram_limit,
        method=llm.structured_output_method,
        timeout_seconds=llm.timeout_seconds,
        max_retries=llm.max_retries,
        retry_timeouts=llm.retry_timeouts,
    )


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """How a run calls its models.

    Attributes:
        record: the file to which LLM calls are appended.
        replay: the file that answers instead of an endpoint, whether or not one is configured.
        at_once: the most calls at a time of each model; None: no limit.
        on_duration: hears of each call how long it took, whether it failed or not.
        on_call: hears of each call to an endpoint whether it failed.
    """

    record: Path | None = None
    replay: Path | None = None
    on_duration: ObserveDuration | None = None
    at_once: int | None = None
    on_call: ObserveCalls | None = None


AS_CONFIGURED = ModelOptions()


@asynccontextmanager
async def open_llm(
    settings: Settings, llm: LLMSettings | None, options: ModelOptions = AS_CONFIGURED
) -> AsyncGenerator[StructuredLLM | None]:
    """Open the model behind `llm`, which is part of the `settings`, until the end of the block; None if `llm` is None.

    Raises:
        UnreadableExchanges: the file of a replay holds no LLM call.
        OSError: the file of a recording cannot be written.
    """
    if llm is None and options.replay is None:
        yield None
        return
    from services.llm import (  # noqa: PLC0415 (some 50 ms that answers without a model do without)
        Recording,
        RedactingEndpoint,
        ReplayEndpoint,
        StructuredLLM,
        image_adapter,
        open_endpoint,
    )

    endpoint: Endpoint
    if options.replay is not None:
        endpoint = ReplayEndpoint(options.replay)
    else:
        assert llm is not None  # noqa: S101 (for the type checker)
        endpoint = open_endpoint(endpoint_settings(llm), options.at_once, options.on_call)
    recording = None if options.record is None else Recording(options.record)
    endpoint = RedactingEndpoint(endpoint, Redactor(settings.secrets).documentation_text, recording)
    async with aclosing(endpoint):
        method = "function_calling" if llm is None else llm.structured_output_method
        adapter = image_adapter(settings.ai_response.llm_image_adapter)
        yield StructuredLLM(endpoint, method, image_adapter=adapter, on_duration=options.on_duration)


@asynccontextmanager
async def open_llms(
    settings: Settings, options: ModelOptions = AS_CONFIGURED
) -> AsyncGenerator[tuple[StructuredLLM | None, StructuredLLM | None]]:
    """Open the model for answering and the one for knowledge work until the end of the block; None: no model.

    They are one, unless `kb.llm` is set; in a replay they always are. Raises as `open_llm`.
    """
    async with AsyncExitStack() as stack:
        answering = knowledge = await stack.enter_async_context(open_llm(settings, settings.ai_response.llm, options))
        if settings.kb.llm is not None and options.replay is None:
            knowledge = await stack.enter_async_context(open_llm(settings, settings.kb.llm, options))
        yield answering, knowledge


def assistant_of(
    settings: Settings, search: Search, llm: StructuredLLM | None, guild_id: int | None = None
) -> Assistant:
    """Make the assistant of a server over `llm`, or the extractive one over `search` if there is no model."""
    answering = settings.servers[guild_id].ai_response
    if llm is None:
        return ExtractiveAssistant(search, addresses_of(settings, guild_id), reply_language=answering.reply_language)
    from services.assistant import ModelAssistant  # noqa: PLC0415 (as in `open_llm`)
    from services.llm import ToolLimits  # noqa: PLC0415 (as in `open_llm`)

    files = settings.documents
    limits = ToolLimits(files.max_tool_calls, files.max_repeated_questions, files.tools_timeout_seconds)
    return ModelAssistant(llm, tasks_of(answering), limits)


def tasks_of(settings: AnswerSettings) -> ConfiguredTasks:
    return ConfiguredTasks(settings.tasks, settings.project_introduction, settings.out_of_scope_hint)


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAnswering:
    """The open parts that answer single questions. None of them writes to the data folder.

    Attributes:
        server: the context in which questions are asked.
        llm: None: there is no model.
    """

    answerer: Answerer
    server: ServerContext
    embedder: Embedder | None
    llm: StructuredLLM | None


@asynccontextmanager
async def open_answering(
    settings: Settings,
    options: ModelOptions = AS_CONFIGURED,
    *,
    budget: Limiter | None = None,
    usage: Usage | None = None,
    guild_id: int | None = None,
) -> AsyncGenerator[OpenAnswering]:
    """Open an answerer for single questions outside of the bot, until the end of the block. `budget` and `usage` count
    the answers (None: not counted). `guild_id`: the server in which questions are asked; None: a server without
    knowledge of its own.
    """
    libraries = server_libraries(settings)
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        llm = await enter(open_llm(settings, settings.ai_response.llm, options))
        embedder = await enter(open_embedder(settings.search.embeddings))
        search = shared_search = await enter(open_search(settings, libraries.default.own, embedder))
        lacking = await shared_search.unembedded()
        if libraries[guild_id] is not libraries.default:
            own, server_settings = libraries[guild_id].own, settings.servers[guild_id]
            search = await enter(open_search(server_settings, own, embedder, shared_search=shared_search))
            lacking += await search.unembedded()
        if lacking:
            lack = number_of(lacking, "passage has no vector yet", "passages have no vector yet")
            log.warning("%s; without one, a passage is found by words alone; --init-kb makes vectors", lack)
        server = ServerContext(
            assistant=assistant_of(settings, search, llm, guild_id),
            library=libraries[guild_id].all,
            search=search,
            budget=budget or unlimited_budget(),
            usage=usage or Usage(),
            addresses=addresses_of(settings, guild_id),
            pointing=point_rules(settings, guild_id),
        )
        yield OpenAnswering(
            answerer=Answerer(server, answer_rules(settings)), server=server, embedder=embedder, llm=llm
        )


def conversation_of(settings: Settings, question: str) -> Conversation:
    """Make a conversation of one question, without secrets."""
    text = Redactor(settings.secrets).text(question.strip())
    return Conversation((Turn(Role.USER, text, asked_now=True),))
