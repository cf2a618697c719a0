"""The steps of an answer, each by itself: what passes, and with which reason the rest ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import reactivex as rx

from clock import now
from model.conversations import Conversation, Image, Role, Turn
from model.messages import Author, AuthorType, Message, Part, Place, PlaceKind
from model.outcomes import Outcome, Reason
from operators.answering import (
    announce,
    best_choices,
    earlier_in,
    gate,
    generate,
    load,
    prepare_tools,
    select,
    show_sections,
    verify,
)
from operators.step import TookTooLong
from operators.step import step as as_step
from services.assistant import Choice, ConfiguredTasks, GatingResult, Inquiry, Unanswered
from services.assistant.answering import AnswerResult, SelectionResult, VerificationResult
from services.knowledge import IndexEntry, Source
from services.llm import Budget, BudgetLimits, Prompt, PromptRefused, Unavailable, Usage
from services.search.retrieval import NOTHING, Level
from tests.searching import ScriptedSearch, found, passage
from tests.world import ANNA, BOOKS, GUIDE, PAGE, M, Script, Shelf, World, answer

ADA = Author(1, "ada")
SOURCE = Source(GUIDE, BOOKS[GUIDE])


def asked(text: str = "How do I install it?", *, images: tuple[Image, ...] = (), **known: Any) -> Inquiry:
    message = Message(10, 11, ADA, text, 1.0)
    part = Part(1, (message,), AuthorType.COMMUNITY_USER, Place(11, PlaceKind.CHANNEL), 1.0)
    conversation = Conversation((Turn(Role.USER, text, images, asked_now=True),))
    return Inquiry(part, True, Usage(), {}, conversation=conversation, query=text)._replace(**known)


def told(result: Inquiry | Unanswered | Outcome) -> str:
    """`passed`, or the reason with which it does not."""
    match result:
        case Inquiry():
            return "passed"
        case Unanswered(reason=reason):
            return f"unanswered: {reason}"
        case Outcome(reason=reason):
            return f"{result.result}: {reason}"


def passed(result: Inquiry | Unanswered | Outcome) -> Inquiry:
    assert isinstance(result, Inquiry)
    return result


@dataclass
class Tools:
    """Stands for a `Toolset`: which files there are, what `retrieve` finds, what `generate` asks of it."""

    files: tuple[str, ...] = ("app.log (log, 2 kB, 31 lines)",)
    tools: Sequence[Any] = ()
    quotable: list[str] = field(default_factory=list[str])
    waited: bool = False
    runbook: str = ""

    async def prepare(self) -> None:
        self.waited = True

    def valid_citations(self, named: Iterable[str]) -> list[str]:
        return [each for each in named if each.startswith("app.log")]

    def mark_unsupported(self, text: str, known: Iterable[str]) -> str:
        self.quotable = list(known)
        return f"{text} (checked)"

    def notice(self, citations: Iterable[str]) -> str:
        return "" if self.runbook not in citations else "From a runbook:"

    def found_sources(self) -> tuple[Source, ...]:
        return (Source("app.log", "31: ERROR"),)


def with_tools(tools: Tools) -> Any:
    """In the place of a `Toolset`."""
    return tools


@dataclass
class Tool:
    name: str


class Witness(Script):
    """A script that notes what each of its calls is given."""

    def __init__(self) -> None:
        super().__init__(picks=[GUIDE], answers=[answer("x" * 101, GUIDE), answer("Like this.", GUIDE)])
        self.given: list[tuple[Any, ...]] = []

    async def gate(self, *args: Any, **known: Any) -> GatingResult:
        self.given.append((*args, known))
        return await super().gate(*args, **known)

    async def select(self, *args: Any, **known: Any) -> SelectionResult:
        self.given.append((*args, known))
        return await super().select(*args, **known)

    async def generate(self, *args: Any, **known: Any) -> AnswerResult:
        self.given.append((*args, known))
        return await super().generate(*args, **known)


async def test_each_step_tells_the_model_what_it_needs_and_the_log_what_it_did(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "operators.answering")
    witness, tools, search = Witness(), Tools(), ScriptedSearch(NOTHING)
    inquiry = asked(toolset=with_tools(tools), query="")
    part, usage, conversation = inquiry.part, inquiry.usage, inquiry.conversation
    for step in (
        gate(witness, Budget(BudgetLimits()), 60),
        select(witness, Shelf(), search, 5, 100),
        load(Shelf(), search, 10_000),
        generate(witness, 100, True),
        verify(witness),
    ):
        inquiry = passed(await step(inquiry))
    inquiry.token.close()
    question, files = "How do I install it?", {"files": tools.files}
    drafting: dict[str, Any] = {"max_chars": 100, "toolset": tools}
    index = [Choice(entry.id, entry.description, "") for entry in await Shelf().index()]
    assert witness.given == [
        (conversation, usage, {**files, "addressed": True}),
        (question, question, index, 5, usage, files),
        (conversation, question, inquiry.sources, usage, {**drafting, "was_too_long": False}),
        (conversation, question, inquiry.sources, usage, {**drafting, "was_too_long": True}),
    ]
    assert witness.asked[-1].text == "Like this. (checked)"
    assert inquiry.part is part
    assert inquiry.decisions == {
        "gate": {"question": True, "answerable": True, "reason": "fine"},
        "select": {"offered": 2, "ranked": [], "selected": [GUIDE]},
        "load": {"loaded": [GUIDE]},
        "generate": {"answer": True, "characters": 20, "citations": [GUIDE]},
        "verify": {"good_enough": True, "issues": []},
    }
    assert caplog.messages == [
        "gate: answerable=True reason='fine'",
        "select: 1 of 2 entries",
        "load: 1 of 1 sources",
        "generate: 101 characters, asking for 100",
        "verify: good_enough=True issues=0",
    ]


# gate


def verdict(*, question: bool = True, answerable: bool = True, query: str | None = None) -> Script:
    said = GatingResult(is_question=question, is_answerable=answerable, rewrite_query=query, reason="so")
    return Script(verdict=said)


def gated(script: Script, budget: Budget | None = None) -> Callable[[Inquiry], Coroutine[Any, Any, Any]]:
    return gate(script, budget or Budget(BudgetLimits()), 60)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (verdict(), "passed"),
        (verdict(answerable=False), "unanswered: not answerable"),
        (verdict(question=False), "skipped: not answerable"),
        (verdict(question=False, answerable=False), "skipped: not answerable"),
    ],
    ids=["a question", "not answerable", "no question", "neither"],
)
async def test_the_gate_passes_questions_that_can_be_answered(script: Script, expected: str) -> None:
    inquiry = asked()
    assert told(await gated(script)(inquiry)) == expected
    assert inquiry.decisions["gate"]["reason"] == "so"
    inquiry.token.close()


@pytest.mark.parametrize(
    ("query", "expected"),
    [("install lamp", "install lamp"), (None, "How do I install it?"), ("  ", "How do I install it?")],
)
async def test_what_is_searched_for_is_the_rewritten_query_or_the_request(query: str | None, expected: str) -> None:
    inquiry = asked(query="")
    assert passed(await gated(verdict(query=query))(inquiry)).query == expected
    inquiry.token.close()


async def test_what_begins_again_counts_once() -> None:
    """Somebody else decides whether it does, by withdrawing their words."""
    step = gated(verdict(), Budget(BudgetLimits(chains_per_user_per_hour=1)))
    first, second = asked(), asked()
    assert [told(await step(each)) for each in (first, first._replace(is_counted=True))] == ["passed", "passed"]
    assert told(await step(second)) == "skipped: budget"
    first.token.close()


async def test_whoever_has_used_up_the_budget_is_refused_and_the_log_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    script = verdict()
    step = gated(script, Budget(BudgetLimits(chains_per_user_per_hour=1)))
    inquiries = [asked(), asked(), asked()]
    assert [told(await step(each)) for each in inquiries] == ["passed", "skipped: budget", "skipped: budget"]
    assert script.steps == ["gate"]
    assert caplog.text.count("limits.chains_per_user_per_hour is used up") == 1
    inquiries[0].token.close()


@pytest.mark.parametrize(
    ("text", "addressed", "is_chatter"),
    [("How do I install it?", False, False), ("good morning all", False, True), ("good morning all", True, False)],
)
async def test_chatter_that_the_budget_refuses_is_no_question(text: str, *, addressed: bool, is_chatter: bool) -> None:
    inquiry = asked(text, addressed=addressed)
    budget = Budget(BudgetLimits(answers_per_day=1))
    budget.answered(now())
    assert told(await gated(verdict(), budget)(inquiry)) == "skipped: budget"
    assert (inquiry.decisions.get("gate") == {"question": False}) is is_chatter


class Elsewhere(Budget):
    """A budget whose counts are kept where an answer takes so many seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__(BudgetLimits(chains_per_user_per_hour=1))
        self.seconds = seconds

    async def begin_chain(self, user_id: int, now: float) -> str | None:
        await asyncio.sleep(self.seconds)
        return await super().begin_chain(user_id, now)


