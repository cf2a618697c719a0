"""Search over a library: where its passages are kept, and who keeps them up to date."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import replace

from operators.pointing import PointRules
from services.assistant import Addresses
from services.knowledge import Library, LibrarySearch, site_generator_of
from services.llm import vectors_client
from services.search import PassageStore, delete_passages
from services.search.embedding import Embedder, EmbeddingEndpoint, EndpointEmbedder, PackagedEmbedder, installed
from services.search.text import SiteGenerator
from services.storage import DataFolder
from services.team import PairPlaces
from settings import EmbeddingSettings, Settings

KB_FILE, TEAM_FILE = "search.sqlite", "search-team.sqlite"
"""Beside the index of each; they can be deleted, and are made again."""


def embedder_of(asked: EmbeddingSettings | str) -> Embedder | None:
    """The configured endpoint, or the packaged model if it is installed; None: search by words only."""
    if not isinstance(asked, str):
        endpoint = EmbeddingEndpoint(asked.base_url, asked.model, asked.api_key.get_secret_value())
        return EndpointEmbedder(endpoint, vectors_client)
    return PackagedEmbedder() if asked == "packaged" and installed() else None


@asynccontextmanager
async def open_embedder(asked: EmbeddingSettings | str) -> AsyncGenerator[Embedder | None]:
    """Open the configured embedder until the end of the block; None where search is by words only."""
    embedder = embedder_of(asked)
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
    alone: bool = True,
    beside: LibrarySearch | None = None,
) -> AsyncGenerator[LibrarySearch]:
    """Search over `library`, closed at the end of the block.

    `read_only`: what is kept is used, and changes stay in memory: a replay leaves the same bytes each time, and these
    files name paths and times. `alone`: nothing else gives new passages their vectors. `beside`: searched as well.
    """
    kb = settings.kb
    search = LibrarySearch(
        library,
        PassageStore(kb.team_index_path.with_name(TEAM_FILE), read_only=read_only),
        PassageStore(kb.index_path.with_name(KB_FILE), read_only=read_only),
        embedder,
        alone,
        beside,
    )
    try:
        yield search
    finally:
        search.close()


def drop_team_passages(settings: Settings) -> bool:
    """Delete what search keeps of the team's topics; the bot makes it again. Whether there was any. Blocking, and only
    while no search is open. Raises OSError.
    """
    return delete_passages(settings.kb.team_index_path.with_name(TEAM_FILE))


@contextmanager
def for_team(search: LibrarySearch, library: Library, beside: LibrarySearch | None = None) -> Generator[LibrarySearch]:
    """Open a search that also covers the team's internal topics, in memory, until the end of the block. `beside`: the
    same for what is searched beside it.
    """
    with closing(PassageStore(None)) as topics:
        yield LibrarySearch(library, topics, search.kb, search.embedder, alone=True, beside=beside)


def point_rules(settings: Settings, shared: Settings | None = None) -> PointRules:
    """Make the rules of pointing to pages where there is no sure answer. `shared`: as for `addresses_of`."""
    answering = settings.ai_response
    return PointRules(
        when_unsure=answering.when_unsure == "point",
        by_channel={channel: settings.when_unsure_in(channel) == "point" for channel in settings.discord.channels},
        reply_language=answering.reply_language,
        out_of_scope_hint=answering.out_of_scope_hint,
        addresses=addresses_of(settings, shared),
    )


def addresses_of(settings: Settings, shared: Settings | None = None) -> Addresses:
    """Make what turns source ids into web addresses. For one server's settings, `shared` are the settings that all
    servers share.
    """
    if shared is not None:
        return replace(addresses_of(shared), own=addresses_of(settings))
    base = settings.kb.source_base_url
    bases = ({"": base} if base else {}) if isinstance(base, str) else dict(base)
    named = settings.kb.site_generator
    made = {
        folder: SiteGenerator(named) if named != "auto" else site_generator_of(settings.kb.sources_dir / folder)
        for folder in bases
    }
    generators = {folder: generator for folder, generator in made.items() if generator is not None}
    return Addresses(bases, generators, PairPlaces(DataFolder(settings.app.data_dir).places).address)
