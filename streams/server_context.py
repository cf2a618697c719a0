"""What the questions of a server are answered with (`ServerContext`), and the limits of answering (`AnswerRules`).
`for_server` picks the context by the server of the part.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from operators.pointing import PointRules
from services.assistant import Assistant, Inquiry, RecentReplies, Unanswered
from services.knowledge import Library, Search
from services.llm import Limiter

if TYPE_CHECKING:
    from services.documents import Lookup


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRules:
    """The limits of answering; `chain_seconds` is for all steps of one answer together."""

    chain_seconds: float = 200.0
    max_concurrent: int = 32
    max_waiting: int = 1000
    max_sources: int = 3
    max_index_entries: int = 30
    max_source_chars: int = 24_000
    max_answer_chars: int = 3000
    require_citations: bool = False
    enable_verification: bool = False
    speculate: bool = False
    thread_reuse_seconds: float = 900.0
    pointing: PointRules = field(default_factory=PointRules)


T = TypeVar("T", bound=Inquiry | Unanswered)
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerContext:
    """The services that answer questions of one server, or of all servers without their own.

    Attributes:
        library, search: hold what may be told there, and nothing else.
        repeats: what people have been told there, and are not told again.
    """

    assistant: Assistant
    library: Library
    search: Search
    budget: Limiter
    pointing: PointRules = field(default_factory=PointRules)
    lookup: Lookup | None = None
    repeats: RecentReplies = field(default_factory=RecentReplies)


def for_server(
    make: Callable[[ServerContext], Callable[[T], Coroutine[Any, Any, R]]],
    shared: ServerContext,
    servers: Mapping[int, ServerContext],
) -> Callable[[T], Coroutine[Any, Any, R]]:
    """Make a step for each server's context, and choose among them by the server of the inquiry."""
    common = make(shared)
    if not servers:
        return common
    own = {guild_id: make(desk) for guild_id, desk in servers.items()}

    def for_item(item: T) -> Coroutine[Any, Any, R]:
        inquiry = item.inquiry if isinstance(item, Unanswered) else item
        guild_id = inquiry.part.guild_id
        return (common if guild_id is None else own.get(guild_id, common))(item)

    return for_item