async def test_a_chain_waits_for_a_budget_that_is_kept_elsewhere_and_that_is_part_of_its_time() -> None:
    inquiry = asked()
    assert passed(await gated(verdict(), Elsewhere(50))(inquiry)) is not None
    await asyncio.sleep(9)
    assert inquiry.token.error is None
    await asyncio.sleep(2)
    assert isinstance(inquiry.token.error, TookTooLong)


async def test_a_budget_that_cannot_be_reached_is_waited_for_until_the_chain_took_too_long() -> None:
    script = verdict()
    outcome = await rx.just(asked()).pipe(as_step("gate", gated(script, Elsewhere(100_000)), 1))
    assert isinstance(outcome, Outcome)
    assert (told(outcome), script.steps) == ("failed: TookTooLong at gate", [])
    assert asyncio.get_running_loop().time() == 60


async def test_a_chain_that_is_refused_leaves_no_deadline_behind() -> None:
    budget, refused = Budget(BudgetLimits(chains_per_user_per_hour=1)), asked()
    await budget.begin_chain(ADA.id, now())
    assert told(await gated(verdict(), budget)(refused)) == "skipped: budget"
    await asyncio.sleep(61)
    assert refused.token.error is None


async def test_the_time_of_a_chain_begins_at_its_gate() -> None:
    inquiry = asked()
    await gated(verdict())(inquiry)
    await asyncio.sleep(59)
    assert inquiry.token.error is None
    await asyncio.sleep(2)
    assert isinstance(inquiry.token.error, TookTooLong)


