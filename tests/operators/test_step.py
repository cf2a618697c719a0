"""What a step says of the time it took, and several steps in turn."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import reactivex as rx

import operators.step
from clock import now
from dataflow.metering import measure_item, operator_watch
from model.messages import Author, AuthorType, Message, Part, Place, PlaceKind
from model.outcomes import Outcome, OutcomeKind, Reason
from operators.step import Item, StepOperator, TookTooLong, in_order, in_turn, is_expected, step
from services.assistant import Inquiry, Unanswered, skip_outcome
from services.conversations import PersonalWork, WorkCancelled
from services.llm import Unavailable, Usage
from services.telemetry import current_people
from tests.marbles import play, watch

ADA, BEN = Author(1, "ada"), Author(2, "ben")


def inquiry() -> Inquiry:
    message = Message(10, 11, ADA, "How?", 1.0)
    part = Part(1, (message,), AuthorType.COMMUNITY_USER, Place(11, PlaceKind.CHANNEL), 1.0)
    return Inquiry(part, addressed=True, usage=Usage(), decisions={})


def shown(item: Item) -> str:
    """`q` goes on, `u` is unanswered, `o` has ended."""
    return "q" if isinstance(item, Inquiry) else "u" if isinstance(item, Unanswered) else "o"


async def slow(item: Inquiry) -> Inquiry:
    await asyncio.sleep(2)
    return item


async def at_once(item: Inquiry) -> Inquiry:
    return item


async def broken(item: Inquiry) -> Inquiry:
    await asyncio.sleep(2)
    raise ValueError(item.query)


async def stopped_inside(item: Inquiry) -> Inquiry:
    raise asyncio.CancelledError(item.query)


async def ended(item: Inquiry) -> Outcome:
    return skip_outcome(item, Reason.NO_SOURCES)


async def given_up(item: Inquiry) -> Unanswered:
    return Unanswered(item, Reason.NO_SOURCES)


@pytest.mark.parametrize(
    ("level", "lines", "looks"), [(logging.DEBUG, ["gate took 2000 ms"], 2), (logging.INFO, [], 0)]
)
async def test_the_clock_is_asked_only_where_the_time_is_logged(
    level: int, lines: list[str], looks: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[float] = []

    def looked_at() -> float:
        asked.append(now())
        return asked[-1]

    async def gate(inquiry: Inquiry) -> Inquiry:
        await asyncio.sleep(2)
        return inquiry

    monkeypatch.setattr(operators.step, "now", looked_at)
    with caplog.at_level(level, "operators.step"):
        assert await play("q---|", step("gate", gate, 1), values={"q": inquiry()}, show=lambda _: "q") == "--q-|"
    assert [record.getMessage() for record in caplog.records if record.name == "operators.step"] == lines
    assert len(asked) == looks


# Several in turn.


@pytest.mark.parametrize(
    ("steps", "expected", "reason"),
    [
        ([slow, slow], "----q|", None),
        ([slow, ended, broken], "--o--|", Reason.NO_SOURCES),
        ([slow, given_up, broken], "--u--|", Reason.NO_SOURCES),
        ([slow, broken, slow], "----o|", "ValueError at 1"),
        ([slow, stopped_inside, slow], "--o--|", "UnexpectedCancellation at 1"),
    ],
    ids=["all go on", "one ends it", "one leaves it unanswered", "one fails", "one is cancelled by what it awaits"],
)
async def test_steps_in_turn_do_what_a_pipe_of_them_does(
    steps: list[Callable[[Inquiry], Coroutine[Any, Any, Item]]], expected: str, reason: str | None
) -> None:
    made = [step(f"{number}", fn, 4) for number, fn in enumerate(steps)]
    for operators_ in ([in_turn(*made)], made):
        seen: list[Any] = []

        def keep(item: Item, seen: list[Any] = seen) -> str:
            seen.append(item)
            return shown(item)

        assert await play("q----|", *operators_, values={"q": inquiry()}, show=keep) == expected
        assert [getattr(item, "reason", None) for item in seen] == [reason]


@pytest.mark.parametrize(("limit", "expected"), [(1, "--q-q-(q |)"), (2, "--(q q)-(q |)"), (3, "--(q q q |)")])
async def test_a_step_takes_so_many_at_a_time_and_steps_in_turn_as_many_as_each_takes(
    limit: int, expected: str
) -> None:
    for chain in (step("gate", slow, limit), in_turn(step("gate", slow, limit), step("load", at_once, 3))):
        assert await play("(qqq)|", chain, values={"q": inquiry()}, show=shown) == expected


async def test_steps_in_turn_are_one_task_for_each_item() -> None:
    tasks: list[object] = []

    async def noted(item: Inquiry) -> Inquiry:
        tasks.append(asyncio.current_task())
        return await slow(item)

    chain = in_turn(in_turn(step("a", noted, 4), step("b", noted, 4)), step("c", noted, 4))
    assert await play("q------|", chain, values={"q": inquiry()}, show=shown) == "------q|"
    assert len(tasks) == 3
    assert len(set(tasks)) == 1


async def test_what_every_step_lets_by_does_not_wait_for_a_turn() -> None:
    values = {
        "q": inquiry(),
        "o": skip_outcome(inquiry(), Reason.NO_SOURCES),
        "u": Unanswered(inquiry(), Reason.UNSURE),
    }

    async def pointed(item: Unanswered) -> Inquiry:
        return await slow(item.inquiry)

    chain = in_turn(step("gate", slow, 1), step("point", pointed, 1, takes=Unanswered))
    assert await play("qou---|", chain, values=values, show=shown) == "-oq-q-|"


@pytest.mark.parametrize(("after", "step_name"), [(1, "gate"), (3, "load")])
async def test_an_item_that_is_called_off_ends_at_once(after: int, step_name: str) -> None:
    asked = inquiry()
    asyncio.get_running_loop().call_later(after, asked.token.cancel, ValueError("too late"))
    chain = in_turn(step("gate", slow, 1), step("load", slow, 1))
    ends: list[Any] = []
    rx.of(asked).pipe(chain).subscribe(ends.append)
    await asyncio.sleep(after)
    await asyncio.sleep(0.1)
    assert [end.reason for end in ends] == [f"ValueError at {step_name}"]


async def test_a_step_that_calls_its_own_item_off_is_the_last() -> None:
    asked = inquiry()

    async def deleted(item: Inquiry) -> Inquiry:
        item.token.cancel(WorkCancelled(Reason.DELETED))
        return item

    chain = in_turn(step("gate", deleted, 1), step("load", slow, 1))
    ends: list[Any] = []
    assert await play("q|", chain, values={"q": asked}, show=lambda item: ends.append(item) or "o") == "o|"
    assert [end.reason for end in ends] == [Reason.DELETED]


async def test_an_item_that_was_called_off_before_ends_at_the_first_step_that_is_for_it() -> None:
    asked = Unanswered(inquiry(), Reason.UNSURE)
    asked.token.cancel(ValueError("too late"))
    chain = in_turn(step("gate", slow, 1), step("point", slow, 1, takes=Unanswered))
    ends: list[Any] = []
    assert await play("u|", chain, values={"u": asked}, show=lambda item: ends.append(item) or "o") == "o|"
    assert [end.reason for end in ends] == ["ValueError at point"]


async def test_each_step_tells_its_gauge_how_many_it_is_at_and_none_when_the_subscriber_leaves(
    caplog: pytest.LogCaptureFixture,
) -> None:
    told: list[tuple[str, int]] = []

    def gauge(name: str, count: int) -> None:
        told.append((name, count))

    chain: StepOperator = in_turn(step("gate", slow, 2, gauge), step("load", slow, 2, gauge))
    ends: list[Any] = []
    subscription = rx.of(inquiry(), inquiry()).pipe(chain).subscribe(ends.append)
    await asyncio.sleep(3)
    assert told == [("gate", 1), ("gate", 2), ("gate", 1), ("load", 1), ("gate", 0), ("load", 2)]
    subscription.dispose()
    await asyncio.sleep(3)
    assert told[6:] == [("load", 1), ("load", 0)]
    assert ends == []
    assert caplog.messages == []  # nothing has failed


@pytest.mark.parametrize(
    ("error", "from_outside"),
    [
        (Unavailable("down"), True),
        (TookTooLong(), True),
        (TimeoutError(), True),
        (OSError(), True),
        (KeyError(), False),
    ],
)
def test_what_comes_from_outside_is_told_from_a_bug(error: Exception, from_outside: bool) -> None:
    assert is_expected(error) is from_outside


async def test_whose_words_a_step_works_with_follows_the_conversation() -> None:
    seen: list[set[int]] = []

    async def gathered(item: Inquiry) -> Inquiry:
        seen.append({*(current_people.get() or ())})
        return item._replace(messages=(Message(9, 11, BEN, "So.", 0.5),))

    async def looked(item: Inquiry) -> Inquiry:
        seen.append({*(current_people.get() or ())})
        return item

    chain = in_turn(step("gather", gathered, 1), step("gate", looked, 1), step("load", looked, 1))
    assert await play("q|", chain, values={"q": inquiry()}, show=shown) == "q|"
    assert seen == [{1}, {1, 2}, {1, 2}]


@pytest.mark.parametrize("withdrawing", [ADA, BEN])
async def test_when_words_are_withdrawn_their_owners_question_ends_and_others_begin_again(withdrawing: Author) -> None:
    personal_work, said, begun = PersonalWork(), [Message(9, 11, BEN, "So.", 0.5)], list[str]()

    async def gathered(item: Inquiry) -> Inquiry:
        begun.append("gather")
        await asyncio.sleep(1)
        return item._replace(messages=tuple(said))

    async def gated(item: Inquiry) -> Inquiry:
        begun.append(f"gate with {len(item.messages)}")
        item.decisions[f"gate {len(item.messages)}"] = True
        await asyncio.sleep(1)
        return item

    async def withdraw() -> None:
        await asyncio.sleep(1.5)
        said.clear()
        personal_work.withdraw(withdrawing.id)

    made = in_order(step("gather", gathered, 1), step("gate", gated, 1), personal_work=personal_work)
    item, withdrawn = inquiry(), asyncio.create_task(withdraw())
    seen = await watch("q|", made, values={"q": item})
    await withdrawn
    (at, end), _ = seen
    if withdrawing is ADA:
        assert isinstance(end, Outcome)
        assert (at, end.result, end.reason) == (1.5, OutcomeKind.CANCELLED, Reason.DELETED)
        assert begun == ["gather", "gate with 1"]
    else:
        assert (at, shown(end)) == (3.5, "q")
        assert begun == ["gather", "gate with 1", "gather", "gate with 0"]
        assert item.decisions == {"gate 0": True}


@pytest.mark.parametrize("after_gate", [True, False])
async def test_an_answer_that_begins_again_after_the_gate_is_counted_already(after_gate: bool) -> None:
    personal_work, seen = PersonalWork(), list[bool]()

    async def gathered(item: Inquiry) -> Inquiry:
        seen.append(item.is_counted)
        return item._replace(messages=(Message(9, 11, BEN, "So.", 0.5),) if len(seen) == 1 else ())

    async def gated(item: Inquiry) -> Inquiry:
        item.decisions.update({"gate": {}} if after_gate else {})
        await asyncio.sleep(1)
        return item

    made = in_order(step("gather", gathered, 1), step("gate", gated, 1), personal_work=personal_work)
    asyncio.get_running_loop().call_later(0.5, personal_work.withdraw, BEN.id)
    await watch("q|", made, values={"q": inquiry()})
    assert seen == [False, after_gate]


async def test_whoever_deletes_or_edits_again_and_again_is_left_out_of_the_answers_of_others() -> None:
    """Each try has the whole time of the chain: else edits would let it run out."""
    personal_work, left_out, cat = PersonalWork(), list[frozenset[int]](), Author(3, "cat")
    said = (Message(8, 11, cat, "Me too.", 0.4), Message(9, 11, BEN, "So.", 0.5))

    async def gathered(item: Inquiry) -> Inquiry:
        left_out.append(item.left_out)
        return item._replace(messages=tuple(each for each in said if each.author.id not in item.left_out))

    async def generated(item: Inquiry) -> Inquiry:
        item.token.expire_in(2.5, TookTooLong())
        await asyncio.sleep(2)
        return item

    made = in_order(step("gather", gathered, 1), step("generate", generated, 1), personal_work=personal_work)
    for second in range(1, 6):
        asyncio.get_running_loop().call_later(second, personal_work.withdraw_messages, (9, 10))
    asyncio.get_running_loop().call_later(4, personal_work.withdraw_messages, (8,))
    asked = inquiry()
    (at, end), _ = await watch("q|", made, values={"q": asked})
    asked.token.close()
    assert (at, shown(end)) == (6, "q")
    assert left_out == [frozenset(), frozenset(), frozenset(), {BEN.id}, {BEN.id, cat.id}]


async def test_what_is_unanswered_begins_again_as_well() -> None:
    personal_work, begun = PersonalWork(), list[Unanswered]()

    async def pointed(item: Unanswered) -> Inquiry:
        begun.append(item)
        await asyncio.sleep(2)
        return item.inquiry

    made = in_order(step("point", pointed, 1, takes=Unanswered), personal_work=personal_work)
    asyncio.get_running_loop().call_later(1, personal_work.withdraw_messages, (9,))
    asked = inquiry()._replace(messages=(Message(9, 11, BEN, "So.", 0.5),))
    item = Unanswered(asked, Reason.NO_SOURCES)
    assert await play("u---|", made, values={"u": item}, show=shown) == "---q|"
    assert begun == [item, item]


class Heard:
    """A meter that writes down what it hears."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, operator: str, count: int) -> None:
        self.lines.append(f"{operator} works on {count}")

    def on_waiting(self, operator: str, count: int) -> None:
        self.lines.append(f"{operator} lets {count} wait")

    def on_begin(self, operator: str) -> Callable[[Exception | None], object]:
        self.lines.append(f"{operator} begins")
        return lambda error: self.lines.append(f"{operator} ends with {error}")


