from __future__ import annotations

import asyncio
import gc
import weakref

from reactivex.subject import Subject

from dataflow import delay_unless_replaced
from tests.marbles import Operator, play

DELAYS = {"a": 3.0, "b": 3.0, "A": 0.0, "B": None}
LATER = delay_unless_replaced(str.lower, DELAYS.__getitem__)
"""Small letters wait three seconds, `A` leaves at once, `B` calls off what waits as `b`."""


async def test_each_item_leaves_after_its_seconds() -> None:
    assert await play("-a-b-----|", LATER) == "----a-b--|"


async def test_an_item_of_no_seconds_leaves_at_once_and_takes_the_place_of_what_waits() -> None:
    assert await play("-aA------|", LATER) == "--A------|"


async def test_what_waits_can_be_called_off() -> None:
    assert await play("-a-b-B---|", LATER) == "----a----|"


async def test_the_same_again_begins_to_wait_anew() -> None:
    assert await play("-a-a-----|", LATER) == "------a--|"


async def test_completion_drops_what_waits() -> None:
    assert await play("-a-|", LATER) == "---|"


async def test_an_error_passes_and_a_raising_selector_is_one() -> None:
    assert await play("-a-#", LATER) == "---#"
    assert await play("-x-|", LATER) == "-#"


async def test_dispose_leaves_no_timer_behind() -> None:
    seen: list[str] = []
    source: Subject[str] = Subject()
    source.pipe(LATER).subscribe(seen.append).dispose()
    subscription = source.pipe(LATER).subscribe(seen.append)
    source.on_next("a")
    subscription.dispose()
    await asyncio.sleep(10)
    assert not seen


async def test_what_waited_is_let_go_at_once_when_the_subscriber_leaves() -> None:
    class Item:
        pass

    source: Subject[Item] = Subject()
    later: Operator = delay_unless_replaced(id, lambda _: 1000.0)
    subscription = source.pipe(later).subscribe()
    item = Item()
    waiting = weakref.ref(item)
    source.on_next(item)
    del item
    assert waiting() is not None
    subscription.dispose()
    gc.collect()
    assert waiting() is None