# sections that an excerpt leaves out

SECTION = "## {0}\n\n{0} is turned with great care. {1}\n\n"
LONG_PAGE = "# Valves\n\n" + "".join(SECTION.format(f"Valve {n}", "It is oiled. " * 40) for n in range(60))


async def shown_with(script: Script, shelf: Shelf, *headings: str) -> tuple[Inquiry, Any, list[str]]:
    """Ask a script that wants to read `headings` first. What went in, what came out, and the texts it was shown."""
    search, shown = ScriptedSearch(NOTHING), list[str]()

    class Reader(Script):
        async def generate(self, *args: Any, **known: Any) -> AnswerResult:
            shown.append(args[2][0].text)
            result = await super().generate(*args, **known)
            return result.model_copy(update={"to_read": list(headings)})

    inquiry = passed(await load(shelf, search, 24_000)(asked(selected=(GUIDE,))))
    step = generate(Reader(answers=script.answers), 1_000, False, show_sections=show_sections(shelf, search, 24_000))
    return inquiry, await step(inquiry), shown


async def test_a_section_that_the_excerpt_left_out_is_shown_on_request_and_the_model_asked_once_more() -> None:
    script = Script(answers=[answer(None), answer("With care.", GUIDE)])
    before, after, shown = await shown_with(script, Shelf({GUIDE: LONG_PAGE}), "valve 37", "No such heading")
    assert ["## Valve 37\n" in text for text in shown] == [False, True]
    assert all(len(text) <= 9_000 for text in shown)
    assert passed(after).draft == "With care."
    assert passed(after).sources != before.sources


async def test_a_first_answer_stands_when_the_second_look_gives_none() -> None:
    script = Script(answers=[answer("Perhaps so.", GUIDE), answer(None)])
    before, after, shown = await shown_with(script, Shelf({GUIDE: LONG_PAGE}), "Valve 37")
    assert (len(shown), passed(after).draft, passed(after).sources) == (2, "Perhaps so.", before.sources)


async def test_the_model_is_not_asked_again_for_what_no_source_has_or_what_it_was_shown() -> None:
    answers = [answer("So.", GUIDE), answer("Never.", GUIDE)]
    for text, heading in ((LONG_PAGE, "No such heading"), ("# Valves\n\nTurn it.", "Valves")):
        _, after, shown = await shown_with(Script(answers=list(answers)), Shelf({GUIDE: text}), heading)
        assert (len(shown), passed(after).draft) == (1, "So.")


