"""The branch of drafts as diagrams: requests about one draft in turn, those about others beside them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable
from reactivex import operators as ops

from dataflow import fork, of_type
from model.events import Ready
from model.outcomes import Outcome, OutcomeKind, Reason
from services.conversations import DraftAction, DraftEnd, DraftRequest, Drafts, InFlight
from services.conversations.drafts import STOPPING
from sinks.drafts import outcome_of
from streams.answers import approvals
from tests.marbles import play
from tests.services.conversations.made_drafts import made_draft

FIRST, SECOND = made_draft(8), made_draft(9)


def held(draft_id: int) -> Outcome:
    return Outcome(made_draft(draft_id).part, 0.0, OutcomeKind.HELD, Reason.HELD_FOR_APPROVAL)


MARKS: dict[str, Any] = {
    "r": Ready(0.0, 1, "bot"),
    "h": held(8),
    "s": Outcome(FIRST.part, 0.0, OutcomeKind.SKIPPED, Reason.UNSURE),
    "p": DraftRequest(8, DraftAction.POST),
    "q": DraftRequest(9, DraftAction.POST),
    "x": DraftRequest(8, DraftAction.KEEP),
}


class Branch:
    """The branch, whose sink takes two seconds; a request to keep fails."""

    def __init__(self, drafts: Drafts | None = None) -> None:
        self.drafts = drafts or Drafts()
        self.handled: list[str] = []

    async def handle(self, request: DraftRequest) -> Outcome | None:
        self.handled.append(f"{request.action} {request.draft_id}")
        await asyncio.sleep(2)
        if request.action is DraftAction.KEEP:
            raise ValueError("no")
        if request.action is not DraftAction.POST:
            return None
        draft = made_draft(request.draft_id)
        return outcome_of(draft, DraftEnd.POSTED)

    def __call__(self, source: Observable[Any]) -> Observable[Any]:
        def ask(mark: object) -> None:
            if isinstance(mark, DraftRequest):
                self.drafts.requests.on_next(mark)

        marks = source.pipe(ops.do_action(ask), fork("marks"))
        return approvals(marks.pipe(of_type(Ready)), marks.pipe(of_type(Outcome)), self.drafts, InFlight(), self.handle)

    async def play(self, diagram: str) -> str:
        return await play(diagram, self, values=MARKS, show=lambda outcome: str(outcome.part.last.id))


async def test_requests_about_one_draft_wait_for_each_other() -> None:
    assert await Branch().play("r-(pp)------|") == "----8-8--|"
    assert await Branch().play("r-(ppq)-----|") == "----(8 9)-8-|"


async def test_an_answer_that_is_held_is_shown_and_others_are_not() -> None:
    branch = Branch()
    assert await branch.play("r-h-s-|") == "------|"
    assert branch.handled == ["resume 8"]


async def test_a_request_that_fails_is_logged_and_the_next_one_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    assert await Branch().play("r-xp------|") == "------8---|"
    assert "draft 8: keep was not carried out" in caplog.text


async def test_drafts_of_an_earlier_run_are_taken_up_once(tmp_path: Path) -> None:
    drafts = Drafts(tmp_path)
    for draft in (SECOND, FIRST):
        await drafts.put(draft)
    branch = Branch(drafts)
    assert await branch.play("--r---r---|") == "----------|"
    assert branch.handled == ["resume 8", "resume 9"]


async def test_it_ends_when_what_was_asked_for_is_done_and_takes_no_more() -> None:
    branch = Branch()
    assert await branch.play("r-p|") == "----(8 |)"
    assert await branch.drafts.decide(8, DraftAction.POST) == STOPPING


async def test_whoever_is_cut_off_is_told_that_nothing_was_done() -> None:
    branch = Branch()
    subscription = branch(Observable()).subscribe()
    deciding = asyncio.ensure_future(branch.drafts.decide(8, DraftAction.POST))
    await asyncio.sleep(1)
    subscription.dispose()
    assert await deciding == STOPPING
