"""Questions in; answers, or the reasons for none, out."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from reactivex import Observable, compose
from reactivex import operators as ops
from reactivex.abc import ObserverBase

from model.outcomes import Outcome, Reason
from operators import only, serialize_by_key
from operators.gate import gate
from operators.gather import gather
from operators.generate import generate
from operators.load import load
from operators.retrieve import announce, retrieve
from operators.select import select
from operators.step import Gauge, Step, step
from operators.verify import verify
from services.assistant import Assistant, Inquiry, skipped
from services.documents import Lookup
from services.knowledge import Library
from services.llm import Budget
from streams.wiring import AnswerRules, Services


def answers(
    inquiries: Observable[Inquiry],
    services: Services,
    reply: Callable[[Inquiry], Coroutine[Any, Any, Outcome]],
    rules: AnswerRules,
    in_context: ObserverBase[Inquiry],
) -> Observable[Outcome]:
    """One outcome for each inquiry; one asker's inquiries in one place one after another: gather, the chain, reply.

    `in_context` receives each inquiry once its conversation is gathered, and completes with the answers.

    inquiries  --a1-a2-b1--------------------|
    answers    ---------a1---b1----a2--------|      a2 sees the answer to a1
    """
    s = services
    gathering = gather(s.context, s.history, s.posts, s.in_flight, s.images, rules.thread_reuse_seconds)
    answered = compose(
        step("gather", gathering, rules.max_concurrent, s.gauge),
        ops.do_action(lambda item: in_context.on_next(item) if isinstance(item, Inquiry) else None),
        chain(s.assistant, s.library, s.budget, rules, s.gauge, s.lookup),
        step("reply", reply, rules.max_concurrent, s.gauge),
        only(Outcome),
    )
    return inquiries.pipe(
        serialize_by_key(
            lambda inquiry: inquiry.part.key,
            answered,
            key_of_result=lambda outcome: outcome.part.key,
            max_active=rules.max_concurrent,
            max_waiting=rules.max_waiting,
            on_overflow=lambda inquiry: skipped(inquiry, Reason.OVERLOADED),
        ),
        ops.do_action(on_completed=in_context.on_completed),
    )


def chain(
    assistant: Assistant,
    library: Library,
    budget: Budget,
    rules: AnswerRules,
    gauge: Gauge | None = None,
    lookup: Lookup | None = None,
    *,
    public: bool = True,
) -> Step:
    """From a conversation to a draft: each step passes the inquiry on, or ends it with a reason.

    `public`: others than the asker read the answer.

    gathered  --q1--q2--q3---------|
    announce  --q1--q2--q3---------|      says which files there are (with a `lookup`)
    gate      ---q1--o---q3--------|      q2 was chatter
    select    ----q1------q3-------|
    load      -----q1------q3------|
    retrieve  -----q1------q3------|      waits for files that are being read (with a `lookup`)
    generate  ------q1------o------|      the sources did not hold q3's answer
    verify    -------q1------------|      (with `enable_verification`)
    """

    def run(name: str, fn: Callable[[Inquiry], Coroutine[Any, Any, Inquiry | Outcome]]) -> Step:
        return step(name, fn, rules.max_concurrent, gauge)

    steps = (
        run("announce", announce(lookup, public=public)) if lookup is not None else None,
        run("gate", gate(assistant, budget, rules.chain_seconds)),
        run("select", select(assistant, library, rules.max_sources, rules.max_index_chars)),
        run("load", load(library)),
        run("retrieve", retrieve) if lookup is not None else None,
        run("generate", generate(assistant, rules.max_answer_chars, rules.require_citations)),
        run("verify", verify(assistant)) if rules.enable_verification else None,
    )
    return compose(*(each for each in steps if each is not None))