async def test_a_first_answer_stands_when_the_model_cannot_be_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    script = Script(answers=[answer("Perhaps so.", GUIDE), Unavailable("down")])
    before, after, shown = await shown_with(script, Shelf({GUIDE: LONG_PAGE}), "Valve 37")
    assert (len(shown), passed(after).draft, passed(after).sources) == (2, "Perhaps so.", before.sources)
    assert "the first answer stands" in caplog.text


async def test_a_source_that_has_gone_meanwhile_is_not_read_again(caplog: pytest.LogCaptureFixture) -> None:
    shelf, search = Shelf({GUIDE: LONG_PAGE}), ScriptedSearch(NOTHING)
    inquiry = passed(await load(shelf, search, 3_000)(asked(selected=(GUIDE,))))
    shelf.missing = frozenset({GUIDE})
    assert await show_sections(shelf, search, 3_000)(inquiry, ["Valve 37"]) is None
    assert "not read again" in caplog.text


# select


def selecting(script: Script, shelf: Shelf | None = None, *, most: int = 5) -> Callable[[Inquiry], Any]:
    return select(script, shelf or Shelf(), ScriptedSearch(NOTHING), most, 100)


async def test_only_sources_of_the_index_are_selected(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    chosen = passed(await selecting(Script(picks=["kb:invented", PAGE, GUIDE, GUIDE]), most=1)(asked()))
    assert chosen.selected == (PAGE,)
    assert "select: 1 of 2 entries" in caplog.text
    caplog.clear()
    chosen = passed(await selecting(Script(picks=["kb:invented", PAGE, GUIDE, GUIDE]))(asked()))
    assert chosen.selected == (PAGE, GUIDE)
    assert "1 id that is in no index was dropped" in caplog.text
    assert chosen.decisions["select"] == {"offered": 2, "ranked": [], "selected": [PAGE, GUIDE]}


async def test_no_more_are_selected_than_wanted() -> None:
    assert passed(await selecting(Script(picks=[PAGE, GUIDE]), most=1)(asked())).selected == (PAGE,)


async def test_an_empty_index_is_offered_to_nobody() -> None:
    script = Script()
    assert told(await selecting(script, Shelf(texts={}))(asked())) == "unanswered: no sources"
    assert script.steps == []


@pytest.mark.parametrize(
    ("inquiry", "expected"),
    [
        (asked(), "unanswered: no sources"),
        (asked(images=(Image("a.png", "image/png", b""),)), "passed"),
        (asked(toolset=with_tools(Tools())), "passed"),
    ],
    ids=["nothing", "an image", "files"],
)
async def test_without_a_source_an_image_or_a_file_may_hold_the_answer(inquiry: Inquiry, expected: str) -> None:
    assert told(await selecting(Script(picks=[]))(inquiry)) == expected


INDEX = [IndexEntry(f"kb:{n}.md", f"About {n}.") for n in range(4)]


def test_a_small_index_is_offered_whole_with_the_headings_that_fit() -> None:
    hits = found(passage("kb:2.md", "Text.", "Guide", "", "Install"), passage("kb:1.md"))
    assert best_choices(INDEX, hits, 4) == [
        Choice("kb:0.md", "About 0.", ""),
        Choice("kb:1.md", "About 1.", ""),
        Choice("kb:2.md", "About 2.", "Install"),
        Choice("kb:3.md", "About 3.", ""),
    ]


def test_of_a_large_index_the_best_are_offered_in_its_order() -> None:
    hits = found(passage("kb:3.md"), passage("kb:1.md"))
    assert [each.id for each in best_choices(INDEX, hits, 2)] == ["kb:1.md", "kb:3.md"]
    assert [each.id for each in best_choices(INDEX, hits, 3)] == ["kb:0.md", "kb:1.md", "kb:3.md"]


# load


async def test_what_was_selected_is_read_and_what_cannot_be_read_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    step = load(Shelf(missing=frozenset({PAGE})), ScriptedSearch(NOTHING), 1_000)
    read = passed(await step(asked(selected=(PAGE, GUIDE))))
    assert [source.id for source in read.sources] == [GUIDE]
    assert read.decisions["load"] == {"loaded": [GUIDE]}
    assert f"left out: {PAGE}: gone" in caplog.text
    assert told(await step(asked(selected=(PAGE,)))) == "skipped: sources unavailable"


async def test_nothing_selected_is_nothing_to_read() -> None:
    assert passed(await load(Shelf(), ScriptedSearch(NOTHING), 1_000)(asked())).sources == ()


# announce, retrieve


@dataclass
class Files:
    """Stands for a `Lookup`."""

    toolset_there: Tools | None
    has_runbooks: bool = True
    asked_for: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])

    def without_runbooks(self) -> Files:
        return replace(self, has_runbooks=False)

    async def toolset(self, *asker: Any, **known: Any) -> Tools | None:
        self.asked_for.append((*asker, known))
        return self.toolset_there


