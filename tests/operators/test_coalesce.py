import reactivex as rx
from reactivex import Observable
from reactivex import operators as ops
from reactivex.subject import Subject

from dataflow import map_async
from dataflow.triggering import coalesce
from tests.marbles import play
from tests.operators.slow import lost, takes


def run(item: str) -> Observable[str]:
    """Takes three seconds, and says at once that it began."""
    done = rx.of(item.upper()).pipe(map_async(takes(3), on_failure=lost, max_concurrent=1))
    return rx.concat(rx.of(item), done)


def broken(item: str) -> Observable[str]:
    raise KeyError(item)


async def test_a_trigger_runs() -> None:
    assert await play("-a------b------|", coalesce(run)) == "-a--A---b--B---|"


async def test_triggers_during_a_run_cause_one_more_for_the_latest() -> None:
    assert await play("-abcd------|", coalesce(run)) == "-a--(A d)--D---|"


async def test_it_completes_when_the_last_run_is_through() -> None:
    assert await play("-a-|", coalesce(run)) == "-a--(A |)"
    assert await play("-ab|", coalesce(run)) == "-a--(A b)--(B |)"
    assert await play("---|", coalesce(run)) == "---|"


async def test_errors_of_the_source_of_a_run_and_of_making_one_go_through() -> None:
    assert await play("-a-#", coalesce(run)) == "-a-#"
    assert await play("-a--|", coalesce(lambda _: rx.throw(KeyError()))) == "-#"
    assert await play("-a--|", coalesce(broken)) == "-#"


def test_runs_that_are_through_at_once_follow_one_another() -> None:
    source, got = Subject[int](), list[int]()

    def see(item: int) -> None:
        got.append(item)
        if item < 3:
            source.on_next(item + 1)

    def at_once(item: int) -> Observable[int]:
        return rx.of(item)

    source.pipe(coalesce(at_once), ops.take(5)).subscribe(see)
    source.on_next(0)
    assert got == [0, 1, 2, 3]


async def test_disposing_ends_the_run() -> None:
    source, inner = Subject[str](), Subject[str]()
    subscription = source.pipe(coalesce(lambda _: inner)).subscribe()
    source.on_next("a")
    assert len(inner.observers) == 1
    subscription.dispose()
    assert inner.observers == source.observers == []
