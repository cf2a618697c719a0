"""Opens what graphs are made of, for each way in which the bot runs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from assembly.answering import ModelOptions, assistant_of, open_embedder, open_llms, open_search, server_libraries
from assembly.data_folder import RunState
from assembly.documents import Documents, documents_for
from assembly.graph_parts import CaptureParts, DiscordEnds, Parts, ServerParts, assemble, capture_parts
from assembly.team import curation_parts
from dataflow.metering import Gauge
from model.outcomes import Result
from model.servers import Servers
from services.documents.store import Together
from services.llm import AttachedImages, ImageSource, StructuredLLM
from settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class BotRole:
    """What one way of running the bot opens, and what it may write.

    Attributes:
        answers: questions are answered: by a model, with an embedder, and from files.
        search_updated: search is brought up to date beside the graph, and written with `search_kept`. Otherwise each
            question sees to that by itself, in memory.
        rehearsal: what is captured is not kept here. `to_the_end`: as in `CaptureParts`.
    """

    answers: bool = True
    search_updated: bool = False
    search_kept: bool = False
    rehearsal: bool = False
    to_the_end: bool = False


LIVE = BotRole(search_updated=True, search_kept=True)
REHEARSAL = BotRole(search_updated=True, rehearsal=True)
REPLAY = BotRole(to_the_end=True)
PARTITIONS = BotRole(search_updated=True, search_kept=True, rehearsal=True)
"""The graphs of a worker."""
ARCHIVE = BotRole(answers=False)
"""Only keeps what the team teaches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bot:
    """What is open, and may serve several graphs.

    Attributes:
        llm: answers; None: the extractive assistant does.
        knowledge_llm: does knowledge work; None: it is done without a model.
        images: None: pictures stay placeholders.
        documents: None: files and runbooks are ignored.
    """

    settings: Settings
    discord: DiscordEnds
    servers: Servers[ServerParts]
    llm: StructuredLLM | None
    knowledge_llm: StructuredLLM | None
    images: ImageSource | None
    documents: Documents | None
    gauge: Gauge | None

    def assemble(
        self, state: RunState, results: Sequence[Callable[[Result], object]] = (), settings: Settings | None = None
    ) -> Parts:
        """Build what a graph is wired to. `results`: as in `Sinks`; `settings`: those of its folder, if it has one of
        its own.
        """
        return assemble(
            settings or self.settings,
            state=state,
            servers=self.servers,
            ends=self.discord,
            images=self.images,
            documents=self.documents,
            gauge=self.gauge,
            results=results,
        )


@asynccontextmanager
async def open_bot(
    settings: Settings,
    role: BotRole,
    state: RunState,
    discord: DiscordEnds,
    models: ModelOptions,
    gauge: Gauge | None = None,
    *,
    shared: Together | None = None,
    captures: CaptureParts | None = None,
) -> AsyncGenerator[Bot]:
    """Open everything that `role` needs until the end of the block.

    `shared`: as for `documents_for`. `captures`: keeps what is captured in all servers; None: each keeps its own.
    Raises as `open_llms` and `open_team`.
    """
    libraries = server_libraries(settings)
    attachments, images, documents = discord.attachments, None, None
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        answering, knowledge = await enter(open_llms(settings, models))
        llm = answering if role.answers else None
        embedder = await enter(open_embedder(settings.search.embeddings)) if role.answers else None
        if attachments is not None:
            images = AttachedImages(attachments) if settings.ai_response.llm_enable_image else None
            documents = await enter(
                documents_for(
                    settings, llm, attachments, embedder, models, rehearsed=not role.search_updated, shared=shared
                )
            )

        def captures_in(guild_id: int | None, server: Settings) -> CaptureParts:
            # One operator of a name is measured, and it is that of what all share.
            measured = gauge if guild_id is None else None
            curation = None if role.rehearsal else curation_parts(server, knowledge, state.usages[guild_id], measured)
            return capture_parts(
                server, state, curation=curation, images=images, rehearsal=role.rehearsal, to_the_end=role.to_the_end
            )

        servers: dict[int | None, ServerParts] = {}
        for guild_id, server in settings.servers.items():
            own, library = libraries[guild_id]
            search = await enter(
                open_search(
                    server,
                    own,
                    embedder,
                    read_only=not role.search_kept,
                    alone=not role.search_updated,
                    beside=None if guild_id is None else servers[None].search,
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
            knowledge_llm=knowledge,
            images=images,
            documents=documents,
            gauge=gauge,
        )
