"""Opens the parts that a way of running the bot needs (`open_bot`)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from assembly.answering import (
    ModelOptions,
    assistant_of,
    open_embedder,
    open_llms,
    open_search,
    server_libraries,
)
from assembly.data_folder import RunState
from assembly.documents import Documents, documents_for
from assembly.graph_parts import CaptureParts, DiscordAPI, GraphParts, ServerParts, assemble, capture_parts
from assembly.team import curation_parts
from dataflow.metering import Gauge
from model.outcomes import Result
from model.servers import Servers
from services.documents.store import SharedDocuments
from services.llm import AttachedImages, ImageSource, StructuredLLM
from settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMode:
    """A way of running the bot: which parts are opened, and which files may be written.

    Attributes:
        answers: questions are answered: by a model, with an embedder, and from files.
        updates_search: a background task makes missing vectors; otherwise each question does.
        keeps_search_index: the index is written to disk.
        keeps_captures: captures are archived and curated here.
        store_in_folder: passages of files and runbooks are kept in the data folder, whatever `documents.store` says.
        finish_all: as in `CurationRules`.
    """

    answers: bool = True
    updates_search: bool = False
    keeps_search_index: bool = False
    keeps_captures: bool = True
    store_in_folder: bool = False
    finish_all: bool = False


LIVE = RunMode(updates_search=True, keeps_search_index=True)
REHEARSAL = RunMode(updates_search=True, keeps_captures=False)
"""A dry run: it reads files and searches them in the same store as the bot, and posts nothing."""
REPLAY = RunMode(store_in_folder=True, finish_all=True)
PARTITIONS = RunMode(updates_search=True, keeps_search_index=True, keeps_captures=False)
"""The graphs of a worker, which sends captures to the role team."""
ARCHIVE = RunMode(answers=False)
"""Only keeps team knowledge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bot:
    """The open parts, which may serve several graphs.

    Attributes:
        llm: the model for answers; None: the extractive assistant answers.
        knowledge_llm: the model for knowledge work; None: that is done without a model.
        images: None: pictures stay placeholders.
        documents: None: files and runbooks are ignored.
    """

    settings: Settings
    discord: DiscordAPI
    servers: Servers[ServerParts]
    llm: StructuredLLM | None
    knowledge_llm: StructuredLLM | None
    images: ImageSource | None
    documents: Documents | None
    gauge: Gauge | None

    def assemble(
        self, state: RunState, results: Sequence[Callable[[Result], object]] = (), settings: Settings | None = None
    ) -> GraphParts:
        """Build the arguments of a graph. `results`: as in `Sinks`; `settings`: those of its folder, if it has one of
        its own.
        """
        return assemble(
            settings or self.settings,
            state=state,
            servers=self.servers,
            api=self.discord,
            images=self.images,
            documents=self.documents,
            gauge=self.gauge,
            results=results,
        )


@asynccontextmanager
async def open_bot(
    settings: Settings,
    mode: RunMode,
    state: RunState,
    discord: DiscordAPI,
    models: ModelOptions,
    gauge: Gauge | None = None,
    *,
    shared: SharedDocuments | None = None,
    captures: CaptureParts | None = None,
) -> AsyncGenerator[Bot]:
    """Open everything that `mode` needs until the end of the block.

    `shared`: as for `documents_for`. `captures`: keeps the captures of all servers; None: each server keeps its own.
    Raises as `open_llms` and `open_team`.
    """
    libraries = server_libraries(settings)
    attachments, images, documents = discord.attachments, None, None
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        answer_llm, knowledge_llm = await enter(open_llms(settings, models))
        llm = answer_llm if mode.answers else None
        embedder = await enter(open_embedder(settings.search.embeddings)) if mode.answers else None
        if attachments is not None:
            images = AttachedImages(attachments) if settings.ai_response.llm_enable_image else None
            documents = await enter(
                documents_for(
                    settings, llm, attachments, embedder, models, store_in_folder=mode.store_in_folder, shared=shared
                )
            )

        def captures_in(guild_id: int | None, server: Settings) -> CaptureParts:
            # A gauge takes each name of an operator once, so only the curation of the shared library is measured.
            measured = gauge if guild_id is None else None
            curation = (
                curation_parts(server, knowledge_llm, state.usages[guild_id], measured) if mode.keeps_captures else None
            )
            return capture_parts(
                server,
                state,
                curation=curation,
                images=images,
                is_rehearsal=not mode.keeps_captures,
                finish_all=mode.finish_all,
            )

        servers: dict[int | None, ServerParts] = {}
        for guild_id, server in settings.servers.items():
            own, library = libraries[guild_id]
            search = await enter(
                open_search(
                    server,
                    own,
                    embedder,
                    read_only=not mode.keeps_search_index,
                    embeds_on_refresh=not mode.updates_search,
                    shared_search=None if guild_id is None else servers[None].search,
                )
            )
            servers[guild_id] = ServerParts(
                settings=server,
                assistant=assistant_of(settings, search, llm, guild_id),
                library=library,
                search=search,
                captures=captures or captures_in(guild_id, server),
            )
        yield Bot(
            settings=settings,
            discord=discord,
            servers=Servers(servers),
            llm=llm,
            knowledge_llm=knowledge_llm,
            images=images,
            documents=documents,
            gauge=gauge,
        )
