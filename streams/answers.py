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
from operators.step import Gauge, Step, ignore, step
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
    gathered: ObserverBase[Inquiry],
) -> Observable[Outcome]:
    """One outcome for each inquiry; one asker's inquiries in one place one after another.

    `gathered` is told of each inquiry when its conversation is known, and completes with the answers.

    inquiries  --a1-a2-b1--------------------|
    answers    ---------a1---b1----a2--------|      a2 sees what was answered to a1
    """
    s, at_once = services, rules.max_concurrent
    gathering = step(
        "gather",
        gather(s.context, s.history, s.posts, s.in_flight, s.images, rules.thread_reuse_seconds),
        at_once,
        s.gauge,
    )
    thinking = chain(s.assistant, s.library, s.budget, rules, s.gauge, s.lookup)
    replying = step("reply", reply, at_once, s.gauge)

    def tell(item: Inquiry | Outcome) -> None:
        if isinstance(item, Inquiry):
            gathered.on_next(item)

    return inquiries.pipe(
        serialize_by_key(
            lambda inquiry: inquiry.part.key,
            lambda taken: taken.pipe(gathering, ops.do_action(tell), thinking, replying, only(Outcome)),
            key_of_result=lambda outcome: outcome.part.key,
            max_active=at_once,
            max_waiting=rules.max_waiting,
            on_overflow=lambda inquiry: skipped(inquiry, Reason.OVERLOADED),
        ),
        ops.do_action(on_completed=gathered.on_completed),
    )


def chain(
    assistant: Assistant,
    library: Library,
    budget: Budget,
    rules: AnswerRules,
    gauge: Gauge = ignore,
    lookup: Lookup | None = None,
    *,
    public: bool = True,
) -> Step:
    """From a conversation to a draft: each step lets pass, or ends the inquiry with a reason.

    `public`: others than the asker read the answer.

    gathered  --q1--q2--q3---------|
    announce  --q1--q2--q3---------|      says which files there are (with a `lookup`)
    gate      ---q1--o---q3--------|      q2 was chatter
    select    ----q1------q3-------|
    load      -----q1------q3------|
    retrieve  -----q1------q3------|      waits for files that are being read (with a `lookup`)
    generate  ------q1------o------|      the sources did not hold q3's answer
    verify    -------q1------------|
    """
    at_once = rules.max_concurrent
    steps = [
        step("gate", gate(assistant, budget, rules.chain_seconds), at_once, gauge),
        step("select", select(assistant, library, rules.max_sources, rules.max_index_chars), at_once, gauge),
        step("load", load(library), at_once, gauge),
        step("generate", generate(assistant, rules.max_answer_chars, rules.require_citations), at_once, gauge),
    ]
    if rules.enable_verification:
        steps.append(step("verify", verify(assistant), at_once, gauge))
    if lookup is not None:
        steps.insert(0, step("announce", announce(lookup, public=public), at_once, gauge))
        steps.insert(-2 if rules.enable_verification else -1, step("retrieve", retrieve, at_once, gauge))
    return compose(*steps)
