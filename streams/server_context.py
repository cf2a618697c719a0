"""The services of one server. `for_server` makes a step that uses those of the part's server."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from model.servers import Servers
from operators.answering import nobody
from operators.approving import ApprovalRules
from operators.pointing import PointRules, RecentReplies
from services.assistant import Addresses, Assistant, Inquiry, Unanswered
from services.knowledge import Library, Search, Source
from services.llm import Budget, BudgetLimits, Limiter, Usage
from streams.captures import ImageServices
from streams.curation import CurationServices

if TYPE_CHECKING:
    from services.documents import Lookup


T = TypeVar("T", bound=Inquiry | Unanswered)
R = TypeVar("R")


def unlimited() -> Budget:
    return Budget(BudgetLimits(chains_per_user_per_hour=0))


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerContext:
    """The services of one server, or of all servers without their own.

    Attributes:
        library, search: hold only sources that may be quoted there.
        usage: the LLM calls and tokens of all answers.
        addresses: of the sources, for links to them.
        lookup: None: answers use neither files nor runbooks. Either all servers have one, or none.
        authors_of: gives the ids of those who have written in a topic of the team.
        recent_replies: texts that people were sent there, and are not sent again.
        image_services: None: images stay placeholders in captures.
        curation: None: captures are stored and not filed under topics.
    """

    assistant: Assistant
    library: Library
    search: Search
    budget: Limiter = field(default_factory=unlimited)
    usage: Usage = field(default_factory=Usage)
    addresses: Addresses = field(default_factory=Addresses)
    pointing: PointRules = field(default_factory=PointRules)
    approval: ApprovalRules = field(default_factory=ApprovalRules)
    lookup: Lookup | None = None
    authors_of: Callable[[Source], Coroutine[Any, Any, Collection[int]]] = nobody
    recent_replies: RecentReplies = field(default_factory=RecentReplies)
    image_services: ImageServices | None = None
    curation: CurationServices | None = None


def for_server(
    make: Callable[[ServerContext], Callable[[T], Coroutine[Any, Any, R]]], servers: Servers[ServerContext]
) -> Callable[[T], Coroutine[Any, Any, R]]:
    """Make a step for each server's context, and choose among them by the server of the inquiry."""
    steps = servers.map(make)

    def for_item(item: T) -> Coroutine[Any, Any, R]:
        inquiry = item.inquiry if isinstance(item, Unanswered) else item
        return steps[inquiry.part.guild_id](item)

    return for_item