@pytest.mark.parametrize("opened", [False, True])
async def test_files_are_announced_before_anything_is_decided(opened: bool) -> None:
    files: Any = Files(Tools())
    before = Turn(Role.USER, "How?"), Turn(Role.ASSISTANT, "So.")
    inquiry = asked(reply_place_id=77 if opened else None)._replace(conversation=Conversation(before))
    announced = passed(await announce(files, public=True)(inquiry))
    assert announced.decisions["files"] == list(announced.files) == ["app.log (log, 2 kB, 31 lines)"]
    assert files.asked_for == [
        (
            inquiry.part,
            inquiry.case_id,
            {
                "public": True,
                "opened": opened,
                "in_view": inquiry.asker_can_view,
                "messages": inquiry.messages,
                "earlier": (("How?", "So."),),
            },
        )
    ]


async def test_where_there_are_no_files_nothing_is_announced() -> None:
    files: Any = Files(None)
    announced = passed(await announce(files, public=False)(asked()))
    assert (announced.toolset, announced.decisions) == (None, {})


def test_what_was_asked_and_answered_before_helps_with_a_follow_up() -> None:
    def turn(text: str, role: Role = Role.USER, *, asked_now: bool = False) -> Turn:
        return Turn(role, text, asked_now=asked_now)

    said_before = [turn("hello", Role.ASSISTANT)]
    for n in range(4):
        said_before += [turn(f"question {n}"), turn(f"answer {n}", Role.ASSISTANT), turn("more", Role.ASSISTANT)]
    conversation = Conversation((*said_before, turn("and then?", asked_now=True)))
    assert earlier_in(conversation) == tuple((f"question {n}", f"answer {n}") for n in (1, 2, 3))
    assert earlier_in(Conversation(tuple(said_before[:4]))) == (("question 0", "answer 0"),)
    unanswered = Conversation((*said_before, turn("where?"), turn("and then?", asked_now=True)))
    assert earlier_in(unanswered)[-1] == ("where?", "")


async def test_without_files_there_is_nothing_to_wait_for() -> None:
    inquiry = asked()
    assert await prepare_tools(inquiry) is inquiry


async def test_tools_with_something_in_them_are_offered_once_they_are_ready() -> None:
    tools = Tools(tools=[Tool("query_file")])
    waited = passed(await prepare_tools(asked(toolset=with_tools(tools))))
    assert waited.toolset is not None
    assert tools.waited
    assert waited.decisions["tools"] == ["query_file"]


@pytest.mark.parametrize(
    ("inquiry", "expected"),
    [
        (asked(), "unanswered: no sources"),
        (asked(selected=(GUIDE,)), "passed"),
        (asked(images=(Image("a.png", "image/png", b""),)), "passed"),
    ],
    ids=["nothing else", "a source", "an image"],
)
async def test_where_no_file_could_be_read_something_else_may_hold_the_answer(inquiry: Inquiry, expected: str) -> None:
    result = await prepare_tools(inquiry._replace(toolset=with_tools(Tools())))
    assert told(result) == expected
    assert (result.inquiry if isinstance(result, Unanswered) else passed(result)).toolset is None


# generate


def drafting(*answers: Any, most: int = 100, cited: bool = False) -> Callable[[Inquiry], Any]:
    return generate(Script(answers=list(answers)), most, cited)


@pytest.mark.parametrize("said", [None, "", " \n", "null", "Null"])
async def test_no_answer_in_the_sources_is_none(said: str | None) -> None:
    inquiry = asked(sources=(SOURCE,))
    assert told(await drafting(answer(said))(inquiry)) == "unanswered: no answer in sources"
    assert inquiry.decisions["generate"] == {"answer": False}


