"""The services that all partitions of a worker share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from assembly.bot import DiscordParts
from assembly.data_folder import RunState
from assembly.documents import Documents
from assembly.graph_parts import CaptureParts, Parts, ServerParts, assemble
from assembly.running import Meters
from model.outcomes import Result
from services.assistant import Assistant
from services.knowledge import Library, LibrarySearch
from services.llm import ImageSource, StructuredLLM
from settings import Settings
from transport.budgets import SharedBudgets
from transport.people import SharedPeople


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What all graphs of a worker are wired to."""

    settings: Settings
    people: SharedPeople
    llm: StructuredLLM | None
    discord: DiscordParts
    assistant: Assistant
    library: Library
    search: LibrarySearch
    images: ImageSource | None
    documents: Documents | None
    servers: Mapping[int, ServerParts]
    captures: CaptureParts
    meters: Meters
    budgets: SharedBudgets

    def assemble(self, settings: Settings, state: RunState, results: Sequence[Callable[[Result], object]]) -> Parts:
        """What a graph is wired to, or commands are."""
        return assemble(
            settings,
            state=state,
            assistant=self.assistant,
            library=self.library,
            search=self.search,
            poster=self.discord.poster,
            captures=self.captures,
            fetcher=self.discord.fetcher,
            access=self.discord.access,
            images=self.images,
            documents=self.documents,
            gauge=self.meters.gauge,
            results=results,
            servers=self.servers,
        )
