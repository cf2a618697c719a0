from functools import partial

from dataflow.triggering import checkpoint
from tests.marbles import play

often = partial(checkpoint, int, seconds=5, pause=0)


def mark(_sign: None) -> str:
    return "•"


async def test_it_emits_once_enough_has_come_and_at_the_end() -> None:
    assert await play("-1-1-1-----|", often(enough=3), show=mark) == "-----•-----(• |)"


async def test_it_emits_some_time_after_the_first_item() -> None:
    assert await play("-1-1-----------1-------|", often(enough=9), show=mark) == "------•-------------•--(• |)"


async def test_one_heavy_item_is_enough_at_once_also_behind_a_light_one() -> None:
    assert await play("-9----|", often(enough=9), show=mark) == "-•----(• |)"
    assert await play("-1-9--|", often(enough=9), show=mark) == "---•--(• |)"


async def test_two_signs_are_a_pause_apart_but_for_the_last() -> None:
    pausing = checkpoint(int, enough=1, seconds=9, pause=4)
    assert await play("-1-1-1-1-1-|", pausing, show=mark) == "-•---•---•-(• |)"


async def test_it_emits_at_the_end_even_when_nothing_came() -> None:
    assert await play("---|", often(enough=1), show=mark) == "---(• |)"


async def test_errors_go_through_and_a_raising_weight_is_one() -> None:
    assert await play("-1-#", often(enough=9), show=mark) == "---#"
    assert await play("-x-|", often(enough=9), show=mark) == "-#"