async def test_a_meter_hears_of_each_item_of_a_step() -> None:
    heard = Heard()

    async def gate(inquiry: Inquiry) -> Inquiry:
        return inquiry

    message = Message(10, 11, Author(1, "ada"), "How?", 1.0)
    part = Part(1, (message,), AuthorType.COMMUNITY_USER, Place(11, PlaceKind.CHANNEL), 1.0)
    inquiry = Inquiry(part, addressed=True, usage=Usage(), decisions={})
    await play("q---|", step("gate", gate, 1, heard), values={"q": inquiry}, show=lambda _: "q")
    assert heard.lines == ["gate works on 1", "gate begins", "gate ends with None", "gate works on 0"]


def test_a_meter_hears_of_work_in_a_block_and_what_it_failed_of() -> None:
    heard = Heard()
    with measure_item(heard, "classify"):
        pass
    with pytest.raises(ValueError, match="no"), measure_item(heard, "classify"):
        raise ValueError("no")
    one = ["classify begins", "classify works on 1", "classify works on 0"]
    assert heard.lines == [*one, "classify ends with None", *one, "classify ends with no"]


def test_a_gauge_that_only_counts_is_not_asked_for_more() -> None:
    counts: list[tuple[str, int]] = []

    def gauge(operator: str, count: int) -> None:
        counts.append((operator, count))

    assert operator_watch(gauge, "gate") is None
    assert operator_watch(None, "gate") is None
    with measure_item(gauge, "classify"):
        assert counts == [("classify", 1)]
    with measure_item(None, "classify"):
        pass


def test_a_meter_hears_how_many_items_wait() -> None:
    heard = Heard()
    queue = operator_watch(heard, "queue")
    assert queue is not None
    queue.on_waiting(3)
    assert heard.lines == ["queue lets 3 wait"]


def test_a_chain_is_in_the_order_of_the_table() -> None:
    names = ("verify", "gate", "reply", "gather", "select")
    made = in_order(*(step(name, at_once, 1) for name in names))
    assert [work.name for work in made.single_steps] == ["gather", "gate", "select", "verify", "reply"]


def test_a_chain_with_a_step_that_the_table_lacks_is_not_made() -> None:
    with pytest.raises(ValueError, match=r"no row for sign$"):
        in_order(step("gate", at_once, 1), step("sign", at_once, 1))
