"""The answer chain: its steps, and the services of the server in which was asked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass, field
from itertools import starmap
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from operators.answering import (
    announce,
    gate,
    generate,
    load,
    no_authors,
    optional_steps,
    prepare_tools,
    select,
    show_sections,
    speculative_selection,
)
from operators.approving import ApprovalRules
from operators.pointing import PointRules, RecentReplies, add_links, point
from operators.step import in_order, step
from services.assistant import Addresses, Inquiry, Unanswered
from services.llm import Budget, BudgetLimits, Usage

if TYPE_CHECKING:
    from dataflow.metering import Gauge
    from model.outcomes import Outcome
    from model.servers import Servers
    from operators.answering import AnswerRules, AnswerStep
    from operators.step import StepOperator
    from services.assistant import Assistant
    from services.documents import Lookup
    from services.knowledge import Library, Search, Source
    from services.llm import Limiter
    from streams.captures import ImageServices
    from streams.curation import CurationServices


T = TypeVar("T", bound=Inquiry | Unanswered)
R = TypeVar("R")


def unlimited_budget() -> Budget:
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
    budget: Limiter = field(default_factory=unlimited_budget)
    usage: Usage = field(default_factory=Usage)
    addresses: Addresses = field(default_factory=Addresses)
    pointing: PointRules = field(default_factory=PointRules)
    approval: ApprovalRules = field(default_factory=ApprovalRules)
    lookup: Lookup | None = None
    authors_of: Callable[[Source], Coroutine[Any, Any, Collection[int]]] = no_authors
    recent_replies: RecentReplies = field(default_factory=RecentReplies)
    image_services: ImageServices | None = None
    curation: CurationServices | None = None


def for_server(
    make: Callable[[ServerContext], Callable[[T], Coroutine[Any, Any, R]]], servers: Servers[ServerContext]
) -> Callable[[T], Coroutine[Any, Any, R]]:
    """Make a step for each server's context, and choose among them by the server of the inquiry."""
    steps = servers.map(make)

    def for_item(item: T) -> Coroutine[Any, Any, R]:
        return steps[item.part.guild_id](item)

    return for_item


class Chain(NamedTuple):
    """`find` selects the sources of an answer, and `answer` makes it of them."""

    find: StepOperator
    answer: StepOperator


def chain(
    servers: Servers[ServerContext],
    rules: AnswerRules,
    gauge: Gauge | None = None,
    *,
    public: bool = True,
) -> Chain:
    """From a conversation to a draft: each step passes the inquiry on, or ends it with a reason. `model.steps.STEPS`
    has their order. `public`: others than the asker read the answer.

    gathered  --q1--q2--q3-------|
    gate      ---q1--o---q3------|      q2 was chatter
    generate  -----q1------u-----|      the sources did not hold q3's answer: it is unanswered
    point     -----q1------p-----|      but an asker who addressed the bot gets pointers
    """
    most, looks_up = rules.max_concurrent_answers, servers.default.lookup is not None

    def run(name: str, make: Callable[[ServerContext], AnswerStep]) -> StepOperator:
        return step(name, for_server(make, servers), most, gauge)

    def run_optional(name: str, make: Callable[[Assistant], AnswerStep]) -> StepOperator:
        return run(name, lambda each: make(each.assistant))

    def make_select(each: ServerContext) -> AnswerStep:
        return select(each.assistant, each.library, each.search, rules.max_sources, rules.max_index_entries)

    def make_load(each: ServerContext) -> AnswerStep:
        return load(each.library, each.search, rules.max_source_chars, each.authors_of)

    def make_gate(each: ServerContext) -> AnswerStep:
        guess = speculative_selection(make_select(each), make_load(each)) if rules.speculate else None
        return gate(each.assistant, each.budget, rules.graph_timeout_seconds, guess)

    def make_point(each: ServerContext) -> Callable[[Unanswered], Coroutine[Any, Any, Inquiry | Outcome]]:
        return point(each.search, each.recent_replies, each.addresses, each.pointing)

    def make_generate(each: ServerContext) -> AnswerStep:
        complete = add_links(each.search, each.recent_replies, each.addresses)
        show = show_sections(each.library, each.search, rules.max_source_chars)
        return generate(each.assistant, rules.max_answer_chars, rules.require_citations, each.addresses, complete, show)

    def make_announce(each: ServerContext) -> AnswerStep:
        assert each.lookup is not None, "all servers have one, or none"  # noqa: S101 (for the type checker)
        return announce(each.lookup, public=public)

    find = (
        run("announce", make_announce) if looks_up else None,
        run("gate", make_gate),
        run("select", make_select),
    )
    answer = (
        run("load", make_load),
        step("retrieve", prepare_tools, most, gauge) if looks_up else None,
        run("generate", make_generate),
        step("point", for_server(make_point, servers), most, gauge, takes=Unanswered),
        *starmap(run_optional, optional_steps(rules).items()),
    )
    return Chain(in_order(*filter(None, find)), in_order(*filter(None, answer)))