async def test_an_answer_that_is_too_long_is_asked_for_once_more(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "operators.answering")
    inquiry = asked(sources=(SOURCE,))
    assert passed(await drafting(answer("x" * 101), answer("x" * 100))(inquiry)).draft == "x" * 100
    assert caplog.messages == ["generate: 101 characters, asking for 100"]
    assert passed(await drafting(answer("x" * 100), answer("y"))(inquiry)).draft == "x" * 100
    assert told(await drafting(answer("x" * 101), answer("x" * 101))(inquiry)) == "skipped: too long"
    assert inquiry.decisions["generate"] == {"answer": True, "characters": 101}
    assert told(await drafting(answer("x" * 101), answer(None))(inquiry)) == "unanswered: no answer in sources"


async def test_citations_are_of_what_was_loaded_and_may_be_required() -> None:
    inquiry = asked(sources=(SOURCE,))
    assert passed(await drafting(answer("Like this.", GUIDE, PAGE))(inquiry)).citations == (GUIDE,)
    assert inquiry.decisions["generate"] == {"answer": True, "characters": 10, "citations": [GUIDE]}
    assert told(await drafting(answer("Like this.", PAGE), cited=True)(inquiry)) == "skipped: no citation"
    assert told(await drafting(answer("Like this.", GUIDE), cited=True)(inquiry)) == "passed"
    assert told(await drafting(answer("Like this."), cited=True)(asked())) == "passed"


async def test_with_files_an_answer_cites_their_lines_and_its_quotes_are_checked() -> None:
    tools = Tools()
    inquiry = asked(sources=(SOURCE,), toolset=with_tools(tools))
    drafted = passed(await drafting(answer("It broke.", "app.log:31", GUIDE))(inquiry))
    assert (drafted.draft, drafted.citations) == ("It broke. (checked)", (GUIDE, "app.log:31"))
    assert tools.quotable == [SOURCE.text, "How do I install it?"]


async def test_a_runbook_that_is_called_like_a_page_is_told_from_it() -> None:
    inquiry = asked(sources=(SOURCE,), toolset=with_tools(Tools(runbook="guide.md")))
    drafted = passed(await drafting(answer("Like this.", "guide.md"))(inquiry))
    assert drafted.citations == (GUIDE,)
    assert drafted.draft == "From a runbook:\nLike this. (checked)"


async def test_links_that_nobody_has_given_are_removed_and_what_was_only_a_link_is_no_answer() -> None:
    inquiry = asked(sources=(SOURCE,))
    linked = answer("Read [this](https://evil.example/x).", GUIDE)
    assert passed(await drafting(linked)(inquiry)).draft == "Read this."
    only = answer("https://evil.example/x", GUIDE)
    assert told(await drafting(only)(inquiry)) == "unanswered: no answer in sources"


async def test_the_last_look_at_a_draft_decides() -> None:
    async def complete_draft(inquiry: Inquiry) -> Inquiry | Unanswered:
        return Unanswered(inquiry, Reason.UNSURE)

    step = generate(Script(answers=[answer("Like this.")]), 100, False, complete_draft=complete_draft)
    result = await step(asked())
    assert told(result) == "unanswered: unsure"
    assert isinstance(result, Unanswered)
    assert result.inquiry.draft == "Like this."


# later drafts


async def test_a_draft_in_other_words_has_no_new_links_and_is_still_compared_as_it_was_first() -> None:
    inquiry = asked(draft="See https://docs.example/page.", first_draft="first", citations=(GUIDE,))
    again = inquiry.with_redraft(" See https://docs.example/page or [this](https://evil.example/x). ")
    assert (again.draft, again.first_draft) == ("See https://docs.example/page or this.", "first")
    assert again.citations == (GUIDE,)
    assert inquiry.with_redraft("https://evil.example/x").draft == inquiry.draft


async def test_a_draft_in_other_words_is_checked_against_files_and_the_draft_before() -> None:
    tools = Tools()
    assert asked(draft="It broke.", toolset=with_tools(tools)).with_redraft("Broken.").draft == "Broken. (checked)"
    assert tools.quotable == ["It broke."]


# verify


async def test_a_draft_that_only_points_states_nothing_and_is_not_judged() -> None:
    script, inquiry = (
        Script(later={"verify": ValueError("is not asked")}),
        asked(draft="This may help:", level=Level.POINT),
    )
    assert await verify(script)(inquiry) is inquiry
    assert script.steps == []


