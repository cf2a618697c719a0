from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from dataflow.quiet_window import Deadlines


@dataclass
class Thing:
    name: str
    deadline: float = 0.0


def upcoming(deadlines: Deadlines[str, Thing]) -> list[str]:
    """All of them, in the order they are due."""
    names: list[str] = []
    while (first := deadlines.first()) is not None:
        deadlines.pop(first[0])
        names.append(first[1].name)
    return names


def filled(*entries: tuple[str, float]) -> Deadlines[str, Thing]:
    deadlines: Deadlines[str, Thing] = Deadlines()
    for name, deadline in entries:
        deadlines.put(name, deadlines.get(name) or Thing(name), deadline)
    return deadlines


def test_what_comes_in_order_leaves_in_order() -> None:
    assert upcoming(filled(("a", 1), ("b", 2), ("c", 3))) == ["a", "b", "c"]


def test_what_comes_out_of_order_leaves_in_order() -> None:
    assert upcoming(filled(("c", 3), ("a", 1), ("b", 2))) == ["a", "b", "c"]


def test_on_a_tie_what_came_in_order_is_first() -> None:
    assert upcoming(filled(("a", 1), ("b", 2), ("late", 1))) == ["a", "late", "b"]


def test_a_later_deadline_moves_a_thing_back_whichever_way_it_came() -> None:
    assert upcoming(filled(("a", 1), ("b", 2), ("a", 3))) == ["b", "a"]
    assert upcoming(filled(("z", 9), ("a", 1), ("b", 2), ("a", 3))) == ["b", "a", "z"]
    assert upcoming(filled(("z", 9), ("a", 1), ("b", 2), ("a", 10))) == ["b", "z", "a"]


def test_an_earlier_deadline_moves_a_thing_forward() -> None:
    assert upcoming(filled(("a", 1), ("b", 5), ("b", 0))) == ["b", "a"]


def test_a_thing_is_told_its_deadline_and_found_by_its_key() -> None:
    deadlines = filled(("b", 5), ("a", 3))
    for name, deadline in (("a", 3), ("b", 5)):
        found = deadlines.get(name)
        assert found is not None
        assert found.deadline == deadline
    assert deadlines.get("c") is None
    assert len(deadlines) == 2


def test_popping_what_is_not_there_is_nothing() -> None:
    deadlines = filled(("a", 1))
    deadlines.pop("b")
    assert len(deadlines) == 1


def test_nothing_is_due_when_it_is_empty_or_cleared() -> None:
    deadlines = filled(("b", 5), ("a", 3))
    deadlines.clear()
    assert deadlines.first() is None
    assert len(deadlines) == 0
    assert filled().first() is None


def test_entries_of_what_was_popped_go_when_their_time_has_come() -> None:
    deadlines = filled(("z", 9), ("a", 1), ("a", 2), ("b", 3))
    deadlines.pop("a")
    assert [name for name, _ in [deadlines.first() or ("", None)]] == ["b"]
    assert len(deadlines._heap) == 1  # pyright: ignore[reportPrivateUsage]  # that memory is given back cannot be seen from outside


def test_what_moves_again_and_again_leaves_nothing_behind() -> None:
    deadlines = filled(("z", 1e9))
    for number in range(10_000):
        for name, deadline in (("a", number), ("b", 1e6 - number), ("c", 5.0)):
            deadlines.put(name, deadlines.get(name) or Thing(name), deadline)
    assert len(deadlines._heap) < 100  # pyright: ignore[reportPrivateUsage]  # as above
    assert upcoming(deadlines) == ["c", "a", "b", "z"]


changes = st.lists(st.tuples(st.sampled_from("abcde"), st.none() | st.integers(0, 12)), max_size=200)


@given(changes)
def test_it_does_what_a_sorted_dictionary_does(drawn: list[tuple[str, int | None]]) -> None:
    deadlines: Deadlines[str, Thing] = Deadlines()
    model: dict[str, int] = {}
    for name, deadline in drawn:
        if deadline is None:
            deadlines.pop(name)
            model.pop(name, None)
        else:
            deadlines.put(name, deadlines.get(name) or Thing(name), deadline)
            model[name] = deadline
        assert len(deadlines) == len(model)
        assert {each: found.deadline for each in "abcde" if (found := deadlines.get(each)) is not None} == model
        first = deadlines.first()
        assert (None if first is None else model[first[0]]) == min(model.values(), default=None)
    assert [model[name] for name in upcoming(deadlines)] == sorted(model.values())
