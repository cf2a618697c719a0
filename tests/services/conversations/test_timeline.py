"""The known messages of one place, and what they take."""

from __future__ import annotations

import tracemalloc

from model.messages import Author, Message
from services.conversations.history import Timeline

ANN = Author(1, "ann")


def test_messages_that_come_and_go_take_little_beside_themselves() -> None:
    messages = [Message(number, 7, ANN, "", float(number)) for number in range(1_000, 6_000)]
    tracemalloc.start()
    timeline = Timeline(complete=True)
    for each in messages:
        timeline.add(each)
        timeline.trim(1_000)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert timeline.newest(1_000) == messages[-1_000:]
    assert held / 1_000 < 30


def test_one_that_comes_late_or_again_is_in_its_place() -> None:
    timeline = Timeline(complete=True)
    for number in (5, 1, 3, 3, 9):
        timeline.add(Message(number, 7, ANN, f"{number} at last" if number == 3 else "", 0.0))
    timeline.remove(5)
    timeline.remove(4)
    newest = timeline.newest(10)
    assert newest is not None
    assert [each.id for each in newest] == [1, 3, 9]
    assert (len(timeline), timeline.get(4), timeline.get(10)) == (3, None, None)
    assert timeline.get(3) is newest[1]
