"""Selecting and loading while the gate decides: what it saves, and that answers stay what they are without it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
import reactivex as rx
from hypothesis import given
from hypothesis import strategies as st

from assembly.answering import answer_rules
from clock import VirtualLoop
from model.outcomes import Outcome, Reason
from model.servers import Servers
from operators.answering import running_task
from services.assistant import GatingResult, Inquiry
from services.assistant.answering import SelectionResult
from services.llm import Budget, BudgetLimits, Unavailable
from services.search.retrieval import NOTHING
from settings import Settings
from streams.chain import ServerContext, chain
from tests.operators.test_answering import asked, told
from tests.searching import ScriptedSearch, found, passage
from tests.world import BOOKS, GUIDE, PAGE, Script, Shelf, answer

GATE, SELECT, GENERATE = 1.0, 0.75, 2.0
SECONDS = {"gate": GATE, "select": SELECT, "generate": GENERATE}

RULES = answer_rules(Settings())


def server_of(script: Script, search: ScriptedSearch | None = None, shelf: Shelf | None = None) -> ServerContext:
    budget = Budget(BudgetLimits())
    return ServerContext(
        assistant=script, library=shelf or Shelf(), search=search or ScriptedSearch(NOTHING), budget=budget
    )


async def put(
    script: Script,
    *,
    speculate: bool,
    search: ScriptedSearch | None = None,
    shelf: Shelf | None = None,
) -> tuple[Any, float]:
    """What the chain makes of a question, and the seconds that it took."""
    rules = replace(RULES, speculate=speculate)
    servers = Servers({None: server_of(script, search, shelf)})
    began = asyncio.get_running_loop().time()
    inquiry = asked(query="", addressed=False)
    try:
        result = await rx.just(inquiry).pipe(*chain(servers, rules))
    finally:
        inquiry.token.close()
    return result, asyncio.get_running_loop().time() - began


def gating(*, question: bool = True, answerable: bool = True, query: str | None = None) -> GatingResult:
    return GatingResult(is_question=question, is_answerable=answerable, rewrite_query=query, reason="so")


async def test_an_answer_takes_as_long_as_the_slower_of_gate_and_selection() -> None:
    plain, seconds = await put(Script(answers=[answer("So.", GUIDE)], seconds=SECONDS), speculate=False)
    assert seconds == GATE + SELECT + GENERATE
    script = Script(answers=[answer("So.", GUIDE)], seconds=SECONDS)
    sooner, seconds = await put(script, speculate=True)
    assert seconds == GATE + GENERATE
    assert script.steps == ["gate", "select", "generate"]
    assert (sooner.draft, sooner.citations, sooner.sources) == (plain.draft, plain.citations, plain.sources)
    assert sooner.decisions["select"] == {**plain.decisions["select"], "speculated": True}
    assert sooner.decisions["load"] == plain.decisions["load"]
    assert list(sooner.decisions) == list(plain.decisions)


async def test_a_selection_that_takes_longer_than_the_gate_is_waited_for() -> None:
    script = Script(answers=[answer("So.", GUIDE)], seconds={**SECONDS, "select": 5.0})
    assert (await put(script, speculate=True))[1] == 5.0 + GENERATE


@pytest.mark.parametrize("verdict", [gating(question=False), gating(answerable=False)])
async def test_what_the_gate_refuses_waits_for_no_selection(verdict: GatingResult) -> None:
    script = Script(verdict=verdict, seconds={**SECONDS, "select": 60.0})
    result, seconds = await put(script, speculate=True)
    assert told(result) == "skipped: not answerable"
    assert seconds == GATE
    assert "select" not in result.decisions
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_other_words_of_the_gate_keep_a_selection_that_holds_the_page_which_they_find() -> None:
    search = ScriptedSearch(NOTHING, {"Lamp": found(passage(GUIDE, BOOKS[GUIDE]))})
    script = Script(verdict=gating(query="Lamp 2"), answers=[answer("So.", GUIDE)], seconds=SECONDS)
    result, seconds = await put(script, speculate=True, search=search)
    assert (seconds, script.steps) == (GATE + GENERATE, ["gate", "select", "generate"])
    assert (result.query, result.selected) == ("Lamp 2", (GUIDE,))
    assert result.decisions["load"] == {"loaded": [GUIDE]}


@pytest.mark.parametrize("pages", [(), (PAGE,)], ids=["they find none", "they find another"])
async def test_other_words_that_do_not_find_it_are_selected_for_anew(pages: tuple[str, ...]) -> None:
    search = ScriptedSearch(NOTHING, {"Lamp": found(*(passage(page, "text") for page in pages))})
    script = Script(verdict=gating(query="Lamp 2"), answers=[answer("So.", GUIDE)], seconds=SECONDS)
    result, seconds = await put(script, speculate=True, search=search)
    assert (seconds, script.steps) == (GATE + SELECT + GENERATE, ["gate", "select", "select", "generate"])
    assert "speculated" not in result.decisions["select"]


class FailingOnce(Script):
    """Its first selection fails."""

    async def select(self, *args: Any, **known: Any) -> SelectionResult:
        self.picks = Unavailable("down") if not self.requests else [GUIDE]
        return await super().select(*args, **known)


async def test_a_guess_that_fails_costs_nothing_but_its_call(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "operators.answering")
    script = FailingOnce(answers=[answer("So.", GUIDE)], seconds=SECONDS)
    result, _ = await put(script, speculate=True)
    assert (result.draft, script.steps) == ("So.", ["gate", "select", "select", "generate"])
    said = [message for message in caplog.messages if message.startswith("speculation")]
    assert said == ["speculation: Unavailable: down; selected in turn"]


async def test_a_guess_that_fails_after_the_gate_has_refused_is_nobodys() -> None:
    script = Script(verdict=gating(question=False), picks=Unavailable("down"), seconds={"gate": 1.0})
    assert told((await put(script, speculate=True))[0]) == "skipped: not answerable"


async def test_a_gate_that_fails_ends_the_guess() -> None:
    script = Script(verdict=Unavailable("down"), seconds={**SECONDS, "select": 60.0})
    result, seconds = await put(script, speculate=True)
    assert (told(result), seconds) == ("failed: Unavailable at gate", GATE)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_where_nothing_is_found_or_can_be_read_the_steps_tell_why() -> None:
    nothing, _ = await put(Script(picks=[]), speculate=True)
    assert told(nothing) == f"skipped: {Reason.NO_SOURCES}"
    gone, _ = await put(Script(picks=[GUIDE]), speculate=True, shelf=Shelf(missing=frozenset({GUIDE})))
    assert told(gone) == f"skipped: {Reason.SOURCES_UNAVAILABLE}"


async def test_who_has_used_up_the_budget_costs_no_guess() -> None:
    script = Script()
    budget = Budget(BudgetLimits(chains_per_user_per_hour=1))
    steps = chain(Servers({None: replace(server_of(script), budget=budget)}), replace(RULES, speculate=True))
    first, second = asked(), asked()
    await rx.just(first).pipe(*steps)
    before = list(script.steps)
    assert told(await rx.just(second).pipe(*steps)) == f"skipped: {Reason.BUDGET}"
    assert script.steps == before
    first.token.close()


async def test_a_guess_that_is_called_off_has_ended_with_its_block() -> None:
    ended = list[str]()

    async def slow() -> Inquiry | None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(1)
            ended.append("ended")

    async with running_task(slow()):
        await asyncio.sleep(1)
    assert ended == ["ended"]


@given(
    question=st.booleans(),
    answerable=st.booleans(),
    picks=st.lists(st.sampled_from([GUIDE, PAGE, "kb:invented"]), max_size=3),
    seconds=st.fixed_dictionaries({"gate": st.floats(0, 3), "select": st.floats(0, 3)}),
)
def test_without_other_words_it_ends_as_it_does_without_speculation(
    question: bool, answerable: bool, picks: list[str], seconds: dict[str, float]
) -> None:
    def ends(*, speculate: bool) -> Any:
        script = Script(verdict=gating(question=question, answerable=answerable), picks=picks, seconds=dict(seconds))
        loop = VirtualLoop()
        try:
            result, _ = loop.run_until_complete(put(script, speculate=speculate))
        finally:
            loop.close()
        result.decisions.get("select", {}).pop("speculated", None)
        if isinstance(result, Outcome):
            return result.result, result.reason, result.sources, result.decisions
        return result.draft, result.citations, result.sources, result.selected, result.decisions

    assert ends(speculate=True) == ends(speculate=False)
