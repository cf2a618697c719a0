"""Whatever happens on a server, every message comes out once, the sums hold, and a second run gives the same bytes."""

# pyright: reportPrivateUsage=false
# Whether memory is given back cannot be seen from outside.

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from model.messages import Message
from model.outcomes import Ignored, Outcome, Removed, Result
from tests.services.quickly import QUICKLY
from tests.world import (
    ANNA,
    BEN,
    HELP,
    OTHER,
    ROBOT,
    START,
    TESS,
    Noticeboard,
    Script,
    World,
    forum_post,
    run,
    snowflake,
    thread,
)

THREAD, POST = snowflake(START - 2000), snowflake(START - 1000)
PLACES = (HELP, OTHER, THREAD, POST)
PEOPLE = (ANNA, BEN, TESS, ROBOT)
TEXTS = ("How?", "fail", "slow", "", "!nobot hush", "<@1> help", "@everyone")


@dataclass(frozen=True)
class Line:
    """One line of a screenplay; `whom` picks an earlier message."""

    pause: float
    does: str
    who: int
    where: int
    text: str
    whom: int


LINES = st.builds(
    Line,
    pause=st.sampled_from([0.0, 0.5, 7.0, 10.0, 25.0, 70.0]),
    does=st.sampled_from(
        ["says", "says", "says", "replies", "replies", "edits", "deletes", "again", "late", "reacts", "closes", "joins"]
    ),
    who=st.integers(0, len(PEOPLE) - 1),
    where=st.integers(0, len(PLACES) - 1),
    text=st.sampled_from(TEXTS),
    whom=st.integers(0, 5),
)


async def played(lines: Sequence[Line], folder: Path) -> World:  # noqa: C901 (one case a verb)
    world = await World.begin(
        folder,
        script=Script(seconds={"slow": 30, "select": 1}, fails_at="fail"),
        board=Noticeboard(seconds=2),
        discord={"message_batch_wait_seconds": 10, "feedback": True},
        ai_response={"max_waiting_answers": 2, "max_concurrent_answers": 2},
        limits={"chains_per_user_per_hour": 6},
    )
    world.opens(thread(THREAD))
    world.opens(forum_post(POST, ANNA))
    written: list[Message] = []
    held_back: list[Message] = []
    for line in lines:
        await world.wait(line.pause)
        author, place = PEOPLE[line.who], PLACES[line.where]
        earlier = written[-1 - line.whom % len(written)] if written else None
        match line.does:
            case "late":  # written now, delivered with the next late one, or at the end
                for message in held_back:
                    world.delivers(message)
                held_back = [world.writes(author, line.text, where=place)]
                written += held_back
            case "replies" if earlier is not None:
                written.append(world.says(author, line.text, where=earlier.channel_id, to=earlier))
            case "edits" if earlier is not None:
                world.edits(earlier, line.text)
            case "deletes" if earlier is not None:
                world.deletes(earlier)
            case "again" if earlier is not None:
                world.delivers(earlier)
            case "reacts" if world.board.sent:
                world.reacts(author, world.last_reply_id, "👍")
            case "closes":
                world.closes(THREAD)
            case "joins" if world.board.threads:
                written.append(world.says(author, line.text, where=world.board.threads[-1][1]))
            case _:
                written.append(world.says(author, line.text, where=place, mentions=((1, "M"),) * ("<@1>" in line.text)))
    for message in held_back:
        world.delivers(message)
    assert await world.close()
    return world


def ids_of(end: Result) -> tuple[int, ...]:
    match end:
        case Outcome(part=part):
            return part.message_ids
        case Ignored(message_ids=ids):
            return ids
        case Removed(message_id=message_id):
            return (message_id,)


def play(lines: Sequence[Line]) -> World:
    with tempfile.TemporaryDirectory() as folder:
        return run(lambda: played(lines, Path(folder)))


@QUICKLY
@given(st.lists(LINES, max_size=40))
@example([Line(0.0, "deletes", 0, 0, "How?", 0), Line(0.0, "late", 0, 0, "How?", 0), Line(0.0, "deletes", 0, 0, "", 0)])
def test_every_message_ends_exactly_once_and_the_sums_hold(lines: list[Line]) -> None:
    """Pitfalls 2, 8, 25 and 29: nothing is lost, and nothing is told twice."""
    world = play(lines)
    assert Counter(message_id for end in world.ends for message_id in ids_of(end)) == world.delivered
    assert world.tally.adds_up
    assert world.tally.messages == world.delivered.total()
    assert len(world.lines) == len(world.outcomes) == world.tally.parts.total()
    in_flight = world.parts.services.in_flight
    assert (len(in_flight), in_flight._tokens, in_flight._in_threads) == (0, {}, {})
    assert all(not mark.open for mark in world.parts.services.watermarks.marks().values())


@QUICKLY
@given(st.lists(LINES, max_size=40))
def test_two_runs_of_one_screenplay_give_the_same_bytes(lines: list[Line]) -> None:
    first, second = play(lines), play(lines)
    assert first.lines == second.lines
    assert first.story == second.story
    assert first.board.sent == second.board.sent


@QUICKLY
@given(st.lists(LINES, max_size=40))
def test_outcomes_are_printed_in_the_order_in_which_windows_closed(lines: list[Line]) -> None:
    world = play(lines)
    closed = {id(o): o.part for o in world.outcomes}
    ordered = sorted(closed.values(), key=lambda part: part.number)
    assert [str(part.message_ids[0]) in line for part, line in zip(ordered, world.lines, strict=True)] == [True] * len(
        ordered
    )
    assert [part.closed_at for part in ordered] == sorted(part.closed_at for part in ordered)
