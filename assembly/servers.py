"""What each server of `guilds` has of its own, put together beside what all share."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

from assembly.answering import server_library
from assembly.graph_parts import ServerParts, capture_parts
from assembly.knowledge import knowledge_kept_current
from assembly.llm import assistant_of
from assembly.running import Meters
from assembly.searching import open_search
from assembly.state import RunState
from assembly.team import curation_parts
from services.knowledge import JoinedLibrary, Library, LibrarySearch, OwnLibrary
from services.llm import ImageSource, StructuredLLM
from settings import Settings

Libraries = Mapping[int, tuple[OwnLibrary, JoinedLibrary]]
"""By server: its own library, and that together with the shared one."""


def server_libraries(settings: Settings, shared: Library) -> Libraries:
    return {guild_id: server_library(settings, guild_id, shared) for guild_id in settings.servers}


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureOptions:
    """Options for what is captured in servers.

    Attributes:
        asker: does knowledge work; None: the extractive curator does.
        images: as for `assemble`.
        rehearsal: nothing is written; to_the_end: as in `CaptureParts`.
    """

    asker: StructuredLLM | None = None
    images: ImageSource | None = None
    rehearsal: bool = False
    to_the_end: bool = False


@asynccontextmanager
async def open_servers(
    settings: Settings,
    state: RunState,
    libraries: Libraries,
    search: LibrarySearch,
    llm: StructuredLLM | None,
    learners: CaptureOptions,
    *,
    read_only: bool = True,
    alone: bool = True,
) -> AsyncGenerator[dict[int, ServerParts]]:
    """Open the parts of each server in `guilds` until the end of the block, by id. Each searches its own library
    beside the shared `search`. Raises as `open_team`.
    """
    async with AsyncExitStack() as stack:
        found: dict[int, ServerParts] = {}
        for guild_id, (own, library) in libraries.items():
            server = settings.servers[guild_id]
            searching = await stack.enter_async_context(
                open_search(server, own, search.embedder, read_only=read_only, alone=alone, beside=search)
            )
            usage = state.usage_of(guild_id)
            curation = None if learners.rehearsal else curation_parts(server, learners.asker, usage)
            found[guild_id] = ServerParts(
                settings=server,
                assistant=assistant_of(server, searching, llm, settings),
                library=library,
                search=searching,
                captures=capture_parts(
                    server,
                    state,
                    curation=curation,
                    images=learners.images,
                    rehearsal=learners.rehearsal,
                    to_the_end=learners.to_the_end,
                ),
            )
        yield found


@asynccontextmanager
async def server_knowledge_kept_current(
    settings: Settings, asker: StructuredLLM | None, state: RunState, meters: Meters
) -> AsyncGenerator[None]:
    """Keep the knowledge base of each server current for as long as the block runs."""
    uncounted = replace(meters, gauge=None)  # one operator of a name is measured, and it is that of the shared ones
    async with AsyncExitStack() as stack:
        for guild_id, server in settings.servers.items():
            await stack.enter_async_context(
                knowledge_kept_current(server, asker, state.usage_of(guild_id), meters=uncounted)
            )
        yield