@pytest.mark.parametrize(("good", "expected"), [(True, "passed"), (False, "skipped: rejected")])
async def test_a_draft_is_posted_if_it_is_good_enough(good: bool, expected: str) -> None:
    issues = [] if good else ["It is wrong."]
    script = Script(later={"verify": VerificationResult(is_good_enough=good, issues=issues, suggested_fix=None)})
    inquiry = asked(draft="Like this.")
    assert told(await verify(script)(inquiry)) == expected
    assert script.asked[0].text == "Like this."
    assert inquiry.decisions["verify"] == {"good_enough": good, "issues": issues}


# steps that a setting puts into the chain

BAD = VerificationResult(is_good_enough=False, issues=["wrong"], suggested_fix=None)


async def ended(world: World) -> list[str]:
    """What becomes of a question."""
    world.says(ANNA, "How do I install it?")
    await world.close()
    return world.story


async def test_a_draft_that_verification_rejects_is_not_posted(tmp_path: Path) -> None:
    script = Script(later={"verify": BAD})
    world = await World.begin(tmp_path, script=script, ai_response={"enable_verification": True})
    assert await ended(world) == ["skipped: rejected"]
    assert world.replies == []


async def test_verification_sees_the_draft_as_it_would_be_posted_without_the_links_below(tmp_path: Path) -> None:
    script = Script(picks=[PAGE], answers=[answer("Read [this](https://evil.example/x), then go.", PAGE)])
    world = await World.begin(tmp_path, script=script, ai_response={"enable_verification": True})
    assert await ended(world) == ["replied"]
    assert script.asked[-1].text == "Read this, then go."


async def test_verification_is_off_unless_it_is_switched_on(tmp_path: Path) -> None:
    world = await World.begin(tmp_path, script=Script(later={"verify": BAD}))
    assert await ended(world) == ["replied"]
    assert "verify" not in world.script.steps


class Filtered(Witness):
    """A model whose provider refuses a prompt that holds "slur"."""

    async def gate(self, *args: Any, **known: Any) -> GatingResult:
        refuse(args[0])
        return await super().gate(*args, **known)

    async def generate(self, *args: Any, **known: Any) -> AnswerResult:
        refuse(args[0])
        return await super().generate(*args, **known)

    async def ask(
        self, step: str, prompt: Callable[[ConfiguredTasks], Prompt], result: type[M], usage: Usage
    ) -> M | None:
        if "slur" in prompt(ConfiguredTasks()).user:
            raise PromptRefused("400")
        return await super().ask(step, prompt, result, usage)


def refuse(conversation: Conversation) -> None:
    if any("slur" in turn.text for turn in conversation.turns):
        raise PromptRefused("400")


AMONG_OTHERS = Conversation(
    (
        Turn(Role.USER, "It is slow.", by_asker=True),
        Turn(Role.USER, "lol slur"),
        Turn(Role.ASSISTANT, "Which version?", from_team=True),
        Turn(Role.ASSISTANT, "You said slur."),
        Turn(Role.USER, "How do I install it?", asked_now=True, by_asker=True),
    )
)


def steps_that_show_the_conversation(script: Script) -> list[Any]:
    return [gate(script, Budget(BudgetLimits()), 60), generate(script, 100, False), verify(script)]


@pytest.mark.parametrize("number", range(3))
async def test_a_refused_prompt_is_tried_again_with_the_asker_and_the_team_alone(number: int) -> None:
    step = steps_that_show_the_conversation(Filtered())[number]
    inquiry = asked(conversation=AMONG_OTHERS, sources=(SOURCE,), draft="Like this.")
    result = passed(await step(inquiry))
    inquiry.token.close()
    said = [turn.text for turn in result.conversation.turns]
    assert said == ["It is slow.", "Which version?", "How do I install it?"]


async def test_an_answer_is_counted_once_however_often_its_gate_is_asked() -> None:
    step = gate(Filtered(), Budget(BudgetLimits(chains_per_user_per_hour=1)), 60)
    inquiry = asked(conversation=AMONG_OTHERS)
    assert told(await step(inquiry)) == "passed"
    inquiry.token.close()


@pytest.mark.parametrize("number", range(3))
async def test_what_the_asker_says_and_is_refused_ends_the_question(number: int) -> None:
    step = steps_that_show_the_conversation(Filtered())[number]
    inquiry = asked("slur?", sources=(SOURCE,), draft="Like this.")
    with pytest.raises(PromptRefused):
        await step(inquiry)
    inquiry.token.close()
